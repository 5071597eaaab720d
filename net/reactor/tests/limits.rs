//! Many connections, and handles that a back end cannot hold.
#![cfg(unix)]

use crate::scripted;

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use scripted::{Log, Scripted, pair, reactor, run_until};
use spandrel_ipc::{Interest, inet};
use spandrel_reactor::{Backend, Options, Reactor};
use spandrel_test_support::alone;

const CONNECTIONS: usize = 10_000;
const AT_LEAST: usize = 2_000;
/// Handles reserved for everything else in this process.
const SPARE: u64 = 200;

/// Raises the limit as far as needed and possible, and returns the number of connections that fit.
fn connections_that_fit() -> usize {
    let wanted = 2 * CONNECTIONS as u64 + SPARE;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let limit = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum }).expect("below the hard limit");
    let fit = usize::try_from(limit.saturating_sub(SPARE) / 2).expect("a small number").min(CONNECTIONS);
    assert!(
        fit >= AT_LEAST,
        "a hard limit of {limit} handles lets only {fit} connections fit, and {AT_LEAST} are needed"
    );
    fit
}

#[test]
fn ten_thousand_connections_on_one_reactor() {
    alone(|| {
        let connections = connections_that_fit();
        for backend in Backend::available().into_iter().filter(|backend| *backend != Backend::Select) {
            let options = Options::default().backend(backend);
            let reactor = Reactor::with(&options).expect("a reactor");
            let log = Log::default();
            let acceptor = inet::Acceptor::open(&inet::Addr::loopback(0)).expect("a port");
            let addr = acceptor.local_addr().expect("an address");
            let near: Vec<_> = (0..connections)
                .map(|_| {
                    let near = inet::Connector::connect(&addr).expect("a connection");
                    let (far, _) = acceptor.accept().expect("a connection");
                    far.set_nonblocking(true).expect("non-blocking");
                    let handler = Scripted::new("a", &log).over(far);
                    reactor.registry().register(handler, Interest::INPUT).expect("registered");
                    near
                })
                .collect();
            assert_eq!(reactor.registry().len(), connections);
            run_until(&reactor, || log.count("a open") == connections);
            log.take();
            // All of them, all at once, twice.
            for round in 1..=2 {
                near.iter().for_each(|one| one.send_n(b"x").expect("sent"));
                let mut seen = 0;
                run_until(&reactor, || {
                    seen += log.take().iter().filter(|line| *line == "a input").count();
                    seen >= connections
                });
                near.iter().for_each(|one| one.recv_n(&mut [0]).expect("echoed"));
                assert_eq!(seen, connections, "in round {round}");
            }
            drop(near);
            run_until(&reactor, || reactor.registry().is_empty());
            eprintln!("{connections} connections over {backend}");
        }
        select_refuses_handles_beyond_its_set();
    });
}

/// After the others, in the same test, because it needs handles with large numbers.
fn select_refuses_handles_beyond_its_set() {
    let reactor = reactor(Backend::Select);
    let log = Log::default();
    let mut kept = Vec::new();
    let error = loop {
        let (near, far) = pair();
        match reactor.registry().register(Scripted::new("a", &log).over(far), Interest::INPUT) {
            Ok(_) => kept.push(near),
            Err(error) => break error,
        }
        assert!(kept.len() < 1024, "a set holds less");
    };
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("FD_SETSIZE"), "{error}");
    let first = kept.first().expect("some fit");
    scripted_ping(&reactor, first, &log);
}

fn scripted_ping(reactor: &Reactor, near: &inet::Stream, log: &Log) {
    near.send_n(b"x").expect("sent");
    run_until(reactor, || log.has("a input"));
    near.recv_n(&mut [0]).expect("echoed");
}
