//! Two sides of a connection against each other, without sockets: random orders of calls, partial writes,
//! deliveries, cancellations and ends, cut at any octet. Each caller's outcome is compared with the requests
//! that the other side executed.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::{
    Abandoned, CallFailure, CancelledRequests, ClientHalf, ConnectionEnd, EndCause, Incoming, ReadSide, ReaderWord,
    RequestKey, Role, SendHalf, ServerHalf, ServerPhase, WritePhase, Written, classify,
};
use proptest::{collection::vec, prelude::*, test_runner::Config};
use spandrel_cdr::{ByteOrder, GiopVersion};
use spandrel_giop::{CompletionStatus, HEADER_LEN, MessageHeader, MessageType, SystemException, bare_message};

/// The outcome that a caller is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    /// A reply.
    Reply,
    /// The transport has taken a one-way.
    Written,
    /// No reply, and possibly another attempt.
    Failed { completed: CompletionStatus, repeats: bool },
}

/// A message that is still to be written, or the rest of one.
struct Unsent {
    octets: Vec<u8>,
    at: usize,
    /// The request, and whether it is a two-way.
    request: Option<(u32, bool)>,
}

/// One side of a connection.
struct Side {
    role: Role,
    next_id: u32,
    calls: ClientHalf<u32>,
    send: SendHalf,
    queue: VecDeque<Unsent>,
    /// Octets that the transport has taken, and the end of the stream behind them.
    in_flight: VecDeque<u8>,
    is_shut: bool,
    /// Octets that were received, less than a message.
    received: Vec<u8>,
    /// Nothing is read any more.
    is_read_to_end: bool,
    /// Requests that run; no further one is accepted once the side is closing.
    running: Vec<(RequestKey, bool)>,
    requests: ServerHalf<u32>,
    /// The requests that a CancelRequest was for, while they ran.
    cancelled: Vec<u32>,
    word: ReaderWord,
    /// How far the end has come, for requests of the peer.
    phase: ServerPhase,
    /// The requests of the peer that were executed, in order.
    executed: Vec<u32>,
    outcomes: BTreeMap<u32, Outcome>,
    /// Requests in the order in which they were begun.
    begun: Vec<u32>,
}

fn message(message_type: MessageType, request_id: Option<(u32, bool)>, body: usize) -> Vec<u8> {
    let mut octets = bare_message(GiopVersion::V1_2, ByteOrder::Big, message_type).to_vec();
    if let Some((id, is_two_way)) = request_id {
        octets.extend(id.to_be_bytes());
        octets.push(is_two_way.into());
        octets.resize(octets.len() + body, 0);
    }
    let size = (octets.len() - HEADER_LEN) as u32;
    octets[8..HEADER_LEN].copy_from_slice(&size.to_be_bytes());
    octets
}

fn comm_failure() -> SystemException {
    SystemException::comm_failure(0, CompletionStatus::Maybe)
}

impl Side {
    fn new(role: Role) -> Self {
        let is_client = matches!(role, Role::Client | Role::BidirectionalClient);
        Self {
            role,
            next_id: if is_client { 0 } else { 1 },
            calls: ClientHalf::default(),
            send: SendHalf::default(),
            queue: VecDeque::new(),
            in_flight: VecDeque::new(),
            is_shut: false,
            received: Vec::new(),
            is_read_to_end: false,
            running: Vec::new(),
            requests: ServerHalf::default(),
            cancelled: Vec::new(),
            word: ReaderWord::of_own_thread(),
            phase: ServerPhase::Open,
            executed: Vec::new(),
            outcomes: BTreeMap::new(),
            begun: Vec::new(),
        }
    }

    fn tell(&mut self, call: u32, outcome: Outcome) {
        let before = self.outcomes.insert(call, outcome);
        assert_eq!(before, None, "call {call} was told twice, the second time {outcome:?}");
    }

    fn fail(&mut self, call: u32, failure: &CallFailure) {
        let completed = failure.exception.completed();
        self.tell(call, Outcome::Failed { completed, repeats: failure.may_repeat() });
    }

