//! Requests for objects: `POST /NAME/OPERATION`.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, FromRequest as _, Request, State};
use axum::http::header::{ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use percent_encoding::percent_decode_str;
use serde::de::IgnoredAny;
use spandrel::authorization::Authorizer;
use spandrel::dynamic::{ArgumentError, CallableError, DynamicObject, OperationDescription, TextContext};
use spandrel::net::error::escape_lines;
use spandrel::services::cos_naming::NameComponent;
use spandrel::services::name;
use spandrel::types::{Any, Ior, TypeCode};
use tokio::sync::Semaphore;

use crate::catalogue::Catalogue;
use crate::http::{Authentication, Caller};
use crate::openapi::{self, idl_name};
use crate::problem::Problem;

/// The numbers, times and sizes that bound the calls which HTTP clients cause.
#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// The most calls at a time (default 1,024). Further requests get 503.
    pub calls: usize,
    /// The longest time limit that a client may request for a call, and the limit of calls without such a
    /// request (default 30 s).
    pub timeout: Duration,
    /// The time in which a request's body must arrive (default 30 s).
    pub body_timeout: Duration,
    /// The most octets of a request's body (default 4 MiB). A longer one gets 413.
    pub body_octets: usize,
    /// The most octets of the bodies of all requests at a time (default 256 MiB); one without a length counts as the
    /// longest. Further requests get 503.
    pub bodies: usize,
}

/// The most types that the values of `any` in a request may name. For each, the arguments are read again.
const MAX_NAMED_TYPES: usize = 16;
/// The unit in which octets of bodies are counted.
const KIBIBYTE: usize = 1 << 10;

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            calls: 1024,
            timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            body_octets: 4 << 20,
            bodies: 256 << 20,
        }
    }
}

/// Serves objects of a naming service by HTTP.
#[derive(Debug)]
pub struct Proxy {
    catalogue: Catalogue,
    authorizer: Option<Authorizer>,
    limits: CallLimits,
    free: Semaphore,
    /// The room for bodies, in KiB.
    room: Semaphore,
}

impl Proxy {
    /// A proxy for these objects. Without an authorizer, every authenticated caller may call what is served.
    #[must_use]
    pub fn new(catalogue: Catalogue, authorizer: Option<Authorizer>, limits: CallLimits) -> Self {
        let (free, room) = (Semaphore::new(limits.calls), Semaphore::new(limits.bodies / KIBIBYTE));
        Self { catalogue, authorizer, limits, free, room }
    }

    /// The routes: `/healthz`, `/openapi.json`, and the objects.
    pub fn router(self, authentication: Authentication) -> Router {
        let authentication = Arc::new(authentication);
        let check = move |request: Request, next: middleware::Next| Arc::clone(&authentication).check(request, next);
        Router::new()
            .route("/openapi.json", get(document))
            .fallback(call)
            .layer(middleware::from_fn(check))
            .layer(DefaultBodyLimit::max(self.limits.body_octets))
            // Probes have no token.
            .route("/healthz", get(|| async { "ok\n" }))
            .with_state(Arc::new(self))
    }
}

async fn document(State(proxy): State<Arc<Proxy>>, Extension(caller): Extension<Caller>) -> Result<Response, Problem> {
    let _permit = proxy.free.try_acquire().map_err(|_| busy())?;
    let timeout = proxy.limits.timeout;
    let document = tokio::time::timeout(timeout, proxy.document(&caller)).await;
    document.map_err(|_| too_slow("the document was not made", timeout))?
}

async fn call(
    State(proxy): State<Arc<Proxy>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    answer(&proxy, &caller, request).await
}

/// Whether the object of a URL that a caller gives would have to be looked up elsewhere: `corbaname:`, `corbaloc:rir:` and
/// `file:`. The caller would make this server call others, or read its files.
#[must_use]
pub fn is_looked_up(url: &str) -> bool {
    let url = url.trim_ascii().to_ascii_lowercase();
    url.starts_with("corbaname:") || url.starts_with("corbaloc:rir") || url.starts_with("file:")
}

