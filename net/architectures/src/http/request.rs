//! The head of a request.

use std::net::Ipv6Addr;

use super::conditions::{Conditions, Date, Tags};
use super::response::Status;

/// The longest head of a request, in octets: 8 KiB.
pub const MAX_HEAD: usize = 8 << 10;
/// The longest target of a request, in octets: 2 KiB.
pub const MAX_TARGET: usize = 2 << 10;
/// The longest body of a request, in octets: 1 MiB. Bodies are discarded.
pub const MAX_BODY: u64 = 1 << 20;
/// The greatest number of header fields.
const MAX_FIELDS: usize = 64;

/// The parts of a request that the response depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// GET or HEAD; other methods are rejected.
    pub method: Method,
    /// The segments of the path, decoded. None is empty, `.`, `..`, or contains `/` or a zero octet.
    pub segments: Vec<Vec<u8>>,
    /// Whether the path ends with `/` or `/.`.
    pub is_folder: bool,
    /// The conditions under which it is executed.
    pub conditions: Conditions,
    /// `Range`, if the method is GET, and if there is one range of octets.
    pub range: Option<Range>,
    /// `If-Range`: the range holds for this version only. An entity tag, which we never send, is of no version.
    pub if_range: Option<Date>,
    /// The length of the body, which the server skips to reach the next request.
    pub body: BodyLen,
    /// Whether the client wants to send further requests.
    pub keeps_open: bool,
    /// Whether it is of HTTP/1.0.
    pub is_old: bool,
}

/// The methods that files have, and the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`: the file with its headers.
    Get,
    /// `HEAD`: the headers only.
    Head,
    /// A method of RFC 9110 that files do not have.
    Other,
}

/// The length of a request's body (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLen {
    /// `Content-Length`, or zero without one.
    Octets(u64),
    /// `Transfer-Encoding: chunked`: the body tells where it ends.
    Chunked,
}

/// A range of octets (RFC 9110, 14.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// From this octet, to this one inclusive or to the end.
    From(u64, Option<u64>),
    /// The last octets, this number.
    Last(u64),
}

/// The reason for which octets are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// The syntax is wrong, or a mandatory field is missing.
    #[error("the request is malformed")]
    Malformed,
    /// The target has more than [`MAX_TARGET`] octets.
    #[error("the target of the request is too long")]
    TargetTooLong,
    /// The head has more than [`MAX_HEAD`] octets, or too many fields.
    #[error("the head of the request is too long")]
    HeadTooLong,
    /// The method is unknown, or the body has a transfer coding other than `chunked`.
    #[error("the request needs a method or a transfer coding that is not implemented")]
    NotImplemented,
    /// The protocol's version is not 1.0 or a later one of 1.
    #[error("the version of HTTP is not supported")]
    Version,
    /// The rest has not arrived in time.
    #[error("the request has not arrived in time")]
    Timeout,
}

impl From<BadRequest> for Status {
    fn from(reason: BadRequest) -> Self {
        match reason {
            BadRequest::Malformed => Self::BadRequest,
            BadRequest::TargetTooLong => Self::UriTooLong,
            BadRequest::HeadTooLong => Self::HeadTooLong,
            BadRequest::NotImplemented => Self::NotImplemented,
            BadRequest::Version => Self::Version,
            BadRequest::Timeout => Self::RequestTimeout,
        }
    }
}

/// Parses the head of a request at the beginning of `octets`; returns it with its length. None if it is incomplete.
///
/// # Errors
/// [`BadRequest`].
pub fn parse(octets: &[u8]) -> Result<Option<(Request, usize)>, BadRequest> {
    match parse_known_version(octets) {
        Err(BadRequest::Version) => {
            let octets = with_version_1_1(octets).ok_or(BadRequest::Version)?;
            parse_known_version(&octets)
        }
        parsed => parsed,
    }
}

