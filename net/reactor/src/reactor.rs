//! The event loop: threads that wait, dispatch, and take turns. Handlers are registered in `registry`; one round
//! of waiting is in `core`.

use std::io;
use std::time::Duration;

use spandrel_sync::atomic::Ordering;
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Mutex, thread};

use crate::core::Scratch;
use crate::current::CurrentReactor;
use crate::demux::{self, Demultiplexer};
use crate::leader_followers::{Action, DispatchId, Leadership, Nesting, StuckEpoch};
use crate::options::BeforeWait;
use crate::queue::ItemKind;
use crate::registry::{Core, Item, Job};
use crate::{HandlerId, Options, Registry, ThreadStrategy};

/// Waits for the events of its handlers, and dispatches them (paper 002, section 2.4).
///
/// Cheap to clone; dropping the last clone [closes](Self::close) it.
#[derive(Clone, Debug)]
pub struct Reactor(Arc<Owner>);

/// The state that the clones of a reactor share, and that registries do not keep alive.
#[derive(Debug)]
struct Owner {
    registry: Registry,
    workers: Mutex<Vec<thread::JoinHandle<()>>>,
}

/// The end condition of a run, and its progress.
struct Run<'a> {
    deadline: Deadline,
    done: Option<&'a mut dyn FnMut() -> bool>,
    /// Ends after one wait.
    once: bool,
    /// `Nested` if the run leaves work to idle threads.
    nesting: Nesting,
    calls: usize,
    epoch: StuckEpoch,
}

impl Run<'_> {
    fn is_done(&mut self) -> bool {
        self.done.as_mut().is_some_and(|done| done())
    }
}

impl Reactor {
    /// Creates a reactor with the default [`Options`].
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn new() -> io::Result<Self> {
        Self::with(&Options::default())
    }

    /// Creates a reactor with these options.
    ///
    /// # Errors
    /// Any error of the operating system, such as for a [`Backend`](crate::Backend) that is not available.
    pub fn with(options: &Options) -> io::Result<Self> {
        Self::over(options, demux::open(options.chosen_backend())?)
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

    /// The handlers of this reactor, by their ids.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// Waits and dispatches until [`stop`](Self::stop).
    ///
    /// Several threads may do this at once, unless the [strategy](ThreadStrategy) excludes it. It may also be
    /// done inside of a handler: others are called then, while this one waits. A thread inside of a handler calls them
    /// only when no other thread of the reactor is idle.
    ///
    /// # Errors
    /// The errors of the wait, after which the reactor cannot go on; [`io::ErrorKind::ResourceBusy`] for a
    /// second thread of [`ThreadStrategy::Reactive`].
    pub fn run(&self) -> io::Result<()> {
        self.go(&mut Run {
            deadline: Deadline::NEVER,
            done: None,
            once: false,
            nesting: Nesting::Outermost,
            calls: 0,
            epoch: StuckEpoch::default(),
        })
    }

    /// As [`run`](Self::run), for so long at most.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_for(&self, span: Duration) -> io::Result<()> {
        self.go(&mut Run {
            deadline: deadline(Some(span)),
            done: None,
            once: false,
            nesting: Nesting::Outermost,
            calls: 0,
            epoch: StuckEpoch::default(),
        })
    }

