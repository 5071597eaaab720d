//! The check of `Host` and `Origin`, against pages of other sites in a browser of this machine (DNS rebinding).

use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{HOST, ORIGIN};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::problem::Problem;

/// The hosts, with their ports, as which a server may be addressed: `localhost:8080`.
#[derive(Clone, Debug)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// These hosts with their ports.
    #[must_use]
    pub fn new(hosts: impl IntoIterator<Item = String>) -> Self {
        Self(hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect())
    }

    /// A middleware that refuses requests for another host, and those that pages of another origin make.
    pub async fn check(self: Arc<Self>, request: Request, next: Next) -> Response {
        match self.refusal(&request) {
            Some(problem) => problem.into_response(),
            None => next.run(request).await,
        }
    }

    fn refusal(&self, request: &Request) -> Option<Problem> {
        let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
        let host = header(HOST).or_else(|| request.uri().authority().map(|authority| authority.as_str()));
        if !host.is_some_and(|host| self.allows(host)) {
            let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, "the request is for another host");
            return Some(problem.detail(format!("this server is addressed as {}", self.0.join(" or "))));
        }
        let is_foreign = |origin: &str| {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            !host.is_some_and(|host| self.allows(host))
        };
        let is_refused = header(ORIGIN).is_some_and(is_foreign);
        is_refused.then(|| Problem::new(StatusCode::FORBIDDEN, "the request comes from a page of another origin"))
    }

    fn allows(&self, host: &str) -> bool {
        self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }
}
