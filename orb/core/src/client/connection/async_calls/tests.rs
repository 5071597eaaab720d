//! Requests that are appended, and written together by the reactor or by one of several threads. The tests take the place
//! of the reactor.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    time::Duration,
};

use spandrel_cdr::{ByteOrder, Encoder};
use spandrel_giop::{ReplyStatus, RequestTemplate, ResponseFlags, begin_reply};
use spandrel_ipc::{Interest, Pollable};
use spandrel_transport::{Address, Deadline, MemoryBudget, MessageReader, ReactorTransport, ReceiveBudget, Transport};

use super::*;
use crate::{
    client::{
        connection::Reply,
        urgency::{Urgency, UrgencyScope},
    },
    diagnostics::statistics::Statistics,
};

/// A transport that records each write and takes so many octets.
#[derive(Debug, Default)]
struct Recorder(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    writes: Vec<Vec<u8>>,
    /// The octets that are still taken; all if `None`.
    room: Option<usize>,
    input: VecDeque<u8>,
    /// Whether each message is answered as soon as it is written.
    answers: bool,
    has_ended: bool,
}

impl Recorder {
    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut recorded = self.0.lock();
        let mut octets: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        if let Some(room) = &mut recorded.room {
            octets.truncate(*room);
            *room -= octets.len();
        }
        if octets.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = octets.len();
        if recorded.answers {
            recorded.input.extend(ids(&octets).into_iter().flat_map(reply));
        }
        recorded.writes.push(octets);
        Ok(len)
    }

    /// The ids of the messages in each write so far.
    fn take_writes(&self) -> Vec<Vec<u32>> {
        let writes = std::mem::take(&mut self.0.lock().writes);
        writes.iter().map(|octets| ids(octets)).collect()
    }
}

/// The request ids of whole messages.
fn ids(mut octets: &[u8]) -> Vec<u32> {
    let u32_at = |octets: &[u8], at: usize| u32::from_ne_bytes(octets[at..at + 4].try_into().expect("four octets"));
    let mut ids = Vec::new();
    while !octets.is_empty() {
        ids.push(u32_at(octets, 12));
        octets = &octets[12 + u32_at(octets, 8) as usize..];
    }
    ids
}

impl Transport for Recorder {
    fn send(&self, octets: &[u8]) -> io::Result<usize> {
        self.write(&[IoSlice::new(octets)])
    }

    fn send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(parts)
    }

    fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        self.try_recv(room)
    }

    fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        let mut recorded = self.0.lock();
        if recorded.input.is_empty() && !recorded.has_ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = room.len().min(recorded.input.len());
        for (target, octet) in room.iter_mut().zip(recorded.input.drain(..len)) {
            *target = octet;
        }
        Ok(len)
    }

    fn set_recv_timeout(&self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn set_send_timeout(&self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn close_writer(&self) {}

    fn close(&self) {}
}

impl ReactorTransport for Recorder {
    fn try_send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(parts)
    }

    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }
}

/// A registration that records the events the reactor was told to wait for.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<Interest>>);

impl ReactorRegistration for Told {
    fn wait_for(&self, interest: Interest) {
        self.0.lock().push(interest);
    }

    fn mark_readable(&self) {}

    fn deregister(&self) {}
}

/// The receiver of a call.
#[derive(Debug, Default)]
struct Receiver {
    outcomes: Mutex<Vec<Result<bool, CallFailure>>>,
    /// Further calls, which the reply starts.
    next: Mutex<Option<(Arc<ClientConnection>, u32)>>,
}

impl ReplyReceiver for Receiver {
    fn complete(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        self.outcomes.lock().push(outcome.map(|reply| reply.is_some()));
        let next = self.next.lock().take();
        if let Some((connection, request_id)) = next {
            send(&connection, request_id, 0, UnsentKind::TwoWay);
        }
    }

    fn connection_opened(self: Arc<Self>, _outcome: Result<(), CallFailure>) {}
}

fn wire() -> Wire {
    Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2)
}

fn request(request_id: u32, octets: usize) -> Encoder<'static> {
    let mut out = Encoder::new(wire());
    let body = RequestTemplate::new(wire(), b"key").begin(&mut out, request_id, ResponseFlags::TWO_WAY, "call", &[]);
    out.octet_sequence(&vec![7; octets]).expect("it is short");
    body.end(&mut out).expect("it is short");
    out
}

fn reply(request_id: u32) -> Vec<u8> {
    let mut out = Encoder::new(wire());
    let body = begin_reply(&mut out, request_id, ReplyStatus::NoException, &[]);
    body.end(&mut out).expect("it is short");
    out.to_vec()
}

