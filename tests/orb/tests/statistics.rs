//! Statistics of an ORB, and their Prometheus text format.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use spandrel::{
    Endpoint, Orb, SystemExceptionKind,
    diagnostics::{
        Statistics,
        statistics::{Event, Level},
    },
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{ClosedPort, TEST_TIMEOUT, block_on, call_until_timeout, wait_until},
};

fn client_of(server: &Server) -> (Orb, Target) {
    let orb = Orb::builder().build().unwrap();
    let target = Target::narrow(&orb.string_to_object(&server.ior()).unwrap()).unwrap();
    (orb, target)
}

#[test]
fn connections_are_counted_on_both_sides() {
    let server = Server::start();
    let (orb, target) = client_of(&server);
    target.ping().unwrap();
    let (client_statistics, server_statistics) = (orb.statistics(), server.orb.statistics());
    assert_eq!(
        (client_statistics.count(Event::ConnectionOpened), client_statistics.level(Level::ClientConnections)),
        (1, 1)
    );
    assert_eq!(
        (server_statistics.count(Event::ConnectionAccepted), server_statistics.level(Level::ServerConnections)),
        (1, 1)
    );
    drop(target);
    orb.shutdown().unwrap();
    assert_eq!(
        (client_statistics.count(Event::ConnectionOpened), client_statistics.level(Level::ClientConnections)),
        (1, 0)
    );
    wait_until("the end of the connection", || server_statistics.level(Level::ServerConnections) == 0);
    assert_eq!(server_statistics.count(Event::ServerClosedByPeer), 1);
}

/// The events of closed connections on either side, with their counts.
fn closed(orb: &Orb) -> Vec<(String, u64)> {
    let events = Event::ALL.iter().map(|event| (format!("{event:?}"), orb.statistics().count(*event)));
    events.filter(|(name, count)| name.contains("Closed") && *count > 0).collect()
}

#[test]
fn an_orderly_close_of_a_bidirectional_connection_is_no_fault_on_either_side() {
    let server = Server::with(Orb::builder().bidirectional(true));
    let client = Server::with(Orb::builder().bidirectional(true).listen(Endpoint::nowhere()));
    let target = Target::narrow(&client.orb.string_to_object(&server.ior()).unwrap()).unwrap();
    let own = Target::narrow(&client.orb.string_to_object(&client.ior()).unwrap()).unwrap();
    target.call_back(Some(&own)).unwrap();
    client.orb.shutdown().unwrap();
    let (client_statistics, server_statistics) = (client.orb.statistics(), server.orb.statistics());
    wait_until("the end of the connection", || server_statistics.level(Level::ServerConnections) == 0);
    assert_eq!((client_statistics.count(Event::ConnectionOpened), closed(&client.orb)), (1, vec![]));
    let once = vec![("ServerClosedByPeer".to_owned(), 1)];
    assert_eq!((server_statistics.count(Event::ConnectionOpened), closed(&server.orb)), (0, once));
}

#[test]
fn the_end_of_a_connection_is_counted_once() {
    let server = Server::with(Orb::builder().shutdown_timeout(Duration::ZERO));
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap());
    let held = target.hold_async(1);
    server.probe.await_held(1); // so that both calls use one connection
    call_until_timeout(&target, |limited| limited.hold(1));
    // The connection is closed for a timeout while another call waits on it.
    server.orb.shutdown().unwrap();
    assert_eq!(block_on(held).unwrap_err().kind(), SystemExceptionKind::CommFailure);
    server.probe.open(1);
    assert_eq!(closed(&orb), [("ClientClosedForTimeout".to_owned(), 1)]);
}

#[test]
fn a_client_beyond_the_limit_is_counted_as_refused() {
    let server = Server::with(Orb::builder().max_connections(1));
    let (_orb, target) = client_of(&server);
    target.ping().unwrap();
    let mut second = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    second.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    second.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(server.orb.statistics().count(Event::RefusedForLimit), 1);
    assert_eq!(server.orb.statistics().level(Level::ServerConnections), 1);
}

#[test]
fn data_that_is_not_giop_is_counted_as_a_protocol_error() {
    let server = Server::start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    let statistics = server.orb.statistics();
    wait_until("the end of the connection", || statistics.level(Level::ServerConnections) == 0);
    assert_eq!((statistics.count(Event::ServerProtocolError), statistics.count(Event::ServerClosedForFault)), (1, 1));
}

#[test]
fn failed_connections_timeouts_and_panics_are_counted() {
    let closed = ClosedPort::reserve();
    let orb = Orb::builder().build().unwrap();
    let unreachable = orb.string_to_object(&format!("corbaloc::127.0.0.1:{}/x", closed.port())).unwrap();
    Target::unchecked_narrow(&unreachable).ping().unwrap_err();
    assert_eq!(orb.statistics().count(Event::ConnectionFailed), 1);

    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let target = Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap());
    call_until_timeout(&target, |limited| limited.hold(1));
    server.probe.open(1);
    assert_eq!(orb.statistics().count(Event::TimedOutWaiting), 1);

    let (_orb, target) = client_of(&server);
    target.panic().unwrap_err();
    assert_eq!(server.orb.statistics().count(Event::ServantPanicked), 1);
}

/// Checks the text format: each family is contiguous and preceded by its HELP and TYPE lines.
fn check_format(text: &str) {
    let (mut family, mut names) = ("", std::collections::HashSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            family = rest.split_once(' ').expect("a help text").0;
            assert!(names.insert(family.to_owned()), "{family} appears twice");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, family);
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            assert_eq!(name, family, "{line}");
            assert!(name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_'), "{line}");
            assert!(series.len() == name.len() || series.ends_with("\"}"), "{line}");
            value.parse::<f64>().unwrap();
            assert!(names.insert(series.to_owned() + "{}"), "{series} appears twice");
        }
    }
    assert!(text.ends_with('\n'));
}

#[test]
fn statistics_are_rendered_in_the_prometheus_text_format() {
    let statistics = Statistics::default();
    statistics.retried();
    statistics.retried();
    statistics.refused_for_limit();
    statistics.change(Level::RequestsHeld, 3);
    statistics.change(Level::RequestsHeld, -1);
    let text = statistics.render();
    check_format(&text);
    for line in [
        "# TYPE spandrel_requests_retried_total counter",
        "spandrel_requests_retried_total 2",
        r#"spandrel_connections_refused_total{reason="limit"} 1"#,
        "# TYPE spandrel_queue_length gauge",
        r#"spandrel_queue_length{queue="adapter"} 2"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}
