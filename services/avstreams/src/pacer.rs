//! The thread that sends the frames of flows by datagrams at their times.
//!
//! These flows share one thread, since a step of theirs waits for no receiver. If a source waits in it all the same, a thread
//! in reserve takes over the other flows. A flow that is held up twice in a row goes on in a thread of its own.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{io, mem, thread};

use spandrel::net::reactor::timer::{Clock as _, MonotonicClock, Time, TimerHeap, TimerId, TimerQueue as _};
use spandrel::net::sync::atomic::Ordering;
use spandrel::net::sync::{Arc, Condition, Mutex};

use crate::flow_state::{FlowGuard, PacedFlows, spawn};
use crate::media::MediaSource;
use crate::sender::{Sender, Step};

/// The time of one step after which the thread in reserve takes over the other flows.
const MAX_STEP: Duration = Duration::from_millis(20);
/// The steps in a row that take too long before a flow gets a thread of its own. A single one may be that of a busy machine.
const MAX_SLOW_STEPS: u32 = 2;

/// The flows of a service that share a thread, by the times of their next steps.
#[derive(Default)]
pub(crate) struct Pacer {
    clock: MonotonicClock,
    state: Mutex<State>,
    /// Wakes the thread that sends.
    changed: Condition,
    /// Wakes the thread in reserve.
    reserve: Condition,
}

#[derive(Default)]
struct State {
    queue: TimerHeap<u64>,
    flows: BTreeMap<u64, Slot>,
    last_number: u64,
    is_running: bool,
    /// The number of the thread that sends, and of the one in reserve behind it.
    generation: u64,
    /// The flow whose step runs, with the beginning of the step.
    step: Option<(u64, Time)>,
}

enum Slot {
    /// The flow waits for the time of its next step.
    Waiting { flow: Box<PacedFlow>, timer: TimerId },
    /// The step of the flow runs. It may have been woken since.
    Running { is_woken: bool },
}

/// A flow that sends by datagrams, with its source.
pub(crate) struct PacedFlow {
    guard: FlowGuard,
    sender: Sender,
    source: Box<dyn MediaSource>,
    /// The last steps in a row that took too long.
    slow_steps: u32,
}

/// The state of a flow after a step.
enum Outcome {
    /// The next step is due at this time.
    Next(Instant),
    /// The flow needs a thread of its own.
    Alone,
    /// The flow ends with this reason or failure.
    End(io::Result<&'static str>),
    Panicked,
}

impl PacedFlow {
    pub(crate) fn new(guard: FlowGuard, sender: Sender, source: Box<dyn MediaSource>) -> Self {
        Self { guard, sender, source, slow_steps: 0 }
    }

    fn step(&mut self) -> Outcome {
        let shared = self.guard.shared();
        if !self.sender.is_paced(shared) {
            return Outcome::Alone;
        }
        match catch_unwind(AssertUnwindSafe(|| self.sender.step(shared, self.source.as_mut()))) {
            Ok(Ok(Step::Next { at, .. })) => Outcome::Next(at),
            Ok(Ok(Step::End(reason))) => Outcome::End(Ok(reason)),
            Ok(Err(error)) => Outcome::End(Err(error)),
            Err(_) => Outcome::Panicked,
        }
    }

    /// Goes on after a step in a thread of the flow's own.
    fn proceed(self, outcome: Outcome) {
        let Self { guard, sender, source, .. } = self;
        match outcome {
            Outcome::Next(_) | Outcome::Alone => sender.run(guard.shared(), source),
            Outcome::End(outcome) => sender.finish(guard.shared(), source, outcome),
            // The guard ends the flow.
            Outcome::Panicked => {}
        }
    }
}

impl State {
    /// Takes a flow out for a step.
    fn begin_step(&mut self, number: u64, now: Time) -> Option<Box<PacedFlow>> {
        let slot = self.flows.get_mut(&number)?;
        let Slot::Waiting { flow, .. } = mem::replace(slot, Slot::Running { is_woken: false }) else { return None };
        self.step = Some((number, now));
        Some(flow)
    }

    /// Puts a flow in until its next step. Returns it if the queue is full.
    fn put(&mut self, number: u64, flow: Box<PacedFlow>, at: Time) -> Result<(), Box<PacedFlow>> {
        match self.queue.schedule(at, None, number) {
            Ok(timer) => {
                self.flows.insert(number, Slot::Waiting { flow, timer });
                Ok(())
            }
            Err(_) => {
                self.flows.remove(&number);
                Err(flow)
            }
        }
    }
}

impl Pacer {
    /// Sends the frames of a flow from now on.
    ///
    /// # Errors
    /// No thread; too many flows. The flow has ended then.
    pub(crate) fn add(self: &Arc<Self>, flow: PacedFlow) -> io::Result<()> {
        flow.sender.set_nonblocking(true)?;
        let flow = Box::new(flow);
        let mut state = self.state.lock();
        let rejected = match self.require_threads(&mut state) {
            Ok(()) => {
                state.last_number += 1;
                let number = state.last_number;
                flow.guard.shared().paced.store(number, Ordering::Relaxed);
                let full = |flow| (io::Error::other("too many flows share a thread"), flow);
                state.put(number, flow, self.clock.now()).err().map(full)
            }
            Err(error) => Some((error, flow)),
        };
        drop(state);
        self.changed.notify_one();
        // A rejected flow ends here, without the lock, which its end takes as well.
        rejected.map_or(Ok(()), |(error, _)| Err(error))
    }

