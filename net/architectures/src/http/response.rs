//! The head of a response.

use std::fs::File;
use std::io::Write as _;
use std::time::SystemTime;

/// The status of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    PartialContent,
    MovedPermanently,
    NotModified,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    PreconditionFailed,
    ContentTooLarge,
    UriTooLong,
    RangeNotSatisfiable,
    HeadTooLong,
    InternalError,
    NotImplemented,
    Version,
}

impl Status {
    /// The code and the reason phrase.
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::PartialContent => "206 Partial Content",
            Self::MovedPermanently => "301 Moved Permanently",
            Self::NotModified => "304 Not Modified",
            Self::BadRequest => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::RequestTimeout => "408 Request Timeout",
            Self::PreconditionFailed => "412 Precondition Failed",
            Self::ContentTooLarge => "413 Content Too Large",
            Self::UriTooLong => "414 URI Too Long",
            Self::RangeNotSatisfiable => "416 Range Not Satisfiable",
            Self::HeadTooLong => "431 Request Header Fields Too Large",
            Self::InternalError => "500 Internal Server Error",
            Self::NotImplemented => "501 Not Implemented",
            Self::Version => "505 HTTP Version Not Supported",
        }
    }
}

/// A response: its status, and the file or a part of it.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: Status,
    pub(crate) content_type: &'static str,
    pub(crate) modified: Option<SystemTime>,
    /// The URL of `Location`, for redirects.
    pub(crate) location: Option<String>,
    /// The octets of `Content-Range`, for parts of files.
    pub(crate) content_range: Option<String>,
    /// The file, positioned at the first octet to be sent, and the number of octets.
    pub(crate) file: Option<(File, u64)>,
}

impl Response {
    /// A response without a file. Its body is its status.
    pub(crate) fn of(status: Status) -> Self {
        let content_type = "text/plain; charset=utf-8";
        Self { status, content_type, modified: None, location: None, content_range: None, file: None }
    }

    /// Appends the head, and the body if it is the status itself.
    pub(crate) fn write(&self, output: &mut Vec<u8>, is_head: bool, keeps_open: bool, is_old: bool) {
        let line = self.status.line();
        let has_body = self.status != Status::NotModified;
        let text = if self.file.is_none() && has_body { line } else { "" };
        let end = if text.is_empty() { "" } else { "\n" };
        let len = self.file.as_ref().map_or((text.len() + end.len()) as u64, |(_, len)| *len);
        let mut field = |name: &str, value: &dyn std::fmt::Display| {
            // Memory does not fail.
            let _ = write!(output, "{name}{value}\r\n");
        };
        field("HTTP/1.1 ", &line);
        field("Date: ", &httpdate::fmt_http_date(SystemTime::now()));
        if has_body {
            field("Content-Type: ", &self.content_type);
            field("Content-Length: ", &len);
        }
        if let Some(modified) = self.modified {
            field("Last-Modified: ", &httpdate::fmt_http_date(modified));
            field("Accept-Ranges: ", &"bytes");
        }
        if let Some(location) = &self.location {
            field("Location: ", location);
        }
        if let Some(range) = &self.content_range {
            field("Content-Range: ", range);
        }
        if self.status == Status::MethodNotAllowed {
            field("Allow: ", &"GET, HEAD");
        }
        match keeps_open {
            false => field("Connection: ", &"close"),
            true if is_old => field("Connection: ", &"keep-alive"),
            true => {}
        }
        output.extend_from_slice(b"\r\n");
        if !is_head {
            output.extend_from_slice(text.as_bytes());
            output.extend_from_slice(end.as_bytes());
        }
    }
}
