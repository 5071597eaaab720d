//! The monitor of long upcalls: finds them without a system call or a clock reading per call.
//!
//! Each connection publishes in an atomic number whether an upcall keeps its reading thread. The monitor
//! looks at these numbers at [intervals](LookPace) of 1 to 32 ms while there are calls. It sleeps after a while
//! without calls, and the next call wakes it. A number that is odd and the same at two looks belongs to a
//! long upcall.
//!
//! Another thread takes over the reading from a long upcall as soon as there is input. Until then the monitor
//! [waits for input](input) on the connection's handle, and no thread is started.
//!
//! An upcall whose thread can run but gets no processor is left alone for a tenth of a second at most: a further thread
//! would only make it wait longer.
//!
//! A one-way may keep the reading for a tenth of a second. Clients that send a stream of one-ways expect them
//! to run in order, and a servant that only waited for a processor must not be overtaken.
//!
//! The monitor also makes periodic [sweeps](client_timeouts) for idle connections and late clients, even while it
//! sleeps. After long messages it gives their memory back to the system, in the next sweep or before it sleeps. It
//! reads no messages and runs no upcalls.

mod client_timeouts;
mod input;
mod monitored;
mod state;

use std::{thread::available_parallelism, time::Duration};

use spandrel_connection::{ActivityRule, LookFinding, LookPace, ServiceModeRule};
use spandrel_ipc::release_free_memory;
use spandrel_orb::internal::ClientTimeouts;
use spandrel_sync::{
    Arc, Condition, Mutex, MutexGuard, Weak,
    atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};
use spandrel_transport::MemoryBudget;

use crate::reactor_pool::Pool;
use client_timeouts::WaitingReplies;
use input::InputEvents;
pub(crate) use monitored::{IdleVerdict, LongUpcall, LongUpcallAction, MonitoredConnection, MonitoredReplies};
use state::{LookHistory, Monitored, MonitoredUpcall, State};

/// The most threads that one look starts to read on. Several long upcalls at one look have mostly begun
/// together and wait for a processor, so more threads are no help. The other upcalls get theirs after the
/// next looks.
const MAX_STARTS: usize = 2;
/// The number of connections for which looks may be 1 ms apart. With more connections looks come less often,
/// so that their share of processor time stays the same.
const CONNECTIONS_PER_MILLISECOND: usize = 64;

/// The monitor of one server's pool and of the upcalls on all its connections.
#[derive(Debug, Default)]
pub(crate) struct UpcallMonitor {
    /// Whether the monitor is awake. If not, the next upcall wakes it.
    awake: AtomicBool,
    /// Whether the monitor waits, and could look sooner.
    can_look_earlyer: AtomicBool,
    state: Mutex<State>,
    wake: Condition,
    input: InputEvents,
}

impl UpcallMonitor {
    /// Monitors the pool and the memory budget of a server, and makes sweeps. `own_threads`: the most connections with
    /// a thread of their own.
    pub(super) fn attend(
        &self,
        pool: &Arc<Pool>,
        budget: &Arc<MemoryBudget>,
        client_timeouts: ClientTimeouts,
        own_threads: usize,
    ) {
        let mut state = self.state.lock();
        let processors = available_parallelism().map_or(1, usize::from);
        state.service_mode = pool.is_adaptive().then(|| ServiceModeRule::new(processors, own_threads));
        (state.pool, state.budget) = (Arc::downgrade(pool), Arc::downgrade(budget));
        state.client_timeouts = client_timeouts;
        state.next_round = client_timeouts.period().map(|period| Instant::now() + period);
    }

    /// Gives a model its times. The clock of models advances with the waits, which must not pass the deadlines of other
    /// threads. Connections of models have no handles to wait for.
    #[cfg(all(test, shuttle))]
    pub(crate) fn begin_model(&self, times: spandrel_connection::MonitorTimes) {
        let mut state = self.state.lock();
        (state.times, state.lacks_handles) = (times, true);
    }