    fn may_call(&self) -> bool {
        self.role != Role::Server
    }

    /// Begins a call; the transport takes at most `room` octets at once. With others in flight, a two-way is appended, and
    /// written by a later step.
    fn invoke(&mut self, is_two_way: bool, body: usize, room: usize) {
        let id = self.next_id;
        self.next_id += 2;
        self.begun.push(id);
        if let Err(failure) = self.calls.check_open() {
            return self.fail(id, &failure);
        }
        let others = self.calls.pending();
        self.calls.begin(id, id).expect("it is open");
        if !self.send.may_write() {
            let Abandoned::NotSent(Some(_)) = self.calls.abandon(id, true) else { panic!("it was begun") };
            let completed = CompletionStatus::No;
            return self.tell(id, Outcome::Failed { completed, repeats: true });
        }
        let request = Some((id, is_two_way));
        self.calls.set_written(id, Written::Partly);
        let octets = message(MessageType::Request, request, body);
        let appended = self.queue.iter().map(|unsent| unsent.octets.len() - unsent.at).sum();
        let is_appended = is_two_way && self.send.appends(others, appended, octets.len());
        self.queue.push_back(Unsent { octets, at: 0, request });
        if !is_appended {
            self.write(room);
        }
    }

    /// Lets the transport take at most so many octets of those that wait.
    fn write(&mut self, room: usize) {
        let mut room = room;
        while room > 0 && self.send.phase(!self.queue.is_empty()) == WritePhase::Partial {
            let next = self.queue.front_mut().expect("something waits");
            let count = room.min(next.octets.len() - next.at);
            self.in_flight.extend(&next.octets[next.at..next.at + count]);
            next.at += count;
            room -= count;
            if next.at < next.octets.len() {
                break;
            }
            let request = self.queue.pop_front().and_then(|message| message.request);
            if let Some((id, is_two_way)) = request {
                self.calls.set_written(id, Written::Whole);
                if !is_two_way && let Some(call) = self.calls.remove(id) {
                    self.tell(call, Outcome::Written);
                }
            }
        }
        self.close_when_idle();
    }

    /// Writes a message that no call waits for, after those that wait.
    fn write_control(&mut self, octets: Vec<u8>) {
        if self.send.may_write() {
            self.queue.push_back(Unsent { octets, at: 0, request: None });
        }
    }

    /// Stops waiting for one of the calls.
    fn abandon(&mut self, nth: usize) {
        let pending: Vec<u32> = self.calls.waiters().copied().collect();
        let Some(&id) = pending.get(nth % pending.len().max(1)) else { return };
        let untouched = |unsent: &Unsent| unsent.at == 0 && unsent.request.is_some_and(|(request, _)| request == id);
        let queued = self.queue.iter().position(untouched);
        queued.and_then(|at| self.queue.remove(at));
        match self.calls.abandon(id, queued.is_some()) {
            Abandoned::NotSent(call) => {
                let call = call.expect("it waited");
                self.tell(call, Outcome::Failed { completed: CompletionStatus::No, repeats: false });
            }
            Abandoned::InDoubt(call) => {
                self.tell(call, Outcome::Failed { completed: CompletionStatus::Maybe, repeats: false });
                self.write_control(message(MessageType::CancelRequest, Some((id, false)), 0));
            }
            Abandoned::Unknown => panic!("it waited"),
        }
        self.close_when_idle();
    }

    /// Fails to write: this side will not finish the message that it has begun.
    fn fail_to_write(&mut self) {
        self.send.cut();
        let lost: HashSet<u32> = self.queue.drain(..).filter_map(|unsent| unsent.request).map(|(id, _)| id).collect();
        let (calls, loss) = self.calls.fail_unwritten(|id| lost.contains(&id), |_| false);
        let failure = CallFailure::of(loss, comm_failure());
        calls.into_iter().for_each(|call| self.fail(call, &failure));
        self.is_shut = true;
    }

