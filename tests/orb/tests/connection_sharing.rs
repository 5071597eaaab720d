//! The client's connections: how many there are, who gets them, which go and when.

use std::{
    io::Read,
    net::TcpStream,
    sync::mpsc,
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, ConnectionSharing, GiopVersion, Orb, OrbBuilder, Purging, SystemExceptionKind,
    statistics::{Event, Level},
};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{
        ClosedPort, PATIENCE, block_on, comes, in_background, is_ready, kind_and_completion, pretend, read_message,
    },
};

fn at(orb: &Orb, server: &Server) -> Target {
    Target::unchecked_narrow(&orb.string_to_object(&server.ior()).unwrap())
}

/// Connections that a server has.
fn open_at(server: &Server) -> i64 {
    server.orb.statistics().level(Level::ServerConnections)
}

#[test]
fn at_the_limit_the_one_that_the_strategy_names_is_closed() {
    for (purging, goes) in [(Purging::LeastRecentlyUsed, 1), (Purging::LeastFrequentlyUsed, 2), (Purging::Fifo, 0)] {
        let servers = [(); 4].map(|()| Server::start());
        let orb = Orb::builder().max_client_connections(3).purging(purging).build().unwrap();
        let targets = servers.each_ref().map(|server| at(&orb, server));
        // The first is the oldest, the second the one that was not used for longest, the third the one that was used least.
        for index in [0, 1, 1, 2, 0] {
            targets[index].ping().unwrap();
        }
        targets[3].ping().unwrap();
        let mut open = [1; 4];
        open[goes] = 0;
        comes("its end", || servers.each_ref().map(open_at) == open);
        assert_eq!(orb.statistics().count(Event::ClientClosedForLimit), 1, "{purging:?}");
        assert_eq!(orb.statistics().level(Level::ClientConnections), 3);
        // It is opened again, and nobody notices.
        targets[goes].ping().unwrap();
        assert_eq!(orb.statistics().count(Event::Reconnected), 1);
        assert_eq!(orb.statistics().count(Event::Retried), 0);
    }
}

#[test]
fn one_that_is_in_use_is_not_closed_but_waited_for() {
    let servers = [Server::start(), Server::start()];
    let orb = Orb::builder().max_client_connections(1).build().unwrap();
    let [first, second] = servers.each_ref().map(|server| at(&orb, server));
    let held = in_background(move || first.hold(1));
    servers[0].probe.await_held(1);
    let hurried = Target::unchecked_narrow(&second.as_object().with_timeout(Some(Duration::from_millis(50))));
    let refused = hurried.ping().unwrap_err();
    assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::NoResources, CompletionStatus::No));
    let words = refused.to_string();
    assert!(words.contains("all 1 connections") && words.contains("`-ORBMaxClientConnections`"), "{words}");
    let waits = in_background(move || second.ping());
    assert!(waits.try_recv().is_err());
    servers[0].probe.open(1);
    held.recv_timeout(PATIENCE).unwrap().unwrap();
    waits.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(orb.statistics().level(Level::ClientConnections), 1);
}

#[test]
fn without_purging_a_call_waits_though_nobody_uses_the_others() {
    let servers = [Server::start(), Server::start()];
    let builder = Orb::builder().max_client_connections(1).purging(Purging::Null);
    let orb = builder.build().unwrap();
    let [first, second] = servers.each_ref().map(|server| at(&orb, server));
    first.ping().unwrap();
    let hurried = Target::unchecked_narrow(&second.as_object().with_timeout(Some(Duration::from_millis(50))));
    assert_eq!(hurried.ping().unwrap_err().kind(), SystemExceptionKind::NoResources);
    assert_eq!(orb.statistics().count(Event::ClientClosedForLimit), 0);
    first.ping().unwrap();
}

#[test]
fn at_the_limit_calls_to_one_server_share_what_is_open() {
    let server = Server::start();
    let orb = Orb::builder().max_client_connections(2).build().unwrap();
    let target = at(&orb, &server);
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let target = target.clone();
            in_background(move || target.hold(1))
        })
        .collect();
    let waits = target.hold_async(1);
    server.probe.await_held(6);
    assert_eq!(open_at(&server), 2);
    server.probe.open(1);
    calls.iter().for_each(|call| call.recv_timeout(PATIENCE).unwrap().unwrap());
    block_on(waits).unwrap();
}

#[test]
fn asynchronous_calls_wait_for_their_turn_too() {
    let servers = [Server::start(), Server::start()];
    let orb = Orb::builder().max_client_connections(1).build().unwrap();
    let [first, second] = servers.each_ref().map(|server| at(&orb, server));
    let held = first.hold_async(1);
    servers[0].probe.await_held(1);
    let mut waits = second.add_async(1, 2);
    assert!(!is_ready(&mut waits));
    servers[0].probe.open(1);
    block_on(held).unwrap();
    assert_eq!(block_on(waits).unwrap(), 3);
}

#[test]
fn exclusive_connections_are_never_shared() {
    let server = Server::start();
    let builder = Orb::builder().connections_per_peer(2).connection_sharing(ConnectionSharing::Exclusive);
    let orb = builder.build().unwrap();
    let target = at(&orb, &server);
    let held: Vec<_> = (0..2)
        .map(|_| {
            let target = target.clone();
            in_background(move || target.hold(1))
        })
        .collect();
    server.probe.await_held(2);
    let hurried = Target::unchecked_narrow(&target.as_object().with_timeout(Some(Duration::from_millis(50))));
    let refused = hurried.ping().unwrap_err();
    assert_eq!(kind_and_completion(&refused), (SystemExceptionKind::Timeout, CompletionStatus::No));
    let words = refused.to_string();
    assert!(words.contains("all 2 connections") && words.contains("`-ORBConnectionsPerPeer`"), "{words}");
    let mut parked = [target.add_async(1, 2), target.add_async(3, 4)];
    assert!(parked.iter_mut().all(|call| !is_ready(call)));
    let waits = in_background(move || target.add(5, 6));
    server.probe.open(1);
    held.iter().for_each(|call| call.recv_timeout(PATIENCE).unwrap().unwrap());
    assert_eq!(parked.map(|call| block_on(call).unwrap()), [3, 7]);
    assert_eq!(waits.recv_timeout(PATIENCE).unwrap().unwrap(), 11);
    assert_eq!(orb.statistics().count(Event::ConnectionOpened), 2);
}

