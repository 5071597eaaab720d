//! Metrics over HTTP, as Prometheus asks for them, and as others do who wish no good.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
};

use spandrel::{Orb, SystemExceptionKind};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{KeptPort, PATIENCE},
};

const ANY: &str = "127.0.0.1:0";

fn told() -> (Server, SocketAddr) {
    let server = Server::with(Orb::builder().metrics_endpoint(ANY.parse().unwrap()));
    let addr = server.orb.metrics_endpoint().unwrap();
    (server, addr)
}

/// What is said to this request until the connection ends.
fn say(addr: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request).unwrap();
    let mut said = Vec::new();
    // It may be cut off where it goes on talking.
    let _ = stream.read_to_end(&mut said);
    String::from_utf8(said).unwrap()
}

fn get(addr: SocketAddr, path: &str) -> String {
    say(addr, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

#[test]
fn metrics_are_told_with_their_type_and_length() {
    let (server, addr) = told();
    Target::unchecked_narrow(&Orb::builder().build().unwrap().string_to_object(&server.ior()).unwrap()).ping().unwrap();
    let said = get(addr, "/metrics");
    let (header, body) = said.split_once("\r\n\r\n").unwrap();
    assert!(header.starts_with("HTTP/1.1 200 OK\r\n"), "{header}");
    assert!(header.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(header.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
    assert!(body.contains(r#"spandrel_connections_opened_total{side="server"} 1"#));
    assert!(body.contains("# TYPE spandrel_request_seconds histogram\n"));
}

#[test]
fn whoever_asks_for_something_else_is_told_so() {
    let (_server, addr) = told();
    for (request, status) in [
        (&b"GET /healthz HTTP/1.0\r\n\r\n"[..], "200"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
        (b"GET /metrics?format=text HTTP/1.1\r\n\r\n", "200"),
        (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", "404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
        (b"GIOP\x01\x02\x01\x00\x00\x00\x00\x00\r\n\r\n", "400"),
        (b"\x16\x03\x01\x02\x00", "400"),
    ] {
        let said = say(addr, request);
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{}: {said}", request.escape_ascii());
    }
    let long = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 5000]].concat();
    assert!(say(addr, &long).starts_with("HTTP/1.1 431 "));
}

#[test]
fn those_who_say_nothing_do_not_keep_others_from_asking() {
    let (_server, addr) = told();
    // As many as are let in, but one, each with half a request.
    let silent: Vec<TcpStream> = (0..15)
        .map(|_| {
            let mut stream = TcpStream::connect(addr).unwrap();
            stream.write_all(b"GET /met").unwrap();
            stream
        })
        .collect();
    assert!(get(addr, "/healthz").ends_with("\r\n\r\nok\n"));
    // Those beyond the limit are closed, and wait for nobody.
    let further: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(addr).unwrap()).collect();
    let closed = further.iter().filter(|stream| {
        stream.set_read_timeout(Some(PATIENCE / 30)).unwrap();
        matches!((&**stream).read(&mut [0; 1]), Ok(0))
    });
    assert!(closed.count() >= 3);
    drop(silent);
}

#[test]
fn a_place_that_is_taken_is_refused_with_its_name() {
    let taken = TcpListener::bind(ANY).unwrap();
    let addr = taken.local_addr().unwrap();
    let error = Orb::builder().metrics_endpoint(addr).build().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Initialize);
    let said = format!("{error}");
    assert!(said.contains(&addr.to_string()) && said.contains("-ORBMetricsEndpoint"), "{said}");
    let args = ["-ORBMetricsEndpoint".to_owned(), addr.to_string()];
    assert!(matches!(Orb::init(args).unwrap_err(), spandrel::InitError::Refused(_)));
}

#[test]
fn it_ends_with_its_orb() {
    let orb = Orb::init(["-ORBMetricsEndpoint", "0"].map(String::from)).unwrap();
    let addr = orb.metrics_endpoint().unwrap();
    assert!(addr.ip().is_loopback() && addr.port() != 0);
    orb.shutdown(true).unwrap();
    let kept = KeptPort::reserve();
    let orb = Orb::init(["-ORBMetricsEndpoint".to_owned(), kept.port.to_string()]).unwrap();
    let addr = orb.metrics_endpoint().unwrap();
    assert!(get(addr, "/healthz").contains("ok"));
    orb.shutdown(true).unwrap();
    assert!(TcpStream::connect(addr).is_err(), "nobody listens any more");
}