fn send(connection: &ClientConnection, request_id: u32, octets: usize, kind: UnsentKind) -> Arc<Receiver> {
    let receiver = Arc::<Receiver>::default();
    let bounds = WriteLimits { requests: 1024, octets: 1 << 20 };
    let sent =
        connection.send_async(request_id, &request(request_id, octets), kind, Arc::clone(&receiver) as _, bounds);
    assert!(sent.is_ok(), "{sent:?}");
    receiver
}

fn connect() -> (Arc<ClientConnection>, Arc<Recorder>, Arc<Told>) {
    let (transport, registration) = (Arc::<Recorder>::default(), Arc::<Told>::default());
    let reader = MessageReader::new(1 << 16, 16);
    let address = Arc::new(Address::new("pretend", ""));
    let over = Arc::clone(&transport) as Arc<dyn ReactorTransport>;
    let connection = Arc::new(ClientConnection::new(address, over, reader, Statistics::default()));
    let registered = Arc::clone(&registration) as Arc<dyn ReactorRegistration>;
    connection.register_with(|_| Ok(registered)).expect("it is free");
    (connection, transport, registration)
}

/// Sends so many two-ways; their ids are even.
fn send_two_ways(connection: &ClientConnection, count: u32) -> Vec<Arc<Receiver>> {
    (0..count).map(|call| send(connection, call * 2, 0, UnsentKind::TwoWay)).collect()
}

#[test]
fn with_two_calls_in_flight_requests_are_appended_and_leave_in_one_write() {
    let (connection, transport, registration) = connect();
    send_two_ways(&connection, 100);
    assert_eq!(transport.take_writes(), [vec![0], vec![2]], "few calls in flight are not delayed");
    assert_eq!(
        *registration.0.lock(),
        [Interest::INPUT, Interest::INPUT | Interest::OUTPUT],
        "the reactor is told once"
    );
    write_ready(&connection);
    assert_eq!(transport.take_writes(), [(2..100).map(|call| call * 2).collect::<Vec<_>>()]);
    assert_eq!(registration.0.lock().last(), Some(&Interest::INPUT));
}

#[test]
fn calls_that_replies_start_leave_in_one_write_at_the_end_of_the_turn() {
    let (connection, transport, registration) = connect();
    let receivers = send_two_ways(&connection, 50);
    write_ready(&connection);
    transport.take_writes();
    registration.0.lock().clear();
    for (call, receiver) in (0..40u32).zip(&receivers) {
        *receiver.next.lock() = Some((Arc::clone(&connection), 1000 + call * 2));
        transport.0.lock().input.extend(reply(call * 2));
    }
    assert!(serve_ready(&connection));
    assert!(receivers[..40].iter().all(|receiver| matches!(receiver.outcomes.lock()[..], [Ok(true)])));
    assert_eq!(transport.take_writes(), [(0..40).map(|call| 1000 + call * 2).collect::<Vec<_>>()]);
    assert_eq!(*registration.0.lock(), [], "the reactor need not be told");
}

#[test]
fn a_message_that_is_written_at_once_takes_the_appended_ones_along_in_order() {
    let (connection, transport, _registration) = connect();
    send_two_ways(&connection, 4);
    send(&connection, 8, 100_000, UnsentKind::TwoWay);
    assert_eq!(transport.take_writes(), [vec![0], vec![2], vec![4, 6], vec![8]], "a long one");
    send(&connection, 10, 0, UnsentKind::TwoWay);
    let one_way = send(&connection, 12, 0, UnsentKind::OneWay);
    assert_eq!(transport.take_writes(), [vec![10], vec![12]], "a one-way with a transport's guarantee");
    assert!(matches!(one_way.outcomes.lock()[..], [Ok(false)]));
    send(&connection, 14, 0, UnsentKind::TwoWay);
    assert!(connection.one_way(&request(16, 0), None).is_ok());
    assert_eq!(transport.take_writes(), [vec![14], vec![16]], "one of a thread that writes for itself");
}

#[test]
fn appended_requests_are_written_when_they_reach_their_bound() {
    let (connection, transport, _registration) = connect();
    for call in 0..30 {
        send(&connection, call * 2, 1000, UnsentKind::TwoWay);
    }
    let written: Vec<_> = transport.take_writes().into_iter().flatten().collect();
    assert!((16..28).contains(&written.len()), "{} of 30", written.len());
    assert!(written.is_sorted());
}

#[test]
fn an_appended_request_that_is_abandoned_is_not_sent_and_needs_no_cancel_request() {
    let (connection, transport, _registration) = connect();
    send_two_ways(&connection, 5);
    transport.take_writes();
    assert!(!connection.abandon(6, Some(wire()), false), "the peer cannot have it");
    write_ready(&connection);
    assert_eq!(transport.take_writes(), [vec![4, 8]]);
    assert!(connection.abandon(8, Some(wire()), false));
    assert_eq!(transport.take_writes(), [vec![8]], "a CancelRequest for what was written");
}

