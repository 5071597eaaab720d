//! As much of HTTP/1.1 (RFC 9112) as it takes to answer a question: its first line, where it ends, and an answer of known length.

/// What somebody wants.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Question<'r> {
    /// To read what is at this path.
    Read(&'r str),
    /// Anything else than to read.
    Write,
    Malformed,
    TooLong,
}

/// What a request asks, and whether the answer's body is wanted; nothing while more of it has to come.
pub(super) fn read(octets: &[u8], longest: usize) -> Option<(Question<'_>, bool)> {
    // What is no text at its beginning will not become a request by getting longer.
    if octets.first().is_some_and(|first| !first.is_ascii_uppercase()) {
        return Some((Question::Malformed, true));
    }
    let Some(end) = octets.windows(4).position(|four| four == b"\r\n\r\n") else {
        return (octets.len() > longest).then_some((Question::TooLong, true));
    };
    if end > longest {
        return Some((Question::TooLong, true));
    }
    let line = octets[..end].split(|octet| *octet == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).unwrap_or_default();
    let mut words = line.split(' ');
    let question = match (words.next(), words.next(), words.next(), words.next()) {
        (Some(method), Some(target), Some("HTTP/1.0" | "HTTP/1.1"), None) if target.starts_with('/') => {
            let path = target.split(['?', '#']).next().unwrap_or_default();
            return Some(match method {
                "GET" => (Question::Read(path), true),
                "HEAD" => (Question::Read(path), false),
                _ => (Question::Write, true),
            });
        }
        _ => Question::Malformed,
    };
    Some((question, true))
}

/// What somebody is told.
#[derive(Debug)]
pub(super) struct Answer {
    status: &'static str,
    media_type: &'static str,
    body: String,
}

impl Answer {
    pub(super) fn new(status: &'static str, media_type: &'static str, body: String) -> Self {
        Self { status, media_type, body }
    }

    pub(super) fn plain(status: &'static str, body: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body.to_owned())
    }

    pub(super) fn to_octets(&self, has_body: bool) -> Vec<u8> {
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

    fn asks(request: &str) -> Option<(Question<'_>, bool)> {
        read(request.as_bytes(), 100)
    }

    #[test]
    fn questions_are_read_when_they_are_whole() {
        let whole = "GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\n\r\n";
        assert_eq!(asks(whole), Some((Question::Read("/metrics"), true)));
        for cut in 0..whole.len() {
            assert_eq!(asks(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(asks("HEAD / HTTP/1.0\r\n\r\n"), Some((Question::Read("/"), false)));
        assert_eq!(asks("POST /metrics HTTP/1.1\r\n\r\nbody"), Some((Question::Write, true)));
    }

    #[test]
    fn what_is_no_question_is_answered_all_the_same() {
        for text in [
            "GIOP\u{1}",
            "\u{16}\u{3}\u{1}",
            "GET / HTTP/2.0\r\n\r\n",
            "GET /\r\n\r\n",
            "GET http://h/ HTTP/1.1\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            "G\r\n\r\n",
        ] {
            let asked = asks(text);
            assert!(matches!(asked, None | Some((Question::Malformed, _))), "{text:?}: {asked:?}");
        }
        assert_eq!(asks("\u{16}"), Some((Question::Malformed, true)));
        assert_eq!(asks(&format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(100))), Some((Question::TooLong, true)));
    }

    #[test]
    fn an_answer_says_how_long_it_is() {
        let text = String::from_utf8(Answer::plain("200 OK", "äh\n").to_octets(true)).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\näh\n"));
        assert!(text.contains("\r\nContent-Length: 4\r\n"));
        let head = Answer::plain("200 OK", "äh\n").to_octets(false);
        assert!(head.ends_with(b"\r\n\r\n"));
    }
}
