//! The limit on an ORB's open connections over all its peers, and the closing of connections: to make room
//! for others, or because they are idle.
//!
//! A call's choice of a connection belongs to its peer, a [`CachedConnections`] here. A connection in use is
//! never closed. Until half of the limit has been open, calls only count a connection's uses here.

use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{
    Arc, Condition, Mutex, Weak,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::{Deadline, Instant},
};

use super::{
    CallFailure, MaintenanceThread, RequestLoss,
    maintenance::{Maintained, Schedule},
};

/// The order in which unused connections are closed when a new one is needed at the limit.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Purging {
    /// The one whose last use lies farthest back. Uses are ordered once half of the limit has been open.
    #[default]
    LeastRecentlyUsed,
    /// The one with the fewest uses.
    LeastFrequentlyUsed,
    /// The one that was opened first.
    Fifo,
    /// None: a call that needs another one waits.
    Null,
}

/// How calls share the connections to one peer.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ConnectionSharing {
    /// No two calls use a connection at once. At the limit of the peer's connections
    /// ([`connections_per_peer`](crate::OrbBuilder::connections_per_peer)) a call waits for one. A call that
    /// is made inside of an upcall of another may then wait for ever, unless the limit is greater than the
    /// depth of nesting.
    Exclusive,
    /// Exclusive while another may be opened, then shared.
    #[default]
    Mixed,
    /// All calls share one connection.
    Multiplexed,
}

/// The configuration of the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheSettings {
    pub(crate) limit: usize,
    pub(crate) purging: Purging,
    pub(crate) sharing: ConnectionSharing,
    pub(crate) idle: Option<Duration>,
    /// Schedules the search for idle connections on the maintenance thread. Without it, opening a connection
    /// starts the search. A program that never sets it does not contain the thread.
    pub(crate) schedule: Option<Schedule>,
    /// How long calls to a peer that refused fail at once: at first, and at most.
    pub(crate) backoff: Option<(Duration, Duration)>,
}

impl CacheSettings {
    /// Any number of connections; none is closed for being idle.
    pub(crate) const UNLIMITED: Self = Self {
        limit: usize::MAX,
        purging: Purging::Null,
        sharing: ConnectionSharing::Mixed,
        idle: None,
        schedule: None,
        backoff: None,
    };
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            limit: 1024,
            purging: Purging::default(),
            sharing: ConnectionSharing::default(),
            idle: Some(Duration::from_secs(180)),
            schedule: None,
            backoff: None,
        }
    }
}

/// The number of consecutive sweeps that find a connection unused before it is closed.
const IDLE_SWEEPS: u32 = 4;

/// A peer's connections that the cache counts. Called without any lock of the cache held.
pub(super) trait CachedConnections: Send + Sync {
    /// Whether there is a connection that is open and may be shared.
    fn can_share(&self) -> bool;

    /// The lowest rank among the unused connections.
    fn eviction_candidate(&self, purging: Purging) -> Option<u64>;

    /// Closes the connection of that rank; returns false if it is in use now.
    fn evict(&self, purging: Purging, rank: u64) -> bool;

    /// Examines the unused connections, and closes those that were unused in enough sweeps.
    fn close_idle(&self);
}

/// All connections of an ORB's client side, by number.
#[derive(Debug)]
pub(crate) struct ConnectionCache {
    settings: CacheSettings,
    maintenance_thread: Arc<MaintenanceThread>,
    /// Connections that are open or being opened.
    open: AtomicUsize,
    /// The counter that orders the opening and the uses of connections.
    clock: AtomicU64,
    /// Whether connections that are given back are to be reported here.
    tracks_releases: AtomicBool,
    /// The calls that wait for a free connection.
    waiting: AtomicUsize,
    /// The number of connections that became free while calls waited.
    releases: Mutex<u64>,
    slot_released: Condition,
    members: Mutex<Members>,
}

#[derive(Debug, Default)]
struct Members {
    all: Vec<Weak<dyn CachedConnections>>,
    last_sweep: Option<Instant>,
    /// Whether the maintenance thread sweeps.
    is_scheduled: bool,
}

