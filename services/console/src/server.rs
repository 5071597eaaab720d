//! The HTTP server of the console.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};
use spandrel::authorization::Authorizer;
use spandrel::diagnostics::log::LogTail;
use spandrel::{ObjectRef, Orb};
use spandrel_activator::CurrentCommands;
use spandrel_proxy::http::{AllowedHosts, Authentication, Caller, HttpLimits, HttpServer, Tokens};
use spandrel_proxy::problem::Problem;
use tokio::runtime::Runtime;

use crate::access::{Access, CONSOLE, Permissions, invalid};
use crate::assets;
use crate::channels::{self, Tails};
use crate::images;
use crate::load;
use crate::names;
use crate::objects::{Call, Objects, Target};
use crate::offers;
use crate::servers;

/// The port of consoles, unless another one is configured.
pub const PORT: u16 = 8809;

/// The name of the token that is made when none are configured.
const TOKEN_NAME: &str = "console";
/// The random octets of a token.
const TOKEN_OCTETS: usize = 24;
/// The most connections at a time: a browser has six.
const MAX_CONNECTIONS: usize = 64;
/// The most octets of a request's body.
const MAX_BODY: usize = 1 << 20;

/// The time between two looks for live tails whose pages were left.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);

/// The time in which a request's body must arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The address, the tokens and the parts of the process that a [`Console`] shows.
#[derive(Clone, Debug)]
pub struct ConsoleOptions {
    /// The address to listen at: by default port [`PORT`] of the loopback interface.
    pub address: SocketAddr,
    /// Names of this host by which browsers may address the console, besides the address itself and, for a loopback
    /// address, `localhost`.
    pub hosts: Vec<String>,
    /// The tokens of callers. Without them a random token is made, which [`Console::login_url`] has.
    pub tokens: Option<Tokens>,
    /// The policy by which the process decides requests; `None` if all are permitted.
    pub authorizer: Option<Authorizer>,
    /// The last lines of the process's log, in memory.
    pub log: LogTail,
    /// The data folder of the activator, for the output of servers.
    pub data: PathBuf,
}

impl ConsoleOptions {
    /// A console of this process at the default address, with a random token and without a policy.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], PORT)),
            hosts: Vec::new(),
            tokens: None,
            authorizer: None,
            log: LogTail::default(),
            data: data.into(),
        }
    }
}

/// References to the services whose state the console shows.
#[derive(Clone, Debug)]
pub struct Services {
    /// The root context of the naming service.
    pub naming: ObjectRef,
    /// The activator's `ImplementationRepository::Administration`.
    pub activator: ObjectRef,
    /// The commands of the activator, which tell where servers show their metrics.
    pub commands: CurrentCommands,
}

/// A running console. It ends with [`stop`](Self::stop), or when it is dropped.
#[derive(Debug)]
pub struct Console {
    server: Option<HttpServer>,
    runtime: Runtime,
    /// The token that was made.
    token: Option<String>,
    tails: Arc<Tails>,
}

/// The state that operations share.
struct Shared {
    orb: Orb,
    services: Services,
    objects: Objects,
    access: Access,
    log: LogTail,
    data: PathBuf,
    tails: Arc<Tails>,
}

type SharedState = State<Arc<Shared>>;

