//! Models of calls that no thread waits for, on a connection that threads use as well.

use spandrel_giop::SystemExceptionKind;
use spandrel_ipc::Interest;
use spandrel_sync::{Arc, Condition, Mutex, Weak, thread};
use spandrel_transport::Deadline;

use super::{Outcome, Stage, an_hour, verify};
use crate::{
    client::{Awaiting, Bounds, CallFailure, ClientConnection, Ending, Kind, Limited, Reply, connection::Seat},
    invocation::waiting::Awaited,
    models::{
        check, one_in,
        pipe::{Bell, End},
        pretend::{Manners, Record, Running},
        talk::{self, Question},
    },
};

/// So many requests and octets may wait.
const BOUNDS: Bounds = Bounds { requests: 16, octets: 1 << 20 };

/// A reactor for one connection.
#[derive(Debug, Default)]
pub(super) struct Pretended {
    bell: Arc<Bell>,
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

impl Pretended {
    pub(super) fn start(connection: &Arc<ClientConnection>, near: End) -> thread::JoinHandle<()> {
        let reactor = Arc::new(Self::default());
        near.set_bell(&reactor.bell);
        near.set_room_bell(&reactor.bell);
        let seat = Arc::clone(&reactor);
        connection.take_seat(|_| Ok(seat)).expect("it is free");
        let connection = Arc::downgrade(connection);
        thread::spawn(move || reactor.run(&connection, &near))
    }

