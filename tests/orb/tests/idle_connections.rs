//! Servers with clients that send nothing, never complete a message, or do not read their replies: timeouts
//! and memory, with each concurrency strategy.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, OrbBuilder, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    diagnostics::statistics::{Event, Level},
    options::Concurrency,
    types::IiopProfile,
};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};
use spandrel_orb_tests::{
    Server,
    support::{
        TEST_TIMEOUT, client_that_never_reads, deferring, in_background, read_message, read_some,
        retry_with_longer_timeout, wait_until,
    },
};

/// The servers' timeout in these tests.
const BRIEF: Duration = Duration::from_millis(40);

fn strategies() -> [OrbBuilder; 5] {
    [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: None },
        Concurrency::LeaderFollowers { threads: Some(2) },
        Concurrency::Reactive,
        Concurrency::ThreadPool { threads: 2, queue: 8 },
    ]
    .map(|strategy| Orb::builder().concurrency(strategy))
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// An encoded request.
fn echo_request(server: &Server, data: &[u8]) -> Vec<u8> {
    request_to(&server.object, data)
}

fn request_to(object: &ObjectRef, data: &[u8]) -> Vec<u8> {
    let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
    let wire = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
    let template = RequestTemplate::new(wire, &profile.object_key);
    let mut out = Encoder::new(wire);
    let body = template.begin(&mut out, 77, ResponseFlags::TWO_WAY, "echo_octets", &[]);
    out.octet_sequence(data).unwrap();
    body.end(&mut out).unwrap();
    out.to_vec()
}

fn connections(server: &Server) -> i64 {
    server.orb.statistics().level(Level::ServerConnections)
}

fn is_close_connection(message: &[u8]) -> bool {
    message.len() == 12 && message[7] == 5
}

#[test]
fn an_idle_connection_is_closed_with_close_connection_and_clients_reconnect() {
    for builder in strategies() {
        // The server sends CloseConnection at the second idle check before a first message.
        let server = Server::with(builder.server_idle_timeout(Some(BRIEF * 5)));
        let mut silent = connect(&server);
        assert!(is_close_connection(&read_message(&mut silent).unwrap()));
        assert_eq!(read_some(&silent, &mut [0]).unwrap(), 0);
        let target = server.client();
        for number in 0..3 {
            assert_eq!(target.add(number, 1).unwrap(), number + 1);
            wait_until("the end of the idle connection", || connections(&server) == 0);
        }
        // There are more if a client was slower than the server's timeout.
        wait_until("four idle ends", || server.orb.statistics().count(Event::ServerClosedIdle) >= 4);
    }
}

#[test]
fn a_client_that_ignores_close_connection_is_disconnected() {
    for builder in strategies() {
        let server = Server::with(builder.server_idle_timeout(Some(BRIEF)));
        let unresponsive = connect(&server);
        wait_until("the idle timeout", || server.orb.statistics().count(Event::ServerClosedIdle) == 1);
        wait_until("the end of the connection", || connections(&server) == 0);
        drop(unresponsive);
    }
}

#[test]
fn a_connection_with_a_running_request_is_not_idle() {
    for builder in strategies() {
        let server = Server::with(builder.server_idle_timeout(Some(BRIEF)));
        let target = server.client();
        let held = in_background(move || target.hold(1));
        server.probe.await_held(1);
        // Other connections end meanwhile, except where one thread does everything: there the wait is limited
        // by time.
        let closed = || server.orb.statistics().count(Event::ServerClosedIdle);
        let before = closed();
        let silent = [connect(&server), connect(&server)];
        let since = Instant::now();
        wait_until("the other connections' end", || closed() >= before + 2 || since.elapsed() > BRIEF * 10);
        server.probe.open(1);
        held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        drop(silent);
    }
}

#[test]
fn a_request_that_crosses_close_connection_is_resent_or_fails_as_not_completed() {
    for builder in strategies() {
        // Where a connection takes longer than the server's timeout, most calls are refused.
        retry_with_longer_timeout(Duration::from_millis(5), |idle| {
            let server = Server::with(builder.clone().server_idle_timeout(Some(idle)));
            call_about_as_often_as_idle_ends(&server, idle).then_some(())
        });
    }
}

