//! The operations of callers: decided by the policy, bounded in number, and outside of the threads that serve HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use spandrel::SystemException;
use spandrel::authorization::{Authorizer, ReceivedCredentials};
use spandrel::net::error::escape_lines;
use spandrel_proxy::http::Caller;
use spandrel_proxy::problem::Problem;
use tokio::sync::Semaphore;

/// The most operations at a time: each has a thread.
const MAX_RUNNING: usize = 16;
/// The time limit of the console's own calls.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// The interface that rules name for what the console itself shows.
pub(crate) const CONSOLE: &str = "IDL:spandrel/Console:1.0";

/// The policy, and the threads for operations.
#[derive(Debug)]
pub(crate) struct Access {
    authorizer: Option<Authorizer>,
    running: Arc<Semaphore>,
}

/// A caller during an operation.
pub(crate) struct Permissions {
    authorizer: Option<Authorizer>,
    caller: ReceivedCredentials,
}

impl Access {
    pub(crate) fn new(authorizer: Option<Authorizer>) -> Self {
        Self { authorizer, running: Arc::new(Semaphore::new(MAX_RUNNING)) }
    }

    /// Runs an operation for a caller on a thread that may block. The policy decides about its calls of objects in this
    /// process. The thread goes on if the caller ends its request: the operation's calls have time limits.
    pub(crate) async fn run(
        &self,
        caller: Caller,
        operation: impl FnOnce(&Permissions) -> Result<Value, Problem> + Send + 'static,
    ) -> Result<Response, Problem> {
        let value = self.run_for(caller, operation).await?;
        let json = escape_lines(&value.to_string()).into_owned();
        Ok(([(CONTENT_TYPE, "application/json")], json).into_response())
    }

    /// As [`run`](Self::run), with a result of another form.
    pub(crate) async fn run_for<T: Send + 'static>(
        &self,
        caller: Caller,
        operation: impl FnOnce(&Permissions) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let permissions = Permissions { authorizer: self.authorizer.clone(), caller: caller.0 };
        let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() else {
            let title = "too many operations of the console run";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, title).retry_after(1));
        };
        let decision = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            match &permissions.authorizer {
                Some(authorizer) => authorizer.as_caller(&permissions.caller, || operation(&permissions)),
                None => operation(&permissions),
            }
        });
        decision.await.map_err(|error| Problem::internal(error.to_string()))?
    }
}

impl Permissions {
    /// Whether a policy decides.
    pub(crate) fn has_policy(&self) -> bool {
        self.authorizer.is_some()
    }

    /// The name of the caller's token.
    pub(crate) fn token_name(&self) -> &str {
        self.caller.identity().token_name.as_deref().unwrap_or_default()
    }

    /// Decides about an operation on an object with this repository id and path.
    pub(crate) fn check(&self, operation: &str, interface: &str, path: Option<&str>) -> Result<(), Problem> {
        let Some(authorizer) = &self.authorizer else { return Ok(()) };
        authorizer.permits_caller(&self.caller, operation, interface, path).map_err(|exception| failed(&exception))
    }
}

/// The problem of a call that failed.
pub(crate) fn failed(exception: &SystemException) -> Problem {
    Problem::of_system_exception(exception)
}

/// The problem of a request that has another form than it needs.
pub(crate) fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "the request is invalid").detail(detail)
}
