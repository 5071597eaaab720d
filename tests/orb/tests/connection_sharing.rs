//! The client's connections: limits, sharing between calls, idle timeouts and purging.

use std::{
    io::Read,
    net::TcpStream,
    sync::mpsc,
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemExceptionKind,
    cdr::GiopVersion,
    diagnostics::statistics::{Event, Level},
    options::{ConnectionSharing, Purging},
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{
        ClosedPort, TEST_TIMEOUT, block_on, fake_server, in_background, is_ready, kind_and_completion, read_message,
        wait_until,
    },
};

fn target_at(orb: &Orb, server: &Server) -> Target {
    Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap())
}

/// Number of open connections at a server.
fn open_at(server: &Server) -> i64 {
    server.orb.statistics().level(Level::ServerConnections)
}

#[test]
fn at_the_limit_the_purging_strategy_selects_the_connection_to_close() {
    for (purging, purged) in [(Purging::LeastRecentlyUsed, 1), (Purging::LeastFrequentlyUsed, 2), (Purging::Fifo, 0)] {
        let servers = [(); 4].map(|()| Server::start());
        let orb = Orb::builder().max_client_connections(3).purging(purging).build().unwrap();
        let targets = servers.each_ref().map(|server| target_at(&orb, server));
        // The first is the oldest, the second the least recently used, the third the least frequently used.
        for index in [0, 1, 1, 2, 0] {
            targets[index].ping().unwrap();
        }
        targets[3].ping().unwrap();
        let mut open = [1; 4];
        open[purged] = 0;
        wait_until("the purged connection's end", || servers.each_ref().map(open_at) == open);
        assert_eq!(orb.statistics().count(Event::ClientClosedForLimit), 1, "{purging:?}");
        assert_eq!(orb.statistics().level(Level::ClientConnections), 3);
        // A later call opens it again without a retry.
        targets[purged].ping().unwrap();
        assert_eq!(orb.statistics().count(Event::Reconnected), 1);
        assert_eq!(orb.statistics().count(Event::Retried), 0);
    }
}

#[test]
fn at_the_limit_a_call_waits_for_a_connection_in_use() {
    let servers = [Server::start(), Server::start()];
    let orb = Orb::builder().max_client_connections(1).build().unwrap();
    let [first, second] = servers.each_ref().map(|server| target_at(&orb, server));
    let held = in_background(move || first.hold(1));
    servers[0].probe.await_held(1);
    let limited = Target::unchecked_narrow(&second.as_object().with_timeout(Some(Duration::from_millis(500))));
    let refused = limited.ping().unwrap_err();
    assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::NoResources, CompletionStatus::No));
    let text = refused.to_string();
    assert!(text.contains("all 1 connections") && text.contains("`-ORBMaxClientConnections`"), "{text}");
    let waiting = in_background(move || second.ping());
    assert!(waiting.try_recv().is_err());
    servers[0].probe.open(1);
    held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    assert_eq!(orb.statistics().level(Level::ClientConnections), 1);
}

#[test]
fn without_purging_a_call_waits_even_for_idle_connections() {
    let servers = [Server::start(), Server::start()];
    let builder = Orb::builder().max_client_connections(1).purging(Purging::Null);
    let orb = builder.build().unwrap();
    let [first, second] = servers.each_ref().map(|server| target_at(&orb, server));
    first.ping().unwrap();
    let limited = Target::unchecked_narrow(&second.as_object().with_timeout(Some(Duration::from_millis(500))));
    assert_eq!(limited.ping().unwrap_err().kind(), SystemExceptionKind::NoResources);
    assert_eq!(orb.statistics().count(Event::ClientClosedForLimit), 0);
    first.ping().unwrap();
}

#[test]
fn at_the_limit_calls_to_one_server_share_its_connections() {
    let server = Server::start();
    let orb = Orb::builder().max_client_connections(2).build().unwrap();
    let target = target_at(&orb, &server);
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let target = target.clone();
            in_background(move || target.hold(1))
        })
        .collect();
    let waiting = target.hold_async(1);
    server.probe.await_held(6);
    assert_eq!(open_at(&server), 2);
    server.probe.open(1);
    calls.iter().for_each(|call| call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap());
    block_on(waiting).unwrap();
}

