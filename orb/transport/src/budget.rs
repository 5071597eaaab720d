//! Budgets for the memory of received messages and of replies that wait to be sent: one limit per connection
//! and one for all.

use spandrel_message::MemoryAccount;
use spandrel_sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

const ONE: &str = "one connection";
const ONE_SETTING: &str = "-ORBMaxConnectionMemory";
const ALL: &str = "all connections";
const ALL_SETTING: &str = "-ORBMaxServerMemory";

/// The octets of long messages after which their memory is given back to the system.
const FREED: usize = 8 << 20;

/// The memory limit of a server, shared by the connections of all clients.
#[derive(Debug)]
pub struct MemoryBudget {
    used: AtomicUsize,
    limit: usize,
    /// The greatest length of recent long replies.
    longest_reply: AtomicUsize,
    /// Octets of long messages that were freed since [`take_freed`](Self::take_freed) reported them.
    freed: AtomicUsize,
    /// Whether one request may exceed the limit at present.
    has_exception: AtomicBool,
}

impl MemoryBudget {
    /// A budget of `limit` octets.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            limit,
            longest_reply: AtomicUsize::new(0),
            freed: AtomicUsize::new(0),
            has_exception: AtomicBool::new(false),
        }
    }

    /// The greatest length of recent long replies, in octets.
    #[must_use]
    pub fn longest_reply(&self) -> usize {
        self.longest_reply.load(Ordering::Relaxed)
    }

    /// Halves the remembered length of long replies; to be called periodically.
    pub fn decay_long_replies(&self) {
        self.longest_reply.store(self.longest_reply() / 2, Ordering::Relaxed);
    }

    /// Whether so much memory of long messages and replies was freed that it is worth while to give it back to
    /// the system. The count begins anew then.
    #[must_use]
    pub fn take_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed) >= FREED && self.freed.swap(0, Ordering::Relaxed) >= FREED
    }

    /// The octets that the connections have charged.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// The error of a charge that would exceed the limit of the connection or of the server.
#[derive(Clone, Copy, thiserror::Error)]
#[error(
    "{wanted} octets in addition to {used} in use would exceed the limit of {limit} octets for {scope} ({setting})"
)]
pub struct MemoryLimitExceeded {
    wanted: usize,
    used: usize,
    limit: usize,
    scope: &'static str,
    setting: &'static str,
}
spandrel_error::debug_as_report!(MemoryLimitExceeded);

/// The memory limit of one connection, and the progress of the message that it receives.
#[derive(Debug)]
pub struct ReceiveBudget {
    progress: AtomicU64,
    used: AtomicUsize,
    limit: usize,
    all: Arc<MemoryBudget>,
}

impl ReceiveBudget {
    /// A budget of `limit` octets within that of all connections.
    #[must_use]
    pub fn new(limit: usize, all: Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self { progress: AtomicU64::new(0), used: AtomicUsize::new(0), limit, all })
    }

    /// A number that is odd while a message is incomplete, and that changes with each MiB of it and at its
    /// end.
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    pub(crate) fn advance(&self, by: u64) {
        self.progress.fetch_add(by, Ordering::Relaxed);
    }

    /// Records the length of a long reply, for [`MemoryBudget::longest_reply`].
    pub fn record_long_reply(&self, octets: usize) {
        self.all.longest_reply.fetch_max(octets, Ordering::Relaxed);
        self.all.freed.fetch_add(octets, Ordering::Relaxed);
    }

    /// Counts `octets` against the limits of the connection and of the server.
    ///
    /// # Errors
    /// If a limit would be exceeded.
    pub fn charge(&self, octets: usize) -> Result<(), MemoryLimitExceeded> {
        add(&self.used, octets, self.limit, ONE, ONE_SETTING)?;
        let all = add(&self.all.used, octets, self.all.limit, ALL, ALL_SETTING);
        all.inspect_err(|_| {
            self.used.fetch_sub(octets, Ordering::Relaxed);
        })
    }

    /// Checks whether `octets` can be charged at present.
    ///
    /// # Errors
    /// If a limit would be exceeded.
    #[inline]
    pub fn check(&self, octets: usize) -> Result<(), MemoryLimitExceeded> {
        let fits = |used: &AtomicUsize, limit| used.load(Ordering::Relaxed).saturating_add(octets) <= limit;
        if fits(&self.used, self.limit) && fits(&self.all.used, self.all.limit) {
            return Ok(());
        }
        Err(self.exceeded_by(octets))
    }

    /// Counts `octets` that were [checked](Self::check), also beyond the limits if others were charged meanwhile.
    pub fn charge_admitted(&self, octets: usize) {
        MemoryAccount::charge(self, octets);
    }

    /// The right to exceed the limit of all connections, which one request has at a time, so that those that together
    /// fill it do not all fail. The limit of the connection holds for it, too.
    pub(crate) fn try_exception(&self) -> Option<LimitException> {
        let is_free = !self.all.has_exception.swap(true, Ordering::Relaxed);
        is_free.then(|| LimitException(Arc::clone(&self.all)))
    }

    /// Charges `octets` for the request with that right.
    pub(crate) fn charge_with(&self, _right: &LimitException, octets: usize) -> Result<(), MemoryLimitExceeded> {
        add(&self.used, octets, self.limit, ONE, ONE_SETTING)?;
        self.all.used.fetch_add(octets, Ordering::Relaxed);
        Ok(())
    }

    /// The error of a charge of `octets` that was refused, with the present numbers.
    pub(crate) fn exceeded_by(&self, wanted: usize) -> MemoryLimitExceeded {
        let used = self.used.load(Ordering::Relaxed);
        if used.saturating_add(wanted) > self.limit {
            return MemoryLimitExceeded { wanted, used, limit: self.limit, scope: ONE, setting: ONE_SETTING };
        }
        MemoryLimitExceeded { wanted, used: self.all.used(), limit: self.all.limit, scope: ALL, setting: ALL_SETTING }
    }

    /// Gives back octets that were charged to this connection and to all connections.
    pub fn release(&self, octets: usize) {
        self.used.fetch_sub(octets, Ordering::Relaxed);
        self.all.used.fetch_sub(octets, Ordering::Relaxed);
    }
}

