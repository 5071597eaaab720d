//! Requests of web pages to services of lines: a browser sends the fields of a form to any port of its host.

/// Whether a line is the first one of an HTTP request (RFC 9112, 3): it ends with the version. A browser sends it before all
/// lines that a web page can choose, so that a service that ends the connection at it never sees those.
pub(crate) fn is_http(line: &[u8]) -> bool {
    let last = line.trim_ascii_end().rsplit(|octet| *octet == b' ').next();
    let version = last.and_then(|word| word.strip_prefix(b"HTTP/"));
    version.is_some_and(|version| version.iter().all(|octet| octet.is_ascii_digit() || *octet == b'.'))
}
