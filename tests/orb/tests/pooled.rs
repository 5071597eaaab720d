//! All that the other suites say, over servers whose connections have no thread of their own: the reactor's threads serve them.
//! (`spandrel_orb_tests::Server` sees from this suite's name that it is so.)

#[path = "calls.rs"]
mod calls;
#[path = "findings.rs"]
mod findings;
#[path = "hostile.rs"]
mod hostile;
#[path = "review.rs"]
mod review;
#[path = "shutdown.rs"]
mod shutdown;
#[path = "threads.rs"]
mod threads;
#[path = "unlucky.rs"]
mod unlucky;

use std::{
    thread,
    time::{Duration, Instant},
};

use spandrel::Orb;
use spandrel_orb_tests::{
    Server,
    support::{PATIENCE, in_background},
};

/// How many threads this process has, by their names.
#[cfg(target_os = "linux")]
fn threads_named(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|found| name.starts_with(found.trim())).count()
}

#[test]
#[cfg(target_os = "linux")]
fn many_connections_need_no_threads_of_their_own() {
    let server = Server::start();
    let clients: Vec<_> = (0..200).map(|_| server.client()).collect();
    for (number, client) in (0..).zip(&clients) {
        assert_eq!(client.add(number, 1).unwrap(), number + 1);
    }
    assert_eq!(threads_named("spandrel-serve"), 0);
    for (number, client) in (0..).zip(clients.iter().rev()) {
        assert_eq!(client.add(number, 1).unwrap(), number + 1);
    }
}

#[test]
fn every_thread_may_be_held_up_and_others_are_still_served() {
    const HELD: u32 = 100;
    let server = Server::start();
    let held: Vec<_> = (0..HELD)
        .map(|gate| {
            let target = server.client();
            in_background(move || target.hold(gate))
        })
        .collect();
    server.probe.await_held(HELD as usize);
    let quick = server.client();
    for gate in 0..HELD {
        quick.release(gate).unwrap();
    }
    for call in held {
        call.recv_timeout(PATIENCE).unwrap().unwrap();
    }
}

#[test]
fn a_connection_that_was_taken_over_goes_back_to_the_reactor() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    for round in 0..5 {
        let held = target.clone();
        let held = in_background(move || held.hold(round));
        target.release(round).unwrap();
        held.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(target.add(1, 1).unwrap(), 2);
        #[cfg(target_os = "linux")]
        {
            let start = Instant::now();
            while threads_named("spandrel-relief") != 0 {
                assert!(start.elapsed() < PATIENCE, "a thread stays with a quiet connection");
                thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(target.add(2, 2).unwrap(), 4);
    }
}