impl Console {
    /// Starts a console for the services of an ORB. Its numbers need an ORB with metrics
    /// ([`OrbBuilder::metrics`](spandrel::OrbBuilder::metrics)).
    ///
    /// # Errors
    /// An address that cannot be listened at; a system without threads or random numbers.
    pub fn start(orb: &Orb, services: Services, options: ConsoleOptions) -> anyhow::Result<Self> {
        let ConsoleOptions { address, hosts, tokens, authorizer, log, data } = options;
        let (tokens, token) = match tokens {
            Some(tokens) => (tokens, None),
            None => {
                let token = random_token()?;
                (Tokens::one(TOKEN_NAME, token.clone()), Some(token))
            }
        };
        let authentication = Arc::new(Authentication { tokens, ..Authentication::default() });
        let objects = Objects::new(orb, &services.naming);
        let access = Access::new(authorizer);
        let tails = Arc::new(Tails::default());
        let shared =
            Arc::new(Shared { orb: orb.clone(), services, objects, access, log, data, tails: Arc::clone(&tails) });
        let router = move |address| router(shared, authentication, AllowedHosts::of(address, &hosts));
        let limits = HttpLimits { connections: MAX_CONNECTIONS, ..HttpLimits::default() };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("spandrel-console")
            .enable_all()
            .build()
            .context("cannot start the threads of the console")?;
        let server = runtime.block_on(async { HttpServer::start(address, None, limits, router) })?;
        let idle = Arc::clone(&tails);
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(IDLE_INTERVAL).await;
                let idle = Arc::clone(&idle);
                // A thread that may block ends connections; the next round waits for it.
                _ = tokio::task::spawn_blocking(move || idle.end_idle()).await;
            }
        });
        Ok(Self { server: Some(server), runtime, token, tails })
    }

    /// The bound address, with the port that the system chose for port 0.
    ///
    /// # Panics
    /// Never: a console has a server until it is stopped.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.as_ref().map(HttpServer::address).expect("it is not stopped")
    }

    /// The URL of the page, with the token behind `#` if it was made by this console. A browser does not send that
    /// part to a server.
    #[must_use]
    pub fn login_url(&self) -> String {
        let url = format!("http://{}/", self.address());
        match &self.token {
            Some(token) => format!("{url}#token={token}"),
            None => url,
        }
    }

    /// Ends the console after its running requests, which have some seconds.
    pub fn stop(mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
        self.tails.end_all();
        // Operations have time limits of their own.
        self.runtime.shutdown_background();
    }
}

/// A token in hexadecimal digits.
fn random_token() -> anyhow::Result<String> {
    let mut octets = [0; TOKEN_OCTETS];
    getrandom::fill(&mut octets).map_err(|error| anyhow::anyhow!("cannot make a token: {error}"))?;
    Ok(octets.iter().map(|octet| format!("{octet:02x}")).collect())
}

fn router(shared: Arc<Shared>, authentication: Arc<Authentication>, hosts: AllowedHosts) -> Router {
    let api = Router::new()
        .route("/session", get(session))
        .route("/names", get(list_names))
        .route("/search", get(search_names))
        .route("/object", get(describe_object))
        .route("/state", get(object_state))
        .route("/call", post(call))
        .route("/offers", get(query_offers))
        .route("/offers/types", get(list_types))
        .route("/channels", get(list_channels))
        .route("/channels/consumers", get(list_consumers))
        .route("/channels/tail", post(begin_tail))
        .route("/channels/tail/{tail}", get(tail_events).delete(end_tail))
        .route("/images", get(list_images))
        .route("/images/tile", get(image_tile))
        .route("/servers", get(list_servers))
        .route("/servers/{server}/output", get(server_output))
        .route("/servers/{server}/{action}", post(change_server))
        .route("/load", get(show_load))
        .route("/log", get(show_log))
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            Arc::clone(&authentication).check(request, next)
        }))
        .with_state(shared);
    let files = assets::paths().fold(Router::new(), |router, path| router.route(path, get(assets::file)));
    let all = files.nest("/api", api).fallback(unknown).method_not_allowed_fallback(other_method);
    hosts.guard(all).layer(middleware::map_response(|mut response: Response| async {
        response.headers_mut().extend(assets::HEADERS);
        response
    }))
}

async fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such page")
}

async fn other_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "the method is not that of this page")
}

/// Runs an operation on the shared state.
async fn run(
    shared: Arc<Shared>,
    caller: Caller,
    operation: impl FnOnce(&Shared, &Permissions) -> Result<Value, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let running = Arc::clone(&shared);
    shared.access.run(caller, move |permissions| operation(&running, permissions)).await
}

async fn session(Extension(caller): Extension<Caller>) -> Response {
    let name = caller.0.identity().token_name.as_deref().unwrap_or_default();
    json!({ "token": name, "version": env!("CARGO_PKG_VERSION"), "pid": std::process::id() })
        .to_string()
        .into_response()
}

#[derive(Deserialize)]
struct ContextQuery {
    #[serde(default)]
    path: String,
    /// The number of bindings before the page.
    #[serde(default)]
    from: usize,
}

#[derive(Deserialize)]
struct SearchQuery {
    #[serde(default)]
    text: String,
}

async fn list_names(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(query): Query<ContextQuery>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| {
        names::list(permissions, &shared.services.naming, &query.path, query.from)
    })
    .await
}

async fn search_names(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(query): Query<SearchQuery>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, _| names::search(&shared.services.naming, &query.text)).await
}

#[derive(Deserialize)]
struct OffersQuery {
    /// The service type, whose subtypes count as well.
    #[serde(rename = "type")]
    service_type: String,
    #[serde(default)]
    constraint: String,
    /// The preference of the order.
    #[serde(default)]
    prefer: String,
}

