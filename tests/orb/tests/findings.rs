//! What hostile readings of the core found; each was a defect once.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use spandrel::generated::{Replied, Servant, ServerCall};
use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{LocateStatus, ReplyStatus, RequestTemplate, ResponseFlags, begin_reply, locate_request};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{KeptPort, PATIENCE, comes, in_background, kind_and_completion, pretend, read_message},
};

fn url(port: u16) -> String {
    format!("corbaloc:iiop:1.2@127.0.0.1:{port}/nobody")
}

fn target_with(orb: &Orb, url: &str) -> Target {
    Target::unchecked_narrow(&orb.string_to_object(url).unwrap())
}

fn impatient(target: &Target, timeout: Duration) -> Target {
    Target::unchecked_narrow(&target.as_object().with_timeout(Some(timeout)))
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

// Client: connection.rs two_way/one_way, `self.writer.lock()` without limit.
#[test]
fn waiting_for_ones_turn_to_write_is_bounded_by_the_time_out() {
    let (begun, begin) = mpsc::channel();
    let port = pretend(move |_, mut stream| {
        // The large request has begun; no more of it is read.
        stream.read_exact(&mut [0; 64]).unwrap();
        let _ = begun.send(());
        std::mem::forget(stream);
    });
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    let target = target_with(&orb, &url(port));
    let large = target.clone();
    let _stuck = in_background(move || large.note(&vec![7; 32 << 20]));
    begin.recv_timeout(PATIENCE).unwrap();
    let quick = impatient(&target, Duration::from_millis(300));
    let outcome = in_background(move || quick.ping());
    let outcome = outcome.recv_timeout(PATIENCE).expect("a time-out is honoured behind a stuck writer");
    assert_eq!(kind_and_completion(&outcome.unwrap_err()), (SystemExceptionKind::Timeout, CompletionStatus::No));
}

// Client: connection.rs send / transport.rs send_message: SO_SNDTIMEO begins anew with each partial write.
#[test]
fn a_peer_that_reads_in_drops_does_not_stretch_the_time_out() {
    let port = pretend(|_, mut stream| {
        thread::spawn(move || {
            // The pace of a slow peer, not a synchronisation.
            let mut room = vec![0; 256 << 10];
            while stream.read(&mut room).is_ok_and(|count| count > 0) {
                thread::sleep(Duration::from_millis(100));
            }
        });
    });
    let orb = Orb::builder().socket_queues(Some(32 << 10), None).build().unwrap();
    let target = impatient(&target_with(&orb, &url(port)), Duration::from_millis(500));
    let before = Instant::now();
    let call = in_background(move || target.note(&vec![7; 32 << 20]));
    let outcome = call.recv_timeout(PATIENCE).expect("the call ends");
    let error = outcome.expect_err("32 MiB do not pass in half a second at this pace");
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No));
    // All of it would take more than twelve seconds.
    assert!(before.elapsed() < Duration::from_secs(10), "{:?} instead of 0.5 s", before.elapsed());
}

// Client: connection.rs alone/await_reply `fresh`: the whole span again for each attempt.
#[test]
fn forwarding_does_not_begin_the_time_out_anew() {
    // Forwarded at three quarters of its time; if that began anew it would end so much later.
    let (span, forwarded) = (Duration::from_secs(2), Duration::from_millis(1500));
    let (closing, silent) = (Server::start(), pretend(|_, stream| std::mem::forget(stream)));
    let profile = spandrel_orb_tests::support::iiop_alone(&closing.object.ior().profiles[0]);
    let elsewhere = {
        let mut ior = closing.object.ior().clone();
        ior.profiles = vec![spandrel::IiopProfile { port: silent, ..profile }.encode().unwrap()];
        ior
    };
    let forwarder = pretend(move |_, mut stream| {
        let request = read_message(&mut stream).unwrap();
        let id = u32::from_ne_bytes(request[12..16].try_into().unwrap());
        // As slow as a busy server: most of the client's time.
        thread::sleep(forwarded);
        let mut out = Encoder::new(Wire::default());
        let body = begin_reply(&mut out, id, ReplyStatus::LocationForward, &[]);
        spandrel_cdr::Encode::encode(&elsewhere, &mut out).unwrap();
        body.end(&mut out).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        std::mem::forget(stream);
    });
    let target = impatient(&target_with(&Orb::builder().build().unwrap(), &url(forwarder)), span);
    let before = Instant::now();
    let error = target.ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Timeout);
    assert!(before.elapsed() < span + forwarded, "{:?} instead of {span:?}", before.elapsed());
}

