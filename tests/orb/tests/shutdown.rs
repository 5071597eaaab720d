//! ORB shutdown: orderly, bounded in time, from any thread.

use std::{
    future::Future,
    io::Write,
    net::TcpStream,
    sync::{Arc, mpsc},
    task::{Context, Waker},
    thread,
    time::{Duration, Instant},
};

use spandrel::generated::{Replied, Servant, ServerCall};
use spandrel::{CompletionStatus, Orb, Poa, SystemException, SystemExceptionKind};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags, locate_request};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{ReservedPort, TEST_TIMEOUT, block_on, in_background, read_message, servant, wait_until},
};

#[test]
fn run_returns_after_shutdown() {
    let server = Server::start();
    let orb = server.orb.clone();
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        orb.run();
        send.send(()).unwrap();
    });
    server.client().ping().unwrap();
    server.orb.shutdown().unwrap();
    receive.recv_timeout(TEST_TIMEOUT).expect("run returned");
    server.orb.shutdown().expect("a second shutdown succeeds");
}

#[test]
fn a_running_request_is_answered_before_close_connection() {
    let server = Server::start();
    let target = server.client();
    let (send, receive) = mpsc::channel();
    let held = target.clone();
    thread::spawn(move || send.send(held.hold(1)).unwrap());
    server.probe.await_held(1);
    server.orb.begin_shutdown().unwrap();
    server.probe.open(1);
    receive.recv_timeout(TEST_TIMEOUT).expect("the held call ends").expect("it was answered");
    server.orb.run();
}

#[test]
fn an_upcall_may_shut_down_without_waiting_for_completion() {
    let server = Server::start();
    assert!(server.client().stop().unwrap(), "waiting for completion is refused within an upcall");
    let before = Instant::now();
    server.orb.run();
    assert!(before.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_call_after_the_servers_shutdown_raises_transient() {
    let reserved = ReservedPort::reserve();
    let server = Server::with(reserved.listening(Orb::builder()));
    let target = server.client();
    target.ping().unwrap();
    server.orb.shutdown().unwrap();
    let error = target.ping().unwrap_err();
    // CloseConnection makes the client reconnect, and the port has no listener any more.
    assert_eq!((error.kind(), error.completed()), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
}

#[test]
fn a_client_reconnects_to_a_restarted_server_at_the_same_port() {
    let reserved = ReservedPort::reserve();
    let server = Server::with(reserved.listening(Orb::builder()));
    let client = Orb::builder().build().unwrap();
    let target = Target::narrow(&client.string_to_object(&server.ior()).unwrap()).unwrap();
    target.ping().unwrap();
    drop(server);
    let again = Server::with(reserved.listening(Orb::builder()));
    assert_eq!(again.port(), reserved.port);
    // The object belongs to the previous incarnation of the server, which the server recognises.
    assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::ObjectNotExist);
}

#[test]
fn incomplete_messages_do_not_delay_shutdown() {
    let server = Server::start();
    let mut stuck: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(("127.0.0.1", server.port())).unwrap()).collect();
    for stream in &mut stuck {
        stream.write_all(b"GIOP\x01\x02\x01\x00\x40\x00\x00\x00halfway").unwrap();
    }
    server.client().ping().unwrap();
    let before = Instant::now();
    server.orb.shutdown().unwrap();
    assert!(before.elapsed() < Duration::from_secs(15), "{:?}", before.elapsed());
}

fn request_to(server: &Server, operation: &str, id: u32, object: &spandrel::ObjectRef) -> Vec<u8> {
    let _ = server;
    let profile = spandrel_orb_tests::support::without_local_addresses(&object.ior().profiles[0]);
    let template = RequestTemplate::new(Wire::default(), &profile.object_key);
    let mut out = Encoder::new(Wire::default());
    let body = template.begin(&mut out, id, ResponseFlags::TWO_WAY, operation, &[]);
    body.end(&mut out).unwrap();
    out.to_vec()
}

// A thread that shuts the ORB down must not block in writing CloseConnection.
#[test]
fn a_client_that_reads_nothing_does_not_block_shutdown() {
    let server = Server::with(
        Orb::builder().shutdown_timeout(Duration::from_secs(1)).socket_queues(Some(16 << 10), Some(16 << 10)),
    );
    let mut unread = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    unread.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut out = Encoder::new(Wire::default());
    locate_request(&mut out, 1, b"nobody").unwrap();
    let many = out.to_vec().repeat(1000);
    // Until the server's thread blocks in writing a LocateReply.
    while unread.write_all(&many).is_ok() {}
    let orb = server.orb.clone();
    std::mem::forget(server);
    let ended = in_background(move || orb.shutdown());
    ended.recv_timeout(TEST_TIMEOUT).expect("the ORB ends").unwrap();
    drop(unread);
}

#[test]
fn an_idle_orb_shuts_down_at_once_with_an_unlimited_timeout() {
    let server = Server::with(Orb::builder().shutdown_timeout(Duration::MAX));
    let orb = server.orb.clone();
    std::mem::forget(server);
    let ended = in_background(move || orb.shutdown());
    ended.recv_timeout(TEST_TIMEOUT).expect("the ORB ends").unwrap();
}

// A servant that holds its ORB (as Probe does) must not keep the ORB's state alive.
#[test]
fn servants_are_dropped_after_shutdown() {
    let server = Server::start();
    let probe = Arc::downgrade(&server.probe);
    server.client().ping().unwrap();
    drop(server);
    // Otherwise the servant, its ORB and the state of all its threads leak.
    wait_until("the servant's end", || probe.upgrade().is_none());
}

// Upcalls may use ORBs that have begun to shut down; a server that opens then would never be closed.
#[test]
fn an_adapter_that_is_made_after_shutdown_does_not_listen() {
    struct Opener(Orb, mpsc::Sender<Result<Vec<(String, u16)>, SystemException>>);
    impl Servant for Opener {
        fn repository_id(&self) -> &'static str {
            "IDL:Opener:1.0"
        }
        fn is_a(&self, _: &str) -> bool {
            false
        }
        fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
            let opened = Poa::root(&self.0).and_then(|_| self.0.listen());
            self.1.send(opened).unwrap();
            call.reply(|_| Ok(()))
        }
    }
    let (front, late) = (Server::start(), Orb::builder().build().unwrap());
    late.shutdown().unwrap();
    let (send, receive) = mpsc::channel();
    let opener = front.poa.activate(Opener(late, send)).unwrap();
    let client = Orb::builder().build().unwrap();
    Target::unchecked_narrow(&client.string_to_object(&opener.to_string()).unwrap()).ping().unwrap();
    receive.recv_timeout(TEST_TIMEOUT).expect("the upcall reports").unwrap_err();
}

