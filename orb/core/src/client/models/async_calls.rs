//! Models of asynchronous calls on a connection that threads use as well.

use spandrel_giop::SystemExceptionKind;
use spandrel_ipc::Interest;
use spandrel_sync::{Arc, Condition, Mutex, Weak, thread};
use spandrel_transport::Deadline;

use super::{Outcome, Stage, expiring_deadline, verify};
use crate::{
    client::{
        CallFailure, ClientConnection, ExpiryReason, Reply, ReplyReceiver, TimedCall, UnsentKind, WriteLimits,
        connection::ReactorRegistration,
    },
    invocation::await_reply::AwaitedReply,
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
    wants: Mutex<Wants>,
}

#[derive(Debug)]
struct Wants {
    interest: Interest,
    look: bool,
    left: bool,
}

impl Default for Wants {
    fn default() -> Self {
        Self { interest: Interest::NONE, look: false, left: false }
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
                let mut wants = self.wants.lock();
                if wants.left {
                    return Some(Event::Left);
                }
                if wants.interest.contains(Interest::OUTPUT) && near.is_writable() {
                    return Some(Event::Output);
                }
                let looks = std::mem::take(&mut wants.look);
                let reads = wants.interest.contains(Interest::INPUT) && (looks || near.is_readable());
                reads.then_some(Event::Input)
            });
            let Some(connection) = connection.upgrade() else { return };
            match event {
                Event::Left => return,
                Event::Output => connection.write_ready(),
                Event::Input => {
                    if !connection.serve_ready() {
                        return;
                    }
                }
            }
        }
    }
}

impl ReactorRegistration for FakeReactor {
    fn wait_for(&self, interest: Interest) {
        self.wants.lock().interest = interest;
        self.bell.ring();
    }

    fn mark_readable(&self) {
        self.wants.lock().look = true;
        self.bell.ring();
    }

