//! Reuse of connections: closed idle connections, the number of connections per server, half-closed
//! connections.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use spandrel::{Endpoint, Orb, SystemExceptionKind};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};
use spandrel_orb_tests::{
    Server, listen,
    probe::Target,
    support::{ReservedPort, TEST_TIMEOUT, fake_server, in_background, read_message},
};

#[test]
fn idle_connections_to_a_restarted_server_are_reopened() {
    let reserved = ReservedPort::reserve();
    let server = Server::with(reserved.listening(Orb::builder()));
    let client = Orb::builder().build().unwrap();
    let target = Target::narrow(&client.string_to_object(&server.ior()).unwrap()).unwrap();
    let held: Vec<_> = (0..3)
        .map(|gate| {
            let target = target.clone();
            in_background(move || target.hold(gate))
        })
        .collect();
    server.probe.await_held(3);
    (0..3).for_each(|gate| server.probe.open(gate));
    held.into_iter().for_each(|call| call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap());
    drop(server);
    let again = Server::with(reserved.listening(Orb::builder()));
    assert_eq!(again.port(), reserved.port);
    let error = target.ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist, "the exception of the new server: {error}");
}

#[test]
fn concurrent_first_calls_open_no_more_connections_than_allowed() {
    const CALLERS: usize = 24;
    let opened = Arc::new(AtomicUsize::new(0));
    let server = Server::start();
    let real = server.port();
    let counter = Arc::clone(&opened);
    let port = fake_server(move |_, mut stream| {
        counter.fetch_add(1, Ordering::SeqCst);
        let mut upstream = TcpStream::connect(("127.0.0.1", real)).unwrap();
        let (mut back_from, mut back_to) = (upstream.try_clone().unwrap(), stream.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut stream, &mut upstream));
        thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
    });
    let profile = spandrel_orb_tests::support::without_local_addresses(&server.object.ior().profiles[0]);
    let mut ior = server.object.ior().clone();
    ior.profiles = vec![spandrel::types::IiopProfile { host: "localhost".into(), port, ..profile }.encode().unwrap()];
    let target: Target =
        Target::unchecked_narrow(&Orb::builder().connections_per_peer(2).build().unwrap().reference(ior));
    let barrier = Arc::new(Barrier::new(CALLERS));
    let calls: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (target, barrier) = (target.clone(), Arc::clone(&barrier));
            in_background(move || {
                barrier.wait();
                target.ping()
            })
        })
        .collect();
    calls.into_iter().for_each(|call| call.recv_timeout(TEST_TIMEOUT).unwrap().unwrap());
    let opened = opened.load(Ordering::SeqCst);
    assert!(opened <= 2, "{opened} connections were opened; the limit is 2");
}

// A half-closed connection still carries the reply of a running upcall.
#[test]
fn a_client_that_half_closes_receives_the_reply_of_a_slow_servant() {
    let server = Server::start();
    let profile = spandrel_orb_tests::support::without_local_addresses(&server.object.ior().profiles[0]);
    let mut out = Encoder::new(Wire::default());
    let template = RequestTemplate::new(Wire::default(), &profile.object_key);
    let body = template.begin(&mut out, 1, ResponseFlags::TWO_WAY, "hold", &[]);
    out.u32(1);
    body.end(&mut out).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(&out.to_vec()).unwrap();
    server.probe.await_held(1);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // Another thread reads the connection meanwhile, and has found its end.
    thread::sleep(Duration::from_millis(50));
    server.probe.open(1);
    let reply = read_message(&mut stream);
    assert!(reply.is_ok(), "{reply:?}");
}

#[test]
fn listen_can_be_repeated_after_a_failure() {
    let (first, second) = (ReservedPort::reserve(), ReservedPort::reserve());
    let busy = TcpListener::bind(("127.0.0.1", second.port)).unwrap();
    let orb = second.listening(first.listening(Orb::builder())).build().unwrap();
    assert_eq!(listen(&orb).unwrap_err().kind(), SystemExceptionKind::Initialize);
    drop(busy);
    let published = orb.listen().expect("both ports are free");
    assert_eq!(published.len(), 2);
    orb.shutdown().unwrap();
}

#[test]
fn published_addresses_are_reachable() {
    for host in ["", "*", "127.0.0.1", "localhost", "0.0.0.0"] {
        let server = Server::with(Orb::builder().listen(Endpoint::new(host, 0)));
        let published = server.orb.listen().unwrap();
        server.client().ping().unwrap_or_else(|error| panic!("`{host}` is published as {published:?}: {error}"));
    }
}