async fn answer(proxy: &Proxy, caller: &Caller, request: Request) -> Result<Response, Problem> {
    let Some((name, member)) = target(request.uri().path()) else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "the path has no object and operation")
            .detail("expected /NAME/OPERATION, such as /Bank/alice/deposit"));
    };
    proxy.permits_name(caller, &name)?;
    let timeout = wanted_timeout(request.headers()).map_or(proxy.limits.timeout, |it| it.min(proxy.limits.timeout));
    let lookup = tokio::time::timeout(timeout, proxy.catalogue.object(&name)).await;
    let object = lookup.map_err(|_| too_slow("the object or its interface was not found", timeout))??;
    if !proxy.catalogue.serves(&name, &member) {
        return Err(no_operation(&name, &member));
    }
    let allowed = allowed_methods(&object, &name, &member)?;
    if request.method() == Method::OPTIONS {
        return Ok((StatusCode::NO_CONTENT, [(ALLOW, HeaderValue::from_static(allowed))]).into_response());
    }
    let operation = operation_of(&object, &name, &member, request.method(), allowed)?;
    proxy.permits(caller, &name, &object, operation)?;
    let _permit = proxy.free.try_acquire().map_err(|_| busy())?;
    let _room = proxy.room.try_acquire_many(proxy.kibibytes(request.headers())).map_err(|_| busy())?;
    let body = body_of(proxy, request).await?;
    let read = tokio::time::timeout(timeout, proxy.arguments(&object, operation, &body)).await;
    let arguments = read.map_err(|_| too_slow("the types in the arguments were not found", timeout))??;
    proxy.perform(&name, &object, operation, &arguments, timeout).await
}

impl Proxy {
    /// The OpenAPI document of the operations that the caller may call.
    async fn document(&self, caller: &Caller) -> Result<Response, Problem> {
        let mut objects = Vec::new();
        for name in self.catalogue.names().await? {
            // An object that is out of reach is left out.
            if objects.len() < openapi::MAX_OBJECTS
                && let Ok(object) = self.catalogue.object(&name).await
            {
                objects.push((name, object));
            }
        }
        let is_permitted = |name: &str, object: &DynamicObject, operation: &OperationDescription| {
            let would_permit = |authorizer: &Authorizer| {
                authorizer.would_permit_caller(&caller.0, &operation.name, object.interface().id(), Some(name))
            };
            self.catalogue.serves(name, idl_name(operation)) && self.authorizer.as_ref().is_none_or(would_permit)
        };
        let document = openapi::document(&objects, &is_permitted);
        Ok(json_response(StatusCode::OK, document.to_string()))
    }

    /// Refuses a name of which the caller may call nothing, before this server looks it up.
    fn permits_name(&self, caller: &Caller, name: &str) -> Result<(), Problem> {
        let Some(authorizer) = &self.authorizer else { return Ok(()) };
        let decided = authorizer.permits_path_of_caller(&caller.0, name);
        decided.map_err(|exception| Problem::of_system_exception(&exception))
    }

    /// Decides about a call by the policy.
    fn permits(
        &self,
        caller: &Caller,
        name: &str,
        object: &DynamicObject,
        operation: &OperationDescription,
    ) -> Result<(), Problem> {
        let Some(authorizer) = &self.authorizer else { return Ok(()) };
        let decided = authorizer.permits_caller(&caller.0, &operation.name, object.interface().id(), Some(name));
        decided.map_err(|exception| Problem::of_system_exception(&exception))
    }

    /// The room for a request's body: for its length, or for the longest body if it comes in chunks.
    fn kibibytes(&self, headers: &HeaderMap) -> u32 {
        let longest = self.limits.body_octets;
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        let is_chunked = headers.contains_key(TRANSFER_ENCODING);
        let octets = if is_chunked { longest } else { length.unwrap_or(0).min(longest) };
        u32::try_from(octets.div_ceil(KIBIBYTE)).unwrap_or(u32::MAX)
    }

