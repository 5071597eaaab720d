//! Limits of servers on requests, memory, queues and connections, and their answers beyond a limit.

use std::{cell::RefCell, io::Write, net::TcpStream, time::Duration};

use spandrel::{
    CompletionStatus, Endpoint, Orb, OrbBuilder, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    diagnostics::statistics::{Event, Level},
    options::{Concurrency, QueueOverflow},
    types::IiopProfile,
};
use spandrel_cdr::{Encoder, Limits, Wire};
use spandrel_giop::{Message, ReplyHeader, ReplyStatus, RequestTemplate, ResponseFlags, SystemException, ids};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, block_on, in_background, kind_and_completion, read_message, wait_until},
};

const STRATEGIES: [Concurrency; 5] = [
    Concurrency::ThreadPerConnection { limit: 64 },
    Concurrency::LeaderFollowers { threads: None },
    Concurrency::LeaderFollowers { threads: Some(2) },
    Concurrency::Reactive,
    Concurrency::ThreadPool { threads: 2, queue: 8 },
];

fn strategies() -> impl Iterator<Item = OrbBuilder> {
    STRATEGIES.into_iter().map(|strategy| Orb::builder().concurrency(strategy))
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// An encoded request.
fn request(server: &Server, id: u32, response: ResponseFlags, data: &[u8]) -> Vec<u8> {
    let operation = if response.is_expected() { "echo_octets" } else { "note" };
    request_for(server, id, response, operation, |out| out.octet_sequence(data).unwrap())
}

/// An encoded request for an operation.
fn request_for(
    server: &Server,
    id: u32,
    response: ResponseFlags,
    operation: &str,
    arguments: impl FnOnce(&mut Encoder<'_>),
) -> Vec<u8> {
    let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let wire = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
    let template = RequestTemplate::new(wire, &profile.object_key);
    let mut out = Encoder::new(wire);
    let body = template.begin(&mut out, id, response, operation, &[]);
    arguments(&mut out);
    body.end(&mut out).unwrap();
    out.to_vec()
}

/// A fragment of 8 KiB that is not the last of its request.
fn fragment_of(id: u32) -> Vec<u8> {
    let mut fragment = b"GIOP\x01\x02\x03\x07".to_vec();
    fragment.extend((4_u32 + 8 * 1024).to_le_bytes());
    fragment.extend(id.to_le_bytes());
    fragment.extend([7; 8 * 1024]);
    fragment
}

/// Reads a Reply; returns its request id and its exception.
fn read_reply(stream: &mut TcpStream) -> (u32, Option<SystemException>) {
    let message = Message::whole(read_message(stream).unwrap().as_slice().into()).unwrap();
    let mut input = message.decoder(Limits::default());
    let header = ReplyHeader::decode(&mut input).unwrap();
    let exception = (header.status == ReplyStatus::SystemException).then(|| {
        let id = input.str().unwrap();
        SystemException::decode(&id, &mut input).unwrap()
    });
    (header.request_id, exception)
}

#[test]
fn a_request_beyond_max_message_is_refused_and_the_connection_stays_open() {
    for builder in strategies() {
        let server = Server::with(builder.max_message(100_000));
        let mut stream = connect(&server);
        // Requests of several lengths, sent in arbitrary parts, one of them without a response.
        let mut sent = request(&server, 1, ResponseFlags::TWO_WAY, &[7; 1000]);
        sent.extend(request(&server, 2, ResponseFlags::TWO_WAY, &[7; 100_000]));
        sent.extend(request(&server, 3, ResponseFlags::NONE, &[7; 1_000_000]));
        sent.extend(request(&server, 4, ResponseFlags::TWO_WAY, &[7; 1000]));
        for part in [&sent[..1], &sent[1..1100], &sent[1100..1110], &sent[1110..]] {
            stream.write_all(part).unwrap();
        }
        let mut answers: Vec<_> = (0..3).map(|_| read_reply(&mut stream)).collect();
        answers.sort_by_key(|(id, _)| *id);
        assert_eq!((answers[0].0, answers[0].1.is_none()), (1, true));
        assert_eq!((answers[2].0, answers[2].1.is_none()), (4, true));
        let exception = answers[1].1.as_ref().unwrap();
        assert_eq!(kind_and_completion(exception), (SystemExceptionKind::ImpLimit, CompletionStatus::No));
        assert_eq!(exception.minor(), ids::IMP_LIMIT_MESSAGE);
        assert_eq!(server.orb.statistics().count(Event::RefusedTooLong), 2);
    }
}

#[test]
fn a_client_receives_imp_limit_for_a_request_beyond_max_message() {
    for builder in strategies() {
        let server = Server::with(builder.max_message(1 << 20));
        let target = server.client();
        let error = target.echo_octets(&vec![1; 3 << 20]).unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::ImpLimit, CompletionStatus::No));
        assert_eq!(target.add(1, 2).unwrap(), 3);
        assert_eq!(server.orb.statistics().count(Event::ConnectionAccepted), 1, "on the same connection");
    }
}