    fn require_threads(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        if !state.is_running {
            state.generation += 1;
            self.spawn(state.generation, Self::send_all)?;
            state.is_running = true;
            self.spawn_reserve(state.generation);
        }
        Ok(())
    }

    fn spawn(self: &Arc<Self>, generation: u64, run: fn(&Arc<Self>, u64)) -> io::Result<()> {
        let pacer = Arc::clone(self);
        let run = move || run(&pacer, generation);
        thread::Builder::new().name("spandrel-pacer".to_owned()).spawn(run).map(drop)
    }

    fn spawn_reserve(self: &Arc<Self>, generation: u64) {
        if let Err(error) = self.spawn(generation, Self::stand_by) {
            tracing::warn!(%error, "a source that waits holds up other flows: no further thread could be started");
        }
    }

    /// Runs the steps of all flows at their times, until there are none or another thread does so.
    fn send_all(self: &Arc<Self>, generation: u64) {
        let mut state = self.state.lock();
        loop {
            let now = self.clock.now();
            let Some(expired) = state.queue.pop_expired(now) else {
                let Some(at) = state.queue.earliest() else {
                    state.is_running = false;
                    self.reserve.notify_all();
                    return;
                };
                _ = self.changed.wait_for(&mut state, at.saturating_since(now));
                continue;
            };
            let number = expired.payload;
            let Some(mut flow) = state.begin_step(number, now) else { continue };
            drop(state);
            let outcome = flow.step();
            state = self.state.lock();
            if state.generation != generation {
                drop(state);
                return self.end_slow_step(number, flow, outcome);
            }
            state.step = None;
            flow.slow_steps = 0;
            let leaving = match outcome {
                Outcome::Next(at) => {
                    let is_woken = matches!(state.flows.get(&number), Some(Slot::Running { is_woken: true }));
                    let at = if is_woken { now } else { self.clock.time_of(at) };
                    state.put(number, flow, at).err().map(|flow| (flow, Outcome::Alone))
                }
                outcome => {
                    state.flows.remove(&number);
                    Some((flow, outcome))
                }
            };
            if let Some((flow, outcome)) = leaving {
                drop(state);
                // The end of a flow calls the source and the control, which may take long.
                if let Err(error) = spawn(move || flow.proceed(outcome)) {
                    tracing::warn!(%error, "a flow has ended: no thread could be started for it");
                }
                state = self.state.lock();
            }
        }
    }

    /// Gives a flow back after a step in which another thread has taken over the others, or goes on with it alone.
    fn end_slow_step(self: &Arc<Self>, number: u64, mut flow: Box<PacedFlow>, outcome: Outcome) {
        flow.slow_steps += 1;
        if flow.slow_steps >= MAX_SLOW_STEPS || !matches!(outcome, Outcome::Next(_)) {
            return flow.proceed(outcome);
        }
        let mut state = self.state.lock();
        let rejected = match self.require_threads(&mut state) {
            // At once, since it may have been woken meanwhile.
            Ok(()) => state.put(number, flow, self.clock.now()).err(),
            Err(_) => Some(flow),
        };
        drop(state);
        self.changed.notify_one();
        if let Some(flow) = rejected {
            flow.proceed(outcome);
        }
    }

    /// Waits until a step takes too long, and then sends in place of its thread.
    fn stand_by(self: &Arc<Self>, generation: u64) {
        let mut state = self.state.lock();
        let late = loop {
            if !state.is_running || state.generation != generation {
                return;
            }
            let now = self.clock.now();
            match state.step {
                Some((number, begin)) if now.saturating_since(begin) > MAX_STEP => break number,
                _ => _ = self.reserve.wait_for(&mut state, MAX_STEP),
            }
        };
        state.flows.remove(&late);
        state.step = None;
        state.generation += 1;
        let generation = state.generation;
        drop(state);
        self.spawn_reserve(generation);
        self.send_all(generation);
    }
}

impl PacedFlows for Pacer {
    fn wake(&self, number: u64) {
        let mut state = self.state.lock();
        match state.flows.get_mut(&number) {
            Some(Slot::Waiting { timer, .. }) => {
                let timer = *timer;
                state.queue.reschedule(timer, self.clock.now(), None);
                self.changed.notify_one();
            }
            Some(Slot::Running { is_woken }) => *is_woken = true,
            None => {}
        }
    }
}