// Client: invocation.rs may_repeat: one resend, but up to five idle connections may be stale.
#[test]
fn several_idle_connections_to_a_server_that_restarted_go_unnoticed() {
    let kept = KeptPort::reserve();
    let server = Server::with(kept.listening(Orb::builder()));
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
    held.into_iter().for_each(|call| call.recv_timeout(PATIENCE).unwrap().unwrap());
    drop(server);
    let again = Server::with(kept.listening(Orb::builder()));
    assert_eq!(again.port(), kept.port);
    let error = target.ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist, "the new server's answer: {error}");
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

// Client: peer.rs lease: the limit is not kept while connections are being opened.
#[test]
fn callers_that_come_at_once_do_not_open_more_connections_than_allowed() {
    const CALLERS: usize = 24;
    let opened = Arc::new(AtomicUsize::new(0));
    let server = Server::start();
    let real = server.port();
    let counter = Arc::clone(&opened);
    let port = pretend(move |_, mut stream| {
        counter.fetch_add(1, Ordering::SeqCst);
        let mut upstream = TcpStream::connect(("127.0.0.1", real)).unwrap();
        let (mut back_from, mut back_to) = (upstream.try_clone().unwrap(), stream.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut stream, &mut upstream));
        thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
    });
    let profile = spandrel_orb_tests::support::iiop_alone(&server.object.ior().profiles[0]);
    let mut ior = server.object.ior().clone();
    ior.profiles = vec![spandrel::IiopProfile { host: "localhost".into(), port, ..profile }.encode().unwrap()];
    let target: Target =
        Target::unchecked_narrow(&Orb::builder().connections_per_peer(2).build().unwrap().reference(ior));
    let together = Arc::new(Barrier::new(CALLERS));
    let calls: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (target, together) = (target.clone(), Arc::clone(&together));
            in_background(move || {
                together.wait();
                target.ping()
            })
        })
        .collect();
    calls.into_iter().for_each(|call| call.recv_timeout(PATIENCE).unwrap().unwrap());
    let opened = opened.load(Ordering::SeqCst);
    assert!(opened <= 2, "{opened} connections were opened where 2 are allowed");
}

/// Answers, and then fails all the same.
struct Fickle {
    panics: bool,
}

impl Servant for Fickle {
    fn repository_id(&self) -> &'static str {
        "IDL:Fickle:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let replied = call.reply(|_| Ok(()))?;
        assert!(!self.panics, "after the answer");
        let _ = replied;
        Err(SystemException::internal(0, CompletionStatus::Yes))
    }
}

// Server: connection.rs upcall: a servant that fails after it answered gets a second answer.
#[test]
fn a_request_is_answered_once() {
    for panics in [false, true] {
        let server = Server::start();
        let fickle = server.poa.activate(Fickle { panics }).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&request_to(&server, "any", 1, &fickle)).unwrap();
        stream.write_all(&request_to(&server, "ping", 2, &server.object)).unwrap();
        let mut ids: Vec<u32> = (0..2)
            .map(|_| {
                let reply = read_message(&mut stream).unwrap();
                u32::from_ne_bytes(reply[12..16].try_into().unwrap())
            })
            .collect();
        // Where several threads run them, in whatever order.
        ids.sort_unstable();
        assert_eq!(ids, [1, 2], "one reply each (panics: {panics})");
    }
}

// reader.rs Deadline::after: `Instant + Duration` overflows.
#[test]
fn time_outs_of_any_length_are_taken() {
    let server = Server::start();
    let target = impatient(&server.client(), Duration::MAX);
    let called = in_background(move || target.ping());
    called.recv_timeout(PATIENCE).expect("no panic").unwrap();
}

#[test]
fn a_shutdown_that_may_take_for_ever_ends_when_nothing_runs() {
    let server = Server::with(Orb::builder().shutdown_timeout(Duration::MAX));
    let orb = server.orb.clone();
    std::mem::forget(server);
    let ended = in_background(move || orb.shutdown(true));
    ended.recv_timeout(PATIENCE).expect("the ORB ends").unwrap();
}

