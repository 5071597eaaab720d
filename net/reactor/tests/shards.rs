//! Several reactors that share an address.
#![cfg(target_os = "linux")]

use crate::support;

use spandrel_ipc::inet::{self, Addr, Inet};
use spandrel_reactor::{Acceptor, Options, Shards};

use spandrel_test_support::{TEST_TIMEOUT, eventually};
use support::{Echo, client, expect_echo, expect_end};

#[test]
fn several_reactors_share_an_address() {
    let shards = Shards::start(3, &Options::default()).unwrap();
    let options = inet::AcceptorOptions::default().reuse_port(true);
    let family = Inet::new(options, inet::Connector::new());
    let servers = shards.open(&Addr::loopback(0), |_| Acceptor::new(family, || Echo)).unwrap();
    assert!(servers.iter().all(|server| server.addr() == servers[0].addr()));
    let clients: Vec<_> = (0..60).map(|_| client(servers[0].addr())).collect();
    clients.iter().for_each(|client| expect_echo(client, "any reactor"));
    let shares: Vec<_> = servers.iter().map(|server| server.connections()).collect();
    assert_eq!(shares.iter().sum::<usize>(), 60);
    assert!(shares.iter().filter(|share| **share > 0).count() > 1, "the system spreads them: {shares:?}");
    servers.iter().for_each(|server| assert_eq!(server.drain(TEST_TIMEOUT), 0));
    shards.stop().unwrap();
}

#[test]
fn stopping_the_reactors_closes_connections() {
    let shards = Shards::start(2, &Options::default()).unwrap();
    let options = inet::AcceptorOptions::default().reuse_port(true);
    let family = Inet::new(options, inet::Connector::new());
    let servers = shards.open(&Addr::loopback(0), |_| Acceptor::new(family, || Echo)).unwrap();
    let clients: Vec<_> = (0..8).map(|_| client(servers[0].addr())).collect();
    clients.iter().for_each(|client| expect_echo(client, "hello"));
    let kept = shards.reactors()[0].clone();
    shards.stop().unwrap();
    clients.iter().for_each(expect_end);
    assert!(kept.registry().is_empty());
}

#[test]
fn a_server_waits_until_its_reactors_have_ended() {
    let shards = Shards::start(2, &Options::default()).unwrap();
    let reactors = shards.reactors().to_vec();
    let waiting = std::thread::spawn(move || shards.wait());
    reactors[0].stop();
    assert!(!waiting.is_finished());
    reactors[1].stop();
    waiting.join().unwrap().unwrap();
    // Closed reactors take no handlers.
    for reactor in &reactors {
        assert!(Acceptor::new(Inet::default(), || Echo).open(reactor.registry(), &Addr::loopback(0)).is_err());
    }
}

#[test]
fn acceptors_that_cannot_share_their_address_are_closed_again() {
    let shards = Shards::start(2, &Options::default()).unwrap();
    let failed = shards.open(&Addr::loopback(0), |_| Acceptor::new(Inet::default(), || Echo));
    assert_eq!(failed.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    // A handler that its thread dispatches just now is closed by that thread.
    eventually(|| shards.reactors().iter().all(|reactor| reactor.registry().is_empty()));
}

#[test]
fn zero_reactors_are_refused() {
    assert_eq!(Shards::start(0, &Options::default()).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}
