//! Shutdown: orderly, bounded, from anywhere.

use std::{
    io::Write,
    net::TcpStream,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use spandrel::{CompletionStatus, Orb, SystemExceptionKind};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{KeptPort, PATIENCE},
};

#[test]
fn run_returns_when_somebody_shuts_down() {
    let server = Server::start();
    let orb = server.orb.clone();
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        orb.run();
        send.send(()).unwrap();
    });
    server.client().ping().unwrap();
    server.orb.shutdown(true).unwrap();
    receive.recv_timeout(PATIENCE).expect("run returned");
    server.orb.shutdown(true).expect("once more is harmless");
}

#[test]
fn a_running_request_is_answered_before_the_goodbye() {
    let server = Server::start();
    let target = server.client();
    let (send, receive) = mpsc::channel();
    let held = target.clone();
    thread::spawn(move || send.send(held.hold(1)).unwrap());
    server.probe.await_held(1);
    server.orb.shutdown(false).unwrap();
    server.probe.open(1);
    receive.recv_timeout(PATIENCE).expect("the held call ends").expect("it was answered");
    server.orb.run();
}

#[test]
fn an_upcall_may_shut_down_but_not_wait_for_itself() {
    let server = Server::start();
    assert!(server.client().stop().unwrap(), "waiting inside an upcall is refused");
    let before = Instant::now();
    server.orb.run();
    assert!(before.elapsed() < Duration::from_secs(20));
}

#[test]
fn clients_learn_of_the_end() {
    let kept = KeptPort::reserve();
    let server = Server::with(kept.listening(Orb::builder()));
    let target = server.client();
    target.ping().unwrap();
    server.orb.shutdown(true).unwrap();
    let error = target.ping().unwrap_err();
    // The goodbye makes the client reconnect, and nobody listens any more.
    assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
}

#[test]
fn a_persistent_port_serves_again_after_a_restart_without_the_client_noticing() {
    let kept = KeptPort::reserve();
    let server = Server::with(kept.listening(Orb::builder()));
    let client = Orb::builder().build().unwrap();
    let target = Target::narrow(&client.string_to_object(&server.ior()).unwrap()).unwrap();
    target.ping().unwrap();
    drop(server);
    let again = Server::with(kept.listening(Orb::builder()));
    assert_eq!(again.port(), kept.port);
    // The old object is from another incarnation: a clear answer, not a stranger's.
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}

#[test]
fn clients_that_stop_halfway_do_not_delay_the_end() {
    let server = Server::start();
    let mut stuck: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(("127.0.0.1", server.port())).unwrap()).collect();
    for stream in &mut stuck {
        stream.write_all(b"GIOP\x01\x02\x01\x00\x40\x00\x00\x00halfway").unwrap();
    }
    server.client().ping().unwrap();
    let before = Instant::now();
    server.orb.shutdown(true).unwrap();
    assert!(before.elapsed() < Duration::from_secs(15), "{:?}", before.elapsed());
}