/// The octets with version 1.1 in place of a later one of 1, which a server answers as the highest version that it has
/// (RFC 9110, 2.5).
fn with_version_1_1(octets: &[u8]) -> Option<Vec<u8>> {
    const VERSION: &[u8] = b" HTTP/1.";
    let minor = octets.windows(VERSION.len()).position(|window| window == VERSION)? + VERSION.len();
    let is_later = matches!(octets.get(minor), Some(b'2'..=b'9')) && !octets[..minor].contains(&b'\n');
    is_later.then(|| {
        let mut octets = octets.to_vec();
        octets[minor] = b'1';
        octets
    })
}

/// Parses a head of HTTP/1.0 or HTTP/1.1.
fn parse_known_version(octets: &[u8]) -> Result<Option<(Request, usize)>, BadRequest> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let parsed = head.parse(octets).map_err(|error| match error {
        httparse::Error::TooManyHeaders => BadRequest::HeadTooLong,
        httparse::Error::Version => BadRequest::Version,
        _ => BadRequest::Malformed,
    });
    let len = match parsed? {
        httparse::Status::Complete(len) if len <= MAX_HEAD => len,
        _ if head.path.is_none() && octets.len() > MAX_TARGET + METHOD_ROOM => return Err(BadRequest::TargetTooLong),
        _ if head.path.is_some_and(|target| target.len() > MAX_TARGET) => return Err(BadRequest::TargetTooLong),
        httparse::Status::Partial if octets.len() < MAX_HEAD => return Ok(None),
        _ => return Err(BadRequest::HeadTooLong),
    };
    interpret(&head).map(|request| Some((request, len)))
}

/// Room for a method and spaces before a target.
const METHOD_ROOM: usize = 32;

fn interpret(head: &httparse::Request<'_, '_>) -> Result<Request, BadRequest> {
    let method = match head.method.unwrap_or_default() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" | "PUT" | "DELETE" | "CONNECT" | "OPTIONS" | "TRACE" | "PATCH" => Method::Other,
        _ => return Err(BadRequest::NotImplemented),
    };
    let target = head.path.unwrap_or_default();
    if target.len() > MAX_TARGET {
        return Err(BadRequest::TargetTooLong);
    }
    let (segments, is_folder) = if method == Method::Other { (Vec::new(), false) } else { path(target)? };
    let is_old = head.version == Some(0);
    let mut request = Request {
        method,
        segments,
        is_folder,
        conditions: Conditions::default(),
        range: None,
        if_range: None,
        body: BodyLen::Octets(0),
        keeps_open: !is_old,
        is_old,
    };
    let (mut hosts, mut body_len, mut is_chunked) = (0, None, false);
    for field in &*head.headers {
        let text = || std::str::from_utf8(field.value).ok().map(str::trim);
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("host") {
            // RFC 9112, 3.2.
            if !is_host(field.value) {
                return Err(BadRequest::Malformed);
            }
            hosts += 1;
        } else if is("content-length") {
            let len = content_length(field.value)?;
            if body_len.is_some_and(|other| other != len) {
                return Err(BadRequest::Malformed);
            }
            body_len = Some(len);
        } else if is("transfer-encoding") {
            // A second one would be a second coding, and no server of HTTP/1.0 knows it (RFC 9112, 6.1).
            if is_chunked || is_old {
                return Err(BadRequest::Malformed);
            }
            if !text().is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
                return Err(BadRequest::NotImplemented);
            }
            is_chunked = true;
        } else if is("connection") {
            for option in text().unwrap_or_default().split(',').map(str::trim) {
                if option.eq_ignore_ascii_case("close") {
                    request.keeps_open = false;
                } else if option.eq_ignore_ascii_case("keep-alive") && is_old {
                    request.keeps_open = true;
                }
            }
        } else if is("if-match") {
            Tags::add(&mut request.conditions.matches, text().unwrap_or_default());
        } else if is("if-none-match") {
            Tags::add(&mut request.conditions.none_match, text().unwrap_or_default());
        } else if is("if-modified-since") {
            Date::add(&mut request.conditions.modified_since, text().unwrap_or_default());
        } else if is("if-unmodified-since") {
            Date::add(&mut request.conditions.unmodified_since, text().unwrap_or_default());
        } else if is("range") && method == Method::Get {
            request.range = text().and_then(range); // of other methods it is ignored (RFC 9110, 14.2)
        } else if is("if-range") {
            Date::add(&mut request.if_range, text().unwrap_or_default());
        }
    }
    if hosts > 1 || hosts == 0 && !is_old {
        return Err(BadRequest::Malformed);
    }
    request.body = match (is_chunked, body_len) {
        // RFC 9112, 6.3: perhaps an attempt at request smuggling.
        (true, Some(_)) => return Err(BadRequest::Malformed),
        (true, None) => BodyLen::Chunked,
        (false, len) => BodyLen::Octets(len.unwrap_or(0)),
    };
    Ok(request)
}

