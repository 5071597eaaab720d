//! The requests of a connection that can be cancelled.
//!
//! These are all deferred requests, which are answered after their upcalls have returned, and the running ones
//! whose servants have taken a cancellation token. A CancelRequest may be read before its servant takes a
//! token. The last few of these are kept until then.

use spandrel_connection::{CancelledRequests, ReaderWord, RequestKey, ServerHalf, UpcallNumber};
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_orb::{CancelReason, internal::cancellation::CancellationSource, statistics::Statistics};
use spandrel_sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicUsize, Ordering},
};
use spandrel_transport::{MemoryLimitExceeded, ReceiveBudget};

/// The deferred requests, and the running ones whose servants have taken a cancellation token.
#[derive(Debug)]
#[repr(C)]
pub(super) struct PendingRequests {
    /// The number of running upcalls whose servants have taken a cancellation token. Each request reads it.
    awaited_cancellations: AtomicU32,
    /// The number of deferred requests, for looks without the lock.
    deferred: AtomicUsize,
    requests: Mutex<ServerHalf<Arc<CancellationSource>>>,
    /// The memory limit of the deferred requests.
    intake: Arc<ReceiveBudget>,
    /// The limit of their number.
    max_deferred: usize,
}

impl PendingRequests {
    pub(super) fn new(intake: Arc<ReceiveBudget>, max_deferred: usize) -> Self {
        Self {
            requests: Mutex::default(),
            awaited_cancellations: AtomicU32::new(0),
            deferred: AtomicUsize::new(0),
            intake,
            max_deferred,
        }
    }

    /// The number of deferred requests.
    pub(super) fn deferred(&self) -> usize {
        self.requests.lock().deferred()
    }

    /// Whether servants of running upcalls have taken cancellation tokens.
    pub(super) fn awaits_cancellation(&self) -> bool {
        self.awaited_cancellations.load(Ordering::SeqCst) != 0
    }

    /// Returns the cancellation source of a running request, for the token of its servant, and whether this
    /// is the first one.
    pub(super) fn register_cancellation(
        &self,
        request_key: RequestKey,
        create: impl FnOnce() -> Arc<CancellationSource>,
    ) -> (Arc<CancellationSource>, bool) {
        let mut requests = self.requests.lock();
        if let Some(known) = requests.cancellable(request_key.upcall) {
            return (Arc::clone(known), false);
        }
        let cancellation = create();
        let is_cancelled = requests.register_cancellation(request_key, Arc::clone(&cancellation));
        self.awaited_cancellations.fetch_add(1, Ordering::SeqCst);
        drop(requests);
        if is_cancelled {
            cancellation.cancel(CancelReason::ClientCancelled);
        }
        (cancellation, true)
    }

    /// Marks a request as one whose reply is about to be sent, if its servant has taken a cancellation token.
    #[inline]
    pub(super) fn mark_replying(&self, upcall: UpcallNumber) {
        // Relaxed: only the thread of the upcall makes its entry.
        if self.awaited_cancellations.load(Ordering::Relaxed) != 0 {
            self.mark_cancellable_replying(upcall);
        }
    }

    #[cold]
    fn mark_cancellable_replying(&self, upcall: UpcallNumber) {
        if let Some(cancellation) = self.requests.lock().cancellable(upcall) {
            _ = cancellation.mark_replying(); // such requests are not ended early
        }
    }

    /// Removes the entry of an upcall that has ended, if its servant has taken a cancellation token.
    #[inline]
    pub(super) fn settle(&self, upcall: ReaderWord) {
        // Relaxed: only the thread of the upcall makes its entry.
        if self.awaited_cancellations.load(Ordering::Relaxed) != 0 {
            self.settle_cancellable(upcall.number());
        }
    }

    #[cold]
    fn settle_cancellable(&self, upcall: UpcallNumber) {
        let left = self.requests.lock().end_upcall(upcall);
        if let Some(cancellation) = left {
            self.awaited_cancellations.fetch_sub(1, Ordering::SeqCst);
            cancellation.mark_answered();
        }
    }

    /// Cancels these requests. `next_upcall`: the first one that has not begun, if upcalls run. It is called
    /// while no request is entered.
    pub(super) fn cancel(
        &self,
        cancelled_requests: CancelledRequests,
        reason: CancelReason,
        next_upcall: impl FnOnce() -> Option<UpcallNumber>,
    ) {
        let mut requests = self.requests.lock();
        let cancelled = requests.cancel(cancelled_requests, next_upcall());
        drop(requests);
        // Outside of the lock.
        cancelled.iter().for_each(|cancellation| cancellation.cancel(reason));
    }

