//! Notices upcalls that outlive a millisecond, at no system call and no clock reading per call.
//!
//! Each connection's thread publishes in an atomic number whether it runs an upcall. The watcher looks at them about
//! every millisecond while there are calls, and sleeps when there have been none for a while; the first call after that
//! wakes it. A number that is odd and the same twice belongs to an upcall that has lasted a whole tick.
//!
//! One-ways are given a hundred ticks: clients that send a stream of them expect them to be run in order, and a servant
//! that merely had to wait for a processor must not be overtaken.
//!
//! Now and then, also while it sleeps, it makes a [round](rounds) for what takes far longer.

use std::{collections::HashMap, time::Duration};

use spandrel_sync::{
    Arc, Condition, Mutex, MutexGuard, Weak,
    atomic::{AtomicBool, Ordering},
    thread,
    time::Instant,
};

use super::{
    Callbacks, Server, ServerConnection,
    rounds::{self, Past, WaitingReplies},
    settings::Patience,
};

/// How long an upcall may keep the reading to itself, and a thread of the reactor.
const TICK: Duration = Duration::from_millis(1);
/// Ticks that a one-way may keep the reading. (Models would only be longer for more of them; so below.)
const ONE_WAY_TICKS: u32 = if cfg!(shuttle) { 3 } else { 100 };
/// Ticks without any upcall before the watcher sleeps.
const IDLE_TICKS: u32 = if cfg!(shuttle) { 2 } else { 100 };
/// Threads that are started in one tick to read on. Where more upcalls last, most have begun together and wait for a processor, and further threads
/// are no help; the others come in the next ticks.
const MAX_STARTS: usize = 2;
/// With more connections than this they are not looked at in every tick, so that it costs the same share of time.
const CONNECTIONS_PER_TICK: usize = 64;

/// Watches all connections of one server.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    /// False: whoever starts an upcall must wake it.
    awake: AtomicBool,
    state: Mutex<State>,
    wake: Condition,
}

#[derive(Debug, Default)]
struct State {
    /// Whose connections they are.
    server: Weak<Server>,
    patience: Patience,
    /// When the next round is due, if there are any.
    next_round: Option<Instant>,
    /// By where the connection lies.
    watched: HashMap<usize, Watched>,
    /// Connections of this side over which requests come.
    callbacks: Vec<(Weak<Callbacks>, WaitingReplies)>,
    running: bool,
    stopped: bool,
}

#[derive(Debug)]
struct Watched {
    connection: Weak<ServerConnection>,
    /// Its turn at the last tick.
    seen: u64,
    /// Ticks for which the same upcall has been there.
    ticks: u32,
    /// What the rounds have seen.
    past: Past,
}

impl Watcher {
    /// Watches over the threads that all connections of this server share, and makes rounds.
    pub(super) fn attend(&self, server: &Arc<Server>, patience: Patience) {
        let mut state = self.state.lock();
        state.server = Arc::downgrade(server);
        state.patience = patience;
        state.next_round = patience.period().map(|period| Instant::now() + period);
    }

    /// Watches one more connection. The watcher's thread starts with the first.
    pub(super) fn watch(self: &Arc<Self>, connection: &Arc<ServerConnection>) {
        let mut state = self.state.lock();
        let past = Past::new(Instant::now());
        let watched = Watched { connection: Arc::downgrade(connection), seen: 0, ticks: 0, past };
        state.watched.insert(Arc::as_ptr(connection).addr(), watched);
        let is_sooner = state.note_handshake(connection);
        if is_sooner || state.watched.len() == 1 && state.next_round.is_some() {
            // It sleeps without end while there is nothing to go round for.
            self.wake.notify_one();
        }
        self.start(&mut state);
    }

    fn start(self: &Arc<Self>, state: &mut State) {
        if !state.running && !state.stopped {
            let watcher = Arc::clone(self);
            match thread::Builder::new().name("spandrel-watch".into()).spawn(move || watcher.run()) {
                Ok(_detached) => state.running = true,
                Err(error) => tracing::error!(%error, "no thread to watch for long upcalls"),
            }
        }
    }

    /// Makes rounds for answers over a connection of this side, too.
    pub(super) fn watch_callbacks(self: &Arc<Self>, callbacks: &Arc<Callbacks>) {
        let mut state = self.state.lock();
        state.callbacks.push((Arc::downgrade(callbacks), WaitingReplies::new(Instant::now())));
        if state.callbacks.len() == 1 {
            self.wake.notify_one();
        }
        self.start(&mut state);
    }

    /// Watches it no longer.
    pub(super) fn forget(&self, connection: &ServerConnection) {
        self.state.lock().watched.remove(&std::ptr::from_ref(connection).addr());
    }

    /// Called after a connection has published that it starts an upcall.
    #[inline]
    pub(super) fn note_upcall(&self) {
        // Sequentially consistent on both sides: either this load sees the watcher asleep, or the watcher's last look
        // before sleeping sees the upcall.
        if !self.awake.load(Ordering::SeqCst) {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        let _state = self.state.lock();
        self.awake.store(true, Ordering::SeqCst);
        self.wake.notify_one();
    }

    /// Ends the watcher's thread.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.rouse();
    }