/// Whether it is a name or an address, perhaps with a port: RFC 9110, 7.2, and RFC 3986, 3.2.2. The name may be empty.
fn is_host(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let (is_name, port) = match value.strip_prefix(b"[") {
        Some(rest) => {
            let Some(end) = rest.iter().position(|octet| *octet == b']') else { return false };
            (is_address(&rest[..end]), &rest[end + 1..])
        }
        None => {
            let end = value.iter().position(|octet| *octet == b':').unwrap_or(value.len());
            (is_registered_name(&value[..end]), &value[end..])
        }
    };
    let is_port = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    is_name && (port.is_empty() || port.strip_prefix(b":").is_some_and(is_port))
}

/// Whether it is an address of version 6, or of a later version.
fn is_address(octets: &[u8]) -> bool {
    let Some(rest) = octets.strip_prefix(b"v").or(octets.strip_prefix(b"V")) else {
        return std::str::from_utf8(octets).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    };
    let mut parts = rest.splitn(2, |octet| *octet == b'.');
    let (version, address) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_version = !version.is_empty() && version.iter().all(u8::is_ascii_hexdigit);
    is_version && !address.is_empty() && address.iter().all(|&octet| octet == b':' || is_name_octet(octet))
}

/// Whether it is a name, or an address of version 4, whose octets are those of a name.
fn is_registered_name(mut octets: &[u8]) -> bool {
    while let [first, rest @ ..] = octets {
        octets = match (first, rest) {
            (b'%', [high, low, rest @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => rest,
            (octet, rest) if is_name_octet(*octet) => rest,
            _ => return false,
        };
    }
    true
}

/// Whether it is one of the `unreserved` characters or of the `sub-delims` of RFC 3986, 2.
fn is_name_octet(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&octet)
}

/// Digits only: a sign or a list could be understood differently by a proxy before us.
fn content_length(value: &[u8]) -> Result<u64, BadRequest> {
    let is_digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| is_digits);
    text.and_then(|text| text.parse().ok()).ok_or(BadRequest::Malformed)
}

/// The path of a target in origin form, or in absolute form, as segments; and whether it is that of a folder.
fn path(target: &str) -> Result<(Vec<Vec<u8>>, bool), BadRequest> {
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let target = match scheme {
        Some(scheme) => target[scheme.len()..].find('/').map_or("/", |at| &target[scheme.len() + at..]),
        None => target,
    };
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let Some(path) = path.strip_prefix('/') else { return Err(BadRequest::Malformed) };
    let (mut segments, mut is_folder) = (Vec::new(), true);
    for segment in path.split('/') {
        let decoded: Vec<u8> = percent_encoding::percent_decode_str(segment).collect();
        is_folder = matches!(&decoded[..], b"" | b"."); // RFC 3986, 5.2.4
        match &decoded[..] {
            _ if is_folder => {}
            b".." => return Err(BadRequest::Malformed),
            octets if octets.iter().any(|octet| matches!(octet, b'/' | 0)) => return Err(BadRequest::Malformed),
            _ => segments.push(decoded),
        }
    }
    Ok((segments, is_folder))
}

/// A single range of octets. Others are ignored, as RFC 9110, 14.2, allows.
fn range(text: &str) -> Option<Range> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| {
        let is_digits = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
        if is_digits { text.parse().ok() } else { None }
    };
    match (first, last) {
        ("", last) => number(last).map(Range::Last),
        (first, "") => Some(Range::From(number(first)?, None)),
        (first, last) => {
            let (first, last): (u64, u64) = (number(first)?, number(last)?);
            (first <= last).then_some(Range::From(first, Some(last)))
        }
    }
}
