//! The part of HTTP/1.1 (RFC 9112) that the endpoint needs: the request line, the end of the header, and
//! responses of known length. No crate parses them: the first command of a new user builds this one, and its packages are
//! counted (`cargo xtask structure`).

/// The part of a request that decides the response.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum EndpointRequest<'r> {
    /// GET or HEAD of this path.
    Read(&'r str),
    /// A method other than GET and HEAD.
    Write,
    Malformed,
    TooLong,
}

/// Parses a request; also returns whether the response has a body. `None` while the header is not complete.
pub(crate) fn read(octets: &[u8], longest: usize) -> Option<(EndpointRequest<'_>, bool)> {
    // A request cannot begin with another octet.
    if octets.first().is_some_and(|first| !first.is_ascii_uppercase()) {
        return Some((EndpointRequest::Malformed, true));
    }
    let Some(end) = octets.windows(4).position(|four| four == b"\r\n\r\n") else {
        return (octets.len() > longest).then_some((EndpointRequest::TooLong, true));
    };
    if end > longest {
        return Some((EndpointRequest::TooLong, true));
    }
    let line = octets[..end].split(|octet| *octet == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).unwrap_or_default();
    let mut words = line.split(' ');
    let request = match (words.next(), words.next(), words.next(), words.next()) {
        (Some(method), Some(target), Some("HTTP/1.0" | "HTTP/1.1"), None) if target.starts_with('/') => {
            let path = target.split(['?', '#']).next().unwrap_or_default();
            return Some(match method {
                "GET" => (EndpointRequest::Read(path), true),
                "HEAD" => (EndpointRequest::Read(path), false),
                _ => (EndpointRequest::Write, true),
            });
        }
        _ => EndpointRequest::Malformed,
    };
    Some((request, true))
}

/// A response before its encoding.
#[derive(Debug)]
pub(crate) struct EndpointResponse {
    status: &'static str,
    media_type: &'static str,
    body: String,
}

impl EndpointResponse {
    pub(crate) fn new(status: &'static str, media_type: &'static str, body: String) -> Self {
        Self { status, media_type, body }
    }

    pub(crate) fn plain(status: &'static str, body: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body.to_owned())
    }

    pub(crate) fn to_octets(&self, has_body: bool) -> Vec<u8> {
        let Self { status, media_type, body } = self;
        let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
        let header = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n{allow}Cache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let body = if has_body { body.as_bytes() } else { &[] };
        [header.as_bytes(), body].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(request: &str) -> Option<(EndpointRequest<'_>, bool)> {
        read(request.as_bytes(), 100)
    }

    #[test]
    fn a_request_is_parsed_when_it_is_complete() {
        let whole = "GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\n\r\n";
        assert_eq!(parse(whole), Some((EndpointRequest::Read("/metrics"), true)));
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(parse("HEAD / HTTP/1.0\r\n\r\n"), Some((EndpointRequest::Read("/"), false)));
        assert_eq!(parse("POST /metrics HTTP/1.1\r\n\r\nbody"), Some((EndpointRequest::Write, true)));
    }

    #[test]
    fn an_invalid_request_gets_an_error_response() {
        for text in [
            "GIOP\u{1}",
            "\u{16}\u{3}\u{1}",
            "GET / HTTP/2.0\r\n\r\n",
            "GET /\r\n\r\n",
            "GET http://h/ HTTP/1.1\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            "G\r\n\r\n",
        ] {
            let parsed = parse(text);
            assert!(matches!(parsed, None | Some((EndpointRequest::Malformed, _))), "{text:?}: {parsed:?}");
        }
        assert_eq!(parse("\u{16}"), Some((EndpointRequest::Malformed, true)));
        assert_eq!(parse(&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(100))), Some((EndpointRequest::TooLong, true)));
    }

    #[test]
    fn a_response_has_its_content_length() {
        let text = String::from_utf8(EndpointResponse::plain("200 OK", "äh\n").to_octets(true)).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\näh\n"));
        assert!(text.contains("\r\nContent-Length: 4\r\n"));
        let head = EndpointResponse::plain("200 OK", "äh\n").to_octets(false);
        assert!(head.ends_with(b"\r\n\r\n"));
    }
}
