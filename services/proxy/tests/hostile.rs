//! Slow and malformed HTTP.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use spandrel_proxy::CallLimits;
use spandrel_proxy::http::HttpLimits;

use crate::fixture::{AUTHORIZATION, Fixture, Settings, TIMEOUT};

const HEAD: &str =
    "POST /Bank/alice/deposit HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\n";

/// Longer than a request of these tests takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// A proxy that waits for a header or a body for [`PATIENCE`], and takes little.
fn impatient() -> Fixture {
    let http =
        HttpLimits { header_timeout: PATIENCE, header_octets: 16 << 10, connections: 8, ..HttpLimits::default() };
    let calls = CallLimits { body_timeout: PATIENCE, body_octets: 64 << 10, ..CallLimits::default() };
    Fixture::bank(Settings { http, calls, ..Settings::default() })
}

fn still_serves(fixture: &Fixture) {
    assert_eq!(fixture.send("POST", "/Bank/alice/deposit", "[1]").status, 200);
}

#[test]
fn slow_clients_are_cut_off() {
    let fixture = impatient();
    let begin = Instant::now();
    let starts = ["", "POST /Bank", &format!("{HEAD}X-Slow: ")];
    let streams = starts.map(|start| {
        let mut stream = fixture.connect();
        stream.write_all(start.as_bytes()).unwrap();
        (start, stream)
    });
    for (start, mut stream) in streams {
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer);
        assert!(begin.elapsed() < TIMEOUT, "{start:?}");
    }
    // A body that does not arrive.
    let response =
        fixture.send_octets(format!("{HEAD}{AUTHORIZATION}Content-Length: 11\r\n\r\n{{\"cen").as_bytes()).unwrap();
    assert_eq!(response.status, 408, "{response:?}");
    still_serves(&fixture);
}

#[test]
fn idle_connections_make_room_for_others() {
    let fixture = impatient();
    // All places are taken by connections that send nothing.
    let idle: Vec<_> = (0..8).map(|_| fixture.connect()).collect();
    still_serves(&fixture);
    drop(idle);
}

#[test]
fn large_requests_are_refused() {
    let fixture = impatient();
    let large = "x".repeat(100 << 10);
    let response = fixture.send_octets(format!("{HEAD}{AUTHORIZATION}X-Large: {large}\r\n\r\n").as_bytes());
    assert!(response.is_err() || response.unwrap().status == 431);
    let body = format!("{{\"cents\":\"{large}\"}}");
    assert_eq!(fixture.send("POST", "/Bank/alice/deposit", &body).status, 413);
    // Without a length, in chunks without end.
    let chunks = format!(
        "{HEAD}{AUTHORIZATION}Transfer-Encoding: chunked\r\n\r\n{}",
        format!("400\r\n{}\r\n", "1".repeat(1024)).repeat(100)
    );
    assert_eq!(fixture.send_octets(chunks.as_bytes()).unwrap().status, 413);
    // Values that nest deeply, and JSON that does.
    for text in [format!("{}{}", "[".repeat(30_000), "]".repeat(30_000)), "{\"cents\":".repeat(5_000)] {
        assert_eq!(fixture.send("POST", "/Bank/alice/deposit", &text).status, 400);
    }
    still_serves(&fixture);
}

/// The limit holds also for a header that comes in one piece, which the reader's buffer takes whole.
#[test]
fn a_header_is_as_long_as_the_limit_permits() {
    let fixture = Fixture::bank(Settings::default());
    let with = |octets: usize| {
        let fields = format!("X-Large: {}\r\n", "x".repeat(octets));
        let request =
            format!("GET /Bank/alice/owner HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{AUTHORIZATION}{fields}\r\n");
        fixture.send_octets(request.as_bytes()).map(|response| response.status)
    };
    assert_eq!(with(31 << 10).unwrap(), 200);
    for octets in [33 << 10, 40 << 10] {
        assert_eq!(with(octets).unwrap_or(431), 431, "{octets}");
    }
    // Many short fields.
    let fields: String = (0..90).map(|nth| format!("X-{nth}: {}\r\n", "x".repeat(400))).collect();
    let response = fixture.send_with("GET", "/Bank/alice/owner", &format!("{AUTHORIZATION}{fields}"), "");
    assert_eq!(response.status, 431, "{response:?}");
}

/// RFC 9112, 3.2: one valid `Host` field.
#[test]
fn a_request_has_one_valid_host() {
    let fixture = Fixture::bank(Settings::default());
    let status = |version: &str, hosts: &str| {
        let request = format!("GET /healthz HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n");
        fixture.send_octets(request.as_bytes()).unwrap().status
    };
    for hosts in ["Host: test\r\n", "Host: test:80\r\n", "Host: [::1]:8080\r\n", "Host:\r\n"] {
        assert_eq!(status("1.1", hosts), 200, "{hosts}");
    }
    assert_eq!(status("1.0", ""), 200);
    for hosts in
        ["", "Host: a\r\nHost: b\r\n", "Host: a\r\nHost: a\r\n", "Host: a b\r\n", "Host: u@a\r\n", "Host: a/b\r\n"]
    {
        assert_eq!(status("1.1", hosts), 400, "{hosts}");
    }
    assert_eq!(status("1.0", "Host: a\r\nHost: b\r\n"), 400);
}