/// The right to have one connection open.
#[derive(Debug)]
pub(crate) struct ConnectionSlot(Arc<ConnectionCache>);

/// The history of a connection, from which the purging strategy takes its rank.
#[derive(Debug, Default)]
pub(crate) struct PurgingMarks {
    opened: u64,
    /// The time of its last use, once half of all connections are open.
    last_use: u64,
    uses: u64,
    /// The number of uses at the last sweep, and the number of sweeps since it last changed.
    uses_at_sweep: u64,
    sweeps: u32,
}

impl PurgingMarks {
    #[inline]
    pub(super) fn record_use(&mut self) {
        self.uses += 1;
    }

    pub(super) fn set_last_use(&mut self, at: u64) {
        self.last_use = at;
    }

    /// The connection's rank: the lowest is closed first.
    pub(super) fn rank(&self, purging: Purging) -> u64 {
        match purging {
            Purging::LeastRecentlyUsed | Purging::Null => self.last_use,
            Purging::LeastFrequentlyUsed => self.uses,
            Purging::Fifo => self.opened,
        }
    }

    /// Examines an unused connection; returns true if it has been idle for the whole time.
    pub(super) fn count_idle_sweep(&mut self) -> bool {
        if self.uses_at_sweep != self.uses {
            (self.uses_at_sweep, self.sweeps) = (self.uses, 0);
            return false;
        }
        self.sweeps += 1;
        self.sweeps >= IDLE_SWEEPS
    }
}

impl ConnectionCache {
    pub(crate) fn new(settings: CacheSettings) -> Arc<Self> {
        let is_exclusive = settings.sharing == ConnectionSharing::Exclusive;
        Arc::new(Self {
            settings,
            maintenance_thread: Arc::default(),
            open: AtomicUsize::new(0),
            clock: AtomicU64::new(1),
            tracks_releases: AtomicBool::new(is_exclusive),
            waiting: AtomicUsize::new(0),
            releases: Mutex::default(),
            slot_released: Condition::new(),
            members: Mutex::default(),
        })
    }

    pub(crate) fn settings(&self) -> &CacheSettings {
        &self.settings
    }

    /// The thread that looks after connections.
    pub(crate) fn maintenance_thread(&self) -> &Arc<MaintenanceThread> {
        &self.maintenance_thread
    }

    /// Whether connections that are given back have to be reported.
    #[inline]
    pub(crate) fn tracks_releases(&self) -> bool {
        self.tracks_releases.load(Ordering::Relaxed)
    }

    /// Whether as many connections are open as the limit allows.
    pub(crate) fn is_full(&self) -> bool {
        self.open.load(Ordering::Relaxed) >= self.settings.limit
    }

    /// The next value of the ordering counter.
    pub(super) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// The history of a connection that is opened now.
    pub(super) fn marks(&self) -> PurgingMarks {
        let now = self.tick();
        PurgingMarks { opened: now, last_use: now, ..PurgingMarks::default() }
    }

