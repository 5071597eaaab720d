//! The monitor's records of the connections, and its looks at them.

use std::{collections::HashMap, time::Duration};

use spandrel_connection::{Busyness, LookFinding, MonitorTimes, ReaderWord, ServiceModeRule};
use spandrel_orb::internal::ClientTimeouts;
use spandrel_reactor::HandlerId;
use spandrel_sync::{Arc, Weak, time::Instant};
use spandrel_transport::MemoryBudget;

use super::{
    client_timeouts::{IdleHistory, WaitingReplies},
    monitored::{LongUpcall, MonitoredConnection, MonitoredReplies},
};
use crate::reactor_pool::Pool;

/// The time for which a connection counts as one whose peer pipelines.
const PIPELINED_TIME: Duration = Duration::from_secs(2);

/// The monitored connections, and the times of the sweeps.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The threads of the connections.
    pub(super) pool: Weak<Pool>,
    /// The memory budget of the connections.
    pub(super) budget: Weak<MemoryBudget>,
    pub(super) client_timeouts: ClientTimeouts,
    pub(super) times: MonitorTimes,
    /// Whether connections have no handles that the monitor could wait for.
    pub(super) lacks_handles: bool,
    /// Decides whether busy connections have threads of their own, if that changes.
    pub(super) service_mode: Option<ServiceModeRule>,
    /// The time of the next sweep, if there is one.
    pub(super) next_round: Option<Instant>,
    /// The monitored connections, by their addresses in memory.
    pub(super) monitored: HashMap<usize, Monitored>,
    /// The connections that this ORB has opened and that requests come in on.
    pub(super) callbacks: Vec<(Weak<dyn MonitoredReplies>, WaitingReplies)>,
    /// Whether the next look is due at once.
    pub(super) is_hurried: bool,
    pub(super) running: bool,
    pub(super) stopped: bool,
}

/// A monitored connection, and its state at the last look.
#[derive(Debug)]
pub(super) struct Monitored {
    pub(super) connection: Weak<dyn MonitoredConnection>,
    /// The reader word at the last look, without the mark of a closing connection.
    pub(super) word: ReaderWord,
    /// The time of the first look that found this word.
    pub(super) since: Instant,
    /// The number of further looks that found this word.
    pub(super) looks: u32,
    /// Whether the upcall keeps input from being read.
    pub(super) has_input: bool,
    /// The last time at which an upcall kept input from being read.
    pub(super) pipelined: Option<Instant>,
    /// The registration by which input on the connection's handle wakes the monitor.
    pub(super) registration: Option<HandlerId>,
    /// The connection's history in the search for idle connections.
    pub(super) past: IdleHistory,
}

/// The findings of one look, or of several.
#[derive(Debug, Default)]
pub(super) struct LookHistory {
    /// Whether something has happened since the last look, or needs another look.
    pub(super) is_active: bool,
    pub(super) finding: LookFinding,
    /// The connections that have made progress since the last look at them.
    pub(super) busyness: Busyness,
}

impl LookHistory {
    pub(super) fn note(&mut self, finding: LookFinding) {
        self.add(Self { is_active: true, finding, ..Self::default() });
    }

    pub(super) fn add(&mut self, other: Self) {
        self.is_active |= other.is_active;
        self.finding = self.finding.max(other.finding);
        self.busyness.connections += other.busyness.connections;
        self.busyness.calls += other.busyness.calls;
    }

