//! The parser of HTTP requests.

use proptest::prelude::*;
use spandrel_architectures::http::{BadRequest, BodyLen, MAX_HEAD, MAX_TARGET, Method, Range, Request, parse};

fn parsed(text: &str) -> Request {
    let (request, len) = parse(text.as_bytes()).unwrap().expect("it is complete");
    assert_eq!(len, text.len());
    request
}

fn refused(text: &str) -> BadRequest {
    parse(text.as_bytes()).expect_err("it is malformed")
}

#[test]
fn a_path_is_decoded_into_segments() {
    let request = parsed("GET /a/b%20c/./d.html?query=/../ HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(request.segments, [&b"a"[..], b"b c", b"d.html"]);
    assert!(!request.is_folder && request.keeps_open && request.method == Method::Get);
    for target in ["/", "/a/", "/a/.", "/a/./", "/a/%2e", "/."] {
        assert!(parsed(&format!("HEAD {target} HTTP/1.1\r\nHost: h\r\n\r\n")).is_folder, "{target}");
    }
    assert!(!parsed("HEAD /./a HTTP/1.1\r\nHost: h\r\n\r\n").is_folder);
    assert_eq!(parsed("GET http://host:80/x HTTP/1.1\r\nHost: h\r\n\r\n").segments, [b"x"]);
    assert_eq!(parsed("GET / HTTP/1.1\r\nHost: h\r\n\r\n").segments, [&b""[..]; 0]);
}

#[test]
fn no_path_leads_out_of_the_folder() {
    for target in ["/..", "/a/../..", "/%2e%2e/x", "/%2E./x", "/a%2fb", "/a%00b", "a", "*", "//host/../x"] {
        assert_eq!(refused(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")), BadRequest::Malformed, "{target}");
    }
}

#[test]
fn connections_persist_as_the_version_and_the_client_say() {
    assert!(!parsed("GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n").keeps_open);
    assert!(!parsed("GET / HTTP/1.0\r\n\r\n").keeps_open);
    assert!(parsed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keeps_open);
}

#[test]
fn ambiguous_lengths_are_refused() {
    for fields in [
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: +1",
        "Content-Length: 1,1",
        "Content-Length: ",
        "Content-Length: 99999999999999999999",
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n");
        assert_eq!(refused(&text), BadRequest::Malformed, "{fields}");
    }
    let coded = |fields: &str| format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    for fields in ["Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: identity\r\n", "Transfer-Encoding: \r\n"]
    {
        assert_eq!(refused(&coded(fields)), BadRequest::NotImplemented, "{fields}");
    }
    for fields in [
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ] {
        assert_eq!(refused(&coded(fields)), BadRequest::Malformed, "{fields}");
    }
    assert_eq!(refused("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), BadRequest::Malformed);
    assert_eq!(parsed(&coded("TRANSFER-ENCODING: Chunked\r\n")).body, BodyLen::Chunked);
    assert_eq!(parsed(&coded("Content-Length: 7\r\n")).body, BodyLen::Octets(7));
}

#[test]
fn a_host_is_needed_exactly_once() {
    assert_eq!(refused("GET / HTTP/1.1\r\n\r\n"), BadRequest::Malformed);
    assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), BadRequest::Malformed);
}

#[test]
fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
    for host in [
        "",
        "h",
        "h:",
        "example.org:8080",
        "127.0.0.1:80",
        "[::1]",
        "[fe80::1]:80",
        "[v7.a:b]",
        "a%20b",
        "a_b~c!$&'()*+,;=",
    ] {
        parsed(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        parsed(&format!("GET / HTTP/1.0\r\nHost:{host} \r\n\r\n"));
    }
    for host in [
        "x y/", "x y", "x/", "http://x", "x@y", "x?", "x#", "x\\y", "x,[", "a:b", "a:80:90", "a:8x", "[::1", "::1",
        "[::1]x", "[::1]:x", "[x]", "[v.a]", "[v7.]", "%", "%2", "%zz", "\u{e4}", "\"x\"", "x\ty",
    ] {
        for version in ["1.0", "1.1"] {
            let text = format!("GET / HTTP/{version}\r\nHost: {host}\r\n\r\n");
            assert_eq!(refused(&text), BadRequest::Malformed, "{host}");
        }
    }
}

#[test]
fn methods_versions_and_sizes_have_limits() {
    assert_eq!(refused("BREW / HTTP/1.1\r\nHost: h\r\n\r\n"), BadRequest::NotImplemented);
    for version in ["HTTP/2.0", "HTTP/0.9", "HTTP/1.x"] {
        assert_eq!(refused(&format!("GET / {version}\r\nHost: h\r\n\r\n")), BadRequest::Version, "{version}");
    }
    for version in ["HTTP/1.2", "HTTP/1.9"] {
        assert!(parsed(&format!("GET / {version}\r\nHost: h\r\n\r\n")).keeps_open, "{version}");
        let text = format!("GET / {version}\r\nHost: h\r\n\r\n");
        for len in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..len]), Ok(None), "{len}");
        }
    }
    assert_eq!(refused("GET / HTTP/1.20\r\nHost: h\r\n\r\n"), BadRequest::Malformed);
    assert_eq!(refused("GET / HTTP/2.0\r\nX: HTTP/1.2\r\nHost: h\r\n\r\n"), BadRequest::Version);
    assert_eq!(refused("\u{1}\u{2}"), BadRequest::Malformed);
    let long = "a".repeat(MAX_TARGET);
    assert_eq!(refused(&format!("GET /{long} HTTP/1.1\r\nHost: h\r\n\r\n")), BadRequest::TargetTooLong);
    assert_eq!(refused(&format!("GET /{}", long.repeat(2))), BadRequest::TargetTooLong);
    let fields = "X: y\r\n".repeat(65);
    assert_eq!(refused(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")), BadRequest::HeadTooLong);
    let field = format!("X: {}\r\n", "y".repeat(MAX_HEAD));
    assert_eq!(refused(&format!("GET / HTTP/1.1\r\nHost: h\r\n{field}\r\n")), BadRequest::HeadTooLong);
    assert_eq!(refused(&format!("GET / HTTP/1.1\r\nHost: h\r\n{field}")), BadRequest::HeadTooLong);
}

#[test]
fn single_ranges_are_understood_and_others_ignored() {
    let range = |text: &str| parsed(&format!("GET / HTTP/1.1\r\nHost: h\r\nRange: {text}\r\n\r\n")).range;
    assert_eq!(range("bytes=0-9"), Some(Range::From(0, Some(9))));
    assert_eq!(range("bytes=5-"), Some(Range::From(5, None)));
    assert_eq!(range("bytes=-7"), Some(Range::Last(7)));
    for text in ["bytes=9-0", "bytes=0-1,3-4", "lines=1-2", "bytes=-", "bytes=+1-2", "bytes=99999999999999999999-"] {
        assert_eq!(range(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn any_octets_are_parsed_without_a_panic(octets in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        if let Ok(Some((_, len))) = parse(&octets) {
            prop_assert!(len <= octets.len() && len <= MAX_HEAD);
        }
    }

    #[test]
    fn any_text_like_a_request_gives_segments_that_are_names(text in r"(GET|HEAD) /[a-z0-9%./\\?#&;: ~-]{0,80} HTTP/1\.[01]\r\n(Host: a\r\n)?([A-Za-z-]{1,12}: [ -~]{0,20}\r\n){0,4}\r\n") {
        if let Ok(Some((request, len))) = parse(text.as_bytes()) {
            prop_assert_eq!(len, text.len());
            for segment in &request.segments {
                prop_assert!(!segment.is_empty() && !matches!(&segment[..], b"." | b".."));
                prop_assert!(!segment.contains(&b'/') && !segment.contains(&0));
            }
        }
    }

    #[test]
    fn every_beginning_of_a_request_is_incomplete(
        segments in proptest::collection::vec("[a-zA-Z0-9_-]{1,10}", 0..6),
        cut in any::<proptest::sample::Index>(),
    ) {
        let text = format!("GET /{} HTTP/1.1\r\nHost: example\r\nAccept: */*\r\n\r\n", segments.join("/"));
        let (request, len) = parse(text.as_bytes()).unwrap().unwrap();
        prop_assert_eq!(len, text.len());
        prop_assert_eq!(request.segments, segments.iter().map(|segment| segment.clone().into_bytes()).collect::<Vec<_>>());
        prop_assert_eq!(parse(&text.as_bytes()[..cut.index(text.len())]), Ok(None));
    }
}