    /// Writes what waits, and closes the stream in this direction.
    fn half_close(&mut self) {
        self.write(usize::MAX);
        self.send.shut();
        self.is_shut = true;
    }

    /// Takes octets of the peer, and handles the messages that are whole.
    fn receive(&mut self, octets: impl IntoIterator<Item = u8>) {
        self.received.extend(octets);
        while !self.is_read_to_end {
            let Some(header) =
                self.received.first_chunk().map(|octets| MessageHeader::parse(octets).expect("a header"))
            else {
                return;
            };
            if self.received.len() < header.total_len() {
                return;
            }
            let octets: Vec<u8> = self.received.drain(..header.total_len()).collect();
            self.handle(&header, &octets[HEADER_LEN..]);
        }
    }

    fn handle(&mut self, header: &MessageHeader, body: &[u8]) {
        let id = || u32::from_be_bytes(*body.first_chunk().expect("an id"));
        match classify(header, self.role).expect("the peer keeps to the protocol") {
            // The CloseConnection that was or will be sent says that it was not acted on.
            Incoming::Request if self.word.begin_upcall().is_closing() => {}
            Incoming::Request => {
                // Another thread reads on at once.
                let upcall = self.word.begin_upcall();
                self.word = upcall.take_over(upcall).expect("no thread came between");
                self.executed.push(id());
                let is_two_way = body[4] != 0;
                let key = RequestKey { request_id: id(), is_one_way: !is_two_way, upcall: upcall.number() };
                assert!(
                    !self.requests.register_cancellation(key, id()),
                    "request {} was cancelled before it came",
                    id()
                );
                self.running.push((key, is_two_way));
            }
            Incoming::LocateRequest => panic!("none was sent"),
            // Advisory: the reply is sent nevertheless.
            Incoming::CancelRequest => {
                let next_upcall = (!self.running.is_empty()).then(|| self.word.number().next());
                self.cancelled.extend(self.requests.cancel(CancelledRequests::Request(id()), next_upcall));
            }
            Incoming::Reply => {
                if let Some(entry) = self.calls.reply(id()) {
                    let call = entry.remove();
                    self.tell(call, Outcome::Reply);
                }
            }
            Incoming::CloseConnection => self.end(EndCause::CloseConnection),
            Incoming::MessageError => self.end(EndCause::MessageError),
        }
    }

    /// Ends a running request, with a reply if it is a two-way.
    fn finish(&mut self, nth: usize) {
        if self.running.is_empty() {
            return;
        }
        let (key, is_two_way) = self.running.swap_remove(nth % self.running.len());
        assert_eq!(self.requests.end_upcall(key.upcall), Some(key.request_id));
        if is_two_way {
            self.write_control(message(MessageType::Reply, Some((key.request_id, false)), 0));
        }
        self.close_when_idle();
    }

    /// Accepts no further request, and sends CloseConnection after the last reply.
    fn begin_close(&mut self) {
        self.word = self.word.close();
        self.close_when_idle();
    }

    fn close_when_idle(&mut self) {
        // Replies to requests of the side that has opened the connection are awaited.
        let awaits_replies = self.role != Role::Server && self.calls.pending() > 0;
        if !self.running.is_empty() || awaits_replies {
            return;
        }
        if self.word.is_closing()
            && let Some(close_connection) = self.send.close(!self.queue.is_empty())
        {
            self.phase = self.phase.send_close().expect("it is sent once, before the stream is closed");
            self.in_flight.extend(message(close_connection, None, 0));
            self.is_shut = true;
        }
        if self.queue.is_empty()
            && let Some(shut) = self.phase.shut()
        {
            self.phase = shut;
            self.send.shut();
            self.is_shut = true;
        }
    }

    /// Sends MessageError and nothing else, as if a message could not be understood.
    fn report_error(&mut self) {
        if let Some(message_error) = self.send.report_error(!self.queue.is_empty()) {
            self.in_flight.extend(message(message_error, None, 0));
            self.is_shut = true;
        }
    }