#[test]
fn an_excessive_message_length_closes_the_connection() {
    for builder in strategies() {
        let server = Server::with(builder.max_message(10_000));
        let mut stream = connect(&server);
        stream.write_all(b"GIOP\x01\x02\x01\x00\xf0\xff\xff\xff\x01\0\0\0\x03").unwrap();
        let answer = read_message(&mut stream).unwrap();
        assert_eq!(answer[7], 6, "MessageError");
        assert!(read_message(&mut stream).is_err());
    }
}

#[test]
fn partially_read_requests_stay_within_max_server_memory() {
    const MEMORY: usize = 3 << 20;
    for builder in strategies() {
        let server = Server::with(builder.max_server_memory(MEMORY));
        let whole = request(&server, 1, ResponseFlags::TWO_WAY, &vec![7; 2 << 20]);
        let (begun, rest) = whole.split_at((1 << 20) + 100_000);
        let small = connect(&server);
        wait_until("a request that is refused while another is read", || {
            // Each request takes 2 MiB of 3. Which of the two is refused depends on timing.
            let (mut first, mut second) = (connect(&server), connect(&server));
            first.write_all(begun).unwrap();
            second.write_all(&whole).unwrap();
            let refused = read_reply(&mut second).1;
            (&small).write_all(&request(&server, 5, ResponseFlags::TWO_WAY, &[7; 100])).unwrap();
            assert!(read_reply(&mut small.try_clone().unwrap()).1.is_none(), "a small request is served");
            first.write_all(rest).unwrap();
            let other = read_reply(&mut first).1;
            // The memory of both is available again.
            let first = RefCell::new(first);
            wait_until("memory", || {
                first.borrow_mut().write_all(&whole).unwrap();
                read_reply(&mut first.borrow_mut()).1.is_none()
            });
            refused.is_some_and(|exception| exception.kind() == SystemExceptionKind::Transient) && other.is_none()
        });
        assert!(server.orb.statistics().count(Event::RefusedMemory) > 0);
    }
}

#[test]
fn unfinished_fragments_stay_within_max_connection_memory() {
    for builder in strategies() {
        let server = Server::with(builder.max_connection_memory(1 << 20));
        let mut stream = connect(&server);
        let mut begun = request(&server, 9, ResponseFlags::TWO_WAY, &[7; 1000]);
        begun[6] |= 2;
        let fragment = fragment_of(9);
        let mut count = 0;
        if stream.write_all(&begun).is_ok() {
            while count < 10_000 && stream.write_all(&fragment).is_ok() {
                count += 1;
            }
        }
        assert!(count < 10_000, "the connection is never closed");
        wait_until("the refusal", || server.orb.statistics().count(Event::RefusedMemory) == 1);
        assert_eq!(server.client().add(1, 2).unwrap(), 3);
    }
}