#[test]
fn at_the_limit_asynchronous_calls_wait_too() {
    let servers = [Server::start(), Server::start()];
    let orb = Orb::builder().max_client_connections(1).build().unwrap();
    let [first, second] = servers.each_ref().map(|server| target_at(&orb, server));
    let held = first.hold_async(1);
    servers[0].probe.await_held(1);
    let mut waiting = second.add_async(1, 2);
    assert!(!is_ready(&mut waiting));
    servers[0].probe.open(1);
    block_on(held).unwrap();
    assert_eq!(block_on(waiting).unwrap(), 3);
}

#[test]
fn exclusive_connections_are_never_shared() {
    let server = Server::start();
    let builder = Orb::builder().connections_per_peer(2).connection_sharing(ConnectionSharing::Exclusive);
    let orb = builder.build().unwrap();
    let target = target_at(&orb, &server);
    let held: Vec<_> = (0..2)
        .map(|_| {
            let target = target.clone();
            in_background(move || target.hold(1))
        })
        .collect();
    server.probe.await_held(2);
    let limited = Target::unchecked_narrow(&target.as_object().with_timeout(Some(Duration::from_millis(500))));
    let refused = limited.ping().unwrap_err();
    assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::Timeout, CompletionStatus::No));
    let text = refused.to_string();
    assert!(text.contains("all 2 connections") && text.contains("`-ORBConnectionsPerPeer`"), "{text}");
    let mut parked = [target.add_async(1, 2), target.add_async(3, 4)];
    assert!(parked.iter_mut().all(|call| !is_ready(call)));
    let waiting = in_background(move || target.add(5, 6));
    server.probe.open(1);
    held.iter().for_each(|call| call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap());
    assert_eq!(parked.map(|call| block_on(call).unwrap()), [3, 7]);
    assert_eq!(waiting.recv_timeout(TEST_TIMEOUT).unwrap().unwrap(), 11);
    assert_eq!(orb.statistics().count(Event::ConnectionOpened), 2);
}

#[test]
fn multiplexed_calls_share_one_connection() {
    let server = Server::start();
    let orb = Orb::builder().connection_sharing(ConnectionSharing::Multiplexed).build().unwrap();
    let target = target_at(&orb, &server);
    let held: Vec<_> = (0..4)
        .map(|_| {
            let target = target.clone();
            in_background(move || target.hold(1))
        })
        .collect();
    server.probe.await_held(4);
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(orb.statistics().count(Event::ConnectionOpened), 1);
    server.probe.open(1);
    held.iter().for_each(|call| call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap());
}

/// Sends a one-way request to a fake server; returns the server's end of the connection, too.
fn send_one_way_to_fake_server(builder: OrbBuilder) -> (Orb, Target, TcpStream) {
    let (send, accepted) = mpsc::channel();
    let port = fake_server(move |_, stream| send.send(stream).unwrap());
    let orb = builder.build().unwrap();
    let version = if orb.id() == "old" { "1.0" } else { "1.2" };
    let url = format!("corbaloc:iiop:{version}@127.0.0.1:{port}/x");
    let target = Target::unchecked_narrow(&orb.string_to_object(&url).unwrap());
    target.note(&[]).unwrap();
    let mut stream = accepted.recv_timeout(TEST_TIMEOUT).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    read_message(&mut stream).unwrap();
    (orb, target, stream)
}

#[test]
fn an_idle_connection_is_closed_with_close_connection() {
    let (orb, _target, mut stream) =
        send_one_way_to_fake_server(Orb::builder().idle_timeout(Some(Duration::from_millis(80))));
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 12);
    assert_eq!((&rest[..6], rest[7]), (&b"GIOP\x01\x02"[..], 5), "CloseConnection");
    wait_until("the connection's end", || orb.statistics().level(Level::ClientConnections) == 0);
    assert_eq!(orb.statistics().count(Event::ClientClosedIdle), 1);
}