#[test]
fn the_end_of_the_connection_lets_appended_requests_be_repeated() {
    let (connection, transport, _registration) = connect();
    let receivers = send_two_ways(&connection, 6);
    let len = request(4, 0).position();
    transport.0.lock().room = Some(len * 2 - 1);
    write_ready(&connection);
    transport.0.lock().has_ended = true;
    assert!(!serve_ready(&connection));
    let may_repeat = |receiver: &Arc<Receiver>| match &receiver.outcomes.lock()[..] {
        [Err(failure)] => (failure.exception.completed(), failure.may_repeat()),
        outcomes => panic!("{outcomes:?}"),
    };
    let outcomes: Vec<_> = receivers.iter().map(may_repeat).collect();
    let (maybe, no) = ((CompletionStatus::Maybe, false), (CompletionStatus::No, true));
    assert_eq!(outcomes, [maybe, maybe, maybe, no, no, no], "three whole, one in part, two not at all");
}

#[test]
fn a_run_that_the_transport_takes_in_part_is_continued_in_order() {
    let (connection, transport, _registration) = connect();
    send_two_ways(&connection, 20);
    transport.take_writes();
    let len = request(4, 0).position();
    let mut written = Vec::new();
    for room in [1, len, len * 3 + 5, 0, len * 30] {
        transport.0.lock().room = Some(room);
        write_ready(&connection);
        written.extend(std::mem::take(&mut transport.0.lock().writes).concat());
    }
    assert_eq!(ids(&written), (2..20).map(|call| call * 2).collect::<Vec<_>>());
}

type Outcomes = Vec<(u32, Result<(), CallFailure>)>;

/// Calls of threads that begin while another thread writes: the first two of them wait for the write lock. Those with a
/// deadline end before the lock is free. Then there are replies to those in `replied`.
fn call_during_a_write(
    connection: &Arc<ClientConnection>,
    transport: &Recorder,
    calls: &[(u32, Urgency, Option<Deadline>)],
    replied: &[u32],
) -> Outcomes {
    let writer = connection.writer.lock();
    let (mut threads, mut outcomes) = (Vec::new(), Vec::new());
    for &(call, urgency, deadline) in calls {
        let other = Arc::clone(connection);
        let two_way = move || {
            let _urgency = UrgencyScope::enter(urgency);
            other.two_way(call, &request(call, 8), deadline.as_ref()).map(drop)
        };
        let thread = std::thread::spawn(two_way);
        if deadline.is_some() {
            outcomes.push((call, thread.join().expect("no panic")));
            continue;
        }
        threads.push((call, thread));
        while connection.pending.lock().half.pending() < threads.len() {
            std::thread::yield_now();
        }
    }
    replied.iter().for_each(|call| transport.0.lock().input.extend(reply(*call)));
    drop(writer);
    outcomes.extend(threads.into_iter().map(|(call, thread)| (call, thread.join().expect("no panic"))));
    outcomes
}

#[test]
fn requests_of_threads_that_begin_during_a_write_leave_with_the_next_one() {
    let (connection, transport, _registration) = connect();
    let calls = [0, 2, 4, 6, 8, 10, 12];
    for _ in 0..2 {
        let outcomes = call_during_a_write(&connection, &transport, &calls.map(|call| (call, 0, None)), &calls);
        assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()), "{outcomes:?}");
        let writes = transport.take_writes();
        let [first, second] = &writes[..] else { panic!("{writes:?}") };
        assert_eq!((&first[..5], second.len()), (&[4, 6, 8, 10, 12][..], 1), "its own request comes last");
    }
    transport.0.lock().input.extend(reply(14));
    connection.two_way(14, &request(14, 8), None).expect("it has a reply");
    assert_eq!(transport.take_writes(), [[14]], "one by itself");
    assert!(connection.pending.lock().half.is_free());
}

#[test]
fn only_threads_whose_requests_were_written_to_the_last_octet_get_replies() {
    let calls = [0, 2, 4, 6, 8, 10];
    let len = request(0, 8).position();
    for room in [0, 5, len, 2 * len + 5, 4 * len, 4 * len + 5] {
        let (connection, transport, _registration) = connect();
        transport.0.lock().room = Some(room);
        let sent = &calls[2..][..room / len];
        let outcomes = call_during_a_write(&connection, &transport, &calls.map(|call| (call, 0, None)), sent);
        for (call, outcome) in outcomes {
            match outcome {
                Ok(()) => assert!(sent.contains(&call), "{room}: {call}"),
                Err(failure) => {
                    assert!(!sent.contains(&call), "{room}: {call} fails with {}", failure.exception);
                    assert_eq!(failure.exception.completed(), CompletionStatus::No, "{room}: {call}");
                }
            }
        }
        let written = transport.0.lock().writes.concat();
        assert_eq!((written.len(), ids(&written[..sent.len() * len])), (room, sent.to_vec()));
        let is_cut = !connection.writer.lock().half.may_write();
        assert!(is_cut || room % len == 0, "the peer would take further octets for the rest");
    }
}

