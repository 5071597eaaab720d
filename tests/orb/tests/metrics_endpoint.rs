//! The HTTP endpoint of metrics: requests of Prometheus, malformed requests, and silent clients.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use spandrel::{Orb, Poa, SystemExceptionKind};
use spandrel_orb_tests::{
    Probe, Server,
    probe::{Target, TargetSkeleton},
    support::{ReservedPort, TEST_TIMEOUT, holds_within, wait_until},
};

const ANY: &str = "127.0.0.1:0";

fn server_with_endpoint() -> (Server, SocketAddr) {
    let server = Server::with(Orb::builder().metrics_endpoint(ANY.parse().unwrap()));
    let addr = server.orb.metrics_endpoint().unwrap();
    (server, addr)
}

/// Sends a request and reads until the connection ends.
fn exchange(addr: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(request).unwrap();
    let mut response = Vec::new();
    // A response to an over-long request may end with a reset.
    let _ = stream.read_to_end(&mut response);
    String::from_utf8(response).unwrap()
}

fn get(addr: SocketAddr, path: &str) -> String {
    exchange(addr, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

#[test]
fn metrics_are_served_with_content_type_and_length() {
    let (server, addr) = server_with_endpoint();
    Target::unchecked_narrow(&Orb::builder().build().unwrap().string_to_object(&server.ior()).unwrap()).ping().unwrap();
    let response = get(addr, "/metrics");
    let (header, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(header.starts_with("HTTP/1.1 200 OK\r\n"), "{header}");
    assert!(header.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert!(header.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
    assert!(body.contains(r#"spandrel_connections_opened_total{side="server"} 1"#));
    assert!(body.contains("# TYPE spandrel_request_seconds histogram\n"));
}

#[test]
fn the_option_of_the_endpoint_alone_measures_calls_and_requests() {
    let orb = Orb::init(["-ORBMetricsEndpoint", "0"].map(String::from)).unwrap();
    let addr = orb.metrics_endpoint().unwrap();
    let server = Server::start();
    Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap()).ping().unwrap();
    let poa = Poa::root(&orb).unwrap();
    let object = poa.activate(TargetSkeleton::new(Probe::new(&orb))).unwrap();
    let client = Orb::builder().build().unwrap();
    Target::unchecked_narrow(&client.string_to_object(&object.to_string()).unwrap()).ping().unwrap();
    let of_ping = r#"interface="IDL:Probe/Target:1.0",operation="ping",outcome="ok""#;
    wait_until("the end of the request to be counted", || {
        let text = get(addr, "/metrics");
        ["call", "request"].iter().all(|side| {
            text.contains(&format!("spandrel_{side}_seconds_count{{{of_ping}}} 1\n"))
                && text.contains(&format!("spandrel_{side}_seconds_bucket{{{of_ping},le=\"+Inf\"}} 1\n"))
        })
    });
    orb.shutdown().unwrap();
}

#[test]
fn other_http_requests_get_the_matching_status() {
    let (_server, addr) = server_with_endpoint();
    for (request, status) in [
        (&b"GET /healthz HTTP/1.0\r\n\r\n"[..], "200"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
        (b"GET /metrics?format=text HTTP/1.1\r\n\r\n", "200"),
        (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", "404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
        (b"GIOP\x01\x02\x01\x00\x00\x00\x00\x00\r\n\r\n", "400"),
        (b"\x16\x03\x01\x02\x00", "400"),
    ] {
        let response = exchange(addr, request);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{}: {response}", request.escape_ascii());
    }
    let long = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 5000]].concat();
    assert!(exchange(addr, &long).starts_with("HTTP/1.1 431 "));
}

#[test]
fn a_response_arrives_although_octets_follow_its_request() {
    let (_server, addr) = server_with_endpoint();
    let get = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n";
    for (method, octets) in [("POST", 0), ("POST", 3000), ("PUT", 3 << 20), ("GET", 3000)] {
        let head = format!("{method} /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: {octets}\r\n\r\n");
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.write_all(&[head.as_bytes(), &vec![b'x'; octets], get].concat()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap_or_else(|error| panic!("{method} {octets}: {error}"));
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    }
}

#[test]
fn silent_clients_do_not_block_others() {
    let (_server, addr) = server_with_endpoint();
    // One connection less than the limit, each with half a request.
    let silent: Vec<TcpStream> = (0..15)
        .map(|_| {
            let mut stream = TcpStream::connect(addr).unwrap();
            stream.write_all(b"GET /met").unwrap();
            stream
        })
        .collect();
    assert!(get(addr, "/healthz").ends_with("\r\n\r\nok\n"));
    // Connections beyond the limit are closed at once.
    let further: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(addr).unwrap()).collect();
    further.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    let closed = || further.iter().filter(|stream| matches!(stream.peek(&mut [0]), Ok(0))).count();
    wait_until("the end of three connections", || closed() >= 3);
    drop(silent);
}

#[test]
fn an_address_in_use_is_reported_with_its_option() {
    let taken = TcpListener::bind(ANY).unwrap();
    let addr = taken.local_addr().unwrap();
    let error = Orb::builder().metrics_endpoint(addr).build().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Initialize);
    let text = format!("{error}");
    assert!(text.contains(&addr.to_string()) && text.contains("-ORBMetricsEndpoint"), "{text}");
    let args = ["-ORBMetricsEndpoint".to_owned(), addr.to_string()];
    assert!(matches!(Orb::init(args).unwrap_err(), spandrel::InitError::Refused(_)));
}

#[test]
fn the_endpoint_closes_with_its_orb() {
    let orb = Orb::init(["-ORBMetricsEndpoint", "0"].map(String::from)).unwrap();
    let addr = orb.metrics_endpoint().unwrap();
    assert!(addr.ip().is_loopback() && addr.port() != 0);
    orb.shutdown().unwrap();
    let reserved = ReservedPort::reserve();
    let orb = Orb::init(["-ORBMetricsEndpoint".to_owned(), reserved.port.to_string()]).unwrap();
    let addr = orb.metrics_endpoint().unwrap();
    assert!(get(addr, "/healthz").contains("ok"));
    orb.shutdown().unwrap();
    // Under Wine, connections sometimes succeed for a moment longer.
    let limit = if cfg!(windows) { TEST_TIMEOUT } else { Duration::ZERO };
    assert!(holds_within(limit, || TcpStream::connect(addr).is_err()), "the endpoint is closed");
}
