//! Models of a connection that a reactor's threads serve, and of the threads that take over from them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_orb::models::{below, pipe::PipeCondition};

use super::*;
use crate::connection::{reading::VisitOutcome, registration::ReactorRegistration};

/// The number of the reactor's threads.
const THREADS: usize = 2;

/// A model of a reactor with one handler, the connection's.
#[derive(Debug)]
pub(super) struct Reactor {
    connection: Arc<ServerConnection>,
    near: PipeEnd,
    readers: Arc<Mutex<Readers>>,
    place: Mutex<DeferredSlot>,
    bell: Arc<PipeCondition>,
}

/// The handler's state.
#[derive(Debug, Default)]
struct DeferredSlot {
    /// Whether a thread is in the handler.
    is_busy: bool,
    is_suspended: bool,
    /// Whether a timer is set.
    lingers: bool,
    /// Whether there is input that the handle does not show.
    is_marked: bool,
    /// Whether the handler is to be closed.
    is_removed: bool,
    closes: u32,
    /// How often the handler was replaced while it was called.
    generation: u32,
}

/// The next step of a reactor's thread, and the generation of the handler for it.
enum Step {
    Input(u32),
    Timeout(u32),
    Return,
}

/// The connection's registration with the reactor.
#[derive(Debug)]
struct FakeRegistration(Arc<Reactor>);

impl Readers {
    /// Begins a visit of a reactor's thread. The thread may read although it lost the reader role in an
    /// earlier visit.
    fn enter(&mut self) -> u32 {
        self.former.remove(&thread::current().id());
        self.reads
    }

    fn leave(&mut self) -> u32 {
        self.current.take_if(|current| *current == thread::current().id());
        self.reads
    }

    pub(super) fn read_in_reactor(&mut self) {
        let me = thread::current().id();
        self.reads += 1;
        if !self.is_draining {
            assert!(!self.former.contains(&me), "who lost the reading reads again");
            assert!(self.current.is_none_or(|current| current == me), "the reactor reads, and another as well");
            self.current = Some(me);
        }
    }

    /// Returns the reading from this thread to the reactor.
    fn give_back(&mut self) {
        let me = thread::current().id();
        assert!(self.is_draining || self.current == Some(me), "who does not read gives the reading back");
        self.current = None;
        self.former.insert(me);
    }

    /// Gives up the reading; any thread may read next.
    fn give_up(&mut self) {
        self.current = None;
    }

    /// Returns the reading to this thread, because the reactor has ended.
    fn take_back(&mut self) {
        let me = thread::current().id();
        self.current = Some(me);
        self.former.remove(&me);
    }
}

impl ReactorRegistration for FakeRegistration {
    fn suspend(&self) {
        self.0.place.lock().is_suspended = true;
    }

    fn resume(&self) -> bool {
        self.0.readers.lock().give_back();
        let goes_on = self.0.go_on(|_| {});
        if !goes_on {
            self.0.readers.lock().take_back();
        }
        goes_on
    }

    fn resume_marked(&self) -> bool {
        self.0.go_on(|place| place.is_marked = true)
    }

    fn want_output(&self, _is_wanted: bool) {
        unreachable!("no reactor can serve the transport: whoever writes waits");
    }

    fn linger(&self, _time: Duration) -> bool {
        self.0.go_on(|place| place.lingers = true)
    }

    fn renew(&self, is_ready: bool) -> io::Result<()> {
        self.0.readers.lock().give_up();
        let mut place = self.0.place.lock();
        if place.is_removed {
            drop(place);
            self.0.close();
            return Err(io::ErrorKind::NotConnected.into());
        }
        *place = DeferredSlot { is_marked: is_ready, generation: place.generation + 1, ..DeferredSlot::default() };
        drop(place);
        self.0.bell.ring();
        Ok(())
    }

    fn leave(&self) {
        let mut place = self.0.place.lock();
        if !std::mem::replace(&mut place.is_removed, true) && !place.is_busy {
            drop(place);
            self.0.close();
        }
    }
}

impl Reactor {
    fn start(stage: &Stage) -> (Arc<Self>, Vec<thread::JoinHandle<()>>) {
        Self::start_with(stage, THREADS)
    }