    /// Monitors one more connection. The monitor's thread starts with the first one.
    pub(super) fn add(self: &Arc<Self>, connection: &Arc<impl MonitoredConnection + 'static>) {
        let mut state = self.state.lock();
        let is_sooner = state.record_handshake(&**connection);
        let monitored: Weak<dyn MonitoredConnection> = Arc::downgrade(connection) as _;
        state.monitored.insert(Arc::as_ptr(connection).addr(), Monitored::new(monitored, Instant::now()));
        if is_sooner || state.monitored.len() == 1 && state.next_round.is_some() {
            // Without connections the monitor may sleep without a time limit.
            self.call(&state);
        }
        self.start(&mut state);
    }

    fn start(self: &Arc<Self>, state: &mut State) {
        if !state.running && !state.stopped {
            let monitor = Arc::clone(self);
            match thread::Builder::new().name("spandrel-watch".into()).spawn(move || monitor.run()) {
                Ok(_detached) => state.running = true,
                Err(error) => tracing::error!(%error, "cannot start the thread of the upcall monitor"),
            }
        }
    }

    /// Includes the replies on a connection that this ORB has opened in the sweeps.
    pub(super) fn watch_replies(self: &Arc<Self>, replies: Weak<dyn MonitoredReplies>) {
        let mut state = self.state.lock();
        state.callbacks.push((replies, WaitingReplies::new(Instant::now())));
        if state.callbacks.len() == 1 {
            self.call(&state);
        }
        self.start(&mut state);
    }

    /// Stops monitoring a connection.
    pub(super) fn forget(&self, connection: &dyn MonitoredConnection) {
        let forgotten = self.state.lock().monitored.remove(&std::ptr::from_ref(connection).addr());
        if let Some(registration) = forgotten.and_then(|monitored| monitored.registration) {
            self.input.remove(registration);
        }
    }

    /// Wakes the monitor if it sleeps. Called after a connection has published the start of an upcall.
    #[inline]
    pub(super) fn record_upcall(&self) {
        // Sequentially consistent on both sides: either this load finds the monitor asleep, or the monitor's
        // last look before it sleeps finds the upcall.
        if !self.awake.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let state = self.state.lock();
        self.awake.store(true, Ordering::SeqCst);
        self.call(&state);
    }

    /// Advances the next look, for an upcall that has just begun and whose servant takes a cancellation
    /// token.
    #[cold]
    pub(super) fn look_early(&self) {
        if !self.awake.load(Ordering::SeqCst) {
            return self.wake();
        }
        // At most once in each wait of the monitor.
        if self.can_look_earlyer.load(Ordering::SeqCst) && self.can_look_earlyer.swap(false, Ordering::SeqCst) {
            let mut state = self.state.lock();
            state.is_hurried = true;
            self.call(&state);
        }
    }

