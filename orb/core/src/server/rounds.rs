//! Rounds of the watcher: connections that are of no use are closed, and clients that never finish what they send are cut off.
//!
//! Nothing is written down for that while requests are served: whether a connection is in use shows in its `turn`, and whether a message has been
//! half read for long in the [progress](crate::reader::Progress) of its reader, which changes only where messages come in pieces. The watcher remembers what it saw,
//! and since when; so the times are exact to a quarter.

use std::time::Duration;

use spandrel_sync::{Arc, time::Instant};

use super::{ServerConnection, settings::Patience};
use crate::statistics::Event;

/// How long a client that was told that its connection ends may take to close its side.
const LEAVE: Duration = Duration::from_secs(1);

/// What the rounds have seen of a connection.
#[derive(Debug)]
pub(super) struct Past {
    turn: u64,
    /// Since when that has been its turn, and nothing was running.
    quiet_since: Instant,
    progress: u64,
    /// Since when that has been its progress.
    stuck_since: Instant,
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It is closed in an orderly way if this is still its turn.
    Idle(u64),
    /// It is cut off inside of a message.
    Unfinished,
    /// It is cut off because its client was told to leave, and has not.
    Overstayed,
}

impl Past {
    pub(super) fn new(now: Instant) -> Self {
        Self { turn: 0, quiet_since: now, progress: 0, stuck_since: now }
    }

    /// Looks at the connection once more.
    pub(super) fn look(&mut self, connection: &ServerConnection, patience: Patience, now: Instant) -> Option<Verdict> {
        let (turn, progress) = (connection.turn(), connection.progress());
        if turn != self.turn || !connection.is_at_rest() {
            (self.turn, self.quiet_since) = (turn, now);
        }
        if progress != self.progress || progress % 2 == 0 {
            (self.progress, self.stuck_since) = (progress, now);
        }
        let (quiet, stuck) = (now - self.quiet_since, now - self.stuck_since);
        if patience.message.is_some_and(|patience| stuck >= patience) {
            return Some(Verdict::Unfinished);
        }
        if connection.has_said_goodbye() {
            return (quiet >= LEAVE).then_some(Verdict::Overstayed);
        }
        let is_idle = progress % 2 == 0 && patience.idle.is_some_and(|patience| quiet >= patience);
        is_idle.then_some(Verdict::Idle(turn))
    }
}

/// Does what was found to be due.
pub(super) fn carry_out(connection: &Arc<ServerConnection>, verdict: Verdict, patience: Patience) {
    let peer = connection.link().peer();
    match verdict {
        Verdict::Idle(turn) => {
            if connection.close_idle(turn, Event::ServerClosedIdle) {
                tracing::debug!(peer, idle = ?patience.idle, "closed because it asked for nothing (-ORBServerIdleTimeout)");
            }
        }
        Verdict::Unfinished => {
            tracing::warn!(peer, limit = ?patience.message, "cut off inside a message that does not go on (-ORBMessageTimeout)");
            connection.cut_for(Event::ServerClosedForTimeout);
        }
        Verdict::Overstayed => connection.link().cut(),
    }
}
