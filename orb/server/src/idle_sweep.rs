//! Rounds of the monitor: connections that are of no use are closed, and clients that never finish what they send are cut off.
//!
//! Nothing is written down for that while requests are served: whether a connection is in use shows in its `turn`, and whether a message has been
//! half read for long in the [progress](spandrel_transport::ReceiveBudget::progress) of its reader, which changes only where messages come in pieces. The monitor remembers what it saw,
//! and since when; so the times are exact to a quarter.

use std::time::Duration;

use spandrel_orb::{server_settings::ClientTimeouts, statistics::Event};
use spandrel_sync::{Arc, time::Instant};

use super::ServerConnection;
use crate::ServingOrb;

/// How long a client that was told that its connection ends may take to close its side.
const LEAVE: Duration = Duration::from_secs(1);

/// How many times as long as for its next octets a client may take for all replies that wait.
const WHOLE_REPLY: u32 = 20;

/// A connection at the last sweep, to tell an idle one from one in use.
#[derive(Debug)]
pub(super) struct IdleHistory {
    turn: u64,
    /// Since when that has been its turn, and nothing was running.
    quiet_since: Instant,
    progress: u64,
    /// Since when that has been its progress.
    stuck_since: Instant,
    replies: WaitingReplies,
}

/// Replies that wait to be written, as the rounds have seen them.
#[derive(Debug)]
pub(super) struct WaitingReplies {
    /// How far they have come, if some wait.
    written: Option<u64>,
    /// Since when they have come so far.
    written_since: Instant,
    /// Since when some have waited.
    blocked_since: Instant,
}

impl WaitingReplies {
    pub(super) fn new(now: Instant) -> Self {
        Self { written: None, written_since: now, blocked_since: now }
    }

    /// Whether they wait for too long. `written`: how far they have come now, if some wait.
    pub(super) fn are_late(&mut self, written: Option<u64>, limit: Option<Duration>, now: Instant) -> bool {
        if written.is_none() {
            self.blocked_since = now;
        }
        if written.is_none() || written != self.written {
            (self.written, self.written_since) = (written, now);
        }
        let (unwritten, blocked) = (now - self.written_since, now - self.blocked_since);
        let takes_too_long = |limit: Duration| unwritten >= limit || blocked >= limit.saturating_mul(WHOLE_REPLY);
        written.is_some() && limit.is_some_and(takes_too_long)
    }
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum IdleVerdict {
    /// It is closed in an orderly way if this is still its turn.
    Idle(u64),
    /// It is cut off inside of a message.
    Unfinished,
    /// It is cut off because its client was told to leave, and has not.
    Overstayed,
    /// It is cut off because its client does not take its replies.
    RepliesNotTaken,
    /// It is cut off because its handshake takes too long.
    HandshakeLate,
}

impl IdleHistory {
    pub(super) fn new(now: Instant) -> Self {
        let replies = WaitingReplies::new(now);
        Self { turn: 0, quiet_since: now, progress: 0, stuck_since: now, replies }
    }

    /// Looks at the connection once more.
    pub(super) fn look(
        &mut self,
        connection: &ServerConnection,
        client_timeouts: ClientTimeouts,
        now: Instant,
    ) -> Option<IdleVerdict> {
        let (turn, progress) = (connection.turn(), connection.progress());
        if turn != self.turn || !connection.has_no_requests() {
            (self.turn, self.quiet_since) = (turn, now);
        }
        if progress != self.progress || progress % 2 == 0 {
            (self.progress, self.stuck_since) = (progress, now);
        }
        let (quiet, stuck) = (now - self.quiet_since, now - self.stuck_since);
        let are_late = self.replies.are_late(connection.link().progress(), client_timeouts.reply, now);
        if connection.link().transport().handshake_left().is_some_and(|left| left.is_zero()) {
            return Some(IdleVerdict::HandshakeLate);
        }
        if are_late {
            return Some(IdleVerdict::RepliesNotTaken);
        }
        if client_timeouts.message.is_some_and(|client_timeouts| stuck >= client_timeouts) {
            return Some(IdleVerdict::Unfinished);
        }
        if connection.is_close_sent() {
            return (quiet >= LEAVE).then_some(IdleVerdict::Overstayed);
        }
        let is_idle = progress % 2 == 0 && client_timeouts.idle.is_some_and(|limit| quiet >= limit);
        is_idle.then_some(IdleVerdict::Idle(turn))
    }
}

/// Does what was found to be due.
pub(super) fn apply(connection: &Arc<ServerConnection>, verdict: IdleVerdict, client_timeouts: ClientTimeouts) {
    let peer = connection.link().peer();
    match verdict {
        IdleVerdict::Idle(turn) => {
            if connection.close_idle(turn, Event::ServerClosedIdle) {
                tracing::debug!(peer, idle = ?client_timeouts.idle, "closed because it asked for nothing (-ORBServerIdleTimeout)");
            }
        }
        IdleVerdict::Unfinished => {
            log_limited!(
                warn, connection.orb(), "unfinished message", peer, limit = ?client_timeouts.message,
                "cut off inside a message that does not go on (-ORBMessageTimeout)"
            );
            connection.cut_for(Event::ServerClosedForTimeout);
        }
        IdleVerdict::RepliesNotTaken => {
            log_limited!(
                warn, connection.orb(), "replies not taken", peer, limit = ?client_timeouts.reply,
                "cut off because it does not take its replies (-ORBSendTimeout)"
            );
            connection.cut_for(Event::ServerClosedForTimeout);
        }
        IdleVerdict::HandshakeLate => {
            log_limited!(
                warn,
                connection.orb(),
                "handshake",
                peer,
                "a client was turned away in the handshake, which took too long"
            );
            connection.cut_for(Event::RefusedForSecurity);
        }
        IdleVerdict::Overstayed => connection.cut(),
    }
}