/// Calls from several threads until the server has closed many idle connections. Returns whether each thread
/// got more answers than refusals.
fn call_about_as_often_as_idle_ends(server: &Server, idle: Duration) -> bool {
    const CALLERS: i32 = 4;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for caller in 0..CALLERS {
        let (target, is_over) = (server.client(), Arc::clone(&is_over));
        callers.push(in_background(move || {
            let mut random = fastrand::Rng::with_seed(caller as u64);
            let (mut number, mut refused) = (0, 0);
            let resent = || target.as_object().orb().statistics().count(Event::Retried);
            while !is_over.load(Ordering::SeqCst) {
                // About as long as the server's timeout.
                thread::park_timeout(idle.mul_f64(0.8 + 1.6 * random.f64()));
                let before = resent();
                match target.add(number, caller) {
                    Ok(sum) => assert_eq!(sum, number + caller),
                    // On a busy machine the next connection may time out too before its first message
                    // arrives. Then the call fails as not completed, and can be repeated.
                    Err(error) => {
                        assert_eq!(error.completed(), CompletionStatus::No, "{error}");
                        let is_known = match error.kind() {
                            SystemExceptionKind::Transient => true,
                            SystemExceptionKind::CommFailure => resent() > before,
                            _ => false,
                        };
                        assert!(is_known, "{error}");
                        refused += 1;
                        continue;
                    }
                }
                number += 1;
            }
            number > refused
        }));
    }
    wait_until("many idle ends", || server.orb.statistics().count(Event::ServerClosedIdle) >= 60);
    is_over.store(true, Ordering::SeqCst);
    // All of them end before the result.
    let results: Vec<bool> = callers.iter().map(|caller| caller.recv_timeout(TEST_TIMEOUT).unwrap()).collect();
    results.iter().all(|is_served| *is_served)
}

/// Reads until the connection ends; returns the octets received.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        Ok(_) => {}
        // Reset, because the server had unread octets.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    received
}

#[test]
fn an_incomplete_message_times_out_while_other_clients_are_served() {
    for builder in strategies() {
        let server = Server::with(builder.message_timeout(Some(BRIEF)));
        let message = echo_request(&server, &[7; 5000]);
        let mut first_fragment = message[..1024].to_vec();
        first_fragment[6] |= 2;
        first_fragment[8..12].copy_from_slice(&1012_u32.to_le_bytes());
        let mut whole_and_a_half = message.clone();
        whole_and_a_half.extend_from_slice(&message[..100]);
        for beginning in [&message[..5], &message[..12], &message[..2000], &first_fragment, &whole_and_a_half] {
            let mut slow = connect(&server);
            slow.write_all(beginning).unwrap();
            assert_eq!(server.client().add(1, 2).unwrap(), 3);
            read_to_end(&mut slow);
        }
        wait_until("all timeouts", || server.orb.statistics().count(Event::ServerClosedForTimeout) == 5);
    }
}

#[test]
fn a_message_that_arrives_octet_by_octet_times_out() {
    for builder in strategies() {
        let server = Server::with(builder.message_timeout(Some(BRIEF)));
        let mut slow = connect(&server);
        slow.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let start = Instant::now();
        for octet in echo_request(&server, &[7; 100_000]) {
            if slow.write_all(&[octet]).is_err() || matches!(read_some(&slow, &mut [0]), Ok(0)) {
                break;
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "the connection is never closed");
        }
        wait_until("the connection's end", || connections(&server) == 0);
        assert_eq!(server.orb.statistics().count(Event::ServerClosedForTimeout), 1);
    }
}