#[test]
fn a_request_that_is_appended_until_its_deadline_is_not_written() {
    let (connection, transport, _registration) = connect();
    let late = Some(Deadline::after(Duration::from_millis(20)));
    let outcomes = call_during_a_write(&connection, &transport, &[(0, 0, None), (2, 0, None), (4, 0, late)], &[]);
    let failures: Vec<_> = outcomes.into_iter().map(|(call, outcome)| (call, outcome.expect_err("no reply"))).collect();
    // The first ones find that the connection is not used further.
    assert!(failures.iter().all(|(_, failure)| failure.exception.completed() == CompletionStatus::No), "{failures:?}");
    assert_eq!(failures.iter().map(|(_, failure)| failure.may_repeat()).collect::<Vec<_>>(), [false, true, true]);
    assert!(transport.take_writes().is_empty());
}

#[test]
fn the_most_urgent_requests_of_threads_that_share_a_connection_leave_first() {
    let (connection, transport, _registration) = connect();
    let urgencies = [(0, 1), (2, 1), (4, 0), (6, 5), (8, 1), (10, 5)];
    let calls = urgencies.map(|(call, urgency)| (call, urgency, None));
    transport.0.lock().answers = true;
    let outcomes = call_during_a_write(&connection, &transport, &calls, &[]);
    assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()), "{outcomes:?}");
    let writes = transport.take_writes();
    let [first, second, last] = &writes[..] else { panic!("{writes:?}") };
    // Either of the threads that wait for the write lock gets it first; its own request is more urgent than the last.
    assert_eq!((&first[..3], first.len(), second.len()), (&[6, 10, 8][..], 4, 1), "{writes:?}");
    assert_eq!(*last, [4]);
}

#[test]
fn the_most_urgent_queued_request_is_written_first_unless_another_has_begun() {
    let (connection, transport, _registration) = connect();
    send_two_ways(&connection, 2);
    transport.take_writes();
    let send_urgent = |call, urgency, kind| {
        let _urgency = UrgencyScope::enter(urgency);
        send(&connection, call, 0, kind);
    };
    transport.0.lock().room = Some(0);
    for (call, urgency) in [(4, 0), (6, 0), (8, 7), (10, 3)] {
        send_urgent(call, urgency, UnsentKind::TwoWay);
    }
    send_urgent(12, 3, UnsentKind::OneWay);
    transport.0.lock().room = Some(request(8, 0).position() + 3);
    write_ready(&connection);
    send_urgent(14, 9, UnsentKind::TwoWay);
    transport.0.lock().room = None;
    while connection.has_queued() {
        write_ready(&connection);
    }
    assert_eq!(ids(&transport.0.lock().writes.concat()), [8, 10, 14, 12, 4, 6]);
    // One that is abandoned has no CancelRequest, and one that was written has it afterwards.
    transport.0.lock().writes.clear();
    transport.0.lock().room = Some(0);
    send_urgent(16, 2, UnsentKind::TwoWay);
    send_urgent(18, 5, UnsentKind::TwoWay);
    assert!(!connection.abandon(16, Some(wire()), false));
    assert!(connection.abandon(14, Some(wire()), false));
    transport.0.lock().room = None;
    write_ready(&connection);
    assert_eq!(ids(&transport.0.lock().writes.concat()), [18, 14]);
}

#[test]
fn the_most_urgent_reply_leaves_first_also_before_requests() {
    let (connection, transport, _registration) = connect();
    let budget = ReceiveBudget::new(1 << 20, Arc::new(MemoryBudget::new(1 << 20)));
    send_two_ways(&connection, 2);
    transport.take_writes();
    transport.0.lock().room = Some(0);
    let answer = |id, urgency| {
        let reply = request(id, 0);
        connection.answer(&reply, Charge::new(&budget, reply.position()).unwrap(), urgency);
    };
    answer(21, 0);
    answer(23, 7);
    {
        let _urgency = UrgencyScope::enter(5);
        send(&connection, 4, 0, UnsentKind::TwoWay);
    }
    answer(25, 5);
    answer(27, 9);
    transport.0.lock().room = None;
    while connection.has_queued() {
        write_ready(&connection);
    }
    assert_eq!(ids(&transport.0.lock().writes.concat()), [27, 23, 4, 25, 21]);
}