    /// Looks at the pool. Adds threads if all of them are stuck.
    pub(super) fn record_pool(&mut self, pool: &Pool) {
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
pub(super) struct MonitoredUpcall {
    pub(super) connection: Arc<dyn MonitoredConnection>,
    pub(super) lasting: LongUpcall,
    pub(super) is_registered: bool,
}

impl Monitored {
    pub(super) fn new(connection: Weak<dyn MonitoredConnection>, now: Instant) -> Self {
        Self {
            connection,
            word: ReaderWord::of_own_thread(),
            since: now,
            looks: 0,
            has_input: false,
            pipelined: None,
            registration: None,
            past: IdleHistory::new(now),
        }
    }

    /// Looks at the connection. Returns its upcall if that is long, and `None` if the connection is gone.
    fn look(&mut self, now: Instant, times: &MonitorTimes, seen: &mut LookHistory) -> Option<Option<MonitoredUpcall>> {
        let connection = self.connection.upgrade()?;
        let word = connection.reader_word();
        let in_upcall = word.is_in_upcall();
        if word.without_closing() == self.word {
            self.looks += 1;
            // Also with a registration. It may be left from an earlier upcall, and shows no input in memory.
            if in_upcall && connection.has_input_in_memory() {
                self.record_input(now);
            }
            return Some(in_upcall.then(|| self.lasting(connection, word, now, times)));
        }
        seen.busyness.connections += 1;
        seen.busyness.calls += word.number().requests_since(self.word.number());
        (self.word, self.since, self.looks, self.has_input) = (word.without_closing(), now, 0, false);
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
    fn record_input(&mut self, now: Instant) {
        (self.has_input, self.pipelined) = (true, Some(now));
    }

    fn lasting(
        &self,
        connection: Arc<dyn MonitoredConnection>,
        word: ReaderWord,
        now: Instant,
        times: &MonitorTimes,
    ) -> MonitoredUpcall {
        let age = now - self.since;
        let keeps_reading = times.one_way_keeps_reading(age) && connection.is_one_way();
        let lasting = LongUpcall { word, age, keeps_reading, has_input: self.has_input };
        MonitoredUpcall { connection, lasting, is_registered: self.registration.is_some() }
    }
}

impl State {
    /// Advances the next sweep to the end of this connection's handshake, if it has one. Returns whether that
    /// is sooner.
    pub(super) fn record_handshake(&mut self, connection: &dyn MonitoredConnection) -> bool {
        let Some(left) = connection.handshake_left() else { return false };
        let end = Instant::now() + left;
        let is_sooner = self.next_round.is_none_or(|next| end < next);
        if is_sooner {
            self.next_round = Some(end);
        }
        is_sooner
    }

    /// Looks at all connections. Returns the findings, the long upcalls, and the connections that hold replies for a
    /// task.
    pub(super) fn look(
        &mut self,
        now: Instant,
    ) -> (LookHistory, Vec<MonitoredUpcall>, Vec<Arc<dyn MonitoredConnection>>) {
        let (mut seen, mut lasting, mut holding) = (LookHistory::default(), Vec::new(), Vec::new());
        let times = self.times;
        self.monitored.retain(|_, monitored| match monitored.look(now, &times, &mut seen) {
            None => false,
            Some(upcall) => {
                lasting.extend(upcall);
                holding.extend(monitored.connection.upgrade().filter(|connection| connection.holds_for_task()));
                true
            }
        });
        if !holding.is_empty() {
            seen.note(LookFinding::Nothing);
        }
        (seen, lasting, holding)
    }

    /// The connections that this ORB has opened and that need a look.
    pub(super) fn callbacks_to_look_at(&self) -> Vec<Arc<dyn MonitoredReplies>> {
        let replies = self.callbacks.iter().filter_map(|(callbacks, _)| callbacks.upgrade());
        replies.filter(|callbacks| callbacks.needs_look()).collect()
    }

    /// Whether a change since the last look is a reason not to sleep.
    pub(super) fn has_moved(&self) -> bool {
        !self.callbacks_to_look_at().is_empty()
            || self.monitored.values().any(|monitored| {
                let Some(connection) = monitored.connection.upgrade() else { return false };
                let word = connection.reader_word();
                let is_waited_for = || monitored.registration.is_some() || !connection.awaits_cancellation();
                word.without_closing() != monitored.word
                    || word.is_in_upcall() && !is_waited_for()
                    || connection.holds_for_task()
            })
    }

    /// Records input on the handle of a connection. Returns `None` if its upcall has ended. Returns the
    /// upcall if it is known to be long.
    pub(super) fn record_input(
        &mut self,
        (index, registration): (usize, HandlerId),
        now: Instant,
    ) -> Option<Option<MonitoredUpcall>> {
        let monitored = self.monitored.get_mut(&index)?;
        monitored.registration.take_if(|known| *known == registration)?;
        let connection = monitored.connection.upgrade()?;
        let word = connection.reader_word();
        if word.without_closing() != monitored.word || !word.is_in_upcall() {
            return None;
        }
        monitored.record_input(now);
        Some((monitored.looks > 0).then(|| monitored.lasting(connection, word, now, &self.times)))
    }
}
