//! A server's address and the open connections to it.

use std::{io, sync::OnceLock, time::Duration};

use spandrel_giop::{CompletionStatus, SystemException, SystemExceptionKind, ids, minor};
use spandrel_sync::{
    Arc, Condition, Mutex,
    atomic::{AtomicBool, Ordering},
    time::{Deadline, Instant},
};
use spandrel_transport::{Address, MessageReader, is_bidirectional_only};

use super::RequestLoss;
use super::{
    CallFailure, ClientConnection, ClientSettings, ConnectionCache, has_async_calls,
    unreachable_cache::UnreachableCache,
};
use crate::{client::transport::ClientProtocol, diagnostics::statistics::Statistics};

/// A server's address, with its connections.
#[derive(Debug)]
pub struct Peer {
    address: Arc<Address>,
    protocol: Arc<ClientProtocol>,
    pub(crate) settings: Arc<ClientSettings>,
    statistics: Statistics,
    pool: Mutex<Pool>,
    /// Notified when a connection was opened or could not be, and when one that is not shared is given back.
    connection_available: Condition,
    cache: Arc<ConnectionCache>,
    /// Whether a reference names it with a version before GIOP 1.2.
    is_old_server: AtomicBool,
    unreachable: UnreachableCache,
    /// Writes the one-ways that are buffered on connections other than this one; set by the first of them.
    flush_others: OnceLock<fn(&Self, &Arc<ClientConnection>)>,
}

impl Peer {
    pub(super) fn new(
        address: Address,
        protocol: Arc<ClientProtocol>,
        settings: Arc<ClientSettings>,
        cache: Arc<ConnectionCache>,
        statistics: Statistics,
    ) -> Self {
        Self {
            address: Arc::new(address),
            protocol,
            settings,
            statistics,
            pool: Mutex::default(),
            connection_available: Condition::new(),
            cache,
            is_old_server: AtomicBool::new(false),
            unreachable: UnreachableCache::default(),
            flush_others: OnceLock::new(),
        }
    }

    /// Whether a connection attempt failed slowly a short time ago.
    #[inline]
    pub(crate) fn is_unreachable(&self) -> bool {
        self.unreachable.is_unreachable()
    }

    /// The address of the server, to which connections are opened.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The protocol by which connections are opened.
    pub(super) fn protocol(&self) -> &Arc<ClientProtocol> {
        &self.protocol
    }

