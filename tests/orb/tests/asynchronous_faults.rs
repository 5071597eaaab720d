//! Asynchronous calls with hostile peers, panicking wakers, and futures that are dropped or forgotten.

use std::{
    io::{Read, Write},
    mem,
    net::{Shutdown, TcpListener, TcpStream},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemExceptionKind,
    types::{IiopProfile, Ior},
};
use spandrel_cdr::{ByteOrder, Encode, Encoder, GiopVersion, Wire};
use spandrel_giop::{MessageType, ReplyStatus, bare_message, begin_reply};
#[cfg(target_os = "linux")]
use spandrel_ipc::inet;
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{
        ClosedPort, ReservedPort, TEST_TIMEOUT, block_on, fake_server, is_ready, kind_and_completion, read_message,
        read_some,
    },
};

const LOST_MAYBE: (SystemExceptionKind, CompletionStatus) = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);

/// A reference to an object with the key `key` at this port.
fn target_at(port: u16, builder: OrbBuilder) -> Target {
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/key");
    Target::unchecked_narrow(&builder.build().unwrap().string_to_object(&url).unwrap())
}

fn one_connection() -> OrbBuilder {
    Orb::builder().connections_per_peer(1)
}

/// The id in a GIOP 1.2 request.
fn request_id(message: &[u8]) -> u32 {
    u32::from_ne_bytes(message[12..16].try_into().unwrap())
}

fn sum(id: u32, value: i32) -> Vec<u8> {
    let mut out = Encoder::new(Wire::default());
    let body = begin_reply(&mut out, id, ReplyStatus::NoException, &[]);
    out.i32(value);
    body.end(&mut out).unwrap();
    out.to_vec()
}

fn forward(id: u32, target: &Ior) -> Vec<u8> {
    let mut out = Encoder::new(Wire::default());
    let body = begin_reply(&mut out, id, ReplyStatus::LocationForward, &[]);
    target.encode(&mut out).unwrap();
    body.end(&mut out).unwrap();
    out.to_vec()
}

/// Reads until the client closes.
fn read_until_close(stream: &mut TcpStream) {
    while matches!(read_some(&*stream, &mut [0; 4096]), Ok(1..)) {}
}

#[test]
fn a_reply_cut_at_any_octet_gives_completed_maybe() {
    let whole = sum(1, 3).len();
    let port = fake_server(move |count, mut stream| {
        let request = read_message(&mut stream).unwrap();
        stream.write_all(&sum(request_id(&request), 3)[..count.min(whole)]).unwrap();
    });
    for _ in 0..whole {
        let error = block_on(target_at(port, Orb::builder()).add_async(1, 2)).unwrap_err();
        assert_eq!(kind_and_completion(&error), LOST_MAYBE, "{error}");
    }
    assert_eq!(block_on(target_at(port, Orb::builder()).add_async(1, 2)).unwrap(), 3, "with a complete reply");
}

#[test]
fn a_connection_closed_before_any_read_ends_all_calls() {
    let port = fake_server(|_, stream| drop(stream));
    let target = target_at(port, one_connection());
    let calls: Vec<_> = (0..50).map(|_| target.echo_octets_async(&[1; 100_000])).collect();
    for call in calls {
        let error = block_on(call).unwrap_err();
        assert!(matches!(error.kind(), SystemExceptionKind::CommFailure | SystemExceptionKind::Transient), "{error}");
    }
}

#[test]
fn a_peer_that_closes_its_sending_side_ends_the_calls() {
    let (send, streams) = mpsc::channel();
    let port = fake_server(move |_, mut stream| {
        read_message(&mut stream).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // The connection stays open in the other direction.
        send.send(stream).unwrap();
    });
    let error = block_on(target_at(port, Orb::builder()).add_async(1, 2)).unwrap_err();
    assert_eq!(kind_and_completion(&error), LOST_MAYBE, "{error}");
    drop(streams);
}

#[test]
fn an_invalid_answer_ends_all_calls_of_its_connection() {
    let answers: [(&str, &[u8], SystemExceptionKind); 7] = [
        ("wrong magic", b"HTTP/1.1 400 Bad Request\r\n\r\n", SystemExceptionKind::CommFailure),
        ("unknown version", b"GIOP\x02\x00\x01\x01\x04\x00\x00\x00abcd", SystemExceptionKind::CommFailure),
        ("unknown type", b"GIOP\x01\x02\x01\x63\x00\x00\x00\x00", SystemExceptionKind::CommFailure),
        ("four gigabytes", b"GIOP\x01\x02\x01\x01\xff\xff\xff\xffabcd", SystemExceptionKind::ImpLimit),
        ("a request", b"GIOP\x01\x02\x01\x00\x04\x00\x00\x00abcd", SystemExceptionKind::CommFailure),
        ("an empty reply", b"GIOP\x01\x02\x01\x01\x00\x00\x00\x00", SystemExceptionKind::CommFailure),
        ("a message error", b"GIOP\x01\x02\x01\x06\x00\x00\x00\x00", SystemExceptionKind::CommFailure),
    ];
    for (what, answer, expected) in answers {
        let port = fake_server(move |_, mut stream| {
            (0..3).for_each(|_| drop(read_message(&mut stream).unwrap()));
            stream.write_all(answer).unwrap();
            read_until_close(&mut stream);
        });
        let target = target_at(port, one_connection());
        let calls: Vec<_> = (0..3).map(|_| target.ping_async()).collect();
        for call in calls {
            let error = block_on(call).unwrap_err();
            assert_eq!((error.kind(), error.completed()), (expected, CompletionStatus::Maybe), "{what}: {error}");
        }
    }
}

