//! The loop: threads that wait, dispatch, and take turns at it.

use std::io;
use std::time::Duration;

use spandrel_sync::atomic::Ordering;
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Mutex, thread};

use crate::core::Scratch;
use crate::demux::{self, Demultiplexer};
use crate::inside::Inside;
use crate::lead::{Leadership, Part, Turn};
use crate::queue::What;
use crate::registry::{Core, Item, Job};
use crate::{HandlerId, Options, Registry, ThreadStrategy};

/// Waits for what its handlers wait for, and calls them (paper 002, section 2.4).
///
/// Cheap to clone; with the last clone it is [closed](Self::close).
#[derive(Clone, Debug)]
pub struct Reactor(Arc<Owner>);

/// What the reactors' clones share, and registries do not keep alive.
#[derive(Debug)]
struct Owner {
    registry: Registry,
    workers: Mutex<Vec<thread::JoinHandle<()>>>,
}

/// Why a run goes on, and how far it has come.
struct Run<'a> {
    until: Option<Instant>,
    done: Option<&'a mut dyn FnMut() -> bool>,
    /// Ends after one wait.
    once: bool,
    calls: usize,
}

impl Run<'_> {
    fn is_done(&mut self) -> bool {
        self.done.as_mut().is_some_and(|done| done())
    }

    fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }
}

impl Reactor {
    /// With the default [`Options`].
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn new() -> io::Result<Self> {
        Self::with(&Options::default())
    }

    /// With these options.
    ///
    /// # Errors
    /// Those of the operating system, such as for a [`Backend`](crate::Backend) that is not available.
    pub fn with(options: &Options) -> io::Result<Self> {
        Self::over(options, demux::open(options.backend)?)
    }

    /// Over a given demultiplexer.
    pub(crate) fn over(options: &Options, demux: Box<dyn Demultiplexer>) -> io::Result<Self> {
        let registry = Registry(Arc::new(Core::new(options, demux)));
        let reactor = Self(Arc::new(Owner { registry, workers: Mutex::default() }));
        if let ThreadStrategy::HalfSyncHalfAsync { workers, .. } = options.threads {
            for number in 0..workers.max(1) {
                let registry = reactor.registry().clone();
                let name = format!("spandrel-work-{number}");
                let worker = thread::Builder::new().name(name).spawn(move || work(&registry))?;
                reactor.0.workers.lock().push(worker);
            }
        }
        Ok(reactor)
    }

    /// Its handlers.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// Waits and dispatches until [`stop`](Self::stop).
    ///
    /// Several threads may do this at once, unless the [strategy](ThreadStrategy) says otherwise. It may also be done inside of a
    /// handler: others are called then, while this one waits.
    ///
    /// # Errors
    /// Those of the wait, after which the reactor cannot go on; [`io::ErrorKind::ResourceBusy`] for a second thread of
    /// [`ThreadStrategy::Reactive`].
    pub fn run(&self) -> io::Result<()> {
        self.go(&mut Run { until: None, done: None, once: false, calls: 0 })
    }