    /// As [`run`](Self::run), until `done` returns true or the timeout passes; returns whether it did.
    ///
    /// `done` is called first, and after each round of this thread. Another thread that makes it true calls
    /// [`Registry::wake`]. It need not stay true.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_until(&self, timeout: Option<Duration>, mut done: impl FnMut() -> bool) -> io::Result<bool> {
        self.registry().core().leadership.count_conditional(true);
        let mut has_ended = false;
        let mut ends = || {
            has_ended = done();
            has_ended
        };
        let result = self.go(&mut Run {
            deadline: deadline(timeout),
            done: Some(&mut ends),
            once: false,
            nesting: Nesting::Outermost,
            calls: 0,
            epoch: StuckEpoch::default(),
        });
        self.registry().core().leadership.count_conditional(false);
        // What has ended the run may be over by now: another thread may have waited for that.
        result.map(|()| has_ended || done())
    }

    /// Waits once, at most for `timeout`, dispatches the events, and returns the number of handler methods
    /// (and jobs) called. Calls for events of another thread's wait count as well.
    ///
    /// It may return early without a call, for instance after a signal or [`Registry::wake`].
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_once(&self, timeout: Option<Duration>) -> io::Result<usize> {
        let mut run = Run {
            deadline: deadline(timeout),
            done: None,
            once: true,
            nesting: Nesting::Outermost,
            calls: 0,
            epoch: StuckEpoch::default(),
        };
        self.go(&mut run).map(|()| run.calls)
    }

    /// Makes every [`run`](Self::run) return, also later ones, until [`restart`](Self::restart). Running
    /// calls of handlers end first.
    pub fn stop(&self) {
        self.registry().stop();
    }

    /// Lets the reactor run again after [`stop`](Self::stop).
    pub fn restart(&self) {
        if !self.registry().core().table.is_closed() {
            self.registry().core().leadership.restart();
        }
    }

    /// Stops it for good, and closes all handlers with [`CloseReason::Stopped`](crate::CloseReason::Stopped);
    /// a handler that is being called is closed when the call returns. Pending jobs and notices are dropped.
    pub fn close(&self) {
        self.0.close();
    }

    fn go(&self, run: &mut Run<'_>) -> io::Result<()> {
        let core = self.registry().core();
        let current = CurrentReactor::enter(core);
        let others = core.running.fetch_add(1, Ordering::SeqCst);
        let result = if current.nesting == Nesting::Nested {
            // A single wait dispatches what it finds.
            if !run.once {
                run.nesting = Nesting::Nested;
            }
            core.leadership.promote_any();
            self.take_part(run, current.nesting)
        } else if core.threads == ThreadStrategy::Reactive && others > 0 {
            Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another thread runs this reactor; only one may with the strategy Reactive",
            ))
        } else {
            self.take_part(run, current.nesting)
        };
        core.running.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn take_part(&self, run: &mut Run<'_>, nesting: Nesting) -> io::Result<()> {
        let registry = self.registry();
        let leadership = &registry.core().leadership;
        let mut scratch = registry.core().borrow_scratch();
        run.epoch = leadership.enter(nesting);
        let result = loop {
            let condition_checks = run.done.is_some().then(|| leadership.condition_checks());
            if run.is_done() {
                break Ok(());
            }
            match self.next(run, condition_checks) {
                Action::Lead => match self.lead(run, &mut scratch) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                },
                Action::Work(item) => {
                    run.calls += registry.dispatch(item, DispatchId::NONE);
                    if run.once {
                        break Ok(());
                    }
                }
                Action::CheckCondition => {}
                Action::TimedOut | Action::Stopped => break Ok(()),
            }
        };
        registry.core().return_scratch(scratch);
        leadership.exit(nesting, &mut run.epoch);
        leadership.promote_if_free();
        result
    }

    /// The next action of this thread. Runs the hook before a wait.
    #[inline]
    fn next(&self, run: &mut Run<'_>, condition_checks: Option<u64>) -> Action<Item> {
        let registry = self.registry();
        let Core { leadership, before_wait, .. } = registry.core();
        if let Some(BeforeWait(before_wait)) = before_wait
            && !leadership.is_stopped()
        {
            if let Some(item) = leadership.take(run.nesting, &mut run.epoch, |item| registry.claim_shared(item)) {
                return Action::Work(item);
            }
            before_wait();
        }
        let (deadline, nesting, epoch) = (run.deadline, run.nesting, &mut run.epoch);
        leadership.next(deadline, condition_checks, nesting, epoch, |item| registry.claim_shared(item))
    }

    /// Leads as long as possible. False: the run has ended.
    fn lead(&self, run: &mut Run<'_>, scratch: &mut Scratch<Job>) -> io::Result<bool> {
        let registry = self.registry();
        let core = registry.core();
        let mut leading = Leading { leadership: &core.leadership, phase: Some(DispatchId::NONE) };
        loop {
            core.gather(scratch, run.deadline.remaining())?;
            if core.has_workers() {
                run.calls += self.hand_over(scratch);
            } else if run.nesting == Nesting::Nested && scratch.len() > 0 && core.leadership.has_idle() {
                leading.phase = None;
                core.leadership.pass_on(scratch.drain());
                return Ok(true);
            } else if scratch.len() > 1 {
                leading.phase = None;
                core.leadership.share(scratch.drain(), &mut run.epoch);
                return Ok(self.finish_shared(run));
            } else if let Some((key, ready)) = scratch.take_single() {
                if let Some((slot, word)) = registry.claim_ready_handle(key, ready)
                    && !leading
                        .in_place(|dispatch_id| run.calls += registry.call_ready(slot, key, word, ready, dispatch_id))
                {
                    return Ok(!run.once);
                }
            } else if scratch.len() == 1
                && !leading.in_place(|dispatch_id| {
                    run.calls += scratch.drain().map(|item| registry.dispatch(item, dispatch_id)).sum::<usize>();
                })
            {
                return Ok(!run.once);
            }
            let is_over = run.once || core.leadership.is_stopped() || run.deadline.is_over();
            if is_over || run.is_done() {
                return Ok(false);
            }
        }
    }

    /// A run of one wait also dispatches its events, unless other threads do.
    fn finish_shared(&self, run: &mut Run<'_>) -> bool {
        let registry = self.registry();
        while run.once
            && let Some(item) =
                registry.core().leadership.take(Nesting::Outermost, &mut run.epoch, |item| registry.claim_shared(item))
        {
            run.calls += registry.dispatch(item, DispatchId::NONE);
        }
        !run.once
    }

    /// Passes all items to the workers; returns their number. Items that the workers refuse, because they
    /// have ended, are dispatched here, so that no handler stays claimed.
    fn hand_over(&self, scratch: &mut Scratch<Job>) -> usize {
        let registry = self.registry();
        let mut count = 0;
        for mut item in scratch.drain() {
            if registry.claim_shared(&mut item) {
                if let Err(item) = registry.core().leadership.hand_over(item) {
                    registry.dispatch(item, DispatchId::NONE);
                }
                count += 1;
            }
        }
        count
    }
}