    fn deregister(&self) {
        self.wants.lock().left = true;
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
    fn done(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let before = self.outcome.lock().replace(outcome);
        assert!(before.is_none(), "the receiver is notified once");
        self.changed.notify_one();
    }

    fn opened(self: Arc<Self>, _outcome: Result<(), CallFailure>) {
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

impl Stage {
    fn question(&self, token: u32, is_two_way: bool) -> FakeRequest {
        FakeRequest { id: self.connection.request_id(), token, is_two_way, is_limited: false }
    }

    fn start(&self, question: FakeRequest) -> Result<Arc<ReplyReceiverHandle>, CallFailure> {
        let receiver = Arc::<ReplyReceiverHandle>::default();
        let kind = if question.is_two_way { UnsentKind::TwoWay } else { UnsentKind::OneWay };
        let request = messages::request(question, self.octets);
        let awaiting = Arc::clone(&receiver) as Arc<dyn ReplyReceiver>;
        self.connection.send_async(question.id, &request, kind, awaiting, BOUNDS).map(|()| receiver)
    }

    fn finish(&self, question: FakeRequest, receiver: Result<Arc<ReplyReceiverHandle>, CallFailure>) -> bool {
        let outcome = receiver.and_then(|receiver| receiver.wait()).map(|reply| {
            assert_eq!(reply.is_some(), question.is_two_way);
            if let Some(reply) = reply {
                assert_eq!(messages::token_in(&reply.message, reply.body), question.token);
            }
        });
        self.note(question, outcome)
    }

    /// Makes a call and waits for its outcome.
    fn task(&self, token: u32, is_two_way: bool) -> bool {
        let question = self.question(token, is_two_way);
        let receiver = self.start(question);
        self.finish(question, receiver)
    }
}

/// A connection that is registered with a reactor, whose thread ends with the connection.
fn stage(capacity: usize, octets: usize, behaviour: FakeBehaviour) -> (Arc<Stage>, FakePeer, thread::JoinHandle<()>) {
    let (stage, server, near) = Stage::with_end(capacity, octets, behaviour);
    let reactor = FakeReactor::start(&stage.connection, near);
    (stage, server, reactor)
}

fn close(stage: Arc<Stage>, server: FakePeer, reactor: thread::JoinHandle<()>) -> (Vec<Outcome>, Record) {
    let closed = stage.close(server);
    reactor.join().expect("it did not panic");
    closed
}

#[test]
fn threads_and_tasks_get_their_own_replies() {
    check(6000, || {
        let (stage, server, reactor) = stage(4096, 4, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        stage.callers(3, |stage, caller| {
            let first = stage.question(caller * 10, true);
            let receiver = stage.start(first);
            let succeeded = if caller == 0 { stage.task(1, one_in(2)) } else { stage.two_way(caller * 10 + 1, None) };
            assert!(succeeded && stage.finish(first, receiver), "nothing ended the connection");
        });
        assert!(stage.two_way(98, None) && stage.task(99, true), "no call has left a reply unread");
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
        assert_eq!(record.read.len(), 8);
    });
}

#[test]
fn the_end_of_the_connection_ends_asynchronous_calls() {
    check(6000, || {
        let (stage, server, reactor) =
            stage(4096, 4, FakeBehaviour { octets: 4, ends: true, ..FakeBehaviour::default() });
        stage.callers(3, |stage, caller| {
            let first = stage.question(caller * 10, true);
            let receiver = stage.start(first);
            let _ = if caller == 0 { stage.two_way(1, None) } else { stage.task(caller * 10 + 1, one_in(2)) };
            stage.finish(first, receiver);
        });
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn partly_written_asynchronous_requests_are_finished() {
    check(4000, || {
        let (stage, server, reactor) =
            stage(48, 100, FakeBehaviour { octets: 100, is_serial: true, ..FakeBehaviour::default() });
        stage.callers(3, |stage, caller| {
            let first = stage.question(caller * 10, !one_in(3));
            let receiver = stage.start(first);
            let succeeded = if caller == 0 { stage.two_way(1, None) } else { stage.task(caller * 10 + 1, true) };
            assert!(succeeded && stage.finish(first, receiver), "nothing ended the connection");
        });
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn an_expired_deadline_of_a_thread_may_interrupt_the_write_of_an_asynchronous_call() {
    check(4000, || {
        let (stage, server, reactor) = stage(64, 100, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        stage.callers(3, |stage, caller| match caller {
            0 => drop(stage.two_way(0, expiring_deadline())),
            _ => {
                let first = stage.question(caller * 10, !one_in(3));
                let receiver = stage.start(first);
                let _ = stage.task(caller * 10 + 1, true);
                stage.finish(first, receiver);
            }
        });
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn abandoned_requests_delay_no_other_call() {
    check(6000, || {
        let (capacity, octets) = if one_in(2) { (4096, 4) } else { (64, 100) };
        let (stage, server, reactor) =
            stage(capacity, octets, FakeBehaviour { octets, is_serial: true, ..FakeBehaviour::default() });
        stage.callers(3, |stage, caller| {
            let abandoned = stage.question(caller * 10, true);
            let receiver = stage.start(abandoned);
            assert!(receiver.is_ok());
            stage.connection.abandon(abandoned.id, Some(messages::wire()), false);
            let succeeded = if caller == 0 { stage.two_way(1, None) } else { stage.task(caller * 10 + 1, true) };
            assert!(succeeded, "nothing ended the connection");
        });
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn the_table_of_pending_calls_is_bounded() {
    check(500, || {
        let (stage, server, reactor) = stage(4096, 4, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        let questions: Vec<_> = (0..3).map(|token| stage.question(token, true)).collect();
        let receiver = questions.iter().map(|question| {
            let receiver = Arc::<ReplyReceiverHandle>::default();
            let request = messages::request(*question, 4);
            let awaiting = Arc::clone(&receiver) as Arc<dyn ReplyReceiver>;
            (
                receiver,
                stage.connection.send_async(
                    question.id,
                    &request,
                    UnsentKind::TwoWay,
                    awaiting,
                    WriteLimits { requests: 1, ..BOUNDS },
                ),
            )
        });
        for (question, (receiver, sent)) in questions.iter().zip(receiver.collect::<Vec<_>>()) {
            stage.finish(*question, sent.map(|()| receiver));
        }
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
        assert!(outcomes[0].1.is_ok(), "there is room for one");
    });
}

impl Stage {
    /// Makes a call whose thread sleeps until another thread has read its reply.
    fn woken(&self, token: u32, deadline: Option<Deadline>, ending: Option<&Arc<AwaitedReply>>) -> bool {
        let question = FakeRequest { is_limited: deadline.is_some(), ..self.question(token, true) };
        let awaited = ending.map_or_else(|| AwaitedReply::new(None), Arc::clone);
        let request = messages::request(question, self.octets);
        let awaiting = Arc::clone(&awaited) as Arc<dyn ReplyReceiver>;
        let sent = self.connection.send_async(question.id, &request, UnsentKind::TwoWay, awaiting, BOUNDS);
        let outcome = sent
            .and_then(|()| awaited.outcome(&self.connection, question.id, Some(request.wire()), deadline.as_ref()))
            .map(|reply| assert_eq!(messages::token_in(&reply.message, reply.body), token));
        self.note(question, outcome)
    }
}

#[test]
fn waiting_threads_get_their_own_replies_from_another_reader() {
    check(6000, || {
        let (stage, server, reactor) = stage(4096, 4, FakeBehaviour { octets: 4, ..FakeBehaviour::default() });
        stage.callers(3, |stage, caller| {
            for turn in 0..2 {
                let token = caller * 10 + turn;
                let succeeded = if one_in(3) { stage.two_way(token, None) } else { stage.woken(token, None, None) };
                assert!(succeeded, "nothing ended the connection");
            }
        });
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
        assert_eq!(record.read.len(), 6);
    });
}

#[test]
fn waiting_threads_return_at_their_deadline() {
    check(6000, || {
        let (stage, server, reactor) =
            stage(64, 100, FakeBehaviour { octets: 4, forgets: true, ..FakeBehaviour::default() });
        stage.callers(3, |stage, caller| match caller {
            0 => {
                stage.woken(0, expiring_deadline(), None);
            }
            1 => {
                let _ = stage.woken(10, None, None) && stage.woken(11, None, None);
            }
            _ => {
                let _ = stage.two_way(20, None) && stage.two_way(21, None);
            }
        });
        for (question, outcome) in stage.outcomes.lock().iter() {
            if let Err(failure) = outcome {
                let is_timeout = failure.exception.kind() == SystemExceptionKind::Timeout;
                assert!(
                    question.is_limited && is_timeout || failure.may_repeat(),
                    "{question:?}: {}",
                    failure.exception
                );
            }
        }
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn the_end_of_the_connection_or_the_orb_ends_the_wait() {
    check(6000, || {
        let (stage, server, reactor) =
            stage(4096, 4, FakeBehaviour { octets: 4, ends: true, ..FakeBehaviour::default() });
        let awaited = AwaitedReply::new(None);
        let ending = Arc::clone(&awaited);
        let is_over = one_in(2);
        let over = thread::spawn(move || {
            if is_over {
                TimedCall::end(ending, ExpiryReason::Shutdown);
            }
        });
        let other = {
            let stage = Arc::clone(&stage);
            thread::spawn(move || {
                let _ = stage.two_way(10, None) && stage.woken(11, None, None);
            })
        };
        stage.woken(0, None, Some(&awaited));
        for thread in [over, other] {
            thread.join().expect("it did not panic");
        }
        let (mut outcomes, record) = close(stage, server, reactor);
        let is_shut_down = |(_, outcome): &mut Outcome| {
            outcome.as_ref().is_err_and(|failure| failure.exception.kind() == SystemExceptionKind::BadInvOrder)
        };
        let shut_down = outcomes.extract_if(.., is_shut_down).count();
        assert!(shut_down <= usize::from(is_over));
        verify(&outcomes, &record);
    });
}