// An upcall that runs when the shutdown begins may make calls until it ends.
#[test]
fn a_running_upcall_may_make_calls_during_shutdown() {
    struct Relay {
        orb: Orb,
        gate: Target,
        next: Target,
    }
    impl Servant for Relay {
        fn repository_id(&self) -> &'static str {
            "IDL:Relay:1.0"
        }
        fn is_a(&self, repository_id: &str) -> bool {
            repository_id == self.repository_id()
        }
        fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
            self.gate.hold(1)?;
            let _ = &self.orb;
            self.next.ping()?;
            call.reply(|_| Ok(()))
        }
    }
    let (front, back) = (Server::start(), Server::start());
    let next = Target::narrow(&front.orb.string_to_object(&back.ior()).unwrap()).unwrap();
    let relay = front.poa.activate(Relay { orb: front.orb.clone(), gate: next.clone(), next }).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", front.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(&request_to(&front, "any", 1, &relay)).unwrap();
    back.probe.await_held(1);
    front.orb.begin_shutdown().unwrap();
    back.probe.open(1);
    let reply = read_message(&mut stream).unwrap();
    assert_eq!(reply[16..20], [0; 4], "NO_EXCEPTION: a running request completes");
}

#[test]
fn an_asynchronous_shutdown_ends_when_the_orb_has_shut_down() {
    let server = Server::start();
    let target = server.client();
    let call = in_background(move || target.hold(1));
    server.probe.await_held(1);
    let mut closed = Box::pin(server.orb.shutdown_async());
    let mut context = Context::from_waker(Waker::noop());
    assert!(closed.as_mut().poll(&mut context).is_pending(), "a request runs");
    // A task that is dropped no longer waits.
    drop(server.orb.shutdown_async());
    server.probe.open(1);
    block_on(closed).unwrap();
    call.recv_timeout(TEST_TIMEOUT).unwrap().expect("the running request was answered");
    server.orb.run(); // returns at once
    block_on(server.orb.shutdown_async()).expect("it is repeatable");
}

#[test]
fn an_upcall_cannot_await_the_shutdown() {
    let orb = Orb::builder().build().unwrap();
    let poa = Poa::root(&orb).unwrap();
    let own = orb.clone();
    let object = poa
        .activate(servant(move |_, call| {
            let refused = block_on(own.shutdown_async()).unwrap_err();
            assert_eq!(refused.kind(), SystemExceptionKind::BadInvOrder);
            call.reply(|_| Ok(()))
        }))
        .unwrap();
    let client = Orb::builder().build().unwrap();
    Target::unchecked_narrow(&client.string_to_object(&object.to_string()).unwrap()).ping().unwrap();
    orb.shutdown().unwrap();
}