    fn run(&self, connection: &Weak<ClientConnection>, near: &End) {
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

impl Seat for Pretended {
    fn wait_for(&self, interest: Interest) {
        self.wants.lock().interest = interest;
        self.bell.ring();
    }

    fn look(&self) {
        self.wants.lock().look = true;
        self.bell.ring();
    }

    fn leave(&self) {
        self.wants.lock().left = true;
        self.bell.ring();
    }
}

/// A call that is told.
#[derive(Debug, Default)]
struct Told {
    outcome: Mutex<Option<Result<Option<Reply>, CallFailure>>>,
    changed: Condition,
}

impl Awaiting for Told {
    fn done(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let before = self.outcome.lock().replace(outcome);
        assert!(before.is_none(), "it is told once");
        self.changed.notify_one();
    }

    fn opened(self: Arc<Self>, _outcome: Result<(), CallFailure>) {
        unreachable!("the connection is open");
    }
}

impl Told {
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
    fn question(&self, token: u32, is_two_way: bool) -> Question {
        Question { id: self.connection.request_id(), token, is_two_way, is_limited: false }
    }

    fn start(&self, question: Question) -> Result<Arc<Told>, CallFailure> {
        let told = Arc::<Told>::default();
        let kind = if question.is_two_way { Kind::TwoWay } else { Kind::OneWay };
        let request = talk::request(question, self.octets);
        let awaiting = Arc::clone(&told) as Arc<dyn Awaiting>;
        self.connection.send_soon(question.id, &request, kind, awaiting, BOUNDS).map(|()| told)
    }

    fn finish(&self, question: Question, told: Result<Arc<Told>, CallFailure>) -> bool {
        let outcome = told.and_then(|told| told.wait()).map(|reply| {
            assert_eq!(reply.is_some(), question.is_two_way);
            if let Some(reply) = reply {
                assert_eq!(talk::token_in(&reply.message, reply.body), question.token);
            }
        });
        self.note(question, outcome)
    }

    /// A call whose outcome is waited for at once.
    fn task(&self, token: u32, is_two_way: bool) -> bool {
        let question = self.question(token, is_two_way);
        let told = self.start(question);
        self.finish(question, told)
    }
}

/// A connection with a place in a reactor, whose thread ends with the connection.
fn stage(capacity: usize, octets: usize, manners: Manners) -> (Arc<Stage>, Running, thread::JoinHandle<()>) {
    let (stage, server, near) = Stage::with_end(capacity, octets, manners);
    let reactor = Pretended::start(&stage.connection, near);
    (stage, server, reactor)
}

fn close(stage: Arc<Stage>, server: Running, reactor: thread::JoinHandle<()>) -> (Vec<Outcome>, Record) {
    let closed = stage.close(server);
    reactor.join().expect("it did not panic");
    closed
}

#[test]
fn threads_and_tasks_get_their_own_replies_whoever_reads() {
    check(6000, || {
        let (stage, server, reactor) = stage(4096, 4, Manners { octets: 4, ..Manners::default() });
        stage.callers(3, |stage, caller| {
            let first = stage.question(caller * 10, true);
            let told = stage.start(first);
            let succeeded = if caller == 0 { stage.task(1, one_in(2)) } else { stage.two_way(caller * 10 + 1, None) };
            assert!(succeeded && stage.finish(first, told), "nothing ended the connection");
        });
        assert!(stage.two_way(98, None) && stage.task(99, true), "nobody left anything behind");
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
        assert_eq!(record.read.len(), 8);
    });
}

#[test]
fn whatever_ends_the_connection_ends_tasks_too() {
    check(6000, || {
        let (stage, server, reactor) = stage(4096, 4, Manners { octets: 4, ends: true, ..Manners::default() });
        stage.callers(3, |stage, caller| {
            let first = stage.question(caller * 10, true);
            let told = stage.start(first);
            let _ = if caller == 0 { stage.two_way(1, None) } else { stage.task(caller * 10 + 1, one_in(2)) };
            stage.finish(first, told);
        });
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn what_tasks_cannot_write_at_once_is_written_in_whole() {
    check(4000, || {
        let (stage, server, reactor) = stage(48, 100, Manners { octets: 100, is_serial: true, ..Manners::default() });
        stage.callers(3, |stage, caller| {
            let first = stage.question(caller * 10, !one_in(3));
            let told = stage.start(first);
            let succeeded = if caller == 0 { stage.two_way(1, None) } else { stage.task(caller * 10 + 1, true) };
            assert!(succeeded && stage.finish(first, told), "nothing ended the connection");
        });
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn a_thread_whose_time_is_up_may_cut_off_what_tasks_have_begun() {
    check(4000, || {
        let (stage, server, reactor) = stage(64, 100, Manners { octets: 4, ..Manners::default() });
        stage.callers(3, |stage, caller| match caller {
            0 => drop(stage.two_way(0, an_hour())),
            _ => {
                let first = stage.question(caller * 10, !one_in(3));
                let told = stage.start(first);
                let _ = stage.task(caller * 10 + 1, true);
                stage.finish(first, told);
            }
        });
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn abandoned_requests_hold_up_nobody() {
    check(6000, || {
        let (capacity, octets) = if one_in(2) { (4096, 4) } else { (64, 100) };
        let (stage, server, reactor) =
            stage(capacity, octets, Manners { octets, is_serial: true, ..Manners::default() });
        stage.callers(3, |stage, caller| {
            let abandoned = stage.question(caller * 10, true);
            let told = stage.start(abandoned);
            assert!(told.is_ok());
            stage.connection.abandon(abandoned.id, Some(talk::wire()), false);
            let succeeded = if caller == 0 { stage.two_way(1, None) } else { stage.task(caller * 10 + 1, true) };
            assert!(succeeded, "nothing ended the connection");
        });
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
    });
}

#[test]
fn the_table_is_bounded() {
    check(500, || {
        let (stage, server, reactor) = stage(4096, 4, Manners { octets: 4, ..Manners::default() });
        let questions: Vec<_> = (0..3).map(|token| stage.question(token, true)).collect();
        let told = questions.iter().map(|question| {
            let told = Arc::<Told>::default();
            let request = talk::request(*question, 4);
            let awaiting = Arc::clone(&told) as Arc<dyn Awaiting>;
            (
                told,
                stage.connection.send_soon(
                    question.id,
                    &request,
                    Kind::TwoWay,
                    awaiting,
                    Bounds { requests: 1, ..BOUNDS },
                ),
            )
        });
        for (question, (told, sent)) in questions.iter().zip(told.collect::<Vec<_>>()) {
            stage.finish(*question, sent.map(|()| told));
        }
        let (outcomes, record) = close(stage, server, reactor);
        verify(&outcomes, &record);
        assert!(outcomes[0].1.is_ok(), "there is room for one");
    });
}

impl Stage {
    /// A call whose thread sleeps until others have read its reply.
    fn woken(&self, token: u32, deadline: Option<Deadline>, ending: Option<&Arc<Awaited>>) -> bool {
        let question = Question { is_limited: deadline.is_some(), ..self.question(token, true) };
        let awaited = ending.map_or_else(|| Awaited::new(None), Arc::clone);
        let request = talk::request(question, self.octets);
        let awaiting = Arc::clone(&awaited) as Arc<dyn Awaiting>;
        let sent = self.connection.send_soon(question.id, &request, Kind::TwoWay, awaiting, BOUNDS);
        let outcome = sent
            .and_then(|()| awaited.outcome(&self.connection, question.id, Some(request.wire()), deadline.as_ref()))
            .map(|reply| assert_eq!(talk::token_in(&reply.message, reply.body), token));
        self.note(question, outcome)
    }
}

#[test]
fn threads_that_others_read_for_get_their_own_replies() {
    check(6000, || {
        let (stage, server, reactor) = stage(4096, 4, Manners { octets: 4, ..Manners::default() });
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
fn threads_that_others_read_for_leave_when_their_time_is_up() {
    check(6000, || {
        let (stage, server, reactor) = stage(64, 100, Manners { octets: 4, forgets: true, ..Manners::default() });
        stage.callers(3, |stage, caller| match caller {
            0 => {
                stage.woken(0, an_hour(), None);
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
fn whatever_ends_the_connection_or_the_orb_ends_the_wait() {
    check(6000, || {
        let (stage, server, reactor) = stage(4096, 4, Manners { octets: 4, ends: true, ..Manners::default() });
        let awaited = Awaited::new(None);
        let ending = Arc::clone(&awaited);
        let is_over = one_in(2);
        let over = thread::spawn(move || {
            if is_over {
                Limited::end(ending, Ending::Shutdown);
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
