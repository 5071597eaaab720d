//! Buffered one-ways of a peer: their connection, and their flushing.

use std::time::Duration;

use spandrel_sync::Arc;
use spandrel_transport::Deadline;

use super::{CallFailure, ClientConnection, Lease, Peer, Pool, may_wait_on};
use crate::client::{ConnectionSharing, MaintenanceThread, OneWayBuffer};

impl Peer {
    /// Leases the connection for buffered one-ways: always the first, so that they stay in order and in one
    /// batch.
    pub(crate) fn lease_first(&self, timeout: Option<Duration>) -> Result<Lease<&Self>, CallFailure> {
        self.flush_others.get_or_init(|| Self::flush_others);
        let first =
            if self.cache.settings().sharing == ConnectionSharing::Exclusive { None } else { self.pool.lock().first() };
        match first {
            Some(connection) => Ok(Lease { peer: self, connection, fresh: false }),
            None => self.lease(timeout),
        }
    }

    /// The thread that writes buffered one-ways at their time.
    pub(crate) fn maintenance_thread(&self) -> &Arc<MaintenanceThread> {
        self.cache.maintenance_thread()
    }

    /// Writes all one-ways that are buffered for this peer.
    pub(crate) fn flush(&self, deadline: Option<&Deadline>) -> Result<(), CallFailure> {
        if self.flush_others.get().is_none() {
            return Ok(());
        }
        let connections = self.pool.lock().other_connections(None);
        first_failure(connections.iter().map(|connection| OneWayBuffer::of(connection).flush(deadline)))
    }

    #[cold]
    fn flush_others(&self, connection: &Arc<ClientConnection>) {
        let others = self.pool.lock().other_connections(Some(connection));
        others.iter().for_each(|other| OneWayBuffer::of(other).write_ready());
    }
}

impl Pool {
    fn first(&mut self) -> Option<Arc<ClientConnection>> {
        let suits = |connection: &ClientConnection| !connection.is_retired() && may_wait_on(connection);
        loop {
            let at = self.connections.iter().position(|pooled| suits(&pooled.connection))?;
            let pooled = &mut self.connections[at];
            if pooled.users > 0 || pooled.is_open() {
                pooled.users += 1;
                return Some(Arc::clone(&pooled.connection));
            }
            self.connections.swap_remove(at);
        }
    }

    /// All connections but this one.
    fn other_connections(&self, connection: Option<&Arc<ClientConnection>>) -> Vec<Arc<ClientConnection>> {
        let all = self.connections.iter().map(|pooled| &pooled.connection);
        all.filter(|other| connection.is_none_or(|connection| !Arc::ptr_eq(other, connection))).cloned().collect()
    }
}

/// Evaluates all results; returns the first failure.
pub(crate) fn first_failure(flushed: impl Iterator<Item = Result<(), CallFailure>>) -> Result<(), CallFailure> {
    flushed.filter_map(Result::err).reduce(|first, _| first).map_or(Ok(()), Err)
}