#[test]
fn multiplexed_calls_have_one_connection() {
    let server = Server::start();
    let orb = Orb::builder().connection_sharing(ConnectionSharing::Multiplexed).build().unwrap();
    let target = at(&orb, &server);
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
    held.iter().for_each(|call| call.recv_timeout(PATIENCE).unwrap().unwrap());
}

/// Sends a one-way to a server that is none, which hands its end out.
fn one_way_by(builder: OrbBuilder) -> (Orb, Target, TcpStream) {
    let (send, accepted) = mpsc::channel();
    let port = pretend(move |_, stream| send.send(stream).unwrap());
    let orb = builder.build().unwrap();
    let version = if orb.id() == "old" { "1.0" } else { "1.2" };
    let url = format!("corbaloc:iiop:{version}@127.0.0.1:{port}/x");
    let target = Target::unchecked_narrow(&orb.string_to_object(&url).unwrap());
    target.note(&[]).unwrap();
    let mut stream = accepted.recv_timeout(PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    read_message(&mut stream).unwrap();
    (orb, target, stream)
}

#[test]
fn an_idle_connection_is_closed_in_an_orderly_way() {
    let (orb, _target, mut stream) = one_way_by(Orb::builder().idle_timeout(Some(Duration::from_millis(80))));
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 12);
    assert_eq!((&rest[..6], rest[7]), (&b"GIOP\x01\x02"[..], 5), "CloseConnection");
    comes("its end", || orb.statistics().level(Level::ClientConnections) == 0);
    assert_eq!(orb.statistics().count(Event::ClientClosedIdle), 1);
}

#[test]
fn a_client_of_old_just_closes() {
    let builder = Orb::builder().orb_id("old").giop_version(GiopVersion::V1_0);
    let (_orb, _target, mut stream) = one_way_by(builder.idle_timeout(Some(Duration::from_millis(80))));
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"", "only servers said CloseConnection then");
}

#[test]
fn what_was_closed_while_idle_is_opened_again_without_anybody_noticing() {
    let server = Server::start();
    let orb = Orb::builder().idle_timeout(Some(Duration::from_millis(60))).build().unwrap();
    let target = at(&orb, &server);
    for round in 1..=2 {
        assert_eq!(target.add(round, 1).unwrap(), round + 1);
        comes("the end of the connection", || orb.statistics().level(Level::ClientConnections) == 0);
        comes("its end there", || open_at(&server) == 0);
    }
    assert_eq!(block_on(target.add_async(1, 1)).unwrap(), 2);
    let statistics = orb.statistics();
    assert_eq!((statistics.count(Event::Reconnected), statistics.count(Event::Retried)), (2, 0));
}

#[test]
fn a_connection_in_use_is_not_idle() {
    let server = Server::start();
    let orb = Orb::builder().idle_timeout(Some(Duration::from_millis(40))).build().unwrap();
    let (target, other) = (at(&orb, &server), at(&orb, &server));
    let held = in_background(move || target.hold(1));
    server.probe.await_held(1);
    // The other connection is closed meanwhile.
    other.ping().unwrap();
    comes("the end of the other", || orb.statistics().count(Event::ClientClosedIdle) == 1);
    server.probe.open(1);
    held.recv_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn a_server_that_refused_is_left_alone_for_a_while() {
    let closed = ClosedPort::reserve();
    let port = closed.port();
    let target_of = |backoff| {
        let orb = Orb::builder().reconnect_backoff(backoff, 4 * backoff).build().unwrap();
        let target = Target::unchecked_narrow(&orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap());
        (orb, target)
    };
    let (orb, target) = target_of(PATIENCE);
    let first = target.ping().unwrap_err();
    let again = target.ping().unwrap_err();
    let no = (SystemExceptionKind::Transient, CompletionStatus::No);
    assert_eq!((kind_and_completion(&first), kind_and_completion(&again)), (no, no));
    assert_eq!(orb.statistics().count(Event::ConnectionFailed), 1, "it was tried once");
    let words = again.to_string();
    assert!(words.contains(&format!("{port}")) && words.contains("`-ORBReconnectBackoff`"), "{words}");
    // Its time comes.
    let while_left_alone = Duration::from_millis(200);
    let (orb, target) = target_of(while_left_alone);
    let before = Instant::now();
    comes("another attempt", || {
        let _ = target.ping();
        orb.statistics().count(Event::ConnectionFailed) > 1
    });
    assert!(before.elapsed() >= while_left_alone / 2);
}

#[test]
fn options_set_what_the_builder_sets() {
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
    assert_eq!(at(&orb, &server).add(1, 2).unwrap(), 3);
    for (option, value) in
        [("-ORBConnectionPurging", "random"), ("-ORBConnectionSharing", "no"), ("-ORBReconnectBackoff", "1:x")]
    {
        let refused = Orb::init([option.to_owned(), value.to_owned()]).unwrap_err();
        assert!(refused.to_string().contains(option), "{refused}");
    }
}