#[test]
fn compressed_bodies_are_refused_by_name() {
    let fixture = Fixture::bank(Settings::default());
    let send = |encoding: &str, body: &str| {
        let headers = format!("{AUTHORIZATION}Content-Type: application/json\r\nContent-Encoding: {encoding}\r\n");
        fixture.send_with("POST", "/Bank/alice/deposit", &headers, body)
    };
    for encoding in ["gzip", "deflate, identity", "br"] {
        let response = send(encoding, "[1]");
        assert_eq!(response.status, 415, "{response:?}");
        assert!(response.head.contains("accept-encoding: identity"), "{response:?}");
    }
    assert_eq!(send("Identity", "[1]").status, 200);
}

#[test]
fn malformed_requests_are_refused() {
    let fixture = impatient();
    let with = |rest: &str| format!("{HEAD}{AUTHORIZATION}{rest}").into_bytes();
    let requests: Vec<Vec<u8>> = vec![
        b"\r\n\r\n\r\n".to_vec(),
        b"nonsense\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GIOP\x01\x02\x01\x00\x00\x00\x00\x10".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        vec![0; 4096],
        vec![0xff; 4096],
        with("Content-Length: -1\r\n\r\n"),
        with("Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345"),
        with("Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        with("Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
        with("Bad Header: x\r\n\r\n"),
    ];
    for octets in requests {
        // An error, or no answer at all.
        if let Ok(response) = fixture.send_octets(&octets) {
            assert!((400..500).contains(&response.status), "{octets:?}: {response:?}");
        }
    }
    let mut body = with("Content-Length: 4\r\n\r\n");
    body.extend([b'"', 0xc3, 0x28, b'"']);
    assert_eq!(fixture.send_octets(&body).unwrap().status, 400);
    for path in
        ["/Bank/%ff%fe/deposit", "/Bank/%/deposit", "/%00/deposit", "/..%2f..%2fetc/passwd", "/Bank/alice/deposit%00"]
    {
        let status = fixture.send("POST", path, "[1]").status;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    still_serves(&fixture);
}

#[test]
fn requests_of_one_connection_follow_each_other() {
    let fixture = impatient();
    let request = format!(
        "POST /Bank/alice/deposit HTTP/1.1\r\nHost: test\r\n{AUTHORIZATION}Content-Type: application/json\r\nContent-Length: 3\r\n\r\n[1]"
    );
    let mut stream = fixture.connect();
    stream.write_all(request.repeat(20).as_bytes()).unwrap();
    let mut answers = String::new();
    // The connection is idle after the last answer, and is closed then.
    _ = stream.read_to_string(&mut answers);
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 20, "{answers}");
    assert_eq!(fixture.account.state.lock().unwrap().balance, 20);
}

/// RFC 9112, 9.3 and 9.6: a request behind a refused one is served, or the response to that one announces the end.
#[test]
fn a_request_behind_a_refused_one_is_served_or_the_connection_closes() {
    let fixture = impatient();
    let exchange = |head: &str, body: &str| {
        let next = format!("GET /Bank/alice/owner HTTP/1.1\r\nHost: test\r\n{AUTHORIZATION}Connection: close\r\n\r\n");
        let mut stream = fixture.connect();
        // The server may close the connection while the body is sent.
        _ = stream.write_all(format!("{head}\r\n{body}{next}").as_bytes());
        let mut answers = Vec::new();
        _ = stream.read_to_end(&mut answers);
        String::from_utf8(answers).unwrap()
    };
    let head = |target: &str, fields: &str| format!("POST {target} HTTP/1.1\r\nHost: test\r\n{fields}");
    for (target, fields, status) in [
        ("/Bank/alice/deposit", "", 401),
        ("/healthz", "", 405),
        ("/Bank/nobody/deposit", AUTHORIZATION, 404),
        (
            "/Bank/alice/deposit",
            &format!("{AUTHORIZATION}Content-Type: application/json\r\nContent-Encoding: gzip\r\n"),
            415,
        ),
    ] {
        for octets in [0, 5, 3000, 600_000] {
            let body = "x".repeat(octets);
            let answers = exchange(&head(target, &format!("{fields}Content-Length: {octets}\r\n")), &body);
            assert!(answers.starts_with(&format!("HTTP/1.1 {status} ")), "{target} {octets}: {answers}");
            assert_eq!(answers.matches("HTTP/1.1 200 ").count(), 1, "{target} {octets}: {answers}");
        }
        let chunks =
            exchange(&head(target, &format!("{fields}Transfer-Encoding: chunked\r\n")), "3\r\nxxx\r\n0\r\n\r\n");
        assert_eq!(chunks.matches("HTTP/1.1 200 ").count(), 1, "{chunks}");
        // Too long to be dropped, or not sent without an invitation.
        for fields in ["Content-Length: 99999999\r\n", "Expect: 100-continue\r\nContent-Length: 5\r\n"] {
            let answers = exchange(&head(target, fields), "");
            assert!(answers.contains("\r\nconnection: close\r\n"), "{target}: {answers}");
            assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
        }
    }
}
