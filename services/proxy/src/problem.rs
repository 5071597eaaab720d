//! Problem details (RFC 9457), and the HTTP status of each exception.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use spandrel::dynamic::{RequestError, UnknownUserException};
use spandrel::{SystemException, SystemExceptionKind};

/// The media type of problem details.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The reason for which a request has no result.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    /// The members of the JSON object, without `status`.
    members: Map<String, Value>,
    /// The time after which the request may be sent again, in seconds.
    retry_after: Option<u32>,
}

impl Problem {
    /// A problem with this status and title.
    #[must_use]
    pub fn new(status: StatusCode, title: impl Into<String>) -> Self {
        let mut members = Map::new();
        members.insert("type".to_owned(), json!("about:blank"));
        members.insert("title".to_owned(), json!(title.into()));
        Self { status, members, retry_after: None }
    }

    /// A fault of this server.
    #[must_use]
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed").detail(detail)
    }

    /// Adds an explanation.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.members.insert("detail".to_owned(), json!(detail.into()));
        self
    }

    /// Says when the request may be sent again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// An error and its causes as an explanation.
    #[must_use]
    pub fn caused_by(self, error: &dyn std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        self.detail(text)
    }

    fn of_user_exception(raised: &UnknownUserException) -> Self {
        let mut problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, raised.to_string());
        let exception = serde_json::from_str(&raised.to_json()).unwrap_or_default();
        problem.members.insert("type".to_owned(), json!(raised.repository_id()));
        problem.members.insert("exception".to_owned(), exception);
        problem
    }

    /// The problem of a system exception.
    #[must_use]
    pub fn of_system_exception(exception: &SystemException) -> Self {
        let status = status_of(exception.kind());
        let mut problem = Self::new(status, exception.to_string()).caused_by(exception);
        let described = spandrel::dynamic::system_exception_json(exception);
        problem.members.insert("type".to_owned(), json!(exception.kind().repository_id()));
        problem.members.insert("system_exception".to_owned(), serde_json::from_str(&described).unwrap_or_default());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            problem.retry_after = Some(1);
        }
        problem
    }
}

/// The HTTP status of a system exception.
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
        let mut response = (self.status, Value::Object(self.members).to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
