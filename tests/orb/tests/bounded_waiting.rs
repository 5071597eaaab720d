//! Bounded waiting: for clients that do not read, for calls made by wakers, and for timeouts behind a blocked
//! writer.

use std::{
    io::Write,
    net::TcpStream,
    sync::mpsc,
    task::{Context, Poll},
    time::Duration,
};

use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind, options::Concurrency, types::IiopProfile};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{
        TEST_TIMEOUT, client_that_never_reads, fake_server, in_background, read_message, wait_until, waker_that,
    },
};

/// Far more octets than socket buffers hold.
const HUGE: usize = 16 << 20;

#[test]
fn a_client_that_never_reads_is_disconnected() {
    for concurrency in [
        Concurrency::default(),
        Concurrency::Reactive,
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::ThreadPool { threads: 1, queue: 1 },
    ] {
        let builder = Orb::builder().concurrency(concurrency);
        let server = Server::with(builder.send_timeout(Some(Duration::from_millis(200))));
        let stalled: Vec<TcpStream> = (0..3).map(|_| client_that_never_reads(&server, HUGE)).collect();
        // Where one thread serves all connections, it is free again in time.
        let target = server.client();
        let called = in_background(move || target.add(1, 2));
        assert_eq!(called.recv_timeout(TEST_TIMEOUT).expect("the thread is not blocked").unwrap(), 3);
        stalled.into_iter().for_each(await_close);
    }
}

/// Waits until the server has closed the connection, without reading from it.
fn await_close(mut stream: TcpStream) {
    wait_until("the end of a client that does not read", || stream.write_all(b"x").is_err());
}

#[test]
fn a_client_that_reads_slowly_gets_all_of_its_reply() {
    let server = Server::with(Orb::builder().send_timeout(Some(TEST_TIMEOUT / 3)));
    let mut stream = client_that_never_reads(&server, HUGE);
    assert!(read_message(&mut stream).unwrap().len() > HUGE);
}

#[test]
fn a_waker_may_make_a_call_on_the_connection_that_woke_it() {
    for connections in [1, 2] {
        let server = Server::start();
        let target = server.client_with(Orb::builder().connections_per_peer(connections));
        let (send, receive) = mpsc::channel();
        let again = target.clone();
        let call = move || {
            // Two calls within the waker's call.
            let nested = again.clone();
            let sums = (again.add(1, 2), nested.add(3, 4));
            send.send(sums).unwrap();
        };
        let waker = waker_that(call);
        let mut held = Box::pin(target.hold_async(1));
        let polled = held.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(matches!(polled, Poll::Pending));
        server.probe.await_held(1);
        server.probe.open(1);
        let (first, second) = receive.recv_timeout(TEST_TIMEOUT).expect("the waker's call does not deadlock");
        assert_eq!((first.unwrap(), second.unwrap()), (3, 7));
    }
}

#[test]
fn a_leading_thread_may_wake_a_waker_that_calls() {
    let server = Server::start();
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    let (send, receive) = mpsc::channel();
    let again = target.clone();
    let waker = waker_that(move || send.send(again.add(1, 2)).unwrap());
    let mut held = Box::pin(target.hold_async(1));
    assert!(matches!(held.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending));
    server.probe.await_held(1);
    // The leading thread reads for both calls.
    let leading = target.clone();
    let leading = in_background(move || leading.hold(2));
    server.probe.await_held(2);
    server.probe.open(1);
    assert_eq!(receive.recv_timeout(TEST_TIMEOUT).expect("the waker's call does not deadlock").unwrap(), 3);
    server.probe.open(2);
    leading.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
}

/// The target with another port in its IIOP profile.
fn target_behind(server: &Server, port: u16, orb: &Orb) -> Target {
    let profile = spandrel_orb_tests::support::without_local_addresses(&server.object.ior().profiles[0]);
    let mut ior = server.object.ior().clone();
    ior.profiles = vec![IiopProfile { port, ..profile }.encode().unwrap()];
    Target::unchecked_narrow(&orb.reference(ior))
}

#[test]
fn a_timed_out_caller_unblocks_writers_to_a_server_that_does_not_read() {
    let server = Server::start();
    let (real, (send, first)) = (server.port(), mpsc::channel());
    let port = fake_server(move |count, mut stream| {
        let request = read_message(&mut stream);
        if count == 0 {
            // The first connection is not read any further.
            send.send(stream).unwrap();
            return;
        }
        let mut upstream = TcpStream::connect(("127.0.0.1", real)).unwrap();
        upstream.write_all(&request.unwrap()).unwrap();
        stream.write_all(&read_message(&mut upstream).unwrap()).unwrap();
    });
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let target = target_behind(&server, port, &orb);
    let limited: Target = Target::unchecked_narrow(&target.as_object().with_timeout(Some(Duration::from_millis(2000))));
    let timed_out = in_background(move || limited.add(1, 2));
    let _busy = first.recv_timeout(TEST_TIMEOUT).unwrap();
    // On the same connection, whose replies the first caller reads.
    let writing = in_background(move || target.echo_octets(&vec![7; HUGE]).map(|echoed| echoed.len()));
    let error: SystemException = timed_out.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
    assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{error}");
    let echoed = writing.recv_timeout(TEST_TIMEOUT).expect("the write does not block for ever");
    assert_eq!(echoed.expect("the request was resent on another connection"), HUGE);
}
