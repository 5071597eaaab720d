//! One architecture after another at one port, under load.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use spandrel_architectures::transfer::Transfer;
use spandrel_architectures::{
    Adaptation, AdaptiveServer, Architecture, Port, Server, Service, Settings, SwitchingServer,
};
use spandrel_ipc::inet::Addr;
use spandrel_test_support::{TEST_TIMEOUT, read_some, wait_until};

use crate::support::{SHORT, at_once, connect, greeted, permitted, request, rest, transfer};

/// The architectures without processes, whose `main` would have to be that of this program.
fn switched() -> Vec<Architecture> {
    let has_processes = [Architecture::ProcessPerConnection, Architecture::PreForked];
    permitted().into_iter().filter(|architecture| !has_processes.contains(architecture)).collect()
}

#[test]
fn nothing_is_lost_when_the_architecture_changes_under_load() {
    let port = Port::shared(&Addr::loopback(0)).unwrap();
    let address: SocketAddr = port.addr().unwrap().into();
    let service = Service::Transfer(Transfer { has_greeting: true });
    let start = |architecture: Architecture| architecture.start(&port, &service, &Settings::default()).unwrap();
    let (is_over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        transfer(address);
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let mut old: Option<Box<dyn Server>> = None;
        for architecture in switched().into_iter().chain(switched().into_iter().rev()) {
            let new = start(architecture);
            if let Some(old) = old.replace(new) {
                old.retire();
                let begun = served.load(Ordering::Relaxed);
                wait_until("clients are served by the new one", || served.load(Ordering::Relaxed) > begun + 20);
                wait_until("the old one has served its connections", || old.connections() == 0);
                assert_eq!(old.stop(TEST_TIMEOUT), 0);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("no client loses a request");
        }
        assert_eq!(old.unwrap().stop(TEST_TIMEOUT), 0);
    });
}

#[test]
fn a_retired_server_serves_its_connections_to_their_end() {
    let service = Service::Transfer(Transfer { has_greeting: true });
    for architecture in switched() {
        let port = Port::shared(&Addr::loopback(0)).unwrap();
        let address = port.addr().unwrap().into();
        let old = architecture.start(&port, &service, &Settings::default()).unwrap();
        let stream = greeted(address);
        old.retire();
        let new = Architecture::Reactive.start(&port, &service, &Settings::default()).unwrap();
        transfer(address);
        request(&stream, &[b"4000"], 4_000);
        drop(stream);
        assert_eq!(old.stop(TEST_TIMEOUT), 0, "{architecture}");
        transfer(address);
        assert_eq!(new.stop(TEST_TIMEOUT), 0);
    }
}

#[test]
fn a_server_changes_its_architecture_and_serves_accepted_connections_to_their_end() {
    let service = Service::Transfer(Transfer { has_greeting: true });
    let settings = Settings::default();
    let server =
        SwitchingServer::start(&Addr::loopback(0), Architecture::QueuePool, &service, &settings, TEST_TIMEOUT).unwrap();
    let address = server.addr().unwrap().into();
    let stream = greeted(address);
    server.switch(Architecture::Reactive, &service, &settings).unwrap();
    assert_eq!((server.architecture(), server.former()), (Some(Architecture::Reactive), 1));
    at_once(20, |_| transfer(address));
    request(&stream, &[b"4000"], 4_000);
    drop(stream);
    wait_until("the former server has ended", || server.former() == 0);
    // After a failure, the present architecture goes on.
    let wrong = Settings { workers: 0, ..settings };
    assert!(server.switch(Architecture::QueuePool, &service, &wrong).is_err());
    transfer(address);
    assert_eq!(server.stop(TEST_TIMEOUT), 0);
}