    /// Ends the monitor's thread.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.wake();
    }

    /// Wakes the monitor's thread if it waits, so that it looks at its state.
    fn call(&self, _state: &MutexGuard<'_, State>) {
        self.wake.notify_one();
        self.input.call();
    }

    fn run(&self) {
        let begin = Instant::now();
        let clock = || Instant::now() - begin;
        let mut state = self.state.lock();
        let times = state.times;
        if !state.lacks_handles {
            self.input.open();
        }
        let mut pace = LookPace::new(times, clock());
        let mut activity = ActivityRule::new(&times, clock());
        let mut connections_due = clock();
        while !state.stopped {
            if std::mem::take(&mut state.is_hurried) {
                pace.look_early(clock());
            }
            state = self.await_look(state, &pace, begin);
            let attended;
            (state, attended) = self.attend_input(state);
            let now = clock();
            if attended.is_active {
                pace.look_within_shortest(now);
            }
            if now < pace.due() {
                continue;
            }
            let mut history = LookHistory::default();
            if let Some(pool) = state.pool.upgrade() {
                drop(state);
                history.record_pool(&pool);
                drop(pool);
                state = self.state.lock();
            }
            if now >= connections_due {
                connections_due = now + times.shortest * (state.monitored.len() / CONNECTIONS_PER_MILLISECOND) as u32;
                let (seen, lasting, holding) = state.look(begin + now);
                let mode = state.service_mode.as_mut().map(|rule| rule.look(now, seen.busyness));
                if let Some((pool, mode)) = state.pool.upgrade().zip(mode) {
                    pool.set_service_mode(mode);
                }
                history.add(seen);
                if !holding.is_empty() {
                    drop(state);
                    holding.iter().for_each(|connection| connection.send_held());
                    drop(holding);
                    state = self.state.lock();
                }
                state = self.look_at_callbacks(state, &mut history);
                let attended;
                (state, attended) = self.attend_to(state, lasting);
                history.add(attended);
                activity.note(now, history.is_active);
                pace.plan(now, history.finding);
            } else if history.is_active {
                pace.plan(now, history.finding);
            } else {
                pace.wait_until(now, connections_due);
            }
            if activity.is_over(now) {
                state = self.sleep(state);
                let now = clock();
                activity = ActivityRule::new(&times, now);
                pace.restart(now);
                let attended;
                (state, attended) = self.attend_input(state);
                if attended.is_active {
                    pace.look_within_shortest(now);
                }
            }
        }
        drop(state);
        self.input.close();
    }

    /// Looks at the connections that this ORB has opened.
    fn look_at_callbacks<'m>(&'m self, state: MutexGuard<'m, State>, seen: &mut LookHistory) -> MutexGuard<'m, State> {
        let callbacks = state.callbacks_to_look_at();
        if callbacks.is_empty() {
            return state;
        }
        seen.note(LookFinding::Nothing);
        drop(state);
        callbacks.iter().for_each(|callbacks| callbacks.look());
        drop(callbacks);
        self.state.lock()
    }

    /// Waits until the next look or sweep is due, or until another event. Makes the sweep if it is due.
    fn await_look<'m>(
        &'m self,
        mut state: MutexGuard<'m, State>,
        pace: &LookPace,
        begin: Instant,
    ) -> MutexGuard<'m, State> {
        let (now, due) = (Instant::now(), begin + pace.due());
        if now < due {
            self.can_look_earlyer.store(pace.can_look_earlyer(), Ordering::SeqCst);
            let until = state.next_round.map_or(due, |next_round| next_round.min(due));
            state = self.wait(state, Some(until.saturating_duration_since(now)));
            self.can_look_earlyer.store(false, Ordering::SeqCst);
        }
        self.round(state)
    }

    /// Sleeps until an upcall begins, or until input arrives for a long upcall.
    fn sleep<'m>(&'m self, mut state: MutexGuard<'m, State>) -> MutexGuard<'m, State> {
        state = self.release_free_memory(state);
        self.awake.store(false, Ordering::SeqCst);
        if !state.has_moved() {
            while !self.awake.load(Ordering::SeqCst) && !state.stopped && !self.input.has_arrived() {
                let due = state.next_round.filter(|_| !state.monitored.is_empty() || !state.callbacks.is_empty());
                state = self.wait(state, due.map(|due| due.saturating_duration_since(Instant::now())));
                state = self.round(state);
            }
        }
        self.awake.store(true, Ordering::SeqCst);
        state
    }

    /// Waits for a call, for input, or until `time` has passed.
    fn wait<'m>(&'m self, mut state: MutexGuard<'m, State>, time: Option<Duration>) -> MutexGuard<'m, State> {
        if self.input.is_open() {
            drop(state);
            self.input.wait(time);
            return self.state.lock();
        }
        match time {
            None => self.wake.wait(&mut state),
            Some(time) => drop(self.wake.wait_for(&mut state, time)),
        }
        state
    }

    /// Handles the long upcalls of connections that have input now.
    fn attend_input<'m>(&'m self, mut state: MutexGuard<'m, State>) -> (MutexGuard<'m, State>, LookHistory) {
        let arrived = self.input.take();
        if arrived.is_empty() {
            return (state, LookHistory::default());
        }
        let now = Instant::now();
        let lasting: Vec<_> = arrived.into_iter().filter_map(|arrival| state.record_input(arrival, now)).collect();
        let is_active = !lasting.is_empty();
        let (state, mut seen) = self.attend_to(state, lasting.into_iter().flatten().collect());
        seen.is_active |= is_active;
        (state, seen)
    }

    /// Handles long upcalls.
    fn attend_to<'m>(
        &'m self,
        state: MutexGuard<'m, State>,
        upcalls: Vec<MonitoredUpcall>,
    ) -> (MutexGuard<'m, State>, LookHistory) {
        let mut history = LookHistory::default();
        if upcalls.is_empty() {
            return (state, history);
        }
        drop(state);
        let (mut started, mut awaiting) = (0, Vec::new());
        for upcall in &upcalls {
            if started == MAX_STARTS {
                history.note(LookFinding::Waiting);
                break;
            }
            match upcall.connection.overdue(&upcall.lasting) {
                LongUpcallAction::Settled => {}
                LongUpcallAction::AwaitsInput if upcall.is_registered => {}
                LongUpcallAction::AwaitsInput => awaiting.push((upcall, self.input.register(&upcall.connection))),
                LongUpcallAction::HandedOver => {
                    started += 1;
                    history.note(LookFinding::Waiting);
                }
                LongUpcallAction::Listened => history.note(LookFinding::Nothing),
                LongUpcallAction::TooEarly if upcall.lasting.has_input => history.note(LookFinding::Waiting),
                LongUpcallAction::LacksProcessor => history.note(LookFinding::Doubt),
                LongUpcallAction::TooEarly => history.note(LookFinding::Nothing),
            }
        }
        let mut state = self.state.lock();
        for (upcall, registered) in awaiting {
            let monitored = state.monitored.get_mut(&Arc::as_ptr(&upcall.connection).addr());
            match (registered, monitored) {
                (Ok(registration), Some(monitored)) => monitored.registration = Some(registration),
                (Ok(registration), None) => self.input.remove(registration),
                (Err(error), monitored) => {
                    tracing::debug!(%error, "cannot wait for input during an upcall");
                    history.note(LookFinding::Doubt);
                    monitored.into_iter().for_each(|monitored| monitored.has_input = true);
                }
            }
        }
        (state, history)
    }

    /// Gives the memory of long messages back to the system, without the lock.
    fn release_free_memory<'m>(&'m self, state: MutexGuard<'m, State>) -> MutexGuard<'m, State> {
        if !state.budget.upgrade().is_some_and(|budget| budget.take_freed()) {
            return state;
        }
        drop(state);
        release_free_memory();
        self.state.lock()
    }

    /// Makes a sweep if one is due.
    fn round<'w>(&'w self, mut state: MutexGuard<'w, State>) -> MutexGuard<'w, State> {
        let Some(due) = state.next_round else { return state };
        let now = Instant::now();
        if now < due {
            return state;
        }
        if let Some(budget) = state.budget.upgrade() {
            budget.decay_long_replies();
        }
        state = self.release_free_memory(state);
        let client_timeouts = state.client_timeouts;
        state.next_round = client_timeouts.period().map(|period| now + period);
        let mut handshakes = None;
        let connections: Vec<_> = state
            .monitored
            .values_mut()
            .filter_map(|monitored| {
                let connection = monitored.connection.upgrade()?;
                // Connections whose time is up are cut off in this sweep.
                let handshake = connection.handshake_left().filter(|left| !left.is_zero());
                handshakes = handshakes.into_iter().chain(handshake.map(|left| now + left)).min();
                let verdict = monitored.past.look(&*connection, client_timeouts, now)?;
                Some((connection, verdict))
            })
            .collect();
        state.next_round = state.next_round.into_iter().chain(handshakes).min();
        let mut deaf = Vec::new();
        state.callbacks.retain_mut(|(callbacks, replies)| {
            let Some(callbacks) = callbacks.upgrade() else { return false };
            if replies.are_late(callbacks.write_progress(), client_timeouts.reply, now) {
                deaf.push(callbacks);
            }
            true
        });
        if connections.is_empty() && deaf.is_empty() {
            return state;
        }
        drop(state);
        for (connection, verdict) in connections {
            connection.apply(verdict, client_timeouts);
        }
        deaf.iter().for_each(|callbacks| callbacks.cut());
        self.state.lock()
    }
}
