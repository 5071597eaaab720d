//! The model of a reactor whose threads serve one connection.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_orb::models::pipe::PipeCondition;

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
    pub(super) place: Mutex<DeferredSlot>,
    bell: Arc<PipeCondition>,
}

/// The handler's state.
#[derive(Debug, Default)]
pub(super) struct DeferredSlot {
    /// Whether a thread is in the handler.
    is_busy: bool,
    is_suspended: bool,
    /// Whether a timer is set.
    lingers: bool,
    /// Whether there is input that the handle does not show.
    is_marked: bool,
    /// Whether the handler is to be closed.
    is_removed: bool,
    pub(super) closes: u32,
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
            assert!(!self.former.contains(&me), "a thread that lost the reader role reads again");
            assert!(self.current.is_none_or(|current| current == me), "the reactor reads, and another as well");
            self.current = Some(me);
        }
    }

    /// Returns the reading from this thread to the reactor.
    fn give_back(&mut self) {
        let me = thread::current().id();
        assert!(self.is_draining || self.current == Some(me), "a thread without the reader role gives it back");
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

    fn mark_ready(&self) {
        self.0.place.lock().is_marked = true;
        self.0.bell.ring();
    }

    fn want_output(&self, _is_wanted: bool) {
        unreachable!("no reactor can serve the transport: the writing thread waits");
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
        // Not visited before it is registered.
        let (generation, is_suspended) = (place.generation + 1, true);
        *place = DeferredSlot { is_marked: is_ready, generation, is_suspended, ..DeferredSlot::default() };
        drop(place);
        self.0.connection.register_with(Arc::new(Self(Arc::clone(&self.0))));
        self.0.go_on(|_| {});
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
    pub(super) fn start(stage: &Stage) -> (Arc<Self>, Vec<thread::JoinHandle<()>>) {
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
                spandrel_orb::models::appear_as_pool_thread();
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
        let is_replaced = || self.place.lock().generation != handler;
        let visited = catch_unwind(AssertUnwindSafe(|| self.connection.serve_ready(is_replaced, false)));
        let progress = self.readers.lock().leave() - reads;
        assert!(progress > 0 || !lingers, "late input is not read, and wakes the reactor again and again");
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
    pub(super) fn stop(self: &Arc<Self>) -> thread::JoinHandle<()> {
        let registration = FakeRegistration(Arc::clone(self));
        thread::spawn(move || registration.leave())
    }

    /// Waits until the reactor may read.
    pub(super) fn await_seated(&self) {
        self.bell.await_that(|| {
            let place = self.place.lock();
            (!place.is_busy && !place.is_suspended).then_some(())
        });
    }
}