#[test]
fn unknown_and_duplicate_replies_are_dropped() {
    let port = fake_server(|_, mut stream| {
        for _ in 0..2 {
            let id = request_id(&read_message(&mut stream).unwrap());
            for (id, value) in [(id + 1000, 0), (id, 3), (id, 4), (u32::MAX, 0)] {
                stream.write_all(&sum(id, value)).unwrap();
            }
        }
        read_until_close(&mut stream);
    });
    let target = target_at(port, one_connection());
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
}

#[test]
fn a_circle_of_forwardings_ends() {
    let (send, ports) = mpsc::channel::<u16>();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let mut own = None;
    let port = fake_server(move |_, mut stream| {
        let port = *own.get_or_insert_with(|| ports.recv().unwrap());
        while let Ok(request) = read_message(&mut stream) {
            count.fetch_add(1, Ordering::SeqCst);
            let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/key");
            let target = Orb::builder().build().unwrap().string_to_object(&url).unwrap();
            let forward = forward(request_id(&request), target.ior());
            if stream.write_all(&forward).is_err() {
                return;
            }
        }
    });
    send.send(port).unwrap();
    let error = block_on(target_at(port, one_connection()).ping_async()).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    assert!(requests.load(Ordering::SeqCst) < 100);
}

#[test]
fn a_peer_that_reads_nothing_is_sent_a_bounded_number_of_requests() {
    let (send, streams) = mpsc::channel();
    let port = fake_server(move |_, stream| drop(send.send(stream)));
    let target = target_at(port, one_connection().pending_requests(20));
    let long = vec![1; 8 << 20];
    let mut calls = vec![target.echo_octets_async(&long)];
    let mut stream: TcpStream = streams.recv_timeout(TEST_TIMEOUT).unwrap();
    // Once the first octet has arrived, no call waits for the connection.
    stream.read_exact(&mut [0]).unwrap();
    calls.extend((1..20).map(|_| target.echo_octets_async(&[1; 1000])));
    let error = block_on(target.ping_async()).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    // Requests that were not written are removed from the table; the first one was begun.
    assert!(calls.iter_mut().all(|call| !is_ready(call)));
    let last = calls.pop().unwrap();
    drop(calls);
    let mut others: Vec<_> = (0..10).map(|_| target.ping_async()).collect();
    assert!(others.iter_mut().all(|call| !is_ready(call)), "there is room for them");
    // The server accepts no other connection either.
    drop((stream, streams));
    let errors = others.into_iter().map(|call| block_on(call).unwrap_err());
    for error in errors.chain([block_on(last).unwrap_err()]) {
        assert!(matches!(error.kind(), SystemExceptionKind::CommFailure | SystemExceptionKind::Transient), "{error}");
    }
}

#[test]
fn a_timeout_ends_calls_whose_request_is_not_written() {
    let port = fake_server(|_, stream| mem::forget(stream));
    let target = target_at(port, one_connection().request_timeout(Some(Duration::from_millis(200))));
    let long = vec![1; 32 << 20];
    // The order in which they are written is undefined.
    let (first, second) = (target.echo_octets_async(&long), target.echo_octets_async(&long));
    for error in [block_on(first).unwrap_err(), block_on(second).unwrap_err()] {
        // The completion status is MAYBE for the request that was being written.
        assert_eq!(error.kind(), SystemExceptionKind::Timeout, "{error}");
    }
}

/// A port whose connections are never accepted while the returned guard lives.
#[cfg(target_os = "linux")]
fn unreachable_port() -> (u16, impl Sized) {
    let addr = inet::Addr::loopback(0);
    let full = inet::Acceptor::open_with(&addr, &inet::AcceptorOptions::default().backlog(0)).unwrap();
    let connector = inet::Connector::new().timeout(Duration::from_millis(200));
    let mut fillers = Vec::new();
    while let Ok(filler) = connector.open(&full.local_addr().unwrap()) {
        fillers.push(filler);
        assert!(fillers.len() < 64, "the backlog never fills");
    }
    (full.local_addr().unwrap().port(), (full, fillers))
}

