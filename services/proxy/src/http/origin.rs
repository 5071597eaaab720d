//! The checks of `Host` and `Origin`, against pages of other sites in the browser of a user of this server.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderName, StatusCode};
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;

use crate::problem::Problem;

/// The hosts, with their ports, as which a server may be addressed: `localhost:8080`. With them, a page of another site
/// cannot reach the server by a name of its own that leads to this machine (DNS rebinding).
#[derive(Clone, Debug)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// The address itself, `localhost` if it is a loopback address, and these names of the host, all with the port of
    /// the address. The default ports of HTTP and HTTPS may be left out.
    #[must_use]
    pub fn of(address: SocketAddr, names: &[String]) -> Self {
        let mut all = vec![address.to_string()];
        if address.ip().is_loopback() {
            all.push(format!("localhost:{}", address.port()));
        }
        all.extend(names.iter().map(|name| format!("{name}:{}", address.port())));
        let without_port = |name: &String| {
            let short = name.strip_suffix(":80").or_else(|| name.strip_suffix(":443"));
            short.map(str::to_owned)
        };
        let short: Vec<_> = all.iter().filter_map(without_port).collect();
        all.extend(short);
        Self(all)
    }

    /// A router that answers requests for other hosts, and those that pages of another origin make, with 421 and 403.
    pub fn guard(self, router: Router) -> Router {
        let hosts = Arc::new(self);
        router.layer(middleware::from_fn(move |request: Request, next: Next| {
            let hosts = Arc::clone(&hosts);
            async move {
                match hosts.refusal(&request) {
                    Some(problem) => problem.into_response(),
                    None => next.run(request).await,
                }
            }
        }))
    }

    fn refusal(&self, request: &Request) -> Option<Problem> {
        if !host(request).is_some_and(|host| self.allows(host)) {
            let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, "the request is for another host");
            return Some(problem.detail(format!("this server is addressed as {}", self.0.join(" or "))));
        }
        origin(request).is_some_and(|origin| !origin.is_some_and(|host| self.allows(host))).then(foreign_origin)
    }

    fn allows(&self, host: &str) -> bool {
        self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }
}

/// The refusal of a request that a page of another origin than the server itself makes, if it is one.
pub(super) fn refusal_of_other_origin(request: &Request) -> Option<Problem> {
    let host = host(request);
    origin(request).is_some_and(|origin| origin.is_none() || origin != host).then(foreign_origin)
}

fn foreign_origin() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "the request comes from a page of another origin")
}

fn host(request: &Request) -> Option<&str> {
    header(request, HOST).or_else(|| request.uri().authority().map(|authority| authority.as_str()))
}

/// The host and port of the page that makes a request; the inner `None` for a page without one, such as a file.
fn origin(request: &Request) -> Option<Option<&str>> {
    let origin = header(request, ORIGIN)?;
    Some(origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")))
}

/// The value of a header, empty if it is not text.
fn header(request: &Request, name: HeaderName) -> Option<&str> {
    request.headers().get(name).map(|value| value.to_str().unwrap_or_default())
}