/// CloseConnection says that no request without a reply was executed, so it may not overtake a reply.
#[test]
fn close_connection_for_lack_of_memory_follows_the_replies_of_running_requests() {
    for strategy in [
        Concurrency::ThreadPerConnection { limit: 64 },
        Concurrency::LeaderFollowers { threads: None },
        Concurrency::ThreadPool { threads: 2, queue: 8 },
    ] {
        let server = Server::with(Orb::builder().concurrency(strategy).max_connection_memory(1 << 20));
        let mut stream = connect(&server);
        stream.write_all(&request_for(&server, 7, ResponseFlags::TWO_WAY, "hold", |out| out.u32(1))).unwrap();
        server.probe.await_held(1);
        let mut begun = request(&server, 9, ResponseFlags::TWO_WAY, &[7; 1000]);
        begun[6] |= 2;
        stream.write_all(&begun).unwrap();
        for _ in 0..(1 << 20) / 8192 {
            stream.write_all(&fragment_of(9)).unwrap();
        }
        wait_until("the refusal", || server.orb.statistics().count(Event::RefusedMemory) == 1);
        server.probe.open(1);
        assert!(matches!(read_reply(&mut stream), (7, None)), "{strategy:?}");
        assert_eq!(read_message(&mut stream).unwrap()[7], 5, "CloseConnection, {strategy:?}");
    }
}

#[test]
fn a_full_queue_suspends_reading_or_refuses_requests() {
    for overflow in [QueueOverflow::Wait, QueueOverflow::Refuse] {
        let builder =
            Orb::builder().concurrency(Concurrency::ThreadPool { threads: 1, queue: 4 }).queue_overflow(overflow);
        let server = Server::with(builder);
        let holding = server.client();
        let held = in_background(move || holding.hold(1));
        server.probe.await_held(1);
        let mut stream = connect(&server);
        for id in 0..10 {
            stream.write_all(&request(&server, id, ResponseFlags::TWO_WAY, &[7; 10])).unwrap();
        }
        let refused: Vec<u32> = if overflow == QueueOverflow::Refuse {
            let refused = (0..6).map(|_| read_reply(&mut stream));
            refused.map(|(id, exception)| exception.map(|_| id).unwrap()).collect()
        } else {
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            read_message(&mut stream).unwrap_err();
            stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            Vec::new()
        };
        wait_until("the queue is full", || server.orb.statistics().level(Level::RequestsQueued) == 4);
        server.probe.open(1);
        held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
        let mut answered: Vec<u32> = (refused.len()..10).map(|_| read_reply(&mut stream).0).collect();
        answered.extend(&refused);
        answered.sort_unstable();
        assert_eq!(answered, (0..10).collect::<Vec<_>>());
        assert_eq!(server.orb.statistics().count(Event::RefusedQueueFull), refused.len() as u64);
        assert_eq!(server.orb.statistics().level(Level::RequestsQueued), 0);
    }
}

// docs/concurrency.md: there is no other thread to read on.
#[test]
fn a_single_thread_runs_the_requests_of_one_connection_one_after_the_other() {
    for concurrency in [Concurrency::LeaderFollowers { threads: Some(1) }, Concurrency::Reactive] {
        let server = Server::with(Orb::builder().concurrency(concurrency));
        let mut stream = connect(&server);
        let hold = request_for(&server, 1, ResponseFlags::TWO_WAY, "hold", |out| out.u32(1));
        stream.write_all(&hold).unwrap();
        server.probe.await_held(1);
        stream.write_all(&request(&server, 2, ResponseFlags::TWO_WAY, &[7; 10])).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        read_message(&mut stream).unwrap_err();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        server.probe.open(1);
        assert_eq!([read_reply(&mut stream).0, read_reply(&mut stream).0], [1, 2], "{concurrency:?}");
    }
}