#[cfg(target_os = "linux")]
#[test]
fn shutdown_ends_calls_that_wait_for_a_connection() {
    let (port, _backlog) = unreachable_port();
    let target = target_at(port, one_connection().connect_timeout(Some(Duration::from_secs(20))));
    let calls: Vec<_> = (0..100).map(|_| target.ping_async()).collect();
    let (dropped, pending): (Vec<_>, Vec<_>) = calls.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    drop(dropped);
    target.as_object().orb().shutdown().unwrap();
    for (_, call) in pending {
        let error = block_on(call).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::BadInvOrder, CompletionStatus::No), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn calls_that_wait_for_a_connection_have_their_own_timeouts() {
    let (port, _backlog) = unreachable_port();
    let target = target_at(port, one_connection().connect_timeout(Some(Duration::from_secs(20))));
    let unlimited = target.ping_async();
    let limited = Target::unchecked_narrow(&target.as_object().with_timeout(Some(Duration::from_millis(50))));
    let error = block_on(limited.ping_async()).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::No), "{error}");
    drop(unlimited);
}

#[test]
fn shutdown_ends_partially_written_requests() {
    let (send, streams) = mpsc::channel();
    let port = fake_server(move |_, stream| drop(send.send(stream)));
    let target = target_at(port, one_connection());
    let long = vec![1; 32 << 20];
    let first = target.echo_octets_async(&long);
    let mut stream: TcpStream = streams.recv_timeout(TEST_TIMEOUT).unwrap();
    // The first request is being written by another thread.
    stream.read_exact(&mut [0]).unwrap();
    let calls = [first, target.echo_octets_async(&long)];
    target.as_object().orb().shutdown().unwrap();
    // The first request may be written completely; the second was not begun.
    for (call, completed) in calls.into_iter().zip([CompletionStatus::Maybe, CompletionStatus::No]) {
        let error = block_on(call).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::BadInvOrder, completed), "{error}");
    }
}

#[test]
fn ten_thousand_calls_wait_on_one_connection() {
    let server = Server::start();
    let target = server.client_with(one_connection().pending_requests(20_000));
    let calls: Vec<_> = (0..10_000).map(|number| (number, target.add_async(number, 1))).collect();
    for (number, call) in calls {
        assert_eq!(block_on(call).unwrap(), number + 1);
    }
}

#[test]
fn dropped_or_forgotten_futures_do_not_affect_later_calls() {
    let server = Server::start();
    let target = server.client_with(one_connection().pending_requests(20_000));
    for number in 0..10_000 {
        let call = target.add_async(number, 1);
        // A forgotten future leaks its memory and has no other effect.
        if number % 3 == 0 { mem::forget(call) } else { drop(call) }
    }
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
    assert_eq!(target.add(3, 4).unwrap(), 7);
}

/// A waker that runs a closure.
struct OnWake<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for OnWake<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn waker(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(OnWake(wake)))
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

#[test]
fn a_panicking_waker_does_not_affect_other_calls() {
    let server = Server::start();
    let target = server.client_with(one_connection());
    let mut held = target.hold_async(1);
    let (woken, wakes) = mpsc::channel();
    let panics = waker(move || {
        woken.send(()).unwrap();
        panic!("intended");
    });
    assert!(poll(&mut held, &panics).is_pending());
    target.release(1).unwrap();
    wakes.recv_timeout(TEST_TIMEOUT).unwrap();
    block_on(held).unwrap();
    assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3, "the connection and the reactor continue");
}

#[test]
fn a_waker_may_make_asynchronous_calls() {
    let server = Server::start();
    let target = server.client_with(one_connection());
    let mut held = target.hold_async(1);
    let (send, answers) = mpsc::channel();
    let caller = target.clone();
    let calls = waker(move || send.send((caller.add_async(1, 2), caller.note_async(&[7]))).unwrap());
    assert!(poll(&mut held, &calls).is_pending());
    target.release(1).unwrap();
    let (sum, note) = answers.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(block_on(sum).unwrap(), 3);
    block_on(note).unwrap();
    block_on(held).unwrap();
}

#[test]
fn a_waker_may_drop_the_last_reference_of_its_orb() {
    let server = Server::start();
    for gate in 0..10 {
        let target = server.client_with(one_connection());
        let mut held = target.hold_async(gate);
        server.probe.await_held(1);
        // The waker holds the last handles of the ORB: the reference and the future that it wakes.
        let handles = Arc::new(Mutex::new(None));
        let (send, dropped) = mpsc::channel();
        let drops = {
            let handles = Arc::clone(&handles);
            waker(move || {
                drop(handles.lock().unwrap().take());
                send.send(()).unwrap();
            })
        };
        assert!(poll(&mut held, &drops).is_pending());
        *handles.lock().unwrap() = Some((target, held));
        server.probe.open(gate);
        dropped.recv_timeout(TEST_TIMEOUT).unwrap();
    }
}

