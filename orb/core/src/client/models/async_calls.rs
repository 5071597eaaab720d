//! Models of asynchronous calls on a connection that threads use as well.

use spandrel_giop::SystemExceptionKind;
use spandrel_ipc::Interest;
use spandrel_sync::{Arc, Condition, Mutex, Weak, thread};
use spandrel_transport::Deadline;

use super::{Outcome, TestBed, expiring_deadline, verify};
use crate::{
    call::invocation::await_reply::AwaitedReply,
    client::{
        CallFailure, ClientConnection, ExpiryReason, Reply, ReplyReceiver, TimedCall, UnsentKind, WriteLimits,
        connection::{ReactorRegistration, serve_ready, write_ready},
    },
    models::{
        check,
        fake_transport::{FakeBehaviour, FakePeer, Record},
        messages::{self, FakeRequest},
        one_in,
        pipe::{PipeCondition, PipeEnd},
    },
};

/// The limits on pending requests and unwritten octets.
const BOUNDS: WriteLimits = WriteLimits { requests: 16, octets: 1 << 20 };

/// A reactor for one connection.
#[derive(Debug, Default)]
pub(super) struct FakeReactor {
    bell: Arc<PipeCondition>,
    state: Mutex<FakeReactorState>,
}

#[derive(Debug)]
struct FakeReactorState {
    interest: Interest,
    is_marked_readable: bool,
    is_deregistered: bool,
}

impl Default for FakeReactorState {
    fn default() -> Self {
        Self { interest: Interest::NONE, is_marked_readable: false, is_deregistered: false }
    }
}

#[derive(Debug)]
enum Event {
    Input,
    Output,
    Left,
}

impl FakeReactor {
    pub(super) fn start(connection: &Arc<ClientConnection>, near: PipeEnd) -> thread::JoinHandle<()> {
        let reactor = Arc::new(Self::default());
        near.set_bell(&reactor.bell);
        near.set_room_bell(&reactor.bell);
        let registration = Arc::clone(&reactor);
        connection.register_with(|_| Ok(registration)).expect("it is free");
        let connection = Arc::downgrade(connection);
        thread::spawn(move || reactor.run(&connection, &near))
    }

    fn run(&self, connection: &Weak<ClientConnection>, near: &PipeEnd) {
        loop {
            let event = self.bell.await_that(|| {
                let mut state = self.state.lock();
                if state.is_deregistered {
                    return Some(Event::Left);
                }
                if state.interest.contains(Interest::OUTPUT) && near.is_writable() {
                    return Some(Event::Output);
                }
                let was_marked = std::mem::take(&mut state.is_marked_readable);
                let reads = state.interest.contains(Interest::INPUT) && (was_marked || near.is_readable());
                reads.then_some(Event::Input)
            });
            let Some(connection) = connection.upgrade() else { return };
            match event {
                Event::Left => return,
                Event::Output => write_ready(&connection),
                Event::Input => {
                    if !serve_ready(&connection) {
                        return;
                    }
                }
            }
        }
    }
}

impl ReactorRegistration for FakeReactor {
    fn wait_for(&self, interest: Interest) {
        self.state.lock().interest = interest;
        self.bell.ring();
    }

    fn mark_readable(&self) {
        self.state.lock().is_marked_readable = true;
        self.bell.ring();
    }

    fn deregister(&self) {
        self.state.lock().is_deregistered = true;
        self.bell.ring();
    }
}

/// The receiver of an asynchronous call.
#[derive(Debug, Default)]
struct ReplyReceiverHandle {
    outcome: Mutex<Option<Result<Option<Reply>, CallFailure>>>,
    changed: Condition,
}

impl ReplyReceiver for ReplyReceiverHandle {
    fn complete(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let before = self.outcome.lock().replace(outcome);
        assert!(before.is_none(), "the receiver is notified once");
        self.changed.notify_one();
    }

    fn connection_opened(self: Arc<Self>, _outcome: Result<(), CallFailure>) {
        unreachable!("the connection is open");
    }
}

impl ReplyReceiverHandle {
    fn wait(&self) -> Result<Option<Reply>, CallFailure> {
        let mut outcome = self.outcome.lock();
        loop {
            match outcome.take() {
                Some(outcome) => return outcome,
                None => self.changed.wait(&mut outcome),
            }
        }
    }
}

impl TestBed {
    fn fake_request(&self, token: u32, is_two_way: bool) -> FakeRequest {
        FakeRequest { id: self.connection.request_id(), token, is_two_way, is_limited: false }
    }

    fn start(&self, fake_request: FakeRequest) -> Result<Arc<ReplyReceiverHandle>, CallFailure> {
        let receiver = Arc::<ReplyReceiverHandle>::default();
        let kind = if fake_request.is_two_way { UnsentKind::TwoWay } else { UnsentKind::OneWay };
        let request = messages::request(fake_request, self.octets);
        let awaiting = Arc::clone(&receiver) as Arc<dyn ReplyReceiver>;
        self.connection.send_async(fake_request.id, &request, kind, awaiting, BOUNDS).map(|()| receiver)
    }

