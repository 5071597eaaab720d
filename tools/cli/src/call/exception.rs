//! Exceptions of operations.

use anyhow::anyhow;
use spandrel::dynamic::{DynAny, RequestError};

use crate::json::JsonObject;

/// An exception of the operation, with its members.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct OperationException {
    text: String,
    /// The outcome of the call as one JSON object.
    pub(super) json: String,
}

/// The error of a call for people and programs.
pub(super) fn explain(error: RequestError) -> anyhow::Error {
    let raised = match error {
        RequestError::Raised(raised) => raised,
        RequestError::System(exception) => return anyhow!(exception),
        other => return anyhow!(other),
    };
    let Ok(members) = DynAny::new(&raised.exception) else { return anyhow!(raised) };
    let text = format!("{raised} {members}");
    let exception = JsonObject::new()
        .value("id", raised.exception.type_code().id().unwrap_or_default())
        .json("members", &members.to_json().unwrap_or_else(|_| "null".to_owned()));
    let json = JsonObject::new().value("error", text.clone()).json("exception", &exception.finish()).finish();
    anyhow!(OperationException { text, json })
}