impl Registry {
    /// Claims the handler of a shared item, so that the next leader does not report it again. False: there is
    /// nothing to do.
    fn claim_shared(&self, item: &mut Item) -> bool {
        let ItemKind::ReadyHandle(ready) = item.kind else { return true };
        let is_claimed = self.claim_ready_handle(item.key, ready).is_some();
        item.kind = ItemKind::Claimed(ready);
        is_claimed
    }
}

/// Gives up the leadership when a leader returns or panics.
struct Leading<'a> {
    leadership: &'a Leadership<Item>,
    /// The present dispatch in place; `None` if it no longer leads.
    phase: Option<DispatchId>,
}

impl Leading<'_> {
    /// Dispatches in place. False: it no longer leads.
    #[inline]
    fn in_place(&mut self, dispatch: impl FnOnce(DispatchId)) -> bool {
        let dispatch_id = self.leadership.begin();
        self.phase = Some(dispatch_id);
        dispatch(dispatch_id);
        let leads = self.leadership.end(dispatch_id);
        self.phase = leads.then_some(DispatchId::NONE);
        leads
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        match self.phase {
            Some(DispatchId::NONE) => self.leadership.resign(),
            Some(dispatch_id) => self.leadership.promote(dispatch_id),
            None => {}
        }
    }
}

impl Owner {
    fn close(&self) {
        let core = self.registry.core();
        core.table.close();
        self.registry.stop();
        core.leadership.end_workers();
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
        let jobs = core.leadership.drain().into_iter().chain(core.queue.drain());
        core.queue.dismiss(jobs.filter(|item| matches!(item.kind, ItemKind::Job(_))).count());
        core.with_timers(|timers| timers.clear());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.close();
    }
}

/// The loop of a worker of a half-sync/half-async reactor.
fn work(registry: &Registry) {
    let _current = CurrentReactor::enter(registry.core());
    let Core { leadership, before_wait, .. } = registry.core();
    while let Some(item) = leadership.next_work() {
        registry.dispatch(item, DispatchId::NONE);
        if let Some(BeforeWait(before_wait)) = before_wait {
            before_wait();
        }
    }
}

/// Times beyond the range of the clock count as unlimited.
fn deadline(timeout: Option<Duration>) -> Deadline {
    const AGES: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Deadline::after(timeout.filter(|timeout| *timeout < AGES))
}