#[test]
fn a_long_message_may_exceed_the_timeout_while_it_makes_progress() {
    const LIMIT: Duration = Duration::from_secs(3);
    let all = strategies().map(|builder| {
        in_background(move || {
            let server = Server::with(builder.message_timeout(Some(LIMIT)));
            let message = echo_request(&server, &vec![7; 6 << 20]);
            let mut slow = connect(&server);
            slow.set_read_timeout(Some(LIMIT / 4)).unwrap();
            let start = Instant::now();
            for part in message.chunks((1 << 20) + 4096) {
                slow.write_all(part).unwrap();
                if part.len() > 1 << 20 {
                    let waited =
                        read_some(&slow, &mut [0]).expect_err("no answer before the end of the message").kind();
                    assert!(matches!(waited, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waited}");
                }
            }
            slow.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            assert!(read_message(&mut slow).unwrap().ends_with(&[7; 1000]));
            assert!(start.elapsed() > LIMIT, "the whole message took longer than the limit");
        })
    });
    all.iter().for_each(|one| one.recv_timeout(TEST_TIMEOUT).expect("its message is taken"));
}

#[test]
fn connections_without_timeouts_stay_open() {
    let server = Server::with(Orb::builder().server_idle_timeout(None).message_timeout(None));
    let mut silent = connect(&server);
    silent.write_all(b"GIOP").unwrap();
    silent.set_read_timeout(Some(BRIEF)).unwrap();
    let waited = read_some(&silent, &mut [0]).unwrap_err().kind();
    assert!(matches!(waited, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waited}");
    assert_eq!(server.orb.statistics().count(Event::ServerClosedForTimeout), 0);
}

/// Reads a message in small parts.
fn read_message_slowly(stream: &mut TcpStream) -> Vec<u8> {
    let mut message = vec![0; 12];
    stream.read_exact(&mut message).unwrap();
    let len = u32::from_le_bytes(message[8..].try_into().unwrap()) as usize;
    while message.len() < 12 + len {
        let mut room = [0; 100_000];
        let wanted = (12 + len - message.len()).min(room.len());
        let count = read_some(&*stream, &mut room[..wanted]).unwrap();
        assert_ne!(count, 0, "the reply ends inside");
        message.extend(&room[..count]);
        thread::yield_now();
    }
    message
}

/// The reply's status (9.4.3) and body, for a reply without service contexts.
fn reply_of(message: &[u8]) -> (u32, &[u8]) {
    assert_eq!(message[7], 1, "not a Reply");
    (u32::from_le_bytes(message[16..20].try_into().unwrap()), &message[24..])
}

#[test]
fn clients_that_do_not_read_replies_delay_no_other_client() {
    for builder in strategies() {
        let server = Server::with(builder);
        let stalled: Vec<_> = (0..6).map(|_| client_that_never_reads(&server, 12 << 20)).collect();
        // Once their requests have been read, most replies are queued; the send timeout is 30 s.
        let good = server.client_with(Orb::builder().request_timeout(Some(Duration::from_secs(10))));
        let begun = Instant::now();
        for number in 0..100 {
            assert_eq!(good.add(number, 1).unwrap(), number + 1);
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "clients that do not read delayed the other client");
        drop(stalled);
        wait_until("the end of the stalled connections", || connections(&server) == 1);
    }
}

#[test]
fn a_client_that_does_not_read_its_replies_is_disconnected_at_the_send_timeout() {
    for builder in strategies() {
        let server = Server::with(builder.send_timeout(Some(BRIEF * 5)));
        let stalled = [client_that_never_reads(&server, 12 << 20), client_that_never_reads(&server, 16 << 20)];
        wait_until("both timeouts", || server.orb.statistics().count(Event::ServerClosedForTimeout) == 2);
        wait_until("the end of the connections", || connections(&server) == 0);
        drop(stalled);
    }
}

#[test]
fn a_client_that_reads_its_replies_slowly_gets_all_of_them() {
    for builder in strategies() {
        let server = Server::with(builder.send_timeout(Some(Duration::from_secs(5))));
        let data = vec![7; 3 << 20];
        let request = echo_request(&server, &data);
        let mut stream = connect(&server);
        // The server reads no further request before it has written its replies.
        let mut writing = stream.try_clone().unwrap();
        let writer = thread::spawn(move || (0..4).for_each(|_| writing.write_all(&request).unwrap()));
        for _ in 0..4 {
            let message = read_message_slowly(&mut stream);
            let (status, body) = reply_of(&message);
            assert_eq!((status, &body[4..]), (0, &data[..]));
        }
        writer.join().unwrap();
        assert_eq!(server.orb.statistics().count(Event::ServerClosedForTimeout), 0);
    }
}

#[test]
fn replies_beyond_the_memory_limit_become_exceptions() {
    for builder in strategies() {
        let server = Server::with(builder.max_server_memory(40 << 20).socket_queues(Some(1 << 16), Some(1 << 16)));
        let mut stalled: Vec<_> = (0..4).map(|_| client_that_never_reads(&server, 12 << 20)).collect();
        wait_until("a refusal", || server.orb.statistics().count(Event::RefusedMemory) > 0);
        let refused: Vec<_> = stalled
            .iter_mut()
            .map(|stream| read_message(stream).unwrap())
            .filter(|message| reply_of(message).0 == 2)
            .map(|message| String::from_utf8_lossy(&message).into_owned())
            .collect();
        assert!((1..4).contains(&refused.len()), "{refused:?}");
        // The reply was discarded, or the request was refused for lack of memory.
        assert!(refused.iter().all(|text| text.contains("NO_RESOURCES") || text.contains("TRANSIENT")), "{refused:?}");
        drop(stalled);
        assert_eq!(server.client().add(1, 2).unwrap(), 3);
    }
}

#[test]
fn an_unread_deferred_reply_does_not_block_the_answering_thread() {
    for builder in strategies() {
        let server = Server::with(builder);
        let (servant, deferred) = deferring();
        let object = server.poa.activate(servant).unwrap();
        let mut stream = connect(&server);
        stream.write_all(&request_to(&object, &[1])).unwrap();
        let call = deferred.recv_timeout(TEST_TIMEOUT).unwrap();
        let data = vec![7; 16 << 20];
        // The answering thread belongs to the program and does not block.
        let answered = in_background({
            let data = data.clone();
            move || call.answer(|call| call.reply(|out| out.octet_sequence(&data))).is_ok()
        });
        assert!(answered.recv_timeout(TEST_TIMEOUT).unwrap());
        let message = read_message_slowly(&mut stream);
        assert_eq!(&reply_of(&message).1[4..], &data[..]);
        // The connection reads requests again.
        stream.write_all(&echo_request(&server, &[7])).unwrap();
        assert_eq!(reply_of(&read_message(&mut stream).unwrap()).0, 0);
    }
}
