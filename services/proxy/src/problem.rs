//! Problem details (RFC 9457), and the HTTP status of each exception.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use spandrel::dynamic::{RequestError, UnknownUserException};
use spandrel::net::error::{escape, escape_lines, excerpt};
use spandrel::{SystemException, SystemExceptionKind};

/// The media type of problem details.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The most characters of an explanation: some excerpts of what others sent, and the words between them.
const MAX_DETAIL: usize = 2_048;

/// The reason for which a request has no result. Its texts are in one line and bounded, also where a peer chose them.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    /// The members of the JSON object, without `status`.
    members: Map<String, Value>,
    /// Further header fields of the response.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem of the type `about:blank`, without an explanation.
    #[must_use]
    pub fn new(status: StatusCode, title: impl Into<String>) -> Self {
        let mut members = Map::new();
        members.insert("type".to_owned(), json!("about:blank"));
        members.insert("title".to_owned(), json!(excerpt(&title.into()).to_string()));
        Self { status, members, headers: Vec::new() }
    }

    /// A fault of this server.
    #[must_use]
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed").detail(detail)
    }

    /// Adds an explanation for people, cut at `MAX_DETAIL`.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.members.insert("detail".to_owned(), json!(escape(&detail.into()).at_most(MAX_DETAIL).to_string()));
        self
    }

    /// Adds a header field of the response.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Says when the request may be sent again.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        self.header(RETRY_AFTER, seconds)
    }

    /// Its JSON object, for an answer that has other parts.
    #[must_use]
    pub fn json(&self) -> Value {
        Value::Object(self.members.clone())
    }

    /// The HTTP status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Explains the problem by an error and its causes, cut at `MAX_DETAIL`.
    #[must_use]
    pub fn caused_by(self, error: &dyn std::error::Error) -> Self {
        self.detail(with_causes(error))
    }

    fn of_user_exception(raised: &UnknownUserException) -> Self {
        let mut problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, raised.to_string());
        let exception = serde_json::from_str(&raised.to_json()).unwrap_or_default();
        problem.members.insert("type".to_owned(), json!(excerpt(raised.repository_id()).to_string()));
        problem.members.insert("exception".to_owned(), exception);
        problem
    }

    /// The answer to a request whose call has ended with this exception.
    #[must_use]
    pub fn of_system_exception(exception: &SystemException) -> Self {
        let status = status_of(exception.kind());
        let plain = SystemException::new(exception.kind(), exception.minor(), exception.completed());
        let mut problem = Self::new(status, plain.to_string());
        // The rest of a detail, such as the rule of the policy that denies a request, is for the log of this process.
        let mut detail = exception.public_detail().or(exception.detail()).unwrap_or_default().to_owned();
        if let Some(cause) = std::error::Error::source(exception) {
            detail =
                [detail, with_causes(cause)].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
        }
        if !detail.is_empty() {
            problem = problem.detail(detail);
        }
        let described = spandrel::dynamic::system_exception_json(exception);
        problem.members.insert("type".to_owned(), json!(exception.kind().repository_id()));
        problem.members.insert("system_exception".to_owned(), serde_json::from_str(&described).unwrap_or_default());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            return problem.retry_after(1);
        }
        problem
    }
}

/// The text of an error and its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The HTTP status for a kind of system exception: 502 for kinds without one of their own.
#[must_use]
pub fn status_of(kind: SystemExceptionKind) -> StatusCode {
    use SystemExceptionKind as Kind;
    match kind {
        Kind::BadParam | Kind::DataConversion | Kind::CodesetIncompatible => StatusCode::BAD_REQUEST,
        Kind::NoPermission => StatusCode::FORBIDDEN,
        Kind::ObjectNotExist | Kind::InvObjref => StatusCode::NOT_FOUND,
        Kind::BadOperation | Kind::NoImplement => StatusCode::NOT_IMPLEMENTED,
        Kind::Transient | Kind::NoResources | Kind::ImpLimit | Kind::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    }
}

impl From<&RequestError> for Problem {
    fn from(error: &RequestError) -> Self {
        match error {
            RequestError::Raised(raised) => Self::of_user_exception(raised),
            RequestError::System(exception) => Self::of_system_exception(exception),
            other => Self::internal(other.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        self.members.insert("status".to_owned(), json!(self.status.as_u16()));
        let json = Value::Object(self.members).to_string();
        let mut response = (self.status, escape_lines(&json).into_owned()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.extend(self.headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use spandrel::CompletionStatus;

    use super::*;

    #[test]
    fn the_explanation_of_an_exception_is_not_cut_with_its_title() {
        let text =
            format!("`_interface` of {}; the server says: `_interface` is denied to `operator`", "k".repeat(200));
        let exception = SystemException::no_permission(0, CompletionStatus::No).with_detail(text.clone());
        let problem = Problem::of_system_exception(&exception);
        assert_eq!(problem.members["title"], "CORBA::NO_PERMISSION (minor 0x00000000, COMPLETED_NO)");
        assert_eq!(problem.members["detail"], text);
    }
}
