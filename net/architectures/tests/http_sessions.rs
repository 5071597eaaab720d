//! HTTP connections without sockets.

use std::fs;

use spandrel_architectures::http::{Http, MAX_BODY, MAX_DISCARDED, MAX_HEAD};
use spandrel_architectures::{Phase, Protocol as _, Session as _};
use tempfile::TempDir;

use crate::support::{exchange, split, take_output};

/// A folder with files, and the protocol for it.
fn site() -> (TempDir, Http) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("index.html"), "<p>start</p>").unwrap();
    fs::write(root.join("sub/a b.txt"), "spaces").unwrap();
    fs::write(root.join("large.bin"), large()).unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    let http = Http::open(&root).unwrap();
    (folder, http)
}

/// More octets than several pieces have.
fn large() -> Vec<u8> {
    spandrel_test_support::pattern(300_000)
}

/// The head and the body of the response to a GET with these fields.
fn get(http: &Http, target: &str, fields: &str) -> (String, Vec<u8>) {
    let (output, _) = exchange(http, &[format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n").as_bytes()]);
    split(&output)
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn files_have_their_octets_length_and_type() {
    let (_folder, http) = site();
    let (head, body) = get(&http, "/", "");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nDate: "), "{head}");
    assert_eq!(body, b"<p>start</p>");
    assert_eq!(field(&head, "Content-Length"), Some("12"));
    assert_eq!(field(&head, "Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(get(&http, "/sub/a%20b.txt", "").1, b"spaces");
    assert!(get(&http, "/large.bin", "").1 == large());
}

#[test]
fn absent_files_and_folders_are_not_found() {
    let (_folder, http) = site();
    for target in ["/absent", "/sub/", "/index.html/", "/index.html/.", "/index.html/x", "/sub/%ff"] {
        let (head, body) = get(&http, target, "");
        assert!(head.starts_with("HTTP/1.1 404 "), "{target}: {head}");
        assert_eq!(body, b"404 Not Found\n");
    }
    #[cfg(unix)]
    assert_eq!(field(&get(&http, "/sub", "").0, "Location"), Some("/sub/"));
}

#[cfg(unix)]
#[test]
fn symbolic_links_do_not_lead_out_of_the_folder() {
    use std::os::unix::fs::symlink;
    let (folder, http) = site();
    let root = folder.path().join("root");
    symlink("../secret", root.join("out")).unwrap();
    symlink(folder.path(), root.join("absolute")).unwrap();
    symlink("index.html", root.join("inside")).unwrap();
    for target in ["/out", "/absolute/secret", "/absolute"] {
        let (head, body) = get(&http, target, "");
        assert!(head.starts_with("HTTP/1.1 404 "), "{target}: {head}");
        assert!(!body.starts_with(b"secret"));
    }
    assert_eq!(get(&http, "/inside", "").1, b"<p>start</p>");
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_no_file_and_does_not_block() {
    let (folder, http) = site();
    let pipe = folder.path().join("root/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    assert!(get(&http, "/pipe", "").0.starts_with("HTTP/1.1 404 "));
}

#[test]
fn an_unmodified_file_is_not_sent_again() {
    let (_folder, http) = site();
    let (head, _) = get(&http, "/index.html", "");
    let modified = field(&head, "Last-Modified").unwrap();
    let (head, body) = get(&http, "/index.html", &format!("If-Modified-Since: {modified}\r\n"));
    assert!(head.starts_with("HTTP/1.1 304 ") && body.is_empty(), "{head}");
    let (head, _) = get(&http, "/index.html", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}

#[test]
fn ranges_give_parts() {
    let (_folder, http) = site();
    for (range, octets) in
        [("2-5", 2..6), ("299990-", 299_990..300_000), ("-3", 299_997..300_000), ("0-999999", 0..300_000)]
    {
        let (head, body) = get(&http, "/large.bin", &format!("Range: bytes={range}\r\n"));
        assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
        let expected = format!("bytes {}-{}/300000", octets.start, octets.end - 1);
        assert_eq!(field(&head, "Content-Range"), Some(&*expected));
        assert!(body == large()[octets], "{range}");
    }
    let (head, _) = get(&http, "/large.bin", "Range: bytes=300000-\r\n");
    assert!(head.starts_with("HTTP/1.1 416 "), "{head}");
    assert_eq!(field(&head, "Content-Range"), Some("bytes */300000"));
    let (head, _) = get(&http, "/large.bin", "Range: bytes=0-1\r\nIf-Range: \"tag\"\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}

/// The status of the response to a request for `/index.html` with these fields.
fn status(http: &Http, method: &str, fields: &str) -> String {
    let text = format!("{method} /index.html HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let (head, _) = split(&exchange(http, &[text.as_bytes()]).0);
    head["HTTP/1.1 ".len()..][..3].to_owned()
}

#[test]
fn preconditions_are_evaluated_in_the_order_of_their_precedence() {
    let (_folder, http) = site();
    let current = field(&get(&http, "/index.html", "").0, "Last-Modified").unwrap().to_owned();
    let (old, soon) = ("Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT");
    let current_since = format!("If-Modified-Since: {current}\r\n");
    for (fields, expected) in [
        // Files have no entity tags, so a list of them contains none of a file.
        ("If-None-Match: \"x\"\r\n".to_owned(), "200"),
        (format!("If-None-Match: \"x\"\r\n{current_since}"), "200"),
        (format!("{current_since}If-None-Match: W/\"x\"\r\n"), "200"),
        ("If-None-Match: *\r\n".to_owned(), "304"),
        (format!("If-None-Match: *\r\nIf-Modified-Since: {old}\r\n"), "304"),
        ("If-Match: *\r\n".to_owned(), "200"),
        ("If-Match: \"x\"\r\n".to_owned(), "412"),
        ("If-Match: W/\"x\", \"y\"\r\n".to_owned(), "412"),
        ("If-Match: \"x\"\r\nIf-Match: \"y\"\r\n".to_owned(), "412"),
        (format!("If-Match: \"x\"\r\nIf-Unmodified-Since: {soon}\r\n"), "412"),
        (format!("If-Match: *\r\nIf-Unmodified-Since: {old}\r\n"), "200"),
        ("If-Match: *\r\nIf-None-Match: *\r\n".to_owned(), "304"),
        ("If-Match: \"x\"\r\nIf-None-Match: *\r\n".to_owned(), "412"),
        (format!("If-Unmodified-Since: {old}\r\n"), "412"),
        (format!("If-Unmodified-Since: {current}\r\n"), "200"),
        (format!("If-Unmodified-Since: {old}\r\n{current_since}"), "412"),
        (format!("If-Unmodified-Since: {current}\r\n{current_since}"), "304"),
        // What is no date, or more than one, is ignored.
        ("If-Unmodified-Since: yesterday\r\n".to_owned(), "200"),
        (format!("If-Unmodified-Since: {old}\r\nIf-Unmodified-Since: {old}\r\n"), "200"),
        (format!("{current_since}{current_since}"), "200"),
        // A range comes after all of them.
        ("If-Match: \"x\"\r\nRange: bytes=0-1\r\n".to_owned(), "412"),
        ("If-None-Match: *\r\nRange: bytes=999-\r\n".to_owned(), "304"),
    ] {
        for method in ["GET", "HEAD"] {
            assert_eq!(status(&http, method, &fields), expected, "{method} {fields}");
        }
    }
    // Without the fields, the answer would be another one than a success.
    for fields in ["If-Match: \"x\"\r\n", "If-None-Match: *\r\n"] {
        assert!(get(&http, "/absent", fields).0.starts_with("HTTP/1.1 404 "), "{fields}");
        #[cfg(unix)]
        assert!(get(&http, "/sub", fields).0.starts_with("HTTP/1.1 301 "), "{fields}");
    }
    let (head, body) = get(&http, "/", "If-Match: \"x\"\r\n");
    assert_eq!((field(&head, "Content-Length"), &body[..]), (Some("24"), &b"412 Precondition Failed\n"[..]));
}

#[test]
fn a_range_is_of_get_only() {
    let (_folder, http) = site();
    let text = b"HEAD /large.bin HTTP/1.1\r\nHost: h\r\nRange: bytes=2-5\r\n\r\n";
    let (head, body) = split(&exchange(&http, &[text]).0);
    assert!(head.starts_with("HTTP/1.1 200 ") && body.is_empty(), "{head}");
    assert_eq!((field(&head, "Content-Length"), field(&head, "Content-Range")), (Some("300000"), None));
    assert_eq!(status(&http, "HEAD", "Range: bytes=999-\r\n"), "200");
}

#[test]
fn pipelined_requests_are_answered_in_order_and_bodies_discarded() {
    let (_folder, http) = site();
    let text = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n\
        POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 30\r\n\r\nGET /fake HTTP/1.1\r\nHost: h\r\n\r\n\
        HEAD /large.bin HTTP/1.1\r\nHost: h\r\n\r\n\
        GET /sub/a%20b.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    for size in [1, 7, 100, text.len()] {
        let parts: Vec<&[u8]> = text.chunks(size).collect();
        let (output, is_closing) = exchange(&http, &parts);
        assert!(is_closing);
        let (text, _) = (String::from_utf8(output).unwrap(), ());
        let statuses: Vec<&str> = text.match_indices("HTTP/1.1 ").map(|(at, _)| &text[at + 9..at + 12]).collect();
        assert_eq!(statuses, ["200", "405", "200", "200"], "{size}");
        assert!(text.ends_with("Connection: close\r\n\r\nspaces"), "{text}");
    }
}

#[test]
fn hostile_requests_are_refused_and_closed() {
    let (_folder, http) = site();
    let long = "x".repeat(MAX_HEAD);
    for (text, status) in [
        ("GET /../secret HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), "400"),
        (format!("GET /{long} HTTP/1.1\r\n"), "414"),
        (format!("GET / HTTP/1.1\r\nX: {long}\r\n"), "431"),
        (format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", MAX_BODY + 1), "413"),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_owned(), "501"),
        ("SMASH / HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), "501"),
        ("\0\0\0\0".to_owned(), "400"),
    ] {
        let mut session = http.open();
        session.receive(text.as_bytes());
        let (head, _) = split(&take_output(&mut session));
        assert_eq!(&head[9..12], status, "{text}");
        assert_eq!(field(&head, "Connection"), Some("close"));
        assert!(
            session.has_ended_output() && session.phase() == Phase::InRequest,
            "the rest of the request is discarded"
        );
        session.receive(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(session.output().is_empty(), "no further request is answered");
        session.end_input();
        assert_eq!(session.phase(), Phase::Closing);
    }
}

#[test]
fn chunked_bodies_are_discarded_up_to_the_next_request() {
    let (_folder, http) = site();
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let requests =
        format!("{head}3;x=y\r\nGET\r\n0\r\nTrailer: z\r\n\r\nGET /sub/a%20b.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    for size in [1, 5, 64, 1_000] {
        let parts: Vec<&[u8]> = requests.as_bytes().chunks(size).collect();
        let (output, is_closing) = exchange(&http, &parts);
        let text = String::from_utf8(output).unwrap();
        let statuses: Vec<&str> = text.match_indices("HTTP/1.1 ").map(|(at, _)| &text[at + 9..at + 12]).collect();
        assert_eq!(statuses, ["405", "200"], "{size}");
        assert!(text.ends_with("spaces") && !is_closing, "{text}");
    }
    let mut session = http.open();
    session.receive(head.as_bytes());
    assert!(take_output(&mut session).starts_with(b"HTTP/1.1 405 "));
    assert_eq!(session.phase(), Phase::InRequest);
    session.receive(b"x\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(session.output().is_empty() && session.has_ended_output(), "the next request cannot be found");
}

#[test]
fn the_rest_of_a_refused_request_is_discarded_up_to_its_end_and_a_limit() {
    let (_folder, http) = site();
    let refused = |head: &str| {
        let mut session = http.open();
        session.receive(head.as_bytes());
        assert!(!take_output(&mut session).is_empty());
        session
    };
    // Its end is known: 30 octets of a body, of which the first part has come with the head.
    let mut session =
        refused("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 30\r\n\r\n0123456789");
    session.receive(&[b'x'; 19]);
    assert!(session.has_ended_output() && session.phase() == Phase::InRequest);
    session.receive(b"x");
    assert!(session.phase() == Phase::Closing && !session.has_ended_output());
    // With the whole request, there is nothing to wait for.
    let session = refused("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(session.phase(), Phase::Closing);
    // Its end is unknown, or too far: the limit.
    for head in
        ["SMASH / HTTP/1.1\r\nHost: h\r\n\r\n", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n"]
    {
        let mut session = refused(head);
        let piece = vec![b'x'; 1 << 20];
        for _ in 1..MAX_DISCARDED >> 20 {
            session.receive(&piece);
            assert_eq!(session.phase(), Phase::InRequest, "{head}");
        }
        session.receive(&piece);
        assert_eq!(session.phase(), Phase::Closing, "{head}");
    }
    // A time limit ends it.
    let mut session = refused("\0\0\0\0");
    session.time_out();
    assert!(session.output().is_empty() && session.phase() == Phase::Closing);
}

#[test]
fn a_request_that_does_not_end_times_out() {
    let (_folder, http) = site();
    let mut session = http.open();
    session.time_out();
    assert!(session.output().is_empty() && session.phase() == Phase::Closing, "an idle connection ends without a word");
    let mut session = http.open();
    session.receive(b"GET / HT");
    assert_eq!(session.phase(), Phase::InRequest);
    session.time_out();
    assert!(take_output(&mut session).starts_with(b"HTTP/1.1 408 "));
    assert!(session.has_ended_output() && session.phase() == Phase::InRequest);
    session.time_out();
    assert!(session.output().is_empty() && session.phase() == Phase::Closing);
    // A request that is answered before its body has arrived has no second response.
    let mut session = http.open();
    session.receive(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n01234");
    assert!(take_output(&mut session).starts_with(b"HTTP/1.1 405 "));
    session.time_out();
    assert!(session.output().is_empty() && session.phase() == Phase::Closing);
}

#[test]
fn a_server_that_drains_announces_the_end() {
    let (_folder, http) = site();
    http.begin_drain();
    let (output, is_closing) = exchange(&http, &[b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"]);
    assert_eq!(field(&split(&output).0, "Connection"), Some("close"));
    assert!(is_closing);
}

#[test]
fn a_file_that_shrinks_ends_the_connection_instead_of_the_body() {
    let (folder, http) = site();
    let mut session = http.open();
    session.receive(b"GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
    fs::write(folder.path().join("root/large.bin"), "short").unwrap();
    let output = take_output(&mut session);
    assert!(output.len() < large().len());
    assert_eq!(session.phase(), Phase::Closing);
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    let error = Http::open(std::path::Path::new("/no/such/folder")).unwrap_err();
    assert!(error.to_string().starts_with("cannot open the folder /no/such/folder: "), "{error}");
}