    /// Starts a reactor whose threads serve other requests while their servants wait.
    pub(super) fn start_with(stage: &Stage, threads: usize) -> (Arc<Self>, Vec<thread::JoinHandle<()>>) {
        let reactor = Arc::new(Self {
            connection: Arc::clone(&stage.connection),
            near: stage.near.clone(),
            readers: Arc::clone(&stage.readers),
            place: Mutex::default(),
            bell: Arc::default(),
        });
        reactor.near.set_bell(&reactor.bell);
        *stage.diary.reactor.lock() = Arc::downgrade(&reactor);
        stage.connection.register_with(Arc::new(FakeRegistration(Arc::clone(&reactor))));
        let threads = (0..threads).map(|_| {
            let reactor = Arc::clone(&reactor);
            thread::spawn(move || {
                spandrel_orb::nesting::pretend();
                reactor.run();
            })
        });
        let threads = threads.collect();
        (reactor, threads)
    }

    fn run(&self) {
        loop {
            match self.bell.await_that(|| self.next()) {
                Step::Input(handler) => self.visit(handler),
                Step::Timeout(handler) => self.release(handler, true),
                Step::Return => return,
            }
        }
    }

    /// Serves inside an upcall until the condition is true. After the end of the reactor, only waits for
    /// that.
    pub(super) fn serve_until(&self, is_true: impl Fn() -> bool) {
        loop {
            let step = self.bell.await_that(|| match is_true() {
                true => Some(Step::Return),
                false => self.next().filter(|step| !matches!(step, Step::Return)),
            });
            match step {
                Step::Input(handler) => self.visit(handler),
                Step::Timeout(handler) => self.release(handler, true),
                Step::Return => return,
            }
        }
    }

    /// Makes all serving threads check their conditions.
    pub(super) fn look(&self) {
        self.bell.ring();
    }

    fn next(&self) -> Option<Step> {
        let mut place = self.place.lock();
        if place.closes > 0 {
            return Some(Step::Return);
        }
        if place.is_busy || place.is_removed {
            return None;
        }
        let is_shown = !place.is_suspended && (place.is_marked || self.near.is_readable());
        let step = if place.lingers && !(is_shown && one_in(2)) {
            Step::Timeout(place.generation)
        } else if is_shown {
            Step::Input(place.generation)
        } else {
            return None;
        };
        place.is_marked = false;
        place.is_busy = true;
        Some(step)
    }

    fn visit(&self, handler: u32) {
        let lingers = self.place.lock().lingers;
        let reads = self.readers.lock().enter();
        let visited = catch_unwind(AssertUnwindSafe(|| self.connection.serve_ready()));
        let progress = self.readers.lock().leave() - reads;
        assert!(progress > 0 || !lingers, "what still comes is not read, and shows up again and again");
        self.release(handler, !matches!(visited, Ok(VisitOutcome::Idle)));
        // A thread that finds another thread reading, or about to read, visits again and again.
        thread::yield_now();
    }

    /// Records that a call of the handler has returned.
    fn release(&self, handler: u32, closes: bool) {
        let mut place = self.place.lock();
        if place.generation != handler {
            // The handler was replaced during the call.
            return;
        }
        place.is_removed |= closes;
        if place.is_removed {
            drop(place);
            self.close();
        } else {
            place.is_busy = false;
            drop(place);
            self.bell.ring();
        }
    }

    fn close(&self) {
        self.connection.registration_closed();
        self.place.lock().closes += 1;
        self.bell.ring();
    }

    fn go_on(&self, change: impl FnOnce(&mut DeferredSlot)) -> bool {
        let mut place = self.place.lock();
        if place.is_removed {
            return false;
        }
        place.is_suspended = false;
        change(&mut place);
        drop(place);
        self.bell.ring();
        true
    }

    /// Stops the reactor: closes the handler as soon as no thread is in it.
    fn stop(self: &Arc<Self>) -> thread::JoinHandle<()> {
        let registration = FakeRegistration(Arc::clone(self));
        thread::spawn(move || registration.leave())
    }

    /// Waits until the reactor may read.
    fn await_seated(&self) {
        self.bell.await_that(|| {
            let place = self.place.lock();
            (!place.is_busy && !place.is_suspended).then_some(())
        });
    }
}