    /// As [`run`](Self::run), for so long at most.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_for(&self, span: Duration) -> io::Result<()> {
        self.go(&mut Run { until: deadline(Some(span)), done: None, once: false, calls: 0 })
    }

    /// As [`run`](Self::run), until `done` says that what it runs for has come true, or the time is up; says whether it has.
    ///
    /// `done` is asked first, and after each round of this thread. When another thread makes it come true, that one calls
    /// [`Registry::wake`].
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_until(&self, timeout: Option<Duration>, mut done: impl FnMut() -> bool) -> io::Result<bool> {
        self.registry().core().lead.looker(true);
        let result = self.go(&mut Run { until: deadline(timeout), done: Some(&mut done), once: false, calls: 0 });
        self.registry().core().lead.looker(false);
        result.map(|()| done())
    }

    /// Waits once, for `timeout` at most, dispatches what that brought, and returns how many methods of handlers (and jobs) that
    /// called. A call for which another thread's wait brought something counts as well.
    ///
    /// It may return early with nothing called, for instance after a signal or [`Registry::wake`].
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_once(&self, timeout: Option<Duration>) -> io::Result<usize> {
        let mut run = Run { until: deadline(timeout), done: None, once: true, calls: 0 };
        self.go(&mut run).map(|()| run.calls)
    }

    /// Has every [`run`](Self::run) return, also those that are called later, until [`restart`](Self::restart). Calls of handlers
    /// that are under way end first.
    pub fn stop(&self) {
        self.registry().stop();
    }

    /// Lets the reactor run again after [`stop`](Self::stop).
    pub fn restart(&self) {
        if !self.registry().core().table.is_closed() {
            self.registry().core().lead.restart();
        }
    }

    /// Stops it for good, and closes all handlers with [`CloseReason::Stopped`](crate::CloseReason::Stopped): those that are being
    /// called, as soon as that call has returned. Jobs and notices that are still under way are dropped.
    pub fn close(&self) {
        self.0.close();
    }

    fn go(&self, run: &mut Run<'_>) -> io::Result<()> {
        let core = self.registry().core();
        let inside = Inside::enter(core);
        let others = core.running.fetch_add(1, Ordering::SeqCst);
        let result = if inside.is_nested {
            core.lead.promote_any();
            self.take_part(run)
        } else if core.threads == ThreadStrategy::Reactive && others > 0 {
            Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another thread runs this reactor, whose strategy is Reactive",
            ))
        } else {
            self.take_part(run)
        };
        core.running.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn take_part(&self, run: &mut Run<'_>) -> io::Result<()> {
        let registry = self.registry();
        let lead = &registry.core().lead;
        let mut scratch = registry.core().borrow_scratch();
        let result = loop {
            let looks = run.done.is_some().then(|| lead.looks());
            if run.is_done() {
                break Ok(());
            }
            match lead.next(run.until, looks, |item| registry.claim_shared(item)) {
                Part::Lead => match self.lead(run, &mut scratch) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                },
                Part::Work(item) => {
                    run.calls += registry.dispatch(item, Turn::NONE);
                    if run.once {
                        break Ok(());
                    }
                }
                Part::Look => {}
                Part::TimedOut | Part::Stopped => break Ok(()),
            }
        };
        registry.core().return_scratch(scratch);
        result
    }

    /// Leads for as long as it pays. False: the run is over.
    fn lead(&self, run: &mut Run<'_>, scratch: &mut Scratch<Job>) -> io::Result<bool> {
        let registry = self.registry();
        let core = registry.core();
        let mut leading = Leading { lead: &core.lead, phase: Some(Turn::NONE) };
        loop {
            core.gather(scratch, run.left())?;
            if core.has_workers() {
                run.calls += self.hand_over(scratch);
            } else if scratch.len() > 1 {
                leading.phase = None;
                core.lead.share(scratch.drain());
                return Ok(self.finish_shared(run));
            } else if let Some((key, ready)) = scratch.take_single() {
                if let Some((slot, word)) = registry.claim_shown(key, ready)
                    && !leading.in_place(|turn| run.calls += registry.call_ready(slot, key, word, ready, turn))
                {
                    return Ok(!run.once);
                }
            } else if scratch.len() == 1
                && !leading.in_place(|turn| {
                    run.calls += scratch.drain().map(|item| registry.dispatch(item, turn)).sum::<usize>();
                })
            {
                return Ok(!run.once);
            }
            let is_over = run.once || core.lead.is_stopped() || run.left().is_some_and(|left| left.is_zero());
            if is_over || run.is_done() {
                return Ok(false);
            }
        }
    }

    /// Where a run ends after one wait, it also dispatches what that brought, as far as others do not.
    fn finish_shared(&self, run: &mut Run<'_>) -> bool {
        let registry = self.registry();
        while run.once
            && let Some(item) = registry.core().lead.take(|item| registry.claim_shared(item))
        {
            run.calls += registry.dispatch(item, Turn::NONE);
        }
        !run.once
    }

    /// Gives everything to the workers; says how many items that were. What they take no more, because they have been told to end,
    /// is dispatched here, so that nothing stays claimed.
    fn hand_over(&self, scratch: &mut Scratch<Job>) -> usize {
        let registry = self.registry();
        let mut count = 0;
        for mut item in scratch.drain() {
            if registry.claim_shared(&mut item) {
                if let Err(item) = registry.core().lead.hand_over(item) {
                    registry.dispatch(item, Turn::NONE);
                }
                count += 1;
            }
        }
        count
    }
}

impl Registry {
    /// Claims the handler of a shared item, so that it is not shown anew to the next leader. False: there is nothing to do.
    fn claim_shared(&self, item: &mut Item) -> bool {
        let What::Shown(ready) = item.what else { return true };
        let is_claimed = self.claim_shown(item.key, ready).is_some();
        item.what = What::Claimed(ready);
        is_claimed
    }
}

/// Gives the leadership back however a leader ends.
struct Leading<'a> {
    lead: &'a Leadership<Item>,
    /// In which dispatch in place; `None` if it leads no longer.
    phase: Option<Turn>,
}

impl Leading<'_> {
    /// Dispatches in place. False: it leads no longer.
    #[inline]
    fn in_place(&mut self, dispatch: impl FnOnce(Turn)) -> bool {
        let turn = self.lead.begin();
        self.phase = Some(turn);
        dispatch(turn);
        let leads = self.lead.end(turn);
        self.phase = leads.then_some(Turn::NONE);
        leads
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        match self.phase {
            Some(Turn::NONE) => self.lead.resign(),
            Some(turn) => self.lead.promote(turn),
            None => {}
        }
    }
}

impl Owner {
    fn close(&self) {
        let core = self.registry.core();
        core.table.close();
        self.registry.stop();
        core.lead.end_workers();
        for worker in std::mem::take(&mut *self.workers.lock()) {
            // A worker that closes its own reactor ends by itself.
            if worker.thread().id() != thread::current().id() {
                // It caught the panics of its handlers.
                let _ = worker.join();
            }
        }
        let keys: Vec<_> = core.table.keys().collect();
        for key in keys {
            self.registry.remove(HandlerId(key));
        }
        let jobs = core.lead.drain().into_iter().chain(core.queue.drain());
        core.queue.dismiss(jobs.filter(|item| matches!(item.what, What::Job(_))).count());
        core.with_timers(|timers| timers.clear());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.close();
    }
}

/// What a worker of a half-sync/half-async reactor does.
fn work(registry: &Registry) {
    let _inside = Inside::enter(registry.core());
    while let Some(item) = registry.core().lead.next_work() {
        registry.dispatch(item, Turn::NONE);
    }
}

/// Times beyond what a clock can show are for ever.
fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    const AGES: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    timeout.filter(|timeout| *timeout < AGES).map(|timeout| Instant::now() + timeout)
}
