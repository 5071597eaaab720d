//! The choice of a connection for a call, and the wait for one.

use std::{io, time::Duration};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::time::{Deadline, Instant};
use spandrel_sync::{Arc, MutexGuard};

use super::{CallFailure, ClientConnection, Peer, Pool, may_wait_on};
use crate::client::ConnectionSharing;

/// The choice for a call.
pub(super) enum LeaseChoice {
    Take(Arc<ClientConnection>),
    /// One more may be opened.
    Open,
    /// As many as the limit are in use or being opened.
    Wait,
}

impl Peer {
    /// Chooses a connection for a call among those that `suits` accepts.
    pub(super) fn choose<'p>(
        &'p self,
        mut pool: MutexGuard<'p, Pool>,
        suits: fn(&ClientConnection) -> bool,
    ) -> (MutexGuard<'p, Pool>, LeaseChoice) {
        // A race may open one more than the limit.
        if let Some(connection) = pool.idle(suits) {
            return (pool, LeaseChoice::Take(connection));
        }
        let (limit, shares) = self.limit();
        if pool.open() + pool.opening >= limit {
            if !shares {
                return (pool, LeaseChoice::Wait);
            }
            if let Some(connection) = pool.least_used(suits) {
                return (pool, LeaseChoice::Take(connection));
            }
        }
        if shares && self.cache.is_full() && pool.open() > 0 {
            // Sharing is preferred to waiting.
            drop(pool);
            if let Some(limits) = self.settings.limits {
                (limits.purge)(&self.cache);
            }
            pool = self.pool.lock();
            if self.cache.is_full()
                && let Some(connection) = pool.least_used(suits)
            {
                return (pool, LeaseChoice::Take(connection));
            }
        }
        // Below the limit, or a connection that counted as open has been retired meanwhile.
        let choice = if pool.opening < limit { LeaseChoice::Open } else { LeaseChoice::Wait };
        (pool, choice)
    }

    /// The limit on connections, and whether calls share them at the limit.
    fn limit(&self) -> (usize, bool) {
        match self.cache.settings().sharing {
            ConnectionSharing::Exclusive => return (self.settings.connections_per_peer, false),
            ConnectionSharing::Multiplexed => return (1, true),
            ConnectionSharing::Mixed => {}
        }
        (self.settings.connections_per_peer, true)
    }

    /// Takes an open connection. Returns `None` if the caller is to open one, which is counted as being
    /// opened.
    pub(super) fn find_or_begin_opening(
        &self,
        timeout: Option<Duration>,
    ) -> Result<Option<Arc<ClientConnection>>, CallFailure> {
        let mut waiting = None;
        let mut pool = self.pool.lock();
        loop {
            let choice;
            (pool, choice) = self.choose(pool, may_wait_on);
            if let LeaseChoice::Take(connection) = choice {
                return Ok(Some(connection));
            }
            let (deadline, failure_count) =
                waiting.get_or_insert_with(|| (Deadline::after(timeout), pool.failure_count()));
            // The failure of the attempts that this call waited for is its own, too.
            if let Some((count, failure)) = &pool.last_failure
                && pool.open() == 0
                && count != failure_count
            {
                return Err(failure.clone());
            }
            if matches!(choice, LeaseChoice::Open) {
                self.begin_opening(&mut pool)?;
                return Ok(None);
            }
            if deadline.is_over() {
                return Err(self.no_connection_free());
            }
            self.connection_available.wait_until(&mut pool, *deadline);
        }
    }

    /// Counts one more connection as being opened.
    ///
    /// # Errors
    /// If the peer refused a short time ago, during the backoff.
    pub(super) fn begin_opening(&self, pool: &mut Pool) -> Result<(), CallFailure> {
        if let Some(limits) = self.settings.limits {
            (limits.check_backoff)(self, pool)?;
        }
        pool.opening += 1;
        Ok(())
    }

    fn no_connection_free(&self) -> CallFailure {
        if let (limit, false) = self.limit() {
            let detail = || {
                let address = &self.address;
                format!(
                    "all {limit} connections to {address} are in use and may not be shared (`-ORBConnectionsPerPeer`, `-ORBConnectionSharing`)"
                )
            };
            let exception = SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No);
            return CallFailure::new(exception.with_detail(detail));
        }
        self.connect_failed(io::ErrorKind::TimedOut.into(), true)
    }
}

impl Peer {
    fn backoff_failure(&self, left: Duration, last_failure: &CallFailure) -> CallFailure {
        let detail = || {
            let (address, left) = (&self.address, left.as_millis());
            format!(
                "{address} could not be connected to; the next attempt is made in {left} ms at the earliest (`-ORBReconnectBackoff`)"
            )
        };
        let exception = SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No);
        CallFailure::new(exception.with_detail(detail).with_source(last_failure.exception.clone()))
    }

    /// Fails during the backoff.
    pub(super) fn check_backoff(&self, pool: &Pool) -> Result<(), CallFailure> {
        let (Some((until, _)), Some((_, last_failure))) = (pool.backoff, &pool.last_failure) else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Ok(()) } else { Err(self.backoff_failure(left, last_failure)) }
    }

    /// Sets or clears the backoff after an attempt to connect.
    pub(super) fn update_backoff(&self, pool: &mut Pool, is_open: bool) {
        let Some((first, longest)) = self.cache.settings().backoff else { return };
        pool.backoff = match (is_open, pool.backoff) {
            (true, _) => None,
            (false, before) => {
                let span = before.map_or(first, |(_, span)| span * 2).min(longest);
                Instant::now().checked_add(span).map(|until| (until, span))
            }
        };
    }
}
