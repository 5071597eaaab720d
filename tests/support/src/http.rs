//! A plain HTTP/1.1 client for tests: any octets as a request, and the response in its parts.

use std::io::{self, Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs};

use crate::TEST_TIMEOUT;

/// The longest head of a response, in octets.
const MAX_HEAD: usize = 64 << 10;
/// The most header fields of a response.
const MAX_FIELDS: usize = 64;

/// A response with its body as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status code of its first line.
    pub status: u16,
    /// The header fields in lower case, each as a line `name: value`.
    pub head: String,
    /// The body; its octets beyond UTF-8 are replaced.
    pub body: String,
}

impl HttpResponse {
    /// Reads a response: as many octets as its `Content-Length` says, or else up to the end of the connection. A body
    /// that ends before is returned as it is, since a response to HEAD has none.
    ///
    /// # Errors
    /// Those of the stream; a head that is not whole or no HTTP; a body in chunks.
    pub fn read(mut stream: impl Read) -> io::Result<Self> {
        let (mut octets, mut piece) = (Vec::new(), [0; 4096]);
        let (status, fields, mut body) = loop {
            let count = match stream.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                count => count?,
            };
            if count == 0 || octets.len() > MAX_HEAD {
                return Err(no_response(&octets, "its head does not end"));
            }
            octets.extend_from_slice(&piece[..count]);
            let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
            let mut response = httparse::Response::new(&mut fields);
            match response.parse(&octets).map_err(|error| no_response(&octets, &error.to_string()))? {
                httparse::Status::Partial => {}
                httparse::Status::Complete(length) => {
                    let line = |field: &httparse::Header<'_>| {
                        (field.name.to_ascii_lowercase(), String::from_utf8_lossy(field.value).to_ascii_lowercase())
                    };
                    let fields: Vec<_> = response.headers.iter().map(line).collect();
                    break (response.code.unwrap_or_default(), fields, octets.split_off(length));
                }
            }
        };
        let value = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        if value("transfer-encoding").is_some() {
            return Err(no_response(&octets, "its body is in chunks"));
        }
        let length =
            value("content-length").map(|length| length.parse::<u64>().map_err(io::Error::other)).transpose()?;
        if let Some(length) = length.and_then(|length| usize::try_from(length).ok()) {
            body.truncate(length);
        }
        let missing = length.map_or(u64::MAX, |length| length.saturating_sub(body.len() as u64));
        match stream.take(missing).read_to_end(&mut body) {
            // The server may close before it has read all of a request that it refuses.
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => return Err(error),
            _ => {}
        }
        let head = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        Ok(Self { status, head, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a header field, both in lower case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Sends a request on a connection of its own, and reads the response, each within the time limit of tests.
///
/// # Errors
/// As [`HttpResponse::read`], and if there is no connection.
pub fn http_exchange(address: impl ToSocketAddrs, request: &[u8]) -> io::Result<HttpResponse> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TEST_TIMEOUT))?;
    stream.set_write_timeout(Some(TEST_TIMEOUT))?;
    // The server may refuse a request before it has read all of it.
    _ = stream.write_all(request);
    HttpResponse::read(stream)
}

/// A request that ends its connection: a method and path, header fields as lines with `\r\n`, and a body.
#[must_use]
pub fn http_request(method_and_path: &str, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("{method_and_path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n");
    [head.as_bytes(), body.as_bytes()].concat()
}

fn no_response(octets: &[u8], reason: &str) -> io::Error {
    io::Error::other(format!("no response, {reason}: {}", String::from_utf8_lossy(octets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that gives one octet at a time, then an error.
    struct Slow<'a>(&'a [u8], io::ErrorKind);

    impl Read for Slow<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Err(self.1.into()) };
            self.0 = rest;
            room[0] = *first;
            Ok(1)
        }
    }

    #[test]
    fn a_response_is_read_up_to_its_length_or_its_end() {
        let head = "HTTP/1.1 200 OK\r\nX-Name: a B\r\n";
        for (fields, expected) in [("Content-Length: 3\r\n", "one"), ("", "one more")] {
            let text = format!("{head}{fields}\r\none more");
            let response = HttpResponse::read(text.as_bytes()).unwrap();
            let parts = (response.status, response.field("x-name"), response.body.as_str());
            assert_eq!(parts, (200, Some("a b"), expected));
        }
        let slow =
            HttpResponse::read(Slow(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", io::ErrorKind::Other));
        assert_eq!(slow.map(|response| (response.status, response.body)).unwrap(), (404, "no".to_owned()));
        let reset = HttpResponse::read(Slow(b"HTTP/1.1 413 \r\n\r\nbig", io::ErrorKind::ConnectionReset)).unwrap();
        assert_eq!((reset.status, reset.body.as_str(), reset.head.as_str()), (413, "big", ""));
        let of_head = HttpResponse::read(&b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n"[..]).unwrap();
        assert_eq!(of_head.body, "", "as after HEAD");
    }

    #[test]
    fn what_is_no_whole_response_is_an_error() {
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(2 * MAX_HEAD));
        let length = "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n";
        for text in ["", "GIOP\u{1}", "HTTP/1.1 200 OK\r\nX: y\r\n", chunks, &endless, length] {
            let read = HttpResponse::read(text.as_bytes());
            assert!(read.is_err(), "{read:?}");
        }
    }

    #[test]
    fn a_request_has_the_length_of_its_body() {
        let request = String::from_utf8(http_request("POST /a", "Host: h\r\n", "body")).unwrap();
        assert_eq!(request, "POST /a HTTP/1.1\r\nConnection: close\r\nContent-Length: 4\r\nHost: h\r\n\r\nbody");
    }
}
