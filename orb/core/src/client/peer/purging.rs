//! The closing of a peer's idle connections, to make room or because they have been idle for long.
//!
//! The [cache](crate::client::ConnectionCache) decides when one is closed.

use std::time::Duration;

use spandrel_sync::{Arc, atomic::Ordering};

use super::{CallFailure, ClientConnection, ConnectionCache, Peer, Pool, pool::Pooled};
use crate::{
    client::{ConnectionSharing, ConnectionSlot, Purging, connection_cache::CachedConnections, has_async_calls},
    diagnostics::statistics::Event,
};

/// The limits on an ORB's connections to servers: their number, their idle time, and calls that wait for one.
/// These are functions, so that a program without such limits does not contain them.
pub(crate) struct ConnectionLimits {
    /// Adds a new peer to the cache.
    pub(in crate::client) join: fn(&ConnectionCache, &Arc<Peer>),
    /// Waits until one more connection may be opened to a peer.
    pub(super) reserve: fn(&Peer, Option<Duration>) -> Result<ConnectionSlot, CallFailure>,
    /// Closes an idle connection of any peer; returns false if there is none.
    pub(super) purge: fn(&ConnectionCache) -> bool,
    /// Records that a connection was given back while calls wait for one.
    pub(super) record_release: fn(&Peer, &Arc<ClientConnection>),
    /// Fails during the backoff, after the peer refused a connection a short time ago.
    pub(super) check_backoff: fn(&Peer, &Pool) -> Result<(), CallFailure>,
    /// Sets or clears the backoff after an attempt to connect.
    pub(super) update_backoff: fn(&Peer, &mut Pool, bool),
}

/// The limits of [`CacheSettings`](crate::client::CacheSettings).
pub(crate) static CONNECTION_LIMITS: ConnectionLimits = ConnectionLimits {
    join: ConnectionCache::join,
    reserve: |peer, timeout| peer.cache.reserve(peer, timeout),
    purge: ConnectionCache::purge,
    record_release: Peer::record_release,
    check_backoff: Peer::check_backoff,
    update_backoff: Peer::update_backoff,
};

impl std::fmt::Debug for ConnectionLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionLimits").finish_non_exhaustive()
    }
}

impl CachedConnections for Peer {
    fn can_share(&self) -> bool {
        !self.is_exclusive() && self.pool.lock().has_shareable()
    }

    fn eviction_candidate(&self, purging: Purging) -> Option<u64> {
        let pool = self.pool.lock();
        let unused = pool.connections.iter().filter(|pooled| pooled.is_idle());
        unused.map(|pooled| pooled.marks.rank(purging)).min()
    }

    fn evict(&self, purging: Purging, rank: u64) -> bool {
        let mut pool = self.pool.lock();
        let is_candidate = |pooled: &Pooled| pooled.is_idle() && pooled.marks.rank(purging) == rank;
        let Some(at) = pool.connections.iter().position(is_candidate) else { return false };
        let connection = pool.connections.remove(at).connection;
        drop(pool);
        connection.count_end(Event::ClientClosedForLimit);
        self.close_idle(connection);
        true
    }

    fn close_idle(&self) {
        let mut pool = self.pool.lock();
        let idle = pool.connections.extract_if(.., |pooled| pooled.is_idle() && pooled.marks.count_idle_sweep());
        let idle: Vec<_> = idle.map(|pooled| pooled.connection).collect();
        drop(pool);
        for connection in idle {
            tracing::debug!(peer = %self.address, "an idle connection is closed");
            connection.count_end(Event::ClientClosedIdle);
            self.close_idle(connection);
        }
    }
}

impl Peer {
    fn is_exclusive(&self) -> bool {
        self.cache.settings().sharing == ConnectionSharing::Exclusive
    }

    /// Closes an unused connection that has left the pool. Called without any lock held.
    fn close_idle(&self, connection: Arc<ClientConnection>) {
        if !self.is_old_server.load(Ordering::Relaxed) {
            connection.close_orderly();
        }
        drop(connection);
    }

    /// Records that a connection was given back, and wakes the calls that wait for one.
    #[cold]
    fn record_release(&self, connection: &Arc<ClientConnection>) {
        let mut pool = self.pool.lock();
        let now = self.cache.tick();
        let pooled = pool.connections.iter_mut().find(|pooled| Arc::ptr_eq(&pooled.connection, connection));
        if let Some(pooled) = pooled {
            pooled.marks.set_last_use(now);
        }
        let is_exclusive = self.is_exclusive();
        let parked = if is_exclusive { std::mem::take(&mut pool.parked) } else { Vec::new() };
        drop(pool);
        if is_exclusive {
            self.connection_available.notify_all();
            if has_async_calls() {
                parked.into_iter().for_each(|call| call.connection_freed());
            }
        }
        self.cache.notify_release();
    }
}
