//! STREAM pipes: a listening path, and one pipe for each client.
#![cfg(unix)]

use std::io::ErrorKind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use spandrel_ipc::spipe::{Acceptor, Addr, Connector, pair};
use spandrel_ipc::{Connecting as _, Interest, unix, wait_ready};
use spandrel_test_support::TEST_TIMEOUT;
use tempfile::TempDir;

fn folder_and_addr() -> (TempDir, Addr) {
    let folder = TempDir::new().unwrap();
    let addr = Addr::path(folder.path().join("pipes")).unwrap();
    (folder, addr)
}

#[test]
fn each_client_gets_a_pipe() {
    let (_folder, addr) = folder_and_addr();
    let acceptor = Arc::new(Acceptor::open(&addr).unwrap());
    assert_eq!(acceptor.local_addr().unwrap(), addr);
    let clients: Vec<_> = (0..4)
        .map(|i| {
            let addr = addr.clone();
            thread::spawn(move || {
                let client = Connector::connect(&addr).unwrap();
                client.send_n(&[i]).unwrap();
                let mut reply = [0];
                client.recv_n(&mut reply).unwrap();
                assert_eq!(reply[0], i + 100);
            })
        })
        .collect();
    for _ in 0..4 {
        let (server, from) = acceptor.accept().unwrap();
        assert_eq!(from, Addr::unnamed());
        let mut octet = [0];
        server.recv_n(&mut octet).unwrap();
        server.send_n(&[octet[0] + 100]).unwrap();
    }
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn there_is_no_pipe_before_the_accept() {
    let (_folder, addr) = folder_and_addr();
    let acceptor = Acceptor::open(&addr).unwrap();
    let error = Connector::connect_timeout(&addr, Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);

    let mut connecting = Connector::start(&addr).unwrap();
    assert!(connecting.try_complete().unwrap().is_none());
    assert!(wait_ready(&connecting, Interest::OUTPUT, Some(Duration::ZERO)).unwrap().is_none());
    // The client that gave up has left a queued connection; it is ignored.
    let (first, _) = acceptor.accept().unwrap();
    let server = match first.recv_within(&mut [0; 1], Duration::from_millis(1)) {
        Ok(0) => acceptor.accept().unwrap().0,
        _ => first,
    };
    assert_eq!(wait_ready(&connecting, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
    let client = connecting.try_complete().unwrap().expect("there is a pipe now");
    connecting.try_complete().expect_err("there is one result only");
    server.send_n(b"x").unwrap();
    client.recv_n(&mut [0; 1]).unwrap();
}

#[test]
fn dropping_an_acceptor_refuses_waiting_clients() {
    let (_folder, addr) = folder_and_addr();
    let acceptor = Acceptor::open(&addr).unwrap();
    let waiting = Connector::start(&addr).unwrap();
    drop(acceptor);
    assert_eq!(waiting.complete(Some(TEST_TIMEOUT)).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(Connector::connect(&addr).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(Connector::connect(&Addr::unnamed()).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[cfg(target_os = "linux")]
#[test]
fn the_handle_of_a_pending_connection_stays_the_same() {
    use spandrel_ipc::{Pollable, unix::AcceptorOptions};
    use std::os::fd::AsRawFd;
    let (_folder, addr) = folder_and_addr();
    let acceptor = Acceptor::open_with(&addr, &AcceptorOptions::default().backlog(0)).unwrap();
    let first = Connector::start(&addr).unwrap();
    let mut second = Connector::start(&addr).unwrap(); // there is no room for it yet
    let handle = second.handle().as_raw_fd();
    assert!(second.try_complete().unwrap().is_none());
    acceptor.accept().unwrap();
    first.complete(Some(TEST_TIMEOUT)).unwrap();
    while acceptor.set_nonblocking(true).is_ok() && acceptor.accept().is_err() {
        assert!(second.try_complete().unwrap().is_none());
        assert!(!wait_ready(&second, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap().is_none(), "time for a retry");
        assert_eq!(second.handle().as_raw_fd(), handle);
    }
    second.complete(Some(TEST_TIMEOUT)).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn the_peers_credentials_are_known() {
    let (_folder, addr) = folder_and_addr();
    let acceptor = Acceptor::open(&addr).unwrap();
    let client = thread::spawn(move || Connector::connect(&addr).unwrap());
    let (server, _) = acceptor.accept().unwrap();
    let client = client.join().unwrap();
    for stream in [&client, &server, &server.try_clone().unwrap()] {
        assert_eq!(stream.peer_credentials(), Some(unix::Credentials::own()));
    }
    assert_eq!(pair().unwrap().0.peer_credentials(), None);
}

#[test]
fn silent_clients_do_not_delay_others() {
    let (_folder, addr) = folder_and_addr();
    let acceptor = Acceptor::open(&addr).unwrap();
    let rendezvous = unix::Addr::path(addr.as_path().unwrap()).unwrap();
    let mut silent = Vec::new();
    for i in 0..20 {
        let visitor = unix::Connector::connect(&rendezvous).unwrap();
        if i % 2 == 0 {
            silent.push(visitor);
        }
    }
    let client = thread::spawn(move || {
        let client = Connector::connect(&addr).unwrap();
        client.send_n(b"!").unwrap();
    });
    let (outcome_sender, outcome) = std::sync::mpsc::channel();
    for _ in 0..silent.len() + 1 {
        let (server, _) = acceptor.accept().unwrap();
        let outcome_sender = outcome_sender.clone();
        thread::spawn(move || {
            let mut octet = [0];
            let received = server.recv_within(&mut octet, TEST_TIMEOUT).unwrap();
            outcome_sender.send(octet[..received].to_vec()).unwrap();
        });
    }
    assert_eq!(outcome.recv_timeout(TEST_TIMEOUT).unwrap(), b"!");
    client.join().unwrap();
    for _ in silent.drain(..) {} // which closes the ends that they never received
    drop(outcome_sender);
    assert!(outcome.iter().all(|end| end.is_empty()));
}

#[test]
fn the_ends_of_a_pair_are_one_pipe() {
    let (one, other) = pair().unwrap();
    one.send_n(b"ping").unwrap();
    other.recv_n(&mut [0; 4]).unwrap();
    other.close_writer().unwrap();
    assert_eq!(one.recv(&mut [0; 4]).unwrap(), 0);
    one.send_n(b"still open").unwrap();
    other.recv_n(&mut [0; 10]).unwrap();
}
