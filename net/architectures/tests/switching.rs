//! One architecture after another at one port, under load.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use spandrel_architectures::transfer::Transfer;
use spandrel_architectures::{Architecture, Port, Server, Service, Settings};
use spandrel_ipc::inet::Addr;
use spandrel_test_support::TEST_TIMEOUT;

use crate::support::{greeted, request, transfer};

/// The architectures without processes, whose `main` would have to be that of this program.
fn switched() -> Vec<Architecture> {
    let has_processes = [Architecture::ProcessPerConnection, Architecture::PreForked];
    let all = Architecture::ALL.iter().copied();
    all.filter(|architecture| architecture.is_available() && !has_processes.contains(architecture)).collect()
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
            // A connection of the old server, which it serves to its end.
            if let Some(old) = old.replace(new) {
                old.retire();
                let begun = served.load(Ordering::Relaxed);
                spandrel_test_support::wait_until("clients are served by the new one", || {
                    served.load(Ordering::Relaxed) > begun + 20
                });
                spandrel_test_support::wait_until("the old one has served its connections", || old.connections() == 0);
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
