//! Which connection a call gets, and what it waits for if it gets none yet.

use std::{io, time::Duration};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, MutexGuard};

use super::{CallFailure, ClientConnection, Deadline, Peer, Pool, is_free};
use crate::client::ConnectionSharing;

/// What there is for a call.
pub(super) enum LeaseChoice {
    Take(Arc<ClientConnection>),
    /// One more may be opened.
    Open,
    /// Others use, or open, as many as there may be.
    Wait,
}

impl Peer {
    /// What there is for a call that `suits` it.
    pub(super) fn choose<'p>(
        &'p self,
        mut pool: MutexGuard<'p, Pool>,
        suits: fn(&ClientConnection) -> bool,
    ) -> (MutexGuard<'p, Pool>, LeaseChoice) {
        // Rather is one more opened than there should be.
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
            // Rather is one shared than another one waited for.
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
        // Below the limit; or what was counted as open has been retired meanwhile.
        let choice = if pool.opening < limit { LeaseChoice::Open } else { LeaseChoice::Wait };
        (pool, choice)
    }

    /// How many connections there may be, and whether calls share them then.
    fn limit(&self) -> (usize, bool) {
        match self.cache.settings().sharing {
            ConnectionSharing::Exclusive => return (self.settings.connections_per_peer, false),
            ConnectionSharing::Multiplexed => return (1, true),
            ConnectionSharing::Mixed => {}
        }
        (self.settings.connections_per_peer, true)
    }

    /// A connection that is open; none, and one more that is being opened, if the caller is to open it.
    pub(super) fn open_already(&self, timeout: Option<Duration>) -> Result<Option<Arc<ClientConnection>>, CallFailure> {
        let mut waiting = None;
        let mut pool = self.pool.lock();
        loop {
            let choice;
            (pool, choice) = self.choose(pool, is_free);
            if let LeaseChoice::Take(connection) = choice {
                return Ok(Some(connection));
            }
            let (deadline, refusals) = waiting.get_or_insert_with(|| (timeout.map(Deadline::after), pool.refusals()));
            // What kept others from opening those that this call waited for would keep it too.
            if let Some((count, failure)) = &pool.refused
                && pool.open() == 0
                && count != refusals
            {
                return Err(failure.clone());
            }
            if matches!(choice, LeaseChoice::Open) {
                self.begin_opening(&mut pool)?;
                return Ok(None);
            }
            match deadline.as_ref().map(Deadline::remaining) {
                None => self.opened.wait(&mut pool),
                Some(Duration::ZERO) => return Err(self.none_came_free()),
                Some(remaining) => drop(self.opened.wait_for(&mut pool, remaining)),
            }
        }
    }

    /// One more is being opened.
    ///
    /// # Errors
    /// If the peer refused a short time ago, and is left alone now.
    pub(super) fn begin_opening(&self, pool: &mut Pool) -> Result<(), CallFailure> {
        if let (Some((until, _)), Some((_, refused))) = (pool.backoff, &pool.refused) {
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Err(self.is_left_alone(left, refused));
            }
        }
        pool.opening += 1;
        Ok(())
    }

    fn none_came_free(&self) -> CallFailure {
        if let (limit, false) = self.limit() {
            let detail = || {
                let address = &self.address;
                format!(
                    "all {limit} connections to {address} are in use, and none is shared (`-ORBConnectionsPerPeer`, `-ORBConnectionSharing`)"
                )
            };
            let exception = SystemException::timeout(minor::ROUND_TRIP_EXPIRED, CompletionStatus::No);
            return CallFailure::new(exception.with_detail(detail));
        }
        self.connect_failed(io::ErrorKind::TimedOut.into(), true)
    }
}

impl Peer {
    fn is_left_alone(&self, left: Duration, refused: &CallFailure) -> CallFailure {
        let detail = || {
            let (address, left) = (&self.address, left.as_millis());
            format!(
                "{address} could not be connected to, and is tried again in {left} ms at the earliest (`-ORBReconnectBackoff`)"
            )
        };
        let exception = SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No);
        CallFailure::new(exception.with_detail(detail).with_source(refused.exception.clone()))
    }

    /// A connection was opened, or refused.
    pub(super) fn note_outcome(&self, pool: &mut Pool, is_open: bool) {
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
