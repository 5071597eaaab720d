//! The open connections to one peer, and the calls that wait for one. `connection_choice` chooses among them.

use std::time::Duration;

use spandrel_sync::Arc;
use spandrel_sync::time::Instant;

use crate::client::{CallFailure, ClientConnection, ReplyReceiver, connection_cache::PurgingMarks};

/// Guarded by its peer's lock.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) connections: Vec<Pooled>,
    /// Connections that are being opened.
    pub(super) opening: usize,
    /// The number of failures to open one, and the last of them.
    pub(super) last_failure: Option<(u64, CallFailure)>,
    /// Asynchronous calls that wait for one that is being opened.
    pub(super) parked: Vec<Arc<dyn ReplyReceiver>>,
    /// Whether there was a connection before.
    pub(super) was_open: bool,
    /// The time until which a peer that refused is not connected to, and the length of that delay.
    pub(super) backoff: Option<(Instant, Duration)>,
}

#[derive(Debug)]
pub(super) struct Pooled {
    pub(super) connection: Arc<ClientConnection>,
    pub(super) users: usize,
    pub(super) marks: PurgingMarks,
    /// The time of its opening, or of the end of its last use.
    pub(super) last_use: Instant,
}

/// The pause after which an unused connection is looked at before a call uses it.
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// Whether the calling thread may wait for a reply there: not if it reads the connection itself, since it
/// would wait for itself.
pub(super) fn may_wait_on(connection: &ClientConnection) -> bool {
    !connection.is_notifying_thread()
}

impl Pool {
    /// Takes an unused connection.
    pub(super) fn idle(&mut self, suits: impl Fn(&ClientConnection) -> bool) -> Option<Arc<ClientConnection>> {
        loop {
            let at = self.connections.iter().position(|pooled| pooled.users == 0 && suits(&pooled.connection))?;
            let pooled = &mut self.connections[at];
            if pooled.is_open() {
                pooled.users = 1;
                return Some(Arc::clone(&pooled.connection));
            }
            self.connections.swap_remove(at);
        }
    }

    /// The number of connections that further calls may use.
    pub(super) fn open(&self) -> usize {
        self.connections.iter().filter(|pooled| !pooled.connection.is_retired()).count()
    }

    /// Whether the calling thread may share one of them.
    pub(super) fn has_shareable(&self) -> bool {
        self.connections.iter().any(|pooled| !pooled.connection.is_retired() && may_wait_on(&pooled.connection))
    }

    pub(super) fn failure_count(&self) -> u64 {
        self.last_failure.as_ref().map_or(0, |(count, _)| *count)
    }

    pub(super) fn least_used(&mut self, suits: impl Fn(&ClientConnection) -> bool) -> Option<Arc<ClientConnection>> {
        let suits = |pooled: &&mut Pooled| !pooled.connection.is_retired() && suits(&pooled.connection);
        let open = self.connections.iter_mut().filter(suits);
        let pooled = open.min_by_key(|pooled| pooled.users)?;
        pooled.users += 1;
        Some(Arc::clone(&pooled.connection))
    }

    /// Ends a use; a connection that must not be used again leaves the pool.
    pub(super) fn release(&mut self, connection: &Arc<ClientConnection>) {
        let Some(at) = self.connections.iter().position(|pooled| Arc::ptr_eq(&pooled.connection, connection)) else {
            return;
        };
        let pooled = &mut self.connections[at];
        pooled.users -= 1;
        if pooled.users == 0 {
            pooled.last_use = Instant::now();
        }
        pooled.marks.record_use();
        if connection.is_retired() {
            self.connections.swap_remove(at);
        }
    }
}

impl Pooled {
    /// Whether a call may begin to use the connection, which no other uses: false if the reactor has seen its
    /// end, or if it has ended unseen in a pause since its last use. Calls in quick succession only read the
    /// clock. To be called under the lock of the pool, so that no other call shares the connection before.
    pub(super) fn is_open(&self) -> bool {
        !self.connection.is_retired() && (self.last_use.elapsed() < LOOK_AFTER || self.connection.is_open_after_pause())
    }

    /// Whether it may be closed without an effect on any call.
    pub(super) fn is_idle(&self) -> bool {
        self.users == 0 && self.connection.may_be_closed()
    }
}