    fn finish(&self, fake_request: FakeRequest, receiver: Result<Arc<ReplyReceiverHandle>, CallFailure>) -> bool {
        let outcome = receiver.and_then(|receiver| receiver.wait()).map(|reply| {
            assert_eq!(reply.is_some(), fake_request.is_two_way);
            if let Some(reply) = reply {
                assert_eq!(messages::token_in(&reply.message, reply.body), fake_request.token);
            }
        });
        self.record_outcome(fake_request, outcome)
    }

    /// Makes a call and waits for its outcome.
    fn task(&self, token: u32, is_two_way: bool) -> bool {
        let fake_request = self.fake_request(token, is_two_way);
        let receiver = self.start(fake_request);
        self.finish(fake_request, receiver)
    }
}

/// A connection that is registered with a reactor, whose thread ends with the connection.
fn test_bed(
    capacity: usize,
    octets: usize,
    behaviour: FakeBehaviour,
) -> (Arc<TestBed>, FakePeer, thread::JoinHandle<()>) {
    let (test_bed, server, near) = TestBed::with_end(capacity, octets, behaviour);
    let reactor = FakeReactor::start(&test_bed.connection, near);
    (test_bed, server, reactor)
}

fn close(test_bed: Arc<TestBed>, server: FakePeer, reactor: thread::JoinHandle<()>) -> (Vec<Outcome>, Record) {
    let closed = test_bed.close(server);
    reactor.join().expect("it did not panic");
    closed
}

#[test]
fn threads_and_tasks_get_their_own_replies() {
    check(6000, || {
        let (test_bed, server, reactor) = test_bed(4096, 4, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            let first = test_bed.fake_request(caller * 10, true);
            let receiver = test_bed.start(first);
            let succeeded =
                if caller == 0 { test_bed.task(1, one_in(2)) } else { test_bed.two_way(caller * 10 + 1, None) };
            assert!(succeeded && test_bed.finish(first, receiver), "nothing ended the connection");
        });
        assert!(test_bed.two_way(98, None) && test_bed.task(99, true), "no call has left a reply unread");
        let (outcomes, record) = close(test_bed, server, reactor);
        verify(&outcomes, &record);
        assert_eq!(record.read.len(), 8);
    });
}