#[test]
fn a_waker_may_shut_its_orb_down() {
    let server = Server::start();
    let target = server.client_with(one_connection());
    let (mut held, other) = (target.hold_async(1), target.hold_async(2));
    server.probe.await_held(2);
    let orb = target.as_object().orb().clone();
    let (send, ended) = mpsc::channel();
    let ends = waker(move || send.send(orb.begin_shutdown()).unwrap());
    assert!(poll(&mut held, &ends).is_pending());
    server.probe.open(1);
    ended.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    block_on(held).unwrap();
    let error = block_on(other).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::BadInvOrder, CompletionStatus::Maybe), "{error}");
    server.probe.open(2);
}

#[test]
fn several_threads_may_poll_the_same_future_in_turn() {
    let server = Server::start();
    let target = server.client_with(one_connection());
    for gate in 0..50 {
        let held = Arc::new(Mutex::new(Some(Box::pin(target.hold_async(gate)))));
        let is_done = Arc::new(AtomicBool::new(false));
        let pollers: Vec<_> = (0..4)
            .map(|_| {
                let (held, is_done) = (Arc::clone(&held), Arc::clone(&is_done));
                thread::spawn(move || {
                    let me = thread::current();
                    let waker = waker(move || me.unpark());
                    while !is_done.load(Ordering::SeqCst) {
                        let mut slot = held.lock().unwrap();
                        let Some(future) = slot.as_mut() else { return };
                        if let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                            outcome.unwrap();
                            *slot = None;
                            is_done.store(true, Ordering::SeqCst);
                        }
                        drop(slot);
                        thread::yield_now();
                    }
                })
            })
            .collect();
        target.release(gate).unwrap();
        pollers.into_iter().for_each(|poller| poller.join().unwrap());
    }
}

/// Yields once.
async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|cx| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn a_task_that_yields_lets_other_tasks_run() {
    let orb = Orb::builder().build().unwrap();
    let is_set = Arc::new(AtomicBool::new(false));
    let (send, ended) = mpsc::channel();
    let flag = Arc::clone(&is_set);
    orb.spawn(async move {
        while !flag.load(Ordering::SeqCst) {
            yield_now().await;
        }
        send.send(()).unwrap();
    })
    .unwrap();
    orb.spawn(async move { is_set.store(true, Ordering::SeqCst) }).unwrap();
    ended.recv_timeout(TEST_TIMEOUT).expect("one thread runs both tasks");
}

#[test]
fn pending_requests_are_resent_after_close_connection() {
    let port = fake_server(|count, mut stream| {
        if count == 0 {
            // One request is answered first, so that the closed connection is not a new one.
            let id = request_id(&read_message(&mut stream).unwrap());
            stream.write_all(&sum(id, 1)).unwrap();
            (0..3).for_each(|_| drop(read_message(&mut stream).unwrap()));
            let close = bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, MessageType::CloseConnection);
            return stream.write_all(&close).unwrap();
        }
        while let Ok(request) = read_message(&mut stream) {
            stream.write_all(&sum(request_id(&request), 9)).unwrap();
        }
    });
    let target = target_at(port, one_connection());
    assert_eq!(block_on(target.add_async(0, 1)).unwrap(), 1);
    let calls: Vec<_> = (0..3).map(|_| target.add_async(4, 5)).collect();
    calls.into_iter().for_each(|call| assert_eq!(block_on(call).unwrap(), 9));
}

#[test]
fn calls_to_a_closing_listener_end_with_an_exception() {
    let reserved = ReservedPort::reserve();
    let listener = TcpListener::bind(("127.0.0.1", reserved.port)).unwrap();
    let target = target_at(reserved.port, Orb::builder());
    let calls: Vec<_> = (0..20).map(|_| target.ping_async()).collect();
    drop(listener);
    for call in calls {
        let error = block_on(call).unwrap_err();
        assert!(matches!(error.kind(), SystemExceptionKind::CommFailure | SystemExceptionKind::Transient), "{error}");
    }
}

#[test]
fn a_call_ends_with_transient_when_all_profiles_refuse() {
    let server = Server::start();
    let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let dead = [(); 3].map(|()| ClosedPort::reserve());
    let profiles = dead.iter().map(|dead| IiopProfile { port: dead.port(), ..profile.clone() }.encode().unwrap());
    let profiles = profiles.collect();
    let orb = Orb::builder().build().unwrap();
    let target = Target::unchecked_narrow(&orb.reference(Ior { type_id: String::new(), profiles }));
    let error = block_on(target.ping_async()).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
}
