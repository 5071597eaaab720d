//! Clients that ask for nothing, that never finish what they ask, or that do not take their replies: how long servers wait for them, and with what,
//! whatever their concurrency.

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
    ByteOrder, CompletionStatus, Concurrency, GiopVersion, IiopProfile, ObjectRef, Orb, OrbBuilder,
    SystemExceptionKind,
    statistics::{Event, Level},
};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};
use spandrel_orb_tests::{
    Server,
    support::{PATIENCE, comes, deferring, in_background, one_that_never_reads, read_message},
};

/// How long servers wait in these tests.
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
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A request as octets.
fn request_to_echo(server: &Server, data: &[u8]) -> Vec<u8> {
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

fn is_goodbye(message: &[u8]) -> bool {
    message.len() == 12 && message[7] == 5
}

#[test]
fn a_client_that_asks_for_nothing_is_told_goodbye_and_calls_again() {
    for builder in strategies() {
        // Who is found idle twice before anything has come is told so.
        let server = Server::with(builder.server_idle_timeout(Some(BRIEF * 5)));
        let mut silent = connect(&server);
        assert!(is_goodbye(&read_message(&mut silent).unwrap()));
        assert_eq!(silent.read(&mut [0]).unwrap(), 0);
        let target = server.client();
        for number in 0..3 {
            assert_eq!(target.add(number, 1).unwrap(), number + 1);
            comes("the end of the idle connection", || connections(&server) == 0);
        }
        // More, if a client took longer to say something than the server waits.
        comes("four idle ends", || server.orb.statistics().count(Event::ServerClosedIdle) >= 4);
    }
}

#[test]
fn a_client_that_does_not_leave_when_it_is_told_to_is_cut_off() {
    for builder in strategies() {
        let server = Server::with(builder.server_idle_timeout(Some(BRIEF)));
        let stays = connect(&server);
        comes("its end", || server.orb.statistics().count(Event::ServerClosedIdle) == 1);
        comes("the end of the connection", || connections(&server) == 0);
        drop(stays);
    }
}

#[test]
fn a_connection_whose_request_runs_is_in_use() {
    for builder in strategies() {
        let server = Server::with(builder.server_idle_timeout(Some(BRIEF)));
        let target = server.client();
        let held = in_background(move || target.hold(1));
        server.probe.await_held(1);
        // Others come and go; where one thread does everything they cannot, and time goes by for these only.
        let closed = || server.orb.statistics().count(Event::ServerClosedIdle);
        let before = closed();
        let silent = [connect(&server), connect(&server)];
        let since = Instant::now();
        comes("the others' end", || closed() >= before + 2 || since.elapsed() > BRIEF * 10);
        server.probe.open(1);
        held.recv_timeout(PATIENCE).unwrap().unwrap();
        drop(silent);
    }
}

#[test]
fn no_request_is_lost_when_it_meets_the_end_of_an_idle_connection() {
    const CALLERS: i32 = 4;
    for builder in strategies() {
        let server = Server::with(builder.server_idle_timeout(Some(Duration::from_millis(5))));
        let is_over = Arc::new(AtomicBool::new(false));
        let mut callers = Vec::new();
        for caller in 0..CALLERS {
            let (target, is_over) = (server.client(), Arc::clone(&is_over));
            callers.push(in_background(move || {
                let mut random = fastrand::Rng::with_seed(caller as u64);
                let (mut number, mut refused) = (0, 0);
                let resent = || target.as_object().orb().statistics().count(Event::Retried);
                while !is_over.load(Ordering::SeqCst) {
                    // About as long as the server waits.
                    thread::park_timeout(Duration::from_micros(random.u64(4_000..12_000)));
                    let before = resent();
                    match target.add(number, caller) {
                        Ok(sum) => assert_eq!(sum, number + caller),
                        // On a busy machine the server may find the next connection idle, too, before anything has come by it. Then
                        // the caller is told that nothing was done, and may ask again.
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
                (number, refused)
            }));
        }
        comes("many idle ends", || server.orb.statistics().count(Event::ServerClosedIdle) >= 60);
        is_over.store(true, Ordering::SeqCst);
        for caller in callers {
            let (answered, refused) = caller.recv_timeout(PATIENCE).unwrap();
            assert!(answered > refused, "{refused} refused, {answered} answered");
        }
    }
}

/// Waits for the end of a connection; what was said before.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => {}
        // Cut with something unread.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    said
}

#[test]
fn a_client_that_never_finishes_a_message_is_cut_off_and_others_are_served() {
    for builder in strategies() {
        let server = Server::with(builder.message_timeout(Some(BRIEF)));
        let message = request_to_echo(&server, &[7; 5000]);
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
        comes("all ends", || server.orb.statistics().count(Event::ServerClosedForTimeout) == 5);
    }
}

#[test]
fn a_client_that_sends_an_octet_now_and_then_is_cut_off_too() {
    for builder in strategies() {
        let server = Server::with(builder.message_timeout(Some(BRIEF)));
        let mut slow = connect(&server);
        slow.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let start = Instant::now();
        for octet in request_to_echo(&server, &[7; 100_000]) {
            if slow.write_all(&[octet]).is_err() || matches!(slow.read(&mut [0]), Ok(0)) {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "it goes on for ever");
        }
        comes("the end", || connections(&server) == 0);
        assert_eq!(server.orb.statistics().count(Event::ServerClosedForTimeout), 1);
    }
}

#[test]
fn a_long_message_may_take_as_long_as_it_goes_on() {
    const LIMIT: Duration = Duration::from_secs(3);
    let all = strategies().map(|builder| {
        in_background(move || {
            let server = Server::with(builder.message_timeout(Some(LIMIT)));
            let message = request_to_echo(&server, &vec![7; 6 << 20]);
            let mut slow = connect(&server);
            slow.set_read_timeout(Some(LIMIT / 4)).unwrap();
            let start = Instant::now();
            for part in message.chunks((1 << 20) + 4096) {
                slow.write_all(part).unwrap();
                if part.len() > 1 << 20 {
                    let waited = slow.read(&mut [0]).expect_err("nothing is answered before the end").kind();
                    assert!(matches!(waited, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waited}");
                }
            }
            slow.set_read_timeout(Some(PATIENCE)).unwrap();
            assert!(read_message(&mut slow).unwrap().ends_with(&[7; 1000]));
            assert!(start.elapsed() > LIMIT, "the whole took longer than the limit");
        })
    });
    all.iter().for_each(|one| one.recv_timeout(PATIENCE).expect("its message is taken"));
}

#[test]
fn connections_that_are_not_limited_stay() {
    let server = Server::with(Orb::builder().server_idle_timeout(None).message_timeout(None));
    let mut silent = connect(&server);
    silent.write_all(b"GIOP").unwrap();
    silent.set_read_timeout(Some(BRIEF)).unwrap();
    let waited = silent.read(&mut [0]).unwrap_err().kind();
    assert!(matches!(waited, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waited}");
    assert_eq!(server.orb.statistics().count(Event::ServerClosedForTimeout), 0);
}

/// Reads a message a little at a time.
fn read_message_slowly(stream: &mut TcpStream) -> Vec<u8> {
    let mut message = vec![0; 12];
    stream.read_exact(&mut message).unwrap();
    let len = u32::from_le_bytes(message[8..].try_into().unwrap()) as usize;
    while message.len() < 12 + len {
        let mut room = [0; 100_000];
        let wanted = (12 + len - message.len()).min(room.len());
        let count = stream.read(&mut room[..wanted]).unwrap();
        assert_ne!(count, 0, "the reply ends inside");
        message.extend(&room[..count]);
        thread::yield_now();
    }
    message
}

/// The reply's status (9.4.3), for a reply without contexts, and what follows it.
fn reply_of(message: &[u8]) -> (u32, &[u8]) {
    assert_eq!(message[7], 1, "not a Reply");
    (u32::from_le_bytes(message[16..20].try_into().unwrap()), &message[24..])
}

#[test]
fn clients_that_do_not_take_their_replies_keep_no_other_waiting() {
    for builder in strategies() {
        let server = Server::with(builder);
        let deaf: Vec<_> = (0..6).map(|_| one_that_never_reads(&server, 12 << 20)).collect();
        // As soon as their requests have been read, most of the replies wait; time-outs are half a minute.
        let good = server.client_with(Orb::builder().request_timeout(Some(Duration::from_secs(10))));
        let begun = Instant::now();
        for number in 0..100 {
            assert_eq!(good.add(number, 1).unwrap(), number + 1);
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the good client waited for those that do not read");
        drop(deaf);
        comes("the end of the others", || connections(&server) == 1);
    }
}

#[test]
fn a_client_that_does_not_take_its_replies_is_cut_off() {
    for builder in strategies() {
        let server = Server::with(builder.send_timeout(Some(BRIEF * 5)));
        let deaf = [one_that_never_reads(&server, 12 << 20), one_that_never_reads(&server, 16 << 20)];
        comes("their end", || server.orb.statistics().count(Event::ServerClosedForTimeout) == 2);
        comes("the end of the connections", || connections(&server) == 0);
        drop(deaf);
    }
}

#[test]
fn a_client_that_takes_its_replies_slowly_gets_all_of_them() {
    for builder in strategies() {
        let server = Server::with(builder.send_timeout(Some(Duration::from_secs(5))));
        let data = vec![7; 3 << 20];
        let request = request_to_echo(&server, &data);
        let mut stream = connect(&server);
        // What is sent is not read by the server before it has got rid of its replies.
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
fn replies_that_there_is_no_memory_for_are_exceptions() {
    for builder in strategies() {
        let server = Server::with(builder.max_server_memory(40 << 20).socket_queues(Some(1 << 16), Some(1 << 16)));
        let mut deaf: Vec<_> = (0..4).map(|_| one_that_never_reads(&server, 12 << 20)).collect();
        comes("a refusal", || server.orb.statistics().count(Event::RefusedMemory) > 0);
        let refused: Vec<_> = deaf
            .iter_mut()
            .map(|stream| read_message(stream).unwrap())
            .filter(|message| reply_of(message).0 == 2)
            .map(|message| String::from_utf8_lossy(&message).into_owned())
            .collect();
        assert!((1..4).contains(&refused.len()), "{refused:?}");
        // The reply is lost, or was not begun because there was no memory for the request.
        assert!(refused.iter().all(|text| text.contains("NO_RESOURCES") || text.contains("TRANSIENT")), "{refused:?}");
        drop(deaf);
        assert_eq!(server.client().add(1, 2).unwrap(), 3);
    }
}

#[test]
fn an_answer_that_comes_later_and_is_not_taken_keeps_nobody() {
    for builder in strategies() {
        let server = Server::with(builder);
        let (servant, deferred) = deferring();
        let object = server.poa.activate(servant).unwrap();
        let mut stream = connect(&server);
        stream.write_all(&request_to(&object, &[1])).unwrap();
        let call = deferred.recv_timeout(PATIENCE).unwrap();
        let data = vec![7; 16 << 20];
        // The thread that answers is the program's own, and goes on at once.
        let answered = in_background({
            let data = data.clone();
            move || call.answer(|call| call.reply(|out| out.octet_sequence(&data))).is_ok()
        });
        assert!(answered.recv_timeout(PATIENCE).unwrap());
        let message = read_message_slowly(&mut stream);
        assert_eq!(&reply_of(&message).1[4..], &data[..]);
        // Requests are read again.
        stream.write_all(&request_to_echo(&server, &[7])).unwrap();
        assert_eq!(reply_of(&read_message(&mut stream).unwrap()).0, 0);
    }
}