#[test]
fn the_end_of_the_connection_ends_asynchronous_calls() {
    check(6000, || {
        let (test_bed, server, reactor) =
            test_bed(4096, 4, FakeBehaviour { octets: 4, ends: true, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            let first = test_bed.fake_request(caller * 10, true);
            let receiver = test_bed.start(first);
            let _ = if caller == 0 { test_bed.two_way(1, None) } else { test_bed.task(caller * 10 + 1, one_in(2)) };
            test_bed.finish(first, receiver);
        });
        let (outcomes, record) = close(test_bed, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn partly_written_asynchronous_requests_are_finished() {
    check(4000, || {
        let (test_bed, server, reactor) =
            test_bed(48, 100, FakeBehaviour { octets: 100, is_serial: true, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            let first = test_bed.fake_request(caller * 10, !one_in(3));
            let receiver = test_bed.start(first);
            let succeeded = if caller == 0 { test_bed.two_way(1, None) } else { test_bed.task(caller * 10 + 1, true) };
            assert!(succeeded && test_bed.finish(first, receiver), "nothing ended the connection");
        });
        let (outcomes, record) = close(test_bed, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn an_expired_deadline_of_a_thread_may_interrupt_the_write_of_an_asynchronous_call() {
    check(4000, || {
        let (test_bed, server, reactor) = test_bed(64, 100, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| match caller {
            0 => drop(test_bed.two_way(0, expiring_deadline())),
            _ => {
                let first = test_bed.fake_request(caller * 10, !one_in(3));
                let receiver = test_bed.start(first);
                let _ = test_bed.task(caller * 10 + 1, true);
                test_bed.finish(first, receiver);
            }
        });
        let (outcomes, record) = close(test_bed, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn abandoned_requests_delay_no_other_call() {
    check(6000, || {
        let (capacity, octets) = if one_in(2) { (4096, 4) } else { (64, 100) };
        let (test_bed, server, reactor) =
            test_bed(capacity, octets, FakeBehaviour { octets, is_serial: true, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            let abandoned = test_bed.fake_request(caller * 10, true);
            let receiver = test_bed.start(abandoned);
            assert!(receiver.is_ok());
            test_bed.connection.abandon(abandoned.id, Some(messages::wire()), false);
            let succeeded = if caller == 0 { test_bed.two_way(1, None) } else { test_bed.task(caller * 10 + 1, true) };
            assert!(succeeded, "nothing ended the connection");
        });
        let (outcomes, record) = close(test_bed, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn the_table_of_pending_calls_is_bounded() {
    check(500, || {
        let (test_bed, server, reactor) = test_bed(4096, 4, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        let fake_requests: Vec<_> = (0..3).map(|token| test_bed.fake_request(token, true)).collect();
        let receiver = fake_requests.iter().map(|fake_request| {
            let receiver = Arc::<ReplyReceiverHandle>::default();
            let request = messages::request(*fake_request, 4);
            let awaiting = Arc::clone(&receiver) as Arc<dyn ReplyReceiver>;
            (
                receiver,
                test_bed.connection.send_async(
                    fake_request.id,
                    &request,
                    UnsentKind::TwoWay,
                    awaiting,
                    WriteLimits { requests: 1, ..BOUNDS },
                ),
            )
        });
        for (fake_request, (receiver, sent)) in fake_requests.iter().zip(receiver.collect::<Vec<_>>()) {
            test_bed.finish(*fake_request, sent.map(|()| receiver));
        }
        let (outcomes, record) = close(test_bed, server, reactor);
        verify(&outcomes, &record);
        assert!(outcomes[0].1.is_ok(), "there is room for one");
    });
}

impl TestBed {
    /// Makes a call whose thread sleeps until another thread has read its reply.
    fn sleeping_two_way(&self, token: u32, deadline: Option<Deadline>, ending: Option<&Arc<AwaitedReply>>) -> bool {
        let fake_request = FakeRequest { is_limited: deadline.is_some(), ..self.fake_request(token, true) };
        let awaited = ending.map_or_else(|| AwaitedReply::new(None), Arc::clone);
        let request = messages::request(fake_request, self.octets);
        let awaiting = Arc::clone(&awaited) as Arc<dyn ReplyReceiver>;
        let sent = self.connection.send_async(fake_request.id, &request, UnsentKind::TwoWay, awaiting, BOUNDS);
        let outcome = sent
            .and_then(|()| awaited.outcome(&self.connection, fake_request.id, Some(request.wire()), deadline.as_ref()))
            .map(|reply| assert_eq!(messages::token_in(&reply.message, reply.body), token));
        self.record_outcome(fake_request, outcome)
    }
}

#[test]
fn waiting_threads_get_their_own_replies_from_another_reader() {
    check(6000, || {
        let (test_bed, server, reactor) = test_bed(4096, 4, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| {
            for turn in 0..2 {
                let token = caller * 10 + turn;
                let succeeded = if one_in(3) {
                    test_bed.two_way(token, None)
                } else {
                    test_bed.sleeping_two_way(token, None, None)
                };
                assert!(succeeded, "nothing ended the connection");
            }
        });
        let (outcomes, record) = close(test_bed, server, reactor);
        verify(&outcomes, &record);
        assert_eq!(record.read.len(), 6);
    });
}

#[test]
fn waiting_threads_return_at_their_deadline() {
    check(6000, || {
        let (test_bed, server, reactor) =
            test_bed(64, 100, FakeBehaviour { octets: 4, forgets: true, ..FakeBehaviour::default() });
        test_bed.callers(3, |test_bed, caller| match caller {
            0 => {
                test_bed.sleeping_two_way(0, expiring_deadline(), None);
            }
            1 => {
                let _ = test_bed.sleeping_two_way(10, None, None) && test_bed.sleeping_two_way(11, None, None);
            }
            _ => {
                let _ = test_bed.two_way(20, None) && test_bed.two_way(21, None);
            }
        });
        for (fake_request, outcome) in test_bed.outcomes.lock().iter() {
            if let Err(failure) = outcome {
                let is_timeout = failure.exception.kind() == SystemExceptionKind::Timeout;
                assert!(
                    fake_request.is_limited && is_timeout || failure.may_repeat(),
                    "{fake_request:?}: {}",
                    failure.exception
                );
            }
        }
        let (outcomes, record) = close(test_bed, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn the_end_of_the_connection_or_the_orb_ends_the_wait() {
    check(6000, || {
        let (test_bed, server, reactor) =
            test_bed(4096, 4, FakeBehaviour { octets: 4, ends: true, ..FakeBehaviour::default() });
        let awaited = AwaitedReply::new(None);
        let ending = Arc::clone(&awaited);
        let is_over = one_in(2);
        let over = thread::spawn(move || {
            if is_over {
                TimedCall::end(ending, ExpiryReason::Shutdown);
            }
        });
        let other = {
            let test_bed = Arc::clone(&test_bed);
            thread::spawn(move || {
                let _ = test_bed.two_way(10, None) && test_bed.sleeping_two_way(11, None, None);
            })
        };
        test_bed.sleeping_two_way(0, None, Some(&awaited));
        for thread in [over, other] {
            thread.join().expect("it did not panic");
        }
        let (mut outcomes, record) = close(test_bed, server, reactor);
        let is_shut_down = |(_, outcome): &mut Outcome| {
            outcome.as_ref().is_err_and(|failure| failure.exception.kind() == SystemExceptionKind::BadInvOrder)
        };
        let shut_down = outcomes.extract_if(.., is_shut_down).count();
        assert!(shut_down <= usize::from(is_over));
        verify(&outcomes, &record);
    });
}