    /// No message will come any more. The transport is closed: messages that wait are not written.
    fn end(&mut self, cause: EndCause) {
        self.end_reading();
        self.is_shut = true;
        self.send.cut();
        let told = self.calls.end(ConnectionEnd { cause, exception: comm_failure() }, |_| false);
        told.into_iter().for_each(|(call, failure)| self.fail(call, &failure));
        self.queue.clear();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Invoke {
        side: usize,
        is_two_way: bool,
        body: usize,
        room: usize,
    },
    Write {
        side: usize,
        room: usize,
    },
    Abandon {
        side: usize,
        nth: usize,
    },
    FailToWrite {
        side: usize,
    },
    Deliver {
        to: usize,
        count: usize,
    },
    Finish {
        side: usize,
        nth: usize,
    },
    BeginClose {
        side: usize,
    },
    ReportError {
        side: usize,
    },
    HalfClose {
        side: usize,
    },
    /// The connection is lost, with all but so many octets of each direction.
    Cut {
        delivered: [usize; 2],
    },
}

fn step() -> impl Strategy<Value = Step> {
    let side = 0..2_usize;
    let room = prop_oneof![Just(1000_usize), 0..40_usize];
    prop_oneof![
        12 => (side.clone(), any::<bool>(), 0..20_usize, room.clone())
            .prop_map(|(side, is_two_way, body, room)| Step::Invoke { side, is_two_way, body, room }),
        6 => (side.clone(), room).prop_map(|(side, room)| Step::Write { side, room }),
        3 => (side.clone(), any::<usize>()).prop_map(|(side, nth)| Step::Abandon { side, nth }),
        1 => side.clone().prop_map(|side| Step::FailToWrite { side }),
        12 => (side.clone(), prop_oneof![Just(1000_usize), 0..60_usize])
            .prop_map(|(to, count)| Step::Deliver { to, count }),
        8 => (side.clone(), any::<usize>()).prop_map(|(side, nth)| Step::Finish { side, nth }),
        1 => side.clone().prop_map(|side| Step::BeginClose { side }),
        1 => side.clone().prop_map(|side| Step::ReportError { side }),
        1 => side.prop_map(|side| Step::HalfClose { side }),
        1 => [0..60_usize, 0..60_usize].prop_map(|delivered| Step::Cut { delivered }),
    ]
}

/// Two sides and the octets between them.
struct Connection([Side; 2]);

impl Connection {
    fn new(is_bidirectional: bool) -> Self {
        let roles = match is_bidirectional {
            true => [Role::BidirectionalClient, Role::BidirectionalServer],
            false => [Role::Client, Role::Server],
        };
        Self(roles.map(Side::new))
    }

    fn deliver(&mut self, to: usize, count: usize) {
        let from = &mut self.0[1 - to];
        let octets: Vec<u8> = from.in_flight.drain(..count.min(from.in_flight.len())).collect();
        let is_end = from.in_flight.is_empty() && from.is_shut;
        let receiver = &mut self.0[to];
        if !receiver.is_read_to_end {
            receiver.receive(octets);
        }
        if is_end && !receiver.is_read_to_end {
            receiver.end_of_stream();
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Invoke { side, is_two_way, body, room } if self.0[side].may_call() => {
                self.0[side].invoke(is_two_way, body, room);
            }
            Step::Invoke { .. } => {}
            Step::Write { side, room } => self.0[side].write(room),
            Step::Abandon { side, nth } => self.0[side].abandon(nth),
            Step::FailToWrite { side } => self.0[side].fail_to_write(),
            Step::Deliver { to, count } => self.deliver(to, count),
            Step::Finish { side, nth } => self.0[side].finish(nth),
            Step::BeginClose { side } => self.0[side].begin_close(),
            Step::ReportError { side } => self.0[side].report_error(),
            Step::HalfClose { side } => self.0[side].half_close(),
            Step::Cut { delivered } => {
                for (to, count) in delivered.into_iter().enumerate() {
                    self.0[1 - to].in_flight.truncate(count);
                    self.0[1 - to].is_shut = true;
                    self.deliver(to, count);
                }
            }
        }
    }