async fn query_offers(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(query): Query<OffersQuery>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| {
        offers::query(permissions, &shared.orb, &query.service_type, &query.constraint, &query.prefer)
    })
    .await
}

async fn list_types(State(shared): SharedState, Extension(caller): Extension<Caller>) -> Result<Response, Problem> {
    run(shared, caller, |shared, permissions| offers::types(permissions, &shared.orb)).await
}

#[derive(Deserialize)]
struct ChannelQuery {
    /// The initial reference of the channel's service.
    service: String,
    /// The name of the channel, or its number.
    channel: String,
}

async fn list_channels(State(shared): SharedState, Extension(caller): Extension<Caller>) -> Result<Response, Problem> {
    run(shared, caller, |shared, permissions| channels::list(permissions, &shared.orb)).await
}

async fn list_consumers(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(query): Query<ChannelQuery>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| {
        channels::consumers(permissions, &shared.orb, &query.service, &query.channel)
    })
    .await
}

async fn begin_tail(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(query): Query<ChannelQuery>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| {
        shared.tails.begin(permissions, &shared.orb, &query.service, &query.channel)
    })
    .await
}

async fn tail_events(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Path(tail): Path<u64>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| shared.tails.events(permissions, tail)).await
}

async fn end_tail(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Path(tail): Path<u64>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| shared.tails.end(permissions, tail)).await
}

#[derive(Deserialize)]
struct ImagesQuery {
    collection: String,
    /// The number of the image before the page.
    #[serde(default)]
    after: u64,
}

async fn list_images(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(query): Query<ImagesQuery>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| {
        images::list(permissions, &shared.orb, &query.collection, query.after)
    })
    .await
}

async fn image_tile(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(tile): Query<images::Tile>,
) -> Result<Response, Problem> {
    let running = Arc::clone(&shared);
    let operation = move |permissions: &Permissions| images::tile(permissions, &running.orb, &tile);
    let pixels = shared.access.run_for(caller, operation).await?;
    Ok(([(CONTENT_TYPE, "application/octet-stream")], pixels).into_response())
}

async fn describe_object(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(target): Query<Target>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| shared.objects.describe(permissions, &target)).await
}

async fn object_state(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(target): Query<Target>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| shared.objects.state(permissions, &target)).await
}

async fn call(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    let read = tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(request.into_body(), MAX_BODY)).await;
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body of the request did not arrive in time");
    let body = read.map_err(late)?.map_err(|error| {
        let title = "the body of the request cannot be read";
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, title).detail(format!("{error}: it may have {MAX_BODY} octets"))
    })?;
    let call: Call = serde_json::from_slice(&body).map_err(|error| invalid(format!("the call is no JSON: {error}")))?;
    run(shared, caller, move |shared, permissions| shared.objects.call(permissions, &call)).await
}

async fn list_servers(State(shared): SharedState, Extension(caller): Extension<Caller>) -> Result<Response, Problem> {
    run(shared, caller, |shared, _| servers::list(&shared.services.activator, &shared.services.commands)).await
}

async fn change_server(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Path((server, action)): Path<(String, String)>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, _| servers::change(&shared.services.activator, &server, &action)).await
}

async fn server_output(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Path(server): Path<String>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| servers::output(permissions, &shared.data, &server)).await
}

#[derive(Deserialize)]
struct LoadQuery {
    /// A server of the activator; without it, this process.
    server: Option<String>,
}

async fn show_load(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(query): Query<LoadQuery>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| {
        let text = match query.server {
            Some(server) => {
                let Services { activator, commands, .. } = &shared.services;
                servers::metrics(permissions, activator, commands, &server)?
            }
            None => {
                permissions.check("read_metrics", CONSOLE, None)?;
                shared.orb.render_metrics()
            }
        };
        Ok(load::load_numbers(&text))
    })
    .await
}

#[derive(Deserialize)]
struct LogQuery {
    /// The number of lines that were read already.
    #[serde(default)]
    after: u64,
}

async fn show_log(
    State(shared): SharedState,
    Extension(caller): Extension<Caller>,
    Query(query): Query<LogQuery>,
) -> Result<Response, Problem> {
    run(shared, caller, move |shared, permissions| {
        permissions.check("read_log", CONSOLE, None)?;
        let (lines, written) = shared.log.after(query.after);
        Ok(json!({ "lines": lines, "written": written }))
    })
    .await
}