impl Stage {
    pub(super) fn pooled() -> Self {
        Self::with(&Orb::builder().build().unwrap(), MAX_IN_FLIGHT, true)
    }

    /// Waits for the end of the connection, and checks that nothing is left of it.
    pub(super) fn end(&self, reactor: &Reactor, threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
        join(threads);
        self.connection.await_close_phase(ClosePhase::Ended, &Deadline::after(NEVER));
        assert_eq!(reactor.place.lock().closes, 1);
        self.check_in_flight();
        // No upcall runs any more.
        let entries = self.diary.entries.lock();
        assert_eq!(entries.running, 0);
        drop(entries);
        // The monitor may be about to find that the upcall which it counted has ended. If it counted that
        // upcall for ever, this loop would exceed the steps of an execution.
        while self.resources.pool.blocked() != 0 {
            thread::yield_now();
        }
    }

    /// The tokens of the two-ways among these requests that were run.
    pub(super) fn answers(&self, questions: &[FakeRequest]) -> Vec<u32> {
        let is_answered = |token: &u32| questions.iter().any(|request| request.token == *token && request.is_two_way);
        self.begun().into_iter().filter(is_answered).collect()
    }
}

fn some_questions() -> Vec<FakeRequest> {
    (10..14).map(|token| if one_in(4) { one_way(token) } else { two_way(token) }).collect()
}

#[test]
fn every_accepted_request_is_answered_once_before_close_connection() {
    check(6000, || {
        let stage = Stage::pooled();
        let questions = some_questions();
        let mut messages = requests(&questions);
        messages.insert(1, messages::locate(99));
        let (reactor, threads) = Reactor::start(&stage);
        let others = [stage.hand_over_reading(6), stage.hand_over_reading(6), stage.shut_down(), stage.ask(messages)];
        let received = stage.receive(usize::MAX);
        stage.client.close();
        stage.end(&reactor, threads.into_iter().chain(others));
        assert_eq!(received.closes, 1);
        assert_eq!(received.replies, stage.answers(&questions), "of {:?}", stage.begun());
    });
}

#[test]
fn no_request_is_lost_or_run_twice() {
    check(6000, || {
        let stage = Stage::pooled();
        let questions = some_questions();
        let (reactor, threads) = Reactor::start(&stage);
        let others = [stage.hand_over_reading(8), stage.hand_over_reading(8)];
        let asking = stage.ask(requests(&questions));
        let expected: Vec<u32> =
            questions.iter().filter(|request| request.is_two_way).map(|request| request.token).collect();
        assert_eq!(stage.receive(expected.len()).replies, expected);
        join([asking]);
        if one_in(2) {
            stage.client.close_writer();
        } else {
            stage.client.close();
        }
        stage.end(&reactor, threads.into_iter().chain(others));
        assert_eq!(stage.begun(), questions.iter().map(|request| request.token).collect::<Vec<_>>());
    });
}

#[test]
fn the_reactor_serves_again_after_a_long_upcall() {
    check(3000, || {
        let stage = Stage::pooled();
        stage.resources.upcall_monitor.watch(&stage.connection);
        let (reactor, threads) = Reactor::start(&stage);
        let its_threads: Vec<_> = threads.iter().map(|handle| handle.thread().id()).collect();
        for round in 0..2 {
            stage.diary.entries.lock().released = 0;
            let asking = stage.ask(requests(&[two_way(HOLD), two_way(RELEASE)]));
            assert_eq!(stage.receive(2).replies, [HOLD, RELEASE]);
            join([asking]);
            reactor.await_seated();
            join([stage.ask(requests(&[two_way(10)]))]);
            assert_eq!(stage.receive(1).replies, [10]);
            let last = *stage.diary.entries.lock().threads.last().expect("it was run");
            assert!(its_threads.contains(&last), "round {round} left a thread with the connection");
        }
        stage.client.close();
        stage.end(&reactor, threads);
        stage.resources.upcall_monitor.stop();
    });
}