    /// Counts the connections of this member against the limit, as long as the member exists.
    pub(super) fn join<M: CachedConnections + 'static>(&self, member: &Arc<M>) {
        let mut members = self.members.lock();
        members.all.retain(|member| member.strong_count() > 0);
        members.all.push(Arc::downgrade(member) as Weak<dyn CachedConnections>);
    }

    /// Waits until one more connection may be opened for this member, or an open one can be shared.
    ///
    /// # Errors
    /// NO_RESOURCES after the time-out.
    pub(super) fn reserve(
        self: &Arc<Self>,
        member: &dyn CachedConnections,
        timeout: Option<Duration>,
    ) -> Result<ConnectionSlot, CallFailure> {
        let slot = match self.try_reserve_or_purge() {
            Some(slot) => slot,
            None => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                // Each later return of a connection sees this, through the lock of its pool.
                self.tracks_releases.store(true, Ordering::Relaxed);
                let slot = self.wait(member, Deadline::after(timeout));
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                slot.map_err(|loss| CallFailure::of(loss, self.limit_reached()))?
            }
        };
        self.schedule_idle_sweep();
        Ok(slot)
    }

    fn wait(
        self: &Arc<Self>,
        member: &dyn CachedConnections,
        deadline: Deadline,
    ) -> Result<ConnectionSlot, RequestLoss> {
        loop {
            let before = *self.releases.lock();
            if let Some(slot) = self.try_reserve_or_purge() {
                return Ok(slot);
            }
            if member.can_share() {
                return Err(RequestLoss::ConnectionShareable);
            }
            let mut releases = self.releases.lock();
            while *releases == before {
                if deadline.is_over() {
                    return Err(RequestLoss::Other);
                }
                self.slot_released.wait_until(&mut releases, deadline);
            }
        }
    }

    fn try_reserve_or_purge(self: &Arc<Self>) -> Option<ConnectionSlot> {
        loop {
            if let Some(slot) = self.try_reserve() {
                return Some(slot);
            }
            if !self.purge() {
                return None;
            }
        }
    }

    fn try_reserve(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let (relaxed, limit) = (Ordering::Relaxed, self.settings.limit);
        let before = self.open.fetch_update(relaxed, relaxed, |open| (open < limit).then_some(open + 1)).ok()?;
        if before + 1 >= limit.div_ceil(2) {
            // Never reset: the reset might overtake another thread that has just opened one.
            self.tracks_releases.store(true, Ordering::Relaxed);
        }
        Some(ConnectionSlot(Arc::clone(self)))
    }

    /// Closes an unused connection; returns false if there is none, or the strategy closes none.
    pub(crate) fn purge(&self) -> bool {
        let purging = self.settings.purging;
        if purging == Purging::Null {
            return false;
        }
        let members = self.members();
        loop {
            let candidates = members.iter().filter_map(|member| Some((member.eviction_candidate(purging)?, member)));
            let Some((rank, member)) = candidates.min_by_key(|(rank, _)| *rank) else { return false };
            // A call may have begun to use it.
            if member.evict(purging, rank) {
                return true;
            }
        }
    }

    fn members(&self) -> Vec<Arc<dyn CachedConnections>> {
        self.members.lock().all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Wakes the waiting calls, after a connection has become unused or was closed.
    pub(super) fn notify_release(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            *self.releases.lock() += 1;
            self.slot_released.notify_all();
        }
    }

    fn limit_reached(&self) -> SystemException {
        let limit = self.settings.limit;
        SystemException::no_resources(0, CompletionStatus::No).with_detail(|| {
            format!("all {limit} connections that may be open are in use (`-ORBMaxClientConnections`), and none became free in time")
        })
    }

    /// The time from one sweep to the next.
    fn period(&self) -> Option<Duration> {
        self.settings.idle.map(|idle| idle / IDLE_SWEEPS)
    }

    /// Schedules the search for idle connections, or makes it, when a connection is opened.
    fn schedule_idle_sweep(self: &Arc<Self>) {
        let Some(period) = self.period() else { return };
        let mut members = self.members.lock();
        if let Some(schedule) = self.settings.schedule {
            if !members.is_scheduled {
                let cache = Arc::downgrade(self) as Weak<dyn Maintained>;
                members.is_scheduled = schedule(&self.maintenance_thread, cache, period);
            }
            return;
        }
        let now = Instant::now();
        let is_due = members.last_sweep.is_some_and(|last| now.saturating_duration_since(last) >= period);
        if is_due || members.last_sweep.is_none() {
            members.last_sweep = Some(now);
        }
        drop(members);
        if is_due {
            self.sweep();
        }
    }

    /// Examines all unused connections.
    fn sweep(&self) {
        self.members().iter().for_each(|member| member.close_idle());
    }
}

impl Maintained for ConnectionCache {
    fn maintain(&self, _now: Instant) -> Option<Duration> {
        self.sweep();
        let mut members = self.members.lock();
        members.is_scheduled = self.open.load(Ordering::Relaxed) > 0;
        if members.is_scheduled { self.period() } else { None }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.notify_release();
    }
}