    /// Writes, runs and delivers the rest, and ends the connection.
    fn settle(&mut self) {
        for _ in 0..3 {
            for side in 0..2 {
                while !self.0[side].running.is_empty() {
                    self.0[side].finish(0);
                }
                self.0[side].write(usize::MAX);
                self.deliver(1 - side, usize::MAX);
            }
        }
        self.run(Step::Cut { delivered: [usize::MAX; 2] });
    }

    fn verify(&self) {
        for (caller, server) in [(&self.0[0], &self.0[1]), (&self.0[1], &self.0[0])] {
            for call in &caller.begun {
                let was_executed = server.executed.contains(call);
                match caller.outcomes.get(call) {
                    None => panic!("call {call} was never told of its outcome"),
                    Some(Outcome::Reply) => assert!(was_executed, "call {call} has a reply, and was not executed"),
                    Some(Outcome::Written) => {}
                    Some(Outcome::Failed { completed, repeats }) => {
                        assert_ne!(*completed, CompletionStatus::Yes, "call {call}: only a reply says YES");
                        let is_no = *completed == CompletionStatus::No;
                        assert!(!is_no || !was_executed, "call {call} was executed, and its caller was told NO");
                        assert!(is_no || !repeats, "call {call} may be repeated, and may have been executed");
                    }
                }
            }
            for call in &server.cancelled {
                let abandoned = Outcome::Failed { completed: CompletionStatus::Maybe, repeats: false };
                assert_eq!(caller.outcomes[call], abandoned, "call {call} was cancelled");
            }
            assert!(server.executed.is_sorted(), "a request overtook another: {:?}", server.executed);
            assert_eq!(caller.calls.pending(), 0, "a request is still awaited");
            assert_ne!(server.phase.read_side(), ReadSide::Open, "it is still read");
        }
    }
}

impl Side {
    fn end_reading(&mut self) {
        self.is_read_to_end = true;
        self.phase = self.phase.end_reading().expect("it is read to the end once");
    }

    /// The stream has ended without CloseConnection.
    fn end_of_stream(&mut self) {
        match self.role {
            // Requests that run may still be answered.
            Role::Server => {
                self.end_reading();
                self.close_when_idle();
            }
            _ => self.end(EndCause::Failed),
        }
    }
}

fn config() -> Config {
    match cfg!(miri) {
        true => Config { cases: 4, failure_persistence: None, ..Config::default() },
        false => Config { cases: 600, ..Config::default() },
    }
}

fn check(is_bidirectional: bool, steps: Vec<Step>) {
    let mut connection = Connection::new(is_bidirectional);
    steps.into_iter().for_each(|step| connection.run(step));
    connection.settle();
    connection.verify();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn callers_are_told_what_became_of_their_requests(steps in vec(step(), 0..60)) {
        check(false, steps);
    }

    #[test]
    fn callers_of_both_sides_are_told_what_became_of_their_requests(steps in vec(step(), 0..60)) {
        check(true, steps);
    }
}

#[test]
fn an_undisturbed_call_gets_its_reply() {
    let mut connection = Connection::new(false);
    connection.run(Step::Invoke { side: 0, is_two_way: true, body: 9, room: 1000 });
    connection.settle();
    connection.verify();
    assert_eq!(connection.0[0].outcomes[&0], Outcome::Reply);
}

#[test]
fn close_connection_waits_for_the_reply_and_frees_the_requests_behind_it() {
    let mut connection = Connection::new(false);
    connection.run(Step::Invoke { side: 0, is_two_way: true, body: 0, room: 1000 });
    connection.run(Step::Deliver { to: 1, count: 1000 });
    connection.run(Step::BeginClose { side: 1 });
    connection.run(Step::Invoke { side: 0, is_two_way: true, body: 0, room: 1000 });
    connection.settle();
    connection.verify();
    let outcomes = &connection.0[0].outcomes;
    assert_eq!(outcomes[&0], Outcome::Reply);
    assert_eq!(outcomes[&2], Outcome::Failed { completed: CompletionStatus::No, repeats: true });
}