    /// Reads arguments. The types that an `any` names are looked up when they are seen to be unknown.
    async fn arguments(
        &self,
        object: &DynamicObject,
        operation: &OperationDescription,
        body: &str,
    ) -> Result<Vec<Any>, Problem> {
        let mut type_codes = HashMap::new();
        loop {
            let (unknown, read) = self.read(object, operation, body, &type_codes);
            let error = match (unknown, read) {
                (_, Ok(arguments)) => return Ok(arguments),
                (Some(name), Err(_)) if type_codes.len() < MAX_NAMED_TYPES => {
                    let found = self.catalogue.type_code(object.object(), &name).await?;
                    type_codes.insert(name, found);
                    continue;
                }
                (_, Err(error)) => error,
            };
            let title = "the arguments are not those of the operation";
            return Err(Problem::new(StatusCode::BAD_REQUEST, title).caused_by(&error));
        }
    }

    /// Reads arguments with these types, of which `None` is one that does not exist. The name is that of a type which
    /// is not among them.
    fn read(
        &self,
        object: &DynamicObject,
        operation: &OperationDescription,
        body: &str,
        known: &HashMap<String, Option<TypeCode>>,
    ) -> (Option<String>, Result<Vec<Any>, ArgumentError>) {
        let unknown = Cell::new(None);
        let types = |name: &str| {
            let found = known.get(name);
            if found.is_none() {
                unknown.set(Some(name.to_owned()));
            }
            found.cloned().flatten()
        };
        let references = |url: &str| self.reference(url);
        let context = TextContext::new();
        let context =
            context.value_types(object.interface().value_types()).types(&types).references(&references).strict();
        let read = operation.read_arguments(body, &context);
        (unknown.take(), read)
    }

    /// A reference in an argument, which names its object by address.
    fn reference(&self, url: &str) -> Result<Ior, String> {
        let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if !matches!(scheme.as_str(), "ior" | "corbaloc") || is_looked_up(url) {
            return Err("expected a reference `IOR:…` or `corbaloc:…`".to_owned());
        }
        let object = self.catalogue.orb().string_to_object(url).map_err(|error| error.to_string())?;
        Ok(object.ior().clone())
    }

    async fn perform(
        &self,
        name: &str,
        object: &DynamicObject,
        operation: &OperationDescription,
        arguments: &[Any],
        timeout: Duration,
    ) -> Result<Response, Problem> {
        // A dropped future abandons the call: at the end of the time, and of the HTTP connection.
        let called = tokio::time::timeout(timeout, object.call_async(&operation.name, arguments)).await;
        let outcome = match called {
            Err(_) => return Err(too_slow(&format!("`{}` was not answered", operation.name), timeout)),
            Ok(Err(error)) => {
                let problem = Problem::from(&error);
                // The object may have moved or ended.
                if problem.status() != StatusCode::UNPROCESSABLE_ENTITY {
                    self.catalogue.forget(name).await;
                }
                return Err(problem);
            }
            Ok(Ok(outcome)) => outcome,
        };
        let json = outcome.to_json().map_err(|error| {
            Problem::new(StatusCode::BAD_GATEWAY, "the result cannot be written as JSON").caused_by(&error)
        })?;
        let status = if operation.is_oneway { StatusCode::ACCEPTED } else { StatusCode::OK };
        Ok(json_response(status, json))
    }
}

fn busy() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests at a time").retry_after(1)
}

fn too_slow(reason: &str, timeout: Duration) -> Problem {
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "the call took too long").detail(format!("{reason} within {timeout:?}"))
}

/// The name, in its string form, and the operation or attribute of a path. Each segment is a component of the name in its
/// string form, in which a slash needs no backslash. All spellings of a name have the same string form here, so that
/// patterns of what is served and rules of the policy see one name for an object.
fn target(path: &str) -> Option<(String, String)> {
    let mut segments = path.strip_prefix('/')?.split('/').map(|segment| percent_decode_str(segment).decode_utf8());
    let member = segments.next_back()?.ok()?.into_owned();
    let components = segments.map(|segment| component(&segment.ok()?)).collect::<Option<Vec<_>>>()?;
    name::check(&components).ok()?;
    if member.is_empty() { None } else { Some((name::to_string(&components), member)) }
}