#[test]
fn a_giop_1_0_client_closes_idle_connections_without_a_message() {
    let builder = Orb::builder().orb_id("old").giop_version(GiopVersion::V1_0);
    let (_orb, _target, mut stream) =
        send_one_way_to_fake_server(builder.idle_timeout(Some(Duration::from_millis(80))));
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"", "in GIOP 1.0 and 1.1 only servers send CloseConnection");
}

#[test]
fn a_connection_closed_while_idle_is_reopened_without_a_retry() {
    let server = Server::start();
    let orb = Orb::builder().idle_timeout(Some(Duration::from_millis(60))).build().unwrap();
    let target = target_at(&orb, &server);
    for round in 1..=2 {
        assert_eq!(target.add(round, 1).unwrap(), round + 1);
        wait_until("the client's end of the connection", || orb.statistics().level(Level::ClientConnections) == 0);
        wait_until("the server's end of the connection", || open_at(&server) == 0);
    }
    assert_eq!(block_on(target.add_async(1, 1)).unwrap(), 2);
    let statistics = orb.statistics();
    assert_eq!((statistics.count(Event::Reconnected), statistics.count(Event::Retried)), (2, 0));
}

#[test]
fn a_connection_in_use_is_not_idle() {
    let server = Server::start();
    let orb = Orb::builder().idle_timeout(Some(Duration::from_millis(40))).build().unwrap();
    let (target, other) = (target_at(&orb, &server), target_at(&orb, &server));
    let held = in_background(move || target.hold(1));
    server.probe.await_held(1);
    // The other connection is closed meanwhile.
    other.ping().unwrap();
    wait_until("the idle connection's end", || orb.statistics().count(Event::ClientClosedIdle) == 1);
    server.probe.open(1);
    held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

#[test]
fn a_refused_connection_is_not_attempted_again_during_the_backoff() {
    let closed = ClosedPort::reserve();
    let port = closed.port();
    let target_of = |backoff| {
        let orb = Orb::builder().reconnect_backoff(backoff, 4 * backoff).build().unwrap();
        let target = Target::unchecked_narrow(&orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap());
        (orb, target)
    };
    let (orb, target) = target_of(TEST_TIMEOUT);
    let first = target.ping().unwrap_err();
    let again = target.ping().unwrap_err();
    let no = (SystemExceptionKind::Transient, CompletionStatus::No);
    assert_eq!((kind_and_completion(&first), kind_and_completion(&again)), (no, no));
    assert_eq!(orb.statistics().count(Event::ConnectionFailed), 1, "one connection attempt");
    let text = again.to_string();
    assert!(text.contains(&format!("{port}")) && text.contains("`-ORBReconnectBackoff`"), "{text}");
    // Once the backoff is over, the next call connects again.
    let backoff_time = Duration::from_millis(200);
    let (orb, target) = target_of(backoff_time);
    let before = Instant::now();
    wait_until("another attempt", || {
        let _ = target.ping();
        orb.statistics().count(Event::ConnectionFailed) > 1
    });
    assert!(before.elapsed() >= backoff_time / 2);
}

#[test]
fn options_set_the_same_values_as_the_builder() {
    let server = Server::start();
    let args = [
        ("-ORBMaxClientConnections", "7"),
        ("-ORBConnectionPurging", "fifo"),
        ("-ORBConnectionSharing", "multiplexed"),
        ("-ORBIdleTimeout", "off"),
        ("-ORBReconnectBackoff", "100:800"),
        ("-ORBBufferLimit", "100000"),
    ];
    let orb = Orb::init(args.iter().flat_map(|(option, value)| [(*option).to_owned(), (*value).to_owned()])).unwrap();
    assert_eq!(target_at(&orb, &server).add(1, 2).unwrap(), 3);
    for (option, value) in
        [("-ORBConnectionPurging", "random"), ("-ORBConnectionSharing", "no"), ("-ORBReconnectBackoff", "1:x")]
    {
        let refused = Orb::init([option.to_owned(), value.to_owned()]).unwrap_err();
        assert!(refused.to_string().contains(option), "{refused}");
    }
}
