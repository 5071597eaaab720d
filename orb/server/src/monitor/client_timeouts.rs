//! The monitor's sweeps: they close idle connections, and cut off clients that never finish a message or
//! never take their replies, or do not close their side after CloseConnection.
//!
//! Serving a request records nothing for a sweep. The reader word of a connection shows whether it is in use. The
//! [progress](spandrel_transport::ReceiveBudget::progress) of its reader shows a message that stays half
//! read; it changes only where messages arrive in pieces. The monitor remembers each value and the time when
//! it found it. So a time limit is exact to a quarter.

use std::time::Duration;

use spandrel_connection::ReaderWord;
use spandrel_orb::internal::ClientTimeouts;
use spandrel_sync::time::Instant;

use super::monitored::{IdleVerdict, MonitoredConnection};

/// The time that a client has to close its side after CloseConnection.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// The time for all waiting replies, as a multiple of the time for the next octets.
const ALL_REPLIES_FACTOR: u32 = 20;

/// The state of a connection at the last sweep, which distinguishes an idle connection from one in use.
#[derive(Debug)]
pub(crate) struct IdleHistory {
    word: ReaderWord,
    /// The time since which `word` has not changed and no request was running.
    quiet_since: Instant,
    progress: u64,
    /// The time since which `progress` has not changed.
    stuck_since: Instant,
    replies: WaitingReplies,
}

/// The replies that wait to be written, as seen by the sweeps.
#[derive(Debug)]
pub(crate) struct WaitingReplies {
    /// The progress of writing them, if some wait.
    written: Option<u64>,
    /// The time since which `written` has not changed.
    written_since: Instant,
    /// The time since which some have waited.
    blocked_since: Instant,
}

impl WaitingReplies {
    pub(crate) fn new(now: Instant) -> Self {
        Self { written: None, written_since: now, blocked_since: now }
    }

    /// Whether they have waited too long. `written`: the present progress of writing them, if some wait.
    pub(crate) fn are_late(&mut self, written: Option<u64>, limit: Option<Duration>, now: Instant) -> bool {
        if written.is_none() {
            self.blocked_since = now;
        }
        if written.is_none() || written != self.written {
            (self.written, self.written_since) = (written, now);
        }
        let (unwritten, blocked) = (now - self.written_since, now - self.blocked_since);
        let takes_too_long =
            |limit: Duration| unwritten >= limit || blocked >= limit.saturating_mul(ALL_REPLIES_FACTOR);
        written.is_some() && limit.is_some_and(takes_too_long)
    }
}

impl IdleHistory {
    pub(crate) fn new(now: Instant) -> Self {
        let replies = WaitingReplies::new(now);
        Self { word: ReaderWord::of_own_thread(), quiet_since: now, progress: 0, stuck_since: now, replies }
    }

    /// Compares the connection with its state at the last sweep.
    pub(crate) fn look(
        &mut self,
        connection: &dyn MonitoredConnection,
        client_timeouts: ClientTimeouts,
        now: Instant,
    ) -> Option<IdleVerdict> {
        let (word, progress) = (connection.reader_word(), connection.read_progress());
        if word != self.word || !connection.has_no_requests() {
            (self.word, self.quiet_since) = (word, now);
        }
        if progress != self.progress || progress % 2 == 0 {
            (self.progress, self.stuck_since) = (progress, now);
        }
        let (quiet, stuck) = (now - self.quiet_since, now - self.stuck_since);
        let are_late = self.replies.are_late(connection.write_progress(), client_timeouts.reply, now);
        if connection.handshake_left().is_some_and(|left| left.is_zero()) {
            return Some(IdleVerdict::HandshakeLate);
        }
        if are_late {
            return Some(IdleVerdict::RepliesNotTaken);
        }
        if client_timeouts.message.is_some_and(|limit| stuck >= limit) {
            return Some(IdleVerdict::Unfinished);
        }
        if connection.is_close_sent() {
            return (quiet >= CLOSE_GRACE).then_some(IdleVerdict::Overstayed);
        }
        let is_idle = progress % 2 == 0 && client_timeouts.idle.is_some_and(|limit| quiet >= limit);
        is_idle.then_some(IdleVerdict::Idle(word))
    }
}
