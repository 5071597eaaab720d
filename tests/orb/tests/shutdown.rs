//! Shutdown: orderly, bounded, from anywhere.

use std::{
    io::Write,
    net::TcpStream,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use spandrel::generated::{Replied, Servant, ServerCall};
use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags, locate_request};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{KeptPort, PATIENCE, comes, in_background, read_message},
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

fn request_to(server: &Server, operation: &str, id: u32, object: &spandrel::ObjectRef) -> Vec<u8> {
    let _ = server;
    let profile = spandrel_orb_tests::support::iiop_alone(&object.ior().profiles[0]);
    let template = RequestTemplate::new(Wire::default(), &profile.object_key);
    let mut out = Encoder::new(Wire::default());
    let body = template.begin(&mut out, id, ResponseFlags::TWO_WAY, operation, &[]);
    body.end(&mut out).unwrap();
    out.to_vec()
}

// Server: connection.rs begin_close -> send_bare blocks the thread that shuts down.
#[test]
fn a_client_that_reads_nothing_does_not_hang_the_end() {
    let server = Server::with(
        Orb::builder().shutdown_timeout(Duration::from_secs(1)).socket_queues(Some(16 << 10), Some(16 << 10)),
    );
    let mut greedy = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    greedy.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut out = Encoder::new(Wire::default());
    locate_request(&mut out, 1, b"nobody").unwrap();
    let many = out.to_vec().repeat(1000);
    // Until the server's thread is stuck in writing a LocateReply.
    while greedy.write_all(&many).is_ok() {}
    let orb = server.orb.clone();
    std::mem::forget(server);
    let ended = in_background(move || orb.shutdown(true));
    ended.recv_timeout(PATIENCE).expect("the ORB ends").unwrap();
    drop(greedy);
}

#[test]
fn a_shutdown_that_may_take_for_ever_ends_when_nothing_runs() {
    let server = Server::with(Orb::builder().shutdown_timeout(Duration::MAX));
    let orb = server.orb.clone();
    std::mem::forget(server);
    let ended = in_background(move || orb.shutdown(true));
    ended.recv_timeout(PATIENCE).expect("the ORB ends").unwrap();
}

// A servant that holds its ORB (as Probe does) outlives everything.
#[test]
fn servants_are_let_go_when_the_orb_has_ended() {
    let server = Server::start();
    let probe = Arc::downgrade(&server.probe);
    server.client().ping().unwrap();
    drop(server);
    // Otherwise the servant, its ORB and all its threads' state leak.
    comes("the servant's end", || probe.upgrade().is_none());
}

// An upcall that runs when the shutdown begins may call others until it ends.
#[test]
fn a_running_upcall_may_still_call_others_while_the_orb_shuts_down() {
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
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&request_to(&front, "any", 1, &relay)).unwrap();
    back.probe.await_held(1);
    front.orb.shutdown(false).unwrap();
    back.probe.open(1);
    let reply = read_message(&mut stream).unwrap();
    assert_eq!(reply[16..20], [0; 4], "NO_EXCEPTION: a running request ends in peace");
}