    fn run(&self) {
        let (mut idle, mut ticks) = (0, 0);
        let mut state = self.state.lock();
        while !state.stopped {
            if idle < IDLE_TICKS {
                self.wake.wait_for(&mut state, TICK);
                state = self.round(state);
                if let Some(server) = state.stuck() {
                    drop(state);
                    server.pool().strengthen();
                    drop(server);
                    state = self.state.lock();
                }
                ticks += 1;
                if ticks <= state.watched.len() / CONNECTIONS_PER_TICK {
                    continue;
                }
                ticks = 0;
            } else {
                self.awake.store(false, Ordering::SeqCst);
                if !state.look().active {
                    while !self.awake.load(Ordering::SeqCst) {
                        state = self.sleep(state);
                    }
                }
                self.awake.store(true, Ordering::SeqCst);
                idle = 0;
            }
            let seen = state.look();
            idle = if seen.active { 0 } else { idle + 1 };
            if !seen.overdue.is_empty() {
                drop(state);
                let mut started = 0;
                for Overdue { connection, turn, keeps_reading, ticks } in seen.overdue {
                    started += usize::from(connection.overdue(turn, keeps_reading, ticks));
                    if started == MAX_STARTS {
                        break;
                    }
                }
                state = self.state.lock();
            }
        }
    }
}

impl Watcher {
    /// Waits to be woken, or for the next round.
    fn sleep<'w>(&'w self, mut state: MutexGuard<'w, State>) -> MutexGuard<'w, State> {
        match state.next_round.filter(|_| !state.watched.is_empty() || !state.callbacks.is_empty()) {
            None => self.wake.wait(&mut state),
            Some(at) => drop(self.wake.wait_for(&mut state, at.saturating_duration_since(Instant::now()))),
        }
        self.round(state)
    }

    /// Makes a round if it is time for one.
    fn round<'w>(&'w self, mut state: MutexGuard<'w, State>) -> MutexGuard<'w, State> {
        let Some(due) = state.next_round else { return state };
        let now = Instant::now();
        if now < due {
            return state;
        }
        if let Some(server) = state.server.upgrade() {
            server.budget().forget_long_replies();
        }
        let patience = state.patience;
        state.next_round = patience.period().map(|period| now + period);
        let mut handshakes = None;
        let found: Vec<_> = state
            .watched
            .values_mut()
            .filter_map(|watched| {
                let connection = watched.connection.upgrade()?;
                // Those whose time is up are cut off now.
                let handshake = connection.link().transport().handshake_left().filter(|left| !left.is_zero());
                handshakes = handshakes.into_iter().chain(handshake.map(|left| now + left)).min();
                let verdict = watched.past.look(&connection, patience, now)?;
                Some((connection, verdict))
            })
            .collect();
        state.next_round = state.next_round.into_iter().chain(handshakes).min();
        let mut deaf = Vec::new();
        state.callbacks.retain_mut(|(callbacks, replies)| {
            let Some(callbacks) = callbacks.upgrade() else { return false };
            if replies.are_late(callbacks.write_progress(), patience.reply, now) {
                deaf.push(callbacks);
            }
            true
        });
        if found.is_empty() && deaf.is_empty() {
            return state;
        }
        drop(state);
        for (connection, verdict) in found {
            rounds::carry_out(&connection, verdict, patience);
        }
        deaf.iter().for_each(|callbacks| callbacks.cut());
        self.state.lock()
    }
}

/// What one look at all connections found.
struct Seen {
    /// Something happened since the last look, or is happening.
    active: bool,
    /// Upcalls that were there at the last look already.
    overdue: Vec<Overdue>,
}

/// An upcall that lasts.
struct Overdue {
    connection: Arc<ServerConnection>,
    turn: u64,
    /// It may keep the reading nevertheless.
    keeps_reading: bool,
    /// Looks at which it was there already.
    ticks: u32,
}

impl State {
    /// Has the next round come no later than the end of this connection's handshake, if it has one. True if that is sooner.
    fn note_handshake(&mut self, connection: &ServerConnection) -> bool {
        let Some(left) = connection.link().transport().handshake_left() else { return false };
        let end = Instant::now() + left;
        let is_sooner = self.next_round.is_none_or(|next| end < next);
        if is_sooner {
            self.next_round = Some(end);
        }
        is_sooner
    }

    /// The server, if none of its threads gets anywhere.
    fn stuck(&self) -> Option<Arc<Server>> {
        self.server.upgrade().filter(|server| server.pool().is_stuck())
    }

    fn look(&mut self) -> Seen {
        let mut seen = Seen { active: false, overdue: Vec::new() };
        self.watched.retain(|_, watched| {
            let Some(connection) = watched.connection.upgrade() else { return false };
            let turn = connection.turn();
            let in_upcall = turn % 2 == 1;
            seen.active |= in_upcall || turn != watched.seen;
            watched.ticks = if in_upcall && turn == watched.seen { watched.ticks + 1 } else { 0 };
            watched.seen = turn;
            if watched.ticks > 0 {
                let ticks = watched.ticks;
                let keeps_reading = connection.is_one_way() && ticks < ONE_WAY_TICKS;
                seen.overdue.push(Overdue { connection, turn, keeps_reading, ticks });
            }
            true
        });
        seen
    }
}
