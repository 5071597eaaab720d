//! The monitor of long upcalls: finds them without a system call or a clock reading per call.
//!
//! Each connection publishes in an atomic number whether an upcall keeps its reading thread. The monitor
//! looks at these numbers at [intervals](pace) of 1 to 32 ms while there are calls. It sleeps after a while
//! without calls, and the next call wakes it. A number that is odd and the same at two looks belongs to a
//! long upcall.
//!
//! Another thread takes over the reading from a long upcall as soon as there is input. Until then the monitor
//! [waits for input](input) on the connection's handle, and no thread is started.
//!
//! A one-way may keep the reading for a tenth of a second. Clients that send a stream of one-ways expect them
//! to run in order, and a servant that only waited for a processor must not be overtaken.
//!
//! The monitor also makes periodic [sweeps](idle_sweep) for idle connections and late clients, even while it
//! sleeps. It reads no messages and runs no upcalls.

pub(crate) mod idle_sweep;
mod input;
mod pace;

use std::{collections::HashMap, time::Duration};

use spandrel_orb::server_settings::ClientTimeouts;
use spandrel_reactor::HandlerId;
use spandrel_sync::{
    Arc, Condition, Mutex, MutexGuard, Weak,
    atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use crate::{
    Server, ServerConnection,
    callbacks::Callbacks,
    connection::{LongUpcall, LongUpcallAction, open_turn},
};
use idle_sweep::{IdleHistory, WaitingReplies};
use input::InputEvents;
use pace::{LookFinding, Pace, SHORTEST};

/// The longest time that a one-way may keep the reading.
const ONE_WAY_OVERTAKE_DELAY: Duration = Duration::from_millis(100);
/// This limit in models, counted in looks. A larger number would only make models longer.
const ONE_WAY_LOOKS: u32 = 3;
/// The time without an upcall after which the monitor sleeps.
const IDLE_TIME: Duration = Duration::from_millis(250);
/// This time in models, counted in looks.
const IDLE_LOOKS: u32 = 2;
/// The time for which a connection counts as one whose peer pipelines.
const PIPELINED_TIME: Duration = Duration::from_secs(2);
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
    can_look_sooner: AtomicBool,
    state: Mutex<State>,
    wake: Condition,
    input: InputEvents,
}

#[derive(Debug, Default)]
struct State {
    /// The server of the connections.
    server: Weak<Server>,
    client_timeouts: ClientTimeouts,
    /// The time of the next sweep, if there is one.
    next_round: Option<Instant>,
    /// The monitored connections, by their addresses in memory.
    monitored: HashMap<usize, Monitored>,
    /// The connections that this ORB has opened and that requests come in on.
    callbacks: Vec<(Weak<Callbacks>, WaitingReplies)>,
    /// Whether the next look is due at once.
    is_hurried: bool,
    running: bool,
    stopped: bool,
}

#[derive(Debug)]
struct Monitored {
    connection: Weak<ServerConnection>,
    /// The connection's turn at the last look.
    turn: u64,
    /// The time of the first look that found this turn.
    since: Instant,
    /// The number of further looks that found this turn.
    looks: u32,
    /// Whether the upcall keeps input from being read.
    has_input: bool,
    /// The last time at which an upcall kept input from being read.
    pipelined: Option<Instant>,
    /// The registration by which input on the connection's handle wakes the monitor.
    registration: Option<HandlerId>,
    /// The connection's history in the search for idle connections.
    past: IdleHistory,
}

impl UpcallMonitor {
    /// Monitors the pool of this server, and makes sweeps.
    pub(super) fn attend(&self, server: &Arc<Server>, client_timeouts: ClientTimeouts) {
        let mut state = self.state.lock();
        state.server = Arc::downgrade(server);
        state.client_timeouts = client_timeouts;
        state.next_round = client_timeouts.period().map(|period| Instant::now() + period);
    }