/// The right of one request to exceed the limit of all connections, as long as this exists.
#[derive(Debug)]
pub(crate) struct LimitException(Arc<MemoryBudget>);

impl Drop for LimitException {
    fn drop(&mut self) {
        self.0.has_exception.store(false, Ordering::Relaxed);
    }
}

/// Long messages are charged for as long as they exist.
impl MemoryAccount for ReceiveBudget {
    fn try_charge(&self, octets: usize) -> bool {
        self.charge(octets).is_ok()
    }

    fn charge(&self, octets: usize) {
        self.used.fetch_add(octets, Ordering::Relaxed);
        self.all.used.fetch_add(octets, Ordering::Relaxed);
    }

    fn release(&self, octets: usize) {
        self.release(octets);
        self.all.freed.fetch_add(octets, Ordering::Relaxed);
    }
}

/// A charge against the limits of one connection and of the server, released on drop.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<ReceiveBudget>,
    octets: usize,
}

impl Charge {
    /// Octets by which [`beyond_limit`](Self::beyond_limit) may exceed the limit of one connection.
    const EXCESS: usize = 64 << 10;

    /// Counts `octets` against the limits until the charge is dropped.
    ///
    /// # Errors
    /// If a limit would be exceeded.
    pub fn new(budget: &Arc<ReceiveBudget>, octets: usize) -> Result<Self, MemoryLimitExceeded> {
        budget.charge(octets)?;
        Ok(Self { budget: Arc::clone(budget), octets })
    }

    /// Charges a short message that reports the rejection of a longer one: it may exceed both limits, the
    /// connection's by 64 KiB.
    ///
    /// # Errors
    /// If the connection's limit would be exceeded by more.
    pub fn beyond_limit(budget: &Arc<ReceiveBudget>, octets: usize) -> Result<Self, MemoryLimitExceeded> {
        let limit = budget.limit.saturating_add(Self::EXCESS);
        add(&budget.used, octets, limit, ONE, ONE_SETTING)?;
        budget.all.used.fetch_add(octets, Ordering::Relaxed);
        Ok(Self { budget: Arc::clone(budget), octets })
    }

    /// Reduces the charge to `octets`, if it is larger.
    pub fn reduce_to(&mut self, octets: usize) {
        self.budget.release(self.octets.saturating_sub(octets));
        self.octets = self.octets.min(octets);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.release(self.octets);
    }
}

impl Drop for ReceiveBudget {
    fn drop(&mut self) {
        self.all.used.fetch_sub(self.used.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

fn add(
    count: &AtomicUsize,
    wanted: usize,
    limit: usize,
    scope: &'static str,
    setting: &'static str,
) -> Result<(), MemoryLimitExceeded> {
    // Beyond the limit, a charge of nothing is still no more.
    let more = |used: usize| used.checked_add(wanted).filter(|sum| *sum <= limit || wanted == 0);
    let added = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    added.map(drop).map_err(|used| MemoryLimitExceeded { wanted, used, limit, scope, setting })
}