    /// Takes what is known of the server's version from another peer at the same address.
    pub(super) fn copy_server_version(&self, other: &Self) {
        self.is_old_server.fetch_or(other.is_old_server.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The connections of the pool, idle ones included.
    pub(crate) fn connections(&self) -> Vec<Arc<ClientConnection>> {
        self.pool.lock().connections.iter().map(|pooled| Arc::clone(&pooled.connection)).collect()
    }

    /// The number of asynchronous calls that wait for a connection.
    pub(super) fn parked(&self) -> usize {
        self.pool.lock().parked.len()
    }

    /// Removes its connections, which close when their last call ends.
    pub(super) fn forget_connections(&self) {
        let connections = std::mem::take(&mut self.pool.lock().connections);
        drop(connections);
    }

    /// Whether the peer may send requests over an open connection.
    pub(super) fn accepts_callbacks(&self) -> bool {
        self.pool.lock().connections.iter().any(|pooled| pooled.connection.accepts_callbacks())
    }

    /// Leases an unused connection, or a new one, or, at the limit, the one with the fewest users.
    pub(crate) fn lease(&self, timeout: Option<Duration>) -> Result<Lease<&Self>, CallFailure> {
        // In most cases there is one; the rest is kept out of this function.
        let idle = self.pool.lock().idle(may_wait_on);
        let lease = match idle {
            Some(connection) => Lease { peer: self, connection, fresh: false },
            None => self.lease_other(timeout)?,
        };
        self.flush_other_connections(&lease);
        Ok(lease)
    }

    /// Writes the one-ways that are buffered on other connections, before the caller writes to this one: they
    /// were sent before.
    #[inline]
    fn flush_other_connections(&self, connection: &Arc<ClientConnection>) {
        if let Some(flush_others) = self.flush_others.get() {
            flush_others(self, connection);
        }
    }

    #[cold]
    #[inline(never)]
    fn lease_other(&self, timeout: Option<Duration>) -> Result<Lease<&Self>, CallFailure> {
        self.lease_or(timeout, || self.connect(timeout))
    }

    /// Leases an open connection: an unused one, or the one with the fewest users.
    ///
    /// # Errors
    /// REBIND if there is none.
    pub(crate) fn lease_open(&self) -> Result<Lease<&Self>, CallFailure> {
        Ok(Lease { peer: self, connection: self.find_open(may_wait_on)?, fresh: false })
    }

    fn find_open(&self, suits: impl Fn(&ClientConnection) -> bool) -> Result<Arc<ClientConnection>, CallFailure> {
        let mut pool = self.pool.lock();
        let connection = pool.idle(&suits).or_else(|| pool.least_used(&suits));
        connection.ok_or_else(|| CallFailure::new(no_reconnecting()))
    }

    /// Leases a connection; `connect` opens a new one.
    fn lease_or(
        &self,
        timeout: Option<Duration>,
        connect: impl Fn() -> Result<ClientConnection, CallFailure>,
    ) -> Result<Lease<&Self>, CallFailure> {
        loop {
            if let Some(connection) = self.find_or_begin_opening(timeout)? {
                return Ok(Lease { peer: self, connection, fresh: false });
            }
            let opened = connect().map(Arc::new);
            self.finish_opening(&opened, timeout.is_some(), 1, || {});
            match opened {
                Ok(connection) => return Ok(Lease { peer: self, connection, fresh: true }),
                Err(failure) if failure.loss == RequestLoss::ConnectionShareable => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Records the outcome of opening a connection, and notifies the calls that wait for one. `is_limited`: a
    /// time-out may be that of the opening call. `first` notifies the call that it was opened for.
    fn finish_opening(
        &self,
        opened: &Result<Arc<ClientConnection>, CallFailure>,
        is_limited: bool,
        users: usize,
        first: impl FnOnce(),
    ) {
        let mut pool = self.pool.lock();
        pool.opening -= 1;
        if let Some(limits) = self.settings.limits
            && !opened.as_ref().is_err_and(is_local_failure)
        {
            (limits.update_backoff)(self, &mut pool, opened.is_ok());
        }
        let mut outcome = Ok(());
        match opened {
            Ok(connection) => {
                let (connection, marks) = (Arc::clone(connection), self.cache.marks());
                if pool.was_open && pool.open() == 0 {
                    self.statistics.reconnected();
                }
                pool.was_open = true;
                pool.connections.push(Pooled { connection, users, marks, last_use: Instant::now() });
            }
            // The deadline of this call is not that of others.
            Err(failure) if is_limited && is_timeout(failure) || is_local_failure(failure) => {}
            Err(failure) => {
                pool.last_failure = Some((pool.failure_count() + 1, failure.clone()));
                if pool.open() == 0 {
                    outcome = Err(failure.clone());
                }
            }
        }
        let parked = std::mem::take(&mut pool.parked);
        drop(pool);
        self.connection_available.notify_all();
        self.cache.notify_release();
        first();
        if has_async_calls() {
            parked.into_iter().for_each(|call| call.connection_opened(outcome.clone()));
        }
    }

    /// Removes the unused connections, after one was found closed. Those that are read at all times stay:
    /// their end is noticed.
    pub(crate) fn drop_idle(&self) {
        let mut pool = self.pool.lock();
        let is_unused = |pooled: &mut Pooled| pooled.users == 0 && !pooled.connection.accepts_callbacks();
        let idle: Vec<_> = pool.connections.extract_if(.., is_unused).collect();
        drop(pool);
        // Closed outside of the lock.
        drop(idle);
    }

    fn connect(&self, timeout: Option<Duration>) -> Result<ClientConnection, CallFailure> {
        let timeout = match (timeout, self.settings.connect_timeout) {
            (Some(call), Some(setting)) => Some(call.min(setting)),
            (call, setting) => call.or(setting),
        };
        let deadline = Deadline::after(timeout);
        let slot = self.settings.limits.map(|limits| (limits.reserve)(self, timeout)).transpose()?;
        let timeout = deadline.remaining();
        let begin = Instant::now();
        let connected = self.protocol.connect(&self.address, timeout, &self.settings.sockets);
        self.unreachable.note(connected.is_ok(), begin);
        let transport = connected.map_err(|error| self.connect_failed(error, timeout.is_some()))?;
        tracing::debug!(peer = %self.address, "connected");
        let reader = MessageReader::new(self.settings.max_message, self.settings.max_unfinished);
        Ok(ClientConnection::new(Arc::clone(&self.address), transport, reader, self.statistics.clone())
            .with_fragments_of(self.settings.fragment_sizes.of_peer(&self.address))
            .with_slot(slot))
    }

    /// Records a server older than GIOP 1.2, to which a client must not send CloseConnection.
    pub(crate) fn mark_old_server(&self) {
        self.is_old_server.store(true, Ordering::Relaxed);
    }

    /// `is_limited`: a time-out may be that of the call and not the system's.
    fn connect_failed(&self, error: io::Error, is_limited: bool) -> CallFailure {
        self.statistics.connection_failed();
        tracing::debug!(peer = %self.address, %error, "cannot connect");
        let no = CompletionStatus::No;
        let detail = || format!("cannot connect to {}", self.address);
        let exception = if is_limited && error.kind() == io::ErrorKind::TimedOut {
            self.statistics.timed_out_connecting();
            SystemException::timeout(minor::ROUND_TRIP_EXPIRED, no)
        } else {
            let is_bidirectional_only =
                || self.address.host_and_port().is_some_and(|(host, _)| is_bidirectional_only(host));
            // An ORB without the feature `details` has no bidirectional connections.
            if SystemException::KEEPS_DETAIL && is_bidirectional_only() {
                SystemException::transient(ids::TRANSIENT_NO_CALLBACK_CONNECTION, no)
            } else {
                SystemException::transient(minor::NO_USABLE_PROFILE, no)
            }
        };
        CallFailure::new(exception.with_detail(detail).with_source(error))
    }
}

/// Whether the failure has a local reason.
fn is_local_failure(failure: &CallFailure) -> bool {
    failure.exception.kind() == SystemExceptionKind::NoResources
}

fn is_timeout(failure: &CallFailure) -> bool {
    failure.exception.kind() == SystemExceptionKind::Timeout
}

#[cfg(feature = "asynchronous")]
mod async_leases;
#[cfg(feature = "asynchronous")]
pub(crate) mod batches;
mod connection_choice;
mod lease;
#[cfg(all(test, shuttle))]
mod models;
mod pool;
pub(crate) mod purging;

#[cfg(feature = "asynchronous")]
pub(crate) use async_leases::LeaseResult;
pub(crate) use lease::{Lease, no_reconnecting, not_sent_in_time};
use pool::{Pool, Pooled, may_wait_on};