    /// Monitors one more connection. The monitor's thread starts with the first one.
    pub(super) fn watch(self: &Arc<Self>, connection: &Arc<ServerConnection>) {
        let mut state = self.state.lock();
        state.monitored.insert(Arc::as_ptr(connection).addr(), Monitored::new(connection, Instant::now()));
        let is_sooner = state.note_handshake(connection);
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
    pub(super) fn watch_callbacks(self: &Arc<Self>, callbacks: &Arc<Callbacks>) {
        let mut state = self.state.lock();
        state.callbacks.push((Arc::downgrade(callbacks), WaitingReplies::new(Instant::now())));
        if state.callbacks.len() == 1 {
            self.call(&state);
        }
        self.start(&mut state);
    }

    /// Stops monitoring a connection.
    pub(super) fn forget(&self, connection: &ServerConnection) {
        let forgotten = self.state.lock().monitored.remove(&std::ptr::from_ref(connection).addr());
        if let Some(registration) = forgotten.and_then(|monitored| monitored.registration) {
            self.input.remove(registration);
        }
    }

    /// Wakes the monitor if it sleeps. Called after a connection has published the start of an upcall.
    #[inline]
    pub(super) fn note_upcall(&self) {
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
    pub(super) fn look_soon(&self) {
        if !self.awake.load(Ordering::SeqCst) {
            return self.wake();
        }
        // At most once in each wait of the monitor.
        if self.can_look_sooner.swap(false, Ordering::SeqCst) {
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
        self.input.open();
        let mut pace = Pace::new(Instant::now());
        let mut activity = Activity::new(Instant::now());
        let mut connections_due = Instant::now();
        let mut state = self.state.lock();
        while !state.stopped {
            if std::mem::take(&mut state.is_hurried) {
                pace.look_soon(Instant::now());
            }
            state = self.await_look(state, &pace);
            let attended;
            (state, attended) = self.attend_input(state);
            let now = Instant::now();
            if attended.is_active {
                pace.look_within_shortest(now);
            }
            if !cfg!(shuttle) && now < pace.due() {
                continue;
            }
            let mut found = LookHistory::default();
            if let Some(server) = state.server.upgrade() {
                drop(state);
                found.note_pool(&server);
                drop(server);
                state = self.state.lock();
            }
            if cfg!(shuttle) || now >= connections_due {
                connections_due = now + SHORTEST * (state.monitored.len() / CONNECTIONS_PER_MILLISECOND) as u32;
                let (seen, lasting) = state.look(now);
                found.add(seen);
                let attended;
                (state, attended) = self.attend_to(state, lasting);
                found.add(attended);
                activity.note(now, found.is_active);
                pace.plan(now, found.finding);
            } else if found.is_active {
                pace.plan(now, found.finding);
            } else {
                pace.wait_until(now, connections_due);
            }
            if activity.is_over(now) {
                state = self.sleep(state);
                let now = Instant::now();
                activity = Activity::new(now);
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

    /// Waits until the next look or sweep is due, or until another event. Makes the sweep if it is due.
    fn await_look<'m>(&'m self, mut state: MutexGuard<'m, State>, pace: &Pace) -> MutexGuard<'m, State> {
        let now = Instant::now();
        if cfg!(shuttle) || now < pace.due() {
            self.can_look_sooner.store(pace.can_look_sooner(), Ordering::SeqCst);
            let until = state.next_round.into_iter().chain([pace.due()]).min();
            let left = until.map_or(SHORTEST, |until| until.saturating_duration_since(now));
            // The clock of models advances with the waits. It must not pass the deadlines of other threads.
            state = self.wait(state, Some(if cfg!(shuttle) { SHORTEST } else { left }));
            self.can_look_sooner.store(false, Ordering::SeqCst);
        }
        self.round(state)
    }

    /// Sleeps until an upcall begins, or until input arrives for a long upcall.
    fn sleep<'m>(&'m self, mut state: MutexGuard<'m, State>) -> MutexGuard<'m, State> {
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
        let lasting: Vec<_> = arrived.into_iter().filter_map(|arrival| state.note_input(arrival, now)).collect();
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
        let mut seen = LookHistory::default();
        if upcalls.is_empty() {
            return (state, seen);
        }
        drop(state);
        let (mut started, mut awaiting) = (0, Vec::new());
        for upcall in &upcalls {
            if started == MAX_STARTS {
                seen.note(LookFinding::Waiting);
                break;
            }
            match upcall.connection.overdue(&upcall.lasting) {
                LongUpcallAction::Settled => {}
                LongUpcallAction::AwaitsInput if upcall.is_registered => {}
                LongUpcallAction::AwaitsInput => awaiting.push((upcall, self.input.register(&upcall.connection))),
                LongUpcallAction::HandedOver => {
                    started += 1;
                    seen.note(LookFinding::Waiting);
                }
                LongUpcallAction::Listened => seen.note(LookFinding::Nothing),
                LongUpcallAction::TooEarly if upcall.lasting.has_input => seen.note(LookFinding::Waiting),
                LongUpcallAction::TooEarly => seen.note(LookFinding::Nothing),
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
                    seen.note(LookFinding::Doubt);
                    monitored.into_iter().for_each(|monitored| monitored.has_input = true);
                }
            }
        }
        (state, seen)
    }
}

impl UpcallMonitor {
    /// Makes a sweep if one is due.
    fn round<'w>(&'w self, mut state: MutexGuard<'w, State>) -> MutexGuard<'w, State> {
        let Some(due) = state.next_round else { return state };
        let now = Instant::now();
        if now < due {
            return state;
        }
        if let Some(server) = state.server.upgrade() {
            server.budget().decay_long_replies();
        }
        let client_timeouts = state.client_timeouts;
        state.next_round = client_timeouts.period().map(|period| now + period);
        let mut handshakes = None;
        let found: Vec<_> = state
            .monitored
            .values_mut()
            .filter_map(|monitored| {
                let connection = monitored.connection.upgrade()?;
                // Connections whose time is up are cut off in this sweep.
                let handshake = connection.link().transport().handshake_left().filter(|left| !left.is_zero());
                handshakes = handshakes.into_iter().chain(handshake.map(|left| now + left)).min();
                let verdict = monitored.past.look(&connection, client_timeouts, now)?;
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
        if found.is_empty() && deaf.is_empty() {
            return state;
        }
        drop(state);
        for (connection, verdict) in found {
            idle_sweep::apply(&connection, verdict, client_timeouts);
        }
        deaf.iter().for_each(|callbacks| callbacks.cut());
        self.state.lock()
    }
}

/// The time since the last upcall.
struct Activity {
    last: Instant,
    idle_looks: u32,
}

impl Activity {
    fn new(now: Instant) -> Self {
        Self { last: now, idle_looks: 0 }
    }

    fn note(&mut self, now: Instant, is_active: bool) {
        if is_active {
            *self = Self::new(now);
        } else {
            self.idle_looks += 1;
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        if cfg!(shuttle) { self.idle_looks >= IDLE_LOOKS } else { now - self.last >= IDLE_TIME }
    }
}

/// The findings of one look, or of several.
#[derive(Debug, Default)]
struct LookHistory {
    /// Whether something has happened since the last look, or needs another look.
    is_active: bool,
    finding: LookFinding,
}

impl LookHistory {
    fn note(&mut self, finding: LookFinding) {
        self.add(Self { is_active: true, finding });
    }

    fn add(&mut self, other: Self) {
        self.is_active |= other.is_active;
        self.finding = self.finding.max(other.finding);
    }

    /// Looks at the pool. Adds threads if all of them are stuck.
    fn note_pool(&mut self, server: &Server) {
        let pool = server.pool();
        if pool.is_fixed() {
            return;
        }
        if pool.is_stuck() {
            pool.add_workers();
            self.note(LookFinding::Waiting);
        } else if pool.is_full() {
            self.note(LookFinding::Doubt);
        }
    }
}

/// A long upcall and its connection.
struct MonitoredUpcall {
    connection: Arc<ServerConnection>,
    lasting: LongUpcall,
    is_registered: bool,
}

impl Monitored {
    fn new(connection: &Arc<ServerConnection>, now: Instant) -> Self {
        Self {
            connection: Arc::downgrade(connection),
            turn: 0,
            since: now,
            looks: 0,
            has_input: false,
            pipelined: None,
            registration: None,
            past: IdleHistory::new(now),
        }
    }

    /// Looks at the connection. Returns its upcall if that is long, and `None` if the connection is gone.
    fn look(&mut self, now: Instant, seen: &mut LookHistory) -> Option<Option<MonitoredUpcall>> {
        let connection = self.connection.upgrade()?;
        let turn = connection.turn();
        let in_upcall = turn % 2 == 1;
        if open_turn(turn) == self.turn {
            self.looks += 1;
            if in_upcall && self.registration.is_none() && connection.has_input_in_memory() {
                self.note_input(now);
            }
            return Some(in_upcall.then(|| self.lasting(connection, turn, now)));
        }
        (self.turn, self.since, self.looks, self.has_input) = (open_turn(turn), now, 0, false);
        let pipelined = self.pipelined.is_some_and(|last| now - last < PIPELINED_TIME);
        seen.note(if pipelined { LookFinding::Waiting } else { LookFinding::Nothing });
        if in_upcall && connection.has_input_in_memory() {
            self.pipelined = Some(now);
            seen.note(LookFinding::Waiting);
        } else if in_upcall && !pipelined && connection.has_unread_input() {
            seen.note(LookFinding::Doubt);
        }
        Some(None)
    }

    /// Records that the upcall keeps input from being read.
    fn note_input(&mut self, now: Instant) {
        (self.has_input, self.pipelined) = (true, Some(now));
    }

    fn lasting(&self, connection: Arc<ServerConnection>, turn: u64, now: Instant) -> MonitoredUpcall {
        let age = now - self.since;
        let is_patient = if cfg!(shuttle) { self.looks < ONE_WAY_LOOKS } else { age < ONE_WAY_OVERTAKE_DELAY };
        let keeps_reading = is_patient && connection.is_one_way();
        let lasting = LongUpcall { turn, age, keeps_reading, has_input: self.has_input };
        MonitoredUpcall { connection, lasting, is_registered: self.registration.is_some() }
    }
}

impl State {
    /// Advances the next sweep to the end of this connection's handshake, if it has one. Returns whether that
    /// is sooner.
    fn note_handshake(&mut self, connection: &ServerConnection) -> bool {
        let Some(left) = connection.link().transport().handshake_left() else { return false };
        let end = Instant::now() + left;
        let is_sooner = self.next_round.is_none_or(|next| end < next);
        if is_sooner {
            self.next_round = Some(end);
        }
        is_sooner
    }

    /// Looks at all connections. Returns the findings and the long upcalls.
    fn look(&mut self, now: Instant) -> (LookHistory, Vec<MonitoredUpcall>) {
        let (mut seen, mut lasting) = (LookHistory::default(), Vec::new());
        self.monitored.retain(|_, monitored| match monitored.look(now, &mut seen) {
            None => false,
            Some(upcall) => {
                lasting.extend(upcall);
                true
            }
        });
        (seen, lasting)
    }

    /// Whether a change since the last look is a reason not to sleep.
    fn has_moved(&self) -> bool {
        self.monitored.values().any(|monitored| {
            let Some(connection) = monitored.connection.upgrade() else { return false };
            let turn = connection.turn();
            let is_waited_for = || monitored.registration.is_some() || !connection.awaits_cancellation();
            open_turn(turn) != monitored.turn || turn % 2 == 1 && !is_waited_for()
        })
    }

    /// Records input on the handle of a connection. Returns `None` if its upcall has ended. Returns the
    /// upcall if it is known to be long.
    fn note_input(
        &mut self,
        (index, registration): (usize, HandlerId),
        now: Instant,
    ) -> Option<Option<MonitoredUpcall>> {
        let monitored = self.monitored.get_mut(&index)?;
        monitored.registration.take_if(|known| *known == registration)?;
        let connection = monitored.connection.upgrade()?;
        let turn = connection.turn();
        if open_turn(turn) != monitored.turn || turn % 2 == 0 {
            return None;
        }
        monitored.note_input(now);
        Some((monitored.looks > 0).then(|| monitored.lasting(connection, turn, now)))
    }
}