#[test]
fn requests_of_a_bidirectional_connection_wait_for_room_or_are_refused() {
    const CALLS: i32 = 40;
    for (queue, running) in [(4, 64), (64, 3)] {
        for overflow in [QueueOverflow::Wait, QueueOverflow::Refuse] {
            let server = Server::with(
                Orb::builder()
                    .concurrency(Concurrency::ThreadPool { threads: 1, queue })
                    .max_requests_per_connection(running)
                    .queue_overflow(overflow)
                    .bidirectional(true),
            );
            let client =
                Server::with(Orb::builder().bidirectional(true).listen(Endpoint::nowhere()).connections_per_peer(1));
            let target = Target::unchecked_narrow(&client.orb.string_to_object(&server.ior()).unwrap());
            target.ping().unwrap();
            let holding = server.client();
            let held = in_background(move || holding.hold(1));
            server.probe.await_held(1);
            let calls: Vec<_> = (0..CALLS).map(|number| target.add_async(number, 1)).collect();
            let room = queue.min(running as usize) as u64;
            let refused = if overflow == QueueOverflow::Refuse { CALLS as u64 - room } else { 0 };
            wait_until("the overflow", || {
                let statistics = server.orb.statistics();
                statistics.level(Level::RequestsQueued) == room as i64
                    && statistics.count(Event::RefusedQueueFull) == refused
            });
            server.probe.open(1);
            held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
            let results: Vec<_> = calls.into_iter().map(block_on).collect();
            let succeeded = results
                .iter()
                .enumerate()
                .filter(|(number, sum)| sum.as_ref().is_ok_and(|sum| *sum == *number as i32 + 1));
            assert_eq!(succeeded.count() as u64, CALLS as u64 - refused, "{overflow:?}, {queue}, {running}");
            let is_refusal = |error: &SystemException| error.kind() == SystemExceptionKind::Transient;
            assert!(results.iter().filter_map(|sum| sum.as_ref().err()).all(is_refusal), "{results:?}");
        }
    }
}

/// Whether a connection was admitted: its request is answered.
fn is_served(server: &Server, stream: &mut TcpStream) -> bool {
    let sent = stream.write_all(&request(server, 1, ResponseFlags::TWO_WAY, &[7; 10]));
    sent.is_ok() && read_message(stream).is_ok_and(|message| message[7] == 1)
}

#[test]
fn connections_beyond_a_limit_get_close_connection() {
    for (builder, event) in [
        (Orb::builder().max_connections(2), Event::RefusedForLimit),
        (Orb::builder().max_connections_per_client(Some(2)), Event::RefusedForAddress),
        (Orb::builder().max_connection_rate(Some(2)), Event::RefusedForLimit),
    ] {
        let server = Server::with(builder);
        let mut admitted = [connect(&server), connect(&server)];
        assert!(admitted.iter_mut().all(|stream| is_served(&server, stream)));
        let mut refused = connect(&server);
        assert_eq!(read_message(&mut refused).unwrap()[7], 5, "CloseConnection");
        assert_eq!(server.orb.statistics().count(event), 1);
        assert!(admitted.iter_mut().all(|stream| is_served(&server, stream)));
    }
}

#[test]
fn a_host_may_reconnect_after_its_connections_have_ended() {
    let server = Server::with(Orb::builder().max_connections_per_client(Some(1)));
    for _ in 0..5 {
        wait_until("an admitted connection", || is_served(&server, &mut connect(&server)));
    }
}

#[test]
fn with_evict_idle_an_idle_connection_is_closed_for_a_new_one() {
    for builder in strategies() {
        let server = Server::with(builder.max_connections(2).evict_idle(true));
        let mut idle = [connect(&server), connect(&server)];
        assert!(idle.iter_mut().all(|stream| is_served(&server, stream)));
        wait_until("an admitted connection", || is_served(&server, &mut connect(&server)));
        wait_until("the end of an idle connection", || server.orb.statistics().count(Event::ServerClosedForLimit) > 0);
    }
}