/// The component of a segment.
fn component(segment: &str) -> Option<NameComponent> {
    let (mut text, mut is_escaped) = (String::new(), false);
    for character in segment.chars() {
        if character == '/' && !is_escaped {
            text.push('\\');
        }
        text.push(character);
        is_escaped = character == '\\' && !is_escaped;
    }
    let mut parsed = name::parse(&text).ok()?;
    parsed.pop().filter(|_| parsed.is_empty())
}

/// The methods of an operation (POST) or attribute (GET, and PUT unless it is readonly), as `Allow` lists them.
fn allowed_methods(object: &DynamicObject, name: &str, member: &str) -> Result<&'static str, Problem> {
    // Accessors have the names of their attributes.
    if member.starts_with('_') {
        return Err(no_operation(name, member));
    }
    let interface = object.interface();
    interface.callable(member, false).map_err(|error| callable_problem(name, &error))?;
    Ok(match interface.attributes().iter().find(|attribute| attribute.name == member) {
        Some(attribute) if attribute.is_readonly => "GET, HEAD, OPTIONS",
        Some(_) => "GET, HEAD, OPTIONS, PUT",
        None => "OPTIONS, POST",
    })
}

/// The operation for one of the allowed methods.
fn operation_of<'o>(
    object: &'o DynamicObject,
    name: &str,
    member: &str,
    method: &Method,
    allowed: &'static str,
) -> Result<&'o OperationDescription, Problem> {
    if !allowed.split(", ").any(|allowed| allowed == method.as_str()) {
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "the method is not allowed");
        return Err(problem.detail(format!("allowed: {allowed}")).header(ALLOW, HeaderValue::from_static(allowed)));
    }
    let found = object.interface().callable(member, method == Method::PUT);
    found.map_err(|error| callable_problem(name, &error))
}

fn callable_problem(name: &str, error: &CallableError) -> Problem {
    match error {
        CallableError::Unknown { name: member, .. } => no_operation(name, member),
        other => Problem::new(StatusCode::NOT_IMPLEMENTED, "the operation cannot be called").caused_by(other),
    }
}

fn no_operation(name: &str, member: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such operation")
        .detail(format!("`{name}` has no operation or attribute `{member}` that is served"))
}

/// The time that a client wants to wait at most: `Prefer: wait=SECONDS` (RFC 7240, 4.3).
fn wanted_timeout(headers: &HeaderMap) -> Option<Duration> {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut preferences = preferences.flat_map(|value| value.split(','));
    let seconds = preferences.find_map(|text| text.trim().strip_prefix("wait=")?.trim().parse().ok())?;
    Some(Duration::from_secs(seconds))
}

/// The body of a request as text.
async fn body_of(proxy: &Proxy, request: Request) -> Result<String, Problem> {
    let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default().to_owned());
    let encodings = request.headers().get_all(CONTENT_ENCODING).iter();
    // A short body could stand for a very long one.
    if encodings.into_iter().any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is compressed")
            .detail("expected a body without `Content-Encoding`")
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity")));
    }
    let read = tokio::time::timeout(proxy.limits.body_timeout, Bytes::from_request(request, &())).await;
    let octets = match read {
        Err(_) => return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
        Ok(Err(rejection)) => return Err(Problem::new(rejection.status(), rejection.body_text())),
        Ok(Ok(octets)) => octets,
    };
    let is_json = content_type.as_deref().is_some_and(|text| {
        let media_type = text.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case("application/json")
    });
    if !octets.is_empty() && !is_json {
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not JSON")
            .detail("expected `Content-Type: application/json`"));
    }
    let text = String::from_utf8(octets.into())
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "the body is not UTF-8").caused_by(&error))?;
    // The reader of arguments would take more than JSON.
    if !text.trim().is_empty()
        && let Err(error) = serde_json::from_str::<IgnoredAny>(&text)
    {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "the body is not JSON").caused_by(&error));
    }
    Ok(text)
}

fn json_response(status: StatusCode, json: String) -> Response {
    let json = escape_lines(&json).into_owned();
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], json).into_response()
}