    /// Enters a running request as a deferred one that is charged for `octets`. Returns the key of the entry, and the
    /// cancellation source that the servant has taken, or else the one that `create` makes.
    ///
    /// # Errors
    /// TRANSIENT if too many requests are deferred, or if a memory limit would be exceeded.
    pub(super) fn enter_deferred(
        &self,
        request_key: RequestKey,
        octets: usize,
        create: impl FnOnce() -> Arc<CancellationSource>,
        statistics: &Statistics,
    ) -> Result<(u64, Arc<CancellationSource>), SystemException> {
        let requests = self.requests.lock();
        let limit = self.max_deferred;
        if requests.deferred() >= limit {
            drop(requests);
            statistics.refused_deferred();
            return Err(too_many_deferred(limit));
        }
        if let Err(no_room) = self.intake.charge(octets) {
            drop(requests);
            statistics.refused_memory();
            return Err(no_memory(&no_room));
        }
        Ok(self.defer(requests, request_key, octets, create))
    }

    /// Checks whether a request may be deferred that would be charged for `octets`.
    ///
    /// # Errors
    /// As [`enter_deferred`](Self::enter_deferred).
    pub(super) fn check_deferred(&self, octets: usize, statistics: &Statistics) -> Result<(), SystemException> {
        // Relaxed: the requests of other threads may be counted later.
        if self.deferred.load(Ordering::Relaxed) >= self.max_deferred {
            statistics.refused_deferred();
            return Err(too_many_deferred(self.max_deferred));
        }
        self.intake.check(octets).map_err(|no_room| {
            statistics.refused_memory();
            no_memory(&no_room)
        })
    }

    /// As [`enter_deferred`](Self::enter_deferred), after [`check_deferred`](Self::check_deferred): beyond the limits if
    /// other requests were entered meanwhile.
    pub(super) fn enter_admitted(
        &self,
        request_key: RequestKey,
        octets: usize,
        create: impl FnOnce() -> Arc<CancellationSource>,
    ) -> (u64, Arc<CancellationSource>) {
        self.intake.charge_admitted(octets);
        self.defer(self.requests.lock(), request_key, octets, create)
    }

    fn defer(
        &self,
        mut requests: MutexGuard<'_, ServerHalf<Arc<CancellationSource>>>,
        request_key: RequestKey,
        octets: usize,
        create: impl FnOnce() -> Arc<CancellationSource>,
    ) -> (u64, Arc<CancellationSource>) {
        let registered = requests.cancellable(request_key.upcall).map(Arc::clone);
        let cancellation = registered.unwrap_or_else(create);
        let is_cancelled = requests.was_cancelled(request_key);
        // From now on the request is a deferred one, also when its upcall ends.
        let (key, was_watched) = requests.defer(request_key, octets, Arc::clone(&cancellation));
        if was_watched {
            self.awaited_cancellations.fetch_sub(1, Ordering::SeqCst);
        }
        self.deferred.store(requests.deferred(), Ordering::Relaxed);
        drop(requests);
        if is_cancelled {
            cancellation.cancel(CancelReason::ClientCancelled);
        }
        (key, cancellation)
    }

    /// Releases the memory of a deferred request that is being answered. Returns whether others are not answered yet.
    pub(super) fn uncharge_deferred(&self, key: u64) -> bool {
        let mut requests = self.requests.lock();
        let (octets, has_unanswered) = (requests.uncharge_deferred(key), requests.has_unanswered());
        drop(requests);
        self.intake.release(octets);
        has_unanswered
    }

    /// Removes a deferred request that has ended.
    pub(super) fn leave_deferred(&self, key: u64) {
        let mut requests = self.requests.lock();
        let left = requests.end_deferred(key);
        self.deferred.store(requests.deferred(), Ordering::Relaxed);
        drop(requests);
        // An answered one has none.
        if let Some((octets @ 1.., _)) = &left {
            self.intake.release(*octets);
        }
        drop(left);
    }
}

/// TRANSIENT for a request beyond the limit of a connection's deferred ones.
pub(crate) fn too_many_deferred(limit: usize) -> SystemException {
    SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(|| {
        format!("{limit} requests of this connection are deferred, which is the limit (-ORBMaxDeferredRequests)")
    })
}

/// TRANSIENT for a request that exceeds a memory limit at present.
pub(super) fn no_memory(exceeded: &MemoryLimitExceeded) -> SystemException {
    SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(|| exceeded.to_string())
}