#[test]
fn a_client_that_leaves_at_any_time_leaves_no_thread_and_no_registration() {
    check(6000, || {
        let stage = Stage::pooled();
        let (reactor, threads) = Reactor::start(&stage);
        let asking = stage.ask(requests(&[two_way(10), one_way(11), two_way(12)]));
        let mut others = vec![stage.hand_over_reading(6), stage.hand_over_reading(6), asking];
        if one_in(2) {
            others.push(stage.shut_down());
        }
        if one_in(2) {
            // Octets that are not GIOP end the connection, too.
            let _ = send_octets(&stage.client, b"garbage, not GIOP");
        }
        if one_in(2) {
            stage.client.close_writer();
        } else {
            stage.client.close();
        }
        stage.end(&reactor, threads.into_iter().chain(others));
    });
}

#[test]
fn a_client_that_stays_after_a_protocol_error_is_not_waited_for() {
    check(3000, || {
        let stage = Stage::pooled();
        let (reactor, threads) = Reactor::start(&stage);
        let watching = stage.hand_over_reading(6);
        let questions = [two_way(10), two_way(11)];
        let mut messages = requests(&questions);
        messages.extend([b"garbage, not GIOP".to_vec(), b"and more of it".to_vec()]);
        let asking = stage.ask(messages);
        let received = stage.receive(usize::MAX);
        stage.end(&reactor, threads.into_iter().chain([watching, asking]));
        assert_eq!(received.replies, [10, 11]);
        // MessageError may be left out if a reply is just being written.
        assert!(received.complaints <= 1, "it was told {} times", received.complaints);
        assert_eq!(stage.begun(), [10, 11]);
    });
}

#[test]
fn a_panic_in_the_reactor_ends_the_connection_and_nothing_else() {
    check(6000, || {
        let stage = Stage::pooled();
        let (reactor, threads) = Reactor::start(&stage);
        let its_threads = threads.iter().map(|handle| handle.thread().id());
        stage.diary.entries.lock().nervous.extend(its_threads);
        let questions = [two_way(10), one_way(11)];
        let mut messages = requests(&questions);
        messages.insert(below(3), messages::locate(99));
        let others = [stage.hand_over_reading(8), stage.hand_over_reading(8)];
        join([stage.ask(messages)]);
        stage.client.close_writer();
        let received = stage.receive(usize::MAX);
        stage.end(&reactor, threads.into_iter().chain(others));
        assert_eq!(received.replies, stage.answers(&questions));
    });
}

#[test]
fn a_reactor_that_stops_at_any_time_releases_the_connection() {
    check(4000, || {
        let stage = Stage::pooled();
        let (reactor, threads) = Reactor::start(&stage);
        let is_taken_over = one_in(2);
        let asking = stage.ask(requests(&[two_way(if is_taken_over { HOLD } else { 10 }), two_way(11)]));
        if is_taken_over {
            stage.hand_over_and_release();
        }
        let others = [stage.hand_over_reading(6), reactor.stop(), asking];
        // A thread that has taken over reads to the end.
        stage.client.close();
        stage.end(&reactor, threads.into_iter().chain(others));
    });
}

#[test]
fn a_late_registration_is_ended() {
    check(2000, || {
        let stage = Stage::pooled();
        let connection = Arc::clone(&stage.connection);
        let ending = thread::spawn(move || connection.registration_closed());
        let (reactor, threads) = Reactor::start(&stage);
        stage.end(&reactor, threads.into_iter().chain([ending]));
    });
}

#[test]
fn a_long_upcall_gets_a_replacement_thread_and_reader() {
    check(2000, || {
        let stage = Stage::with(&Orb::builder().build().unwrap(), 1, true);
        let (reactor, threads) = Reactor::start(&stage);
        let asking = stage.ask(requests(&[two_way(HOLD), two_way(10)]));
        let mut entries = stage.diary.entries.lock();
        stage.diary.changed.wait_while(&mut entries, |entries| entries.running == 0);
        drop(entries);
        join([stage.hand_over_reading(1), stage.hand_over_reading(1)]);
        assert_eq!(stage.resources.pool.blocked(), 1);
        let watching = stage.hand_over_reading(4);
        stage.diary.release();
        assert_eq!(stage.receive(2).replies, [HOLD, 10]);
        stage.client.close();
        stage.end(&reactor, threads.into_iter().chain([asking, watching]));
        assert_eq!(stage.diary.entries.lock().most_running, 1);
    });
}