#[test]
fn a_time_out_of_nothing_is_a_time_out() {
    let server = Server::start();
    let target = server.client();
    target.ping().unwrap();
    let error = impatient(&target, Duration::ZERO).ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No), "{error}");
}

// Server: listener.rs listen: what was opened before the failure stays open and in the way.
#[test]
fn listening_can_be_tried_again_after_it_failed() {
    let (first, second) = (KeptPort::reserve(), KeptPort::reserve());
    let busy = TcpListener::bind(("127.0.0.1", second.port)).unwrap();
    let orb = second.listening(first.listening(Orb::builder())).build().unwrap();
    assert_eq!(orb.listen().unwrap_err().kind(), SystemExceptionKind::Initialize);
    drop(busy);
    let published = orb.listen().expect("both ports are free now");
    assert_eq!(published.len(), 2);
    orb.shutdown(true).unwrap();
}

// Client: invocation.rs unreadable: COMPLETED_YES where nothing ran.
#[test]
fn an_unreadable_forwarding_is_not_said_to_have_completed() {
    let port = pretend(|_, mut stream| {
        let request = read_message(&mut stream).unwrap();
        let id = u32::from_ne_bytes(request[12..16].try_into().unwrap());
        let mut out = Encoder::new(Wire::default());
        let body = begin_reply(&mut out, id, ReplyStatus::LocationForward, &[]);
        out.u32(u32::MAX);
        body.end(&mut out).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        std::mem::forget(stream);
    });
    let error = target_with(&Orb::builder().build().unwrap(), &url(port)).ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Marshal);
    assert_ne!(error.completed(), CompletionStatus::Yes, "{error}");
}

/// A LocateReply where a Reply is due is no user exception.
#[test]
fn an_answer_to_another_question_is_a_protocol_error() {
    let port = pretend(|_, mut stream| {
        let request = read_message(&mut stream).unwrap();
        let id = u32::from_ne_bytes(request[12..16].try_into().unwrap());
        let mut out = Encoder::new(Wire::default());
        let body = spandrel_giop::begin_locate_reply(&mut out, id, LocateStatus::ObjectHere);
        body.end(&mut out).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        std::mem::forget(stream);
    });
    let error = target_with(&Orb::builder().build().unwrap(), &url(port)).ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{error}");
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

// A request that the server finds too long: the reason must reach the caller.
#[test]
fn a_request_that_is_too_long_for_the_server_is_said_to_be() {
    let server = Server::with(Orb::builder().max_message(1 << 20));
    let target = server.client();
    target.ping().unwrap();
    let error = target.note(&vec![7; 1 << 21]).err();
    let two_way = target.echo_octets(&vec![7; 1 << 23]).unwrap_err();
    println!("{error:?}\n{two_way:?}");
    assert_eq!(two_way.kind(), SystemExceptionKind::ImpLimit, "{two_way}");
}

// orb.rs resolve_initial_references: ends the process by a stack overflow.
#[test]
fn initial_references_in_a_circle_are_refused() {
    let orb = Orb::builder().init_ref("A", " corbaloc:rir:/A").build().unwrap();
    orb.resolve_initial_references("A").unwrap_err();
}

// Upcalls are told goodbye to wait for, but the client's half-close ends them unheard.
#[test]
fn a_client_that_half_closes_still_hears_the_answer_of_a_slow_servant() {
    let server = Server::start();
    let profile = spandrel_orb_tests::support::iiop_alone(&server.object.ior().profiles[0]);
    let mut out = Encoder::new(Wire::default());
    let template = RequestTemplate::new(Wire::default(), &profile.object_key);
    let body = template.begin(&mut out, 1, ResponseFlags::TWO_WAY, "hold", &[]);
    out.u32(1);
    body.end(&mut out).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&out.to_vec()).unwrap();
    server.probe.await_held(1);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // The reading has been given on, and whoever reads has seen the end.
    thread::sleep(Duration::from_millis(50));
    server.probe.open(1);
    let reply = read_message(&mut stream);
    assert!(reply.is_ok(), "{reply:?}");
}