#[test]
fn a_former_server_is_stopped_after_its_time() {
    let service = Service::Transfer(Transfer { has_greeting: true });
    let settings = Settings::default();
    let server = SwitchingServer::start(&Addr::loopback(0), Architecture::AcceptPool, &service, &settings, SHORT);
    let server = server.unwrap();
    let silent = greeted(server.addr().unwrap().into());
    server.switch(Architecture::QueuePool, &service, &settings).unwrap();
    assert_eq!(rest(&silent), b"");
    wait_until("the former server has ended", || server.former() == 0);
}

#[test]
fn the_connections_of_former_servers_count_towards_the_limit() {
    let service = Service::Transfer(Transfer { has_greeting: true });
    let settings = Settings { max_connections: 2, ..Settings::default() };
    for architecture in switched() {
        let first = Architecture::ThreadPerConnection;
        let server = SwitchingServer::start(&Addr::loopback(0), first, &service, &settings, TEST_TIMEOUT).unwrap();
        let address = server.addr().unwrap().into();
        let [one, other] = [greeted(address), greeted(address)];
        server.switch(architecture, &service, &settings).unwrap();
        let third = connect(address);
        if [Architecture::Reactive, Architecture::LeaderFollowers].contains(&architecture) {
            assert_eq!(rest(&third), b"", "{architecture} closes the connections beyond the limit");
            drop(one);
            wait_until("a connection of the former server has ended", || server.connections() == 1);
            let is_served = || read_some(connect(address), &mut [0]).is_ok_and(|count| count > 0);
            wait_until("there is room for another one", is_served);
        } else {
            third.set_read_timeout(Some(SHORT)).unwrap();
            assert!(
                read_some(&third, &mut [0]).is_err(),
                "{architecture} leaves connections beyond the limit in the backlog"
            );
            drop(one);
            third.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            assert_eq!(read_some(&third, &mut [0]).unwrap(), 1, "{architecture}");
            assert_eq!(server.connections(), 2, "{architecture}");
        }
        request(&other, &[b"4000"], 4_000);
    }
}

#[test]
fn the_rule_follows_the_load_and_ignores_short_peaks() {
    use Architecture::{AcceptPool, LeaderFollowers, ThreadPerConnection};
    let mut rule = Adaptation::new(5);
    assert_eq!(rule.architecture(), AcceptPool);
    let mut after = |open: usize, samples: usize| (0..samples).filter_map(|_| rule.sample(open)).collect::<Vec<_>>();
    assert_eq!(after(4, 100), []);
    assert_eq!(after(5, 2), []);
    assert_eq!(after(0, 1), []);
    assert_eq!(after(5, 3), [ThreadPerConnection]);
    assert_eq!(after(64, 100), []);
    assert_eq!(after(65, 3), [LeaderFollowers]);
    assert_eq!(after(100_000, 100), []);
    assert_eq!(after(33, 100), []);
    assert_eq!(after(32, 20), [ThreadPerConnection]);
    assert_eq!(after(3, 100), []);
    assert_eq!(after(2, 19), []);
    assert_eq!(after(2, 1), [AcceptPool]);
    assert_eq!(after(0, 100), []);
}

#[test]
fn an_adaptive_server_follows_its_load() {
    let service = Service::Transfer(Transfer { has_greeting: true });
    let settings = Settings { workers: 2, ..Settings::default() };
    let adaptive = AdaptiveServer::start(&Addr::loopback(0), &service, &settings, TEST_TIMEOUT).unwrap();
    let server = adaptive.server();
    let address: SocketAddr = server.addr().unwrap().into();
    assert_eq!(server.architecture(), Some(Architecture::AcceptPool));
    // More clients than workers: the others are served by the next architecture.
    let clients: Vec<_> = (0..4).map(|_| greeted(address)).collect();
    assert_eq!(server.architecture(), Some(Architecture::ThreadPerConnection));
    clients.iter().for_each(|stream| request(stream, &[b"4000"], 4_000));
    drop(clients);
    wait_until("the load has ended", || server.architecture() == Some(Architecture::AcceptPool));
    transfer(address);
}
