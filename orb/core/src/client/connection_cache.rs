//! How many connections an ORB has open, over all its peers, and which of them go: to make room for others, or because nobody
//! has used them for long.
//!
//! The peer, a [`CachedConnections`], selects the connection of a call. A connection in use is never closed. Until half of what may
//! be open has been, calls leave no trace here but the count of a connection's uses.

use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_sync::{
    Arc, Condition, Mutex, Weak,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Instant,
};
use spandrel_transport::Deadline;

use super::{
    CallFailure, MaintenanceThread, RequestLoss,
    maintenance::{Maintained, Schedule},
};

/// Which connection is closed when another is to be opened and there are as many as there may be: always one that nobody uses.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Purging {
    /// The one whose last use lies farthest back. Uses are put in order once half of all connections that may be open have been.
    #[default]
    LeastRecentlyUsed,
    /// The one with the fewest uses.
    LeastFrequentlyUsed,
    /// The one that was opened first.
    Fifo,
    /// None: whoever wants another one waits.
    Null,
}

/// How calls share the connections to one peer.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ConnectionSharing {
    /// No two calls use a connection at once. At the limit of the peer's connections
    /// ([`connections_per_peer`](crate::OrbBuilder::connections_per_peer)) a call waits for one. A call that is made inside of
    /// an upcall of another may wait for ever then: one connection more than calls are nested is needed.
    Exclusive,
    /// Exclusive while another may be opened, then shared.
    #[default]
    Mixed,
    /// All calls share one connection.
    Multiplexed,
}

/// What a cache is configured with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheSettings {
    pub(crate) limit: usize,
    pub(crate) purging: Purging,
    pub(crate) sharing: ConnectionSharing,
    pub(crate) idle: Option<Duration>,
    /// Schedules the search for idle connections on the maintenance thread; without it they are looked for when others are opened. A
    /// program that never sets it does not contain the thread.
    pub(crate) schedule: Option<Schedule>,
    /// How long a peer that refused is left alone, at first and at most.
    pub(crate) backoff: Option<(Duration, Duration)>,
}

impl CacheSettings {
    /// Any number of connections, of which none is closed for being idle.
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

/// So many looks at a connection that was not used in between make the idle time.
const LOOKS: u32 = 4;

/// Whoever has connections that the cache counts. Asked without any lock of the cache held.
pub(super) trait CachedConnections: Send + Sync {
    /// Whether there is a connection that is open and may be shared.
    fn can_share(&self) -> bool;

    /// The rank of the connection that goes first, of those that nobody uses.
    fn eviction_candidate(&self, purging: Purging) -> Option<u64>;

    /// Closes the connection of that rank; false if somebody has begun to use it.
    fn evict(&self, purging: Purging, rank: u64) -> bool;

    /// Looks at the connections that nobody uses, and closes those that were found so too often.
    fn close_idle(&self);
}

/// All connections of an ORB's client side, by their numbers.
#[derive(Debug)]
pub(crate) struct ConnectionCache {
    settings: CacheSettings,
    maintenance_thread: Arc<MaintenanceThread>,
    /// Connections that are open or being opened.
    open: AtomicUsize,
    /// Orders what happens to connections.
    clock: AtomicU64,
    /// What happens to connections is to be told here.
    is_watched: AtomicBool,
    /// Calls that wait until one connection less is in use.
    waiting: AtomicUsize,
    /// How often that was told.
    freed: Mutex<u64>,
    receiver: Condition,
    members: Mutex<Members>,
}

#[derive(Debug, Default)]
struct Members {
    all: Vec<Weak<dyn CachedConnections>>,
    last_sweep: Option<Instant>,
    /// The keeper sweeps.
    is_kept: bool,
}

/// The right to have one connection open.
#[derive(Debug)]
pub(crate) struct ConnectionSlot(Arc<ConnectionCache>);

/// What is known of a connection, of which the purging strategy makes an order.
#[derive(Debug, Default)]
pub(crate) struct PurgingMarks {
    opened: u64,
    /// When it was used last, once half of all connections are open.
    used: u64,
    uses: u64,
    /// How many uses there were at the last look, and how many looks ago that was so first.
    seen: u64,
    looks: u32,
}

impl PurgingMarks {
    #[inline]
    pub(super) fn note_use(&mut self) {
        self.uses += 1;
    }

    pub(super) fn stamp(&mut self, at: u64) {
        self.used = at;
    }

    /// Which connections go first: those with low numbers.
    pub(super) fn rank(&self, purging: Purging) -> u64 {
        match purging {
            Purging::LeastRecentlyUsed | Purging::Null => self.used,
            Purging::LeastFrequentlyUsed => self.uses,
            Purging::Fifo => self.opened,
        }
    }

    /// Looks at it while nobody uses it; true if it has been idle for long.
    pub(super) fn is_left(&mut self) -> bool {
        if self.seen != self.uses {
            (self.seen, self.looks) = (self.uses, 0);
            return false;
        }
        self.looks += 1;
        self.looks >= LOOKS
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
            is_watched: AtomicBool::new(is_exclusive),
            waiting: AtomicUsize::new(0),
            freed: Mutex::default(),
            receiver: Condition::new(),
            members: Mutex::default(),
        })
    }

    pub(crate) fn settings(&self) -> &CacheSettings {
        &self.settings
    }

    /// Who looks after connections.
    pub(crate) fn maintenance_thread(&self) -> &Arc<MaintenanceThread> {
        &self.maintenance_thread
    }

    /// Whether it is to be told of connections that are given back.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// True if as many connections are open as there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.open.load(Ordering::Relaxed) >= self.settings.limit
    }

    /// Now, in the order of things here.
    pub(super) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// What is known of a connection that is opened now.
    pub(super) fn marks(&self) -> PurgingMarks {
        let now = self.tick();
        PurgingMarks { opened: now, used: now, ..PurgingMarks::default() }
    }

    /// One member more.
    pub(super) fn join<M: CachedConnections + 'static>(&self, member: &Arc<M>) {
        let mut members = self.members.lock();
        members.all.retain(|member| member.strong_count() > 0);
        members.all.push(Arc::downgrade(member) as Weak<dyn CachedConnections>);
    }

    /// Waits until one more connection may be open to this member, or one that is can be shared.
    ///
    /// # Errors
    /// NO_RESOURCES if it may not.
    pub(super) fn reserve(
        self: &Arc<Self>,
        member: &dyn CachedConnections,
        timeout: Option<Duration>,
    ) -> Result<ConnectionSlot, CallFailure> {
        let slot = match self.take_or_purge() {
            Some(slot) => slot,
            None => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                // Seen by all who give a connection back after it was looked at here, by its pool's lock.
                self.is_watched.store(true, Ordering::Relaxed);
                let taken = self.wait(member, timeout.map(Deadline::after));
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                taken.map_err(|loss| CallFailure::of(loss, self.is_spent()))?
            }
        };
        self.schedule_idle_sweep();
        Ok(slot)
    }

    fn wait(
        self: &Arc<Self>,
        member: &dyn CachedConnections,
        deadline: Option<Deadline>,
    ) -> Result<ConnectionSlot, RequestLoss> {
        loop {
            let seen = *self.freed.lock();
            if let Some(slot) = self.take_or_purge() {
                return Ok(slot);
            }
            if member.can_share() {
                return Err(RequestLoss::Superseded);
            }
            let mut freed = self.freed.lock();
            while *freed == seen {
                match deadline.as_ref().map(Deadline::remaining) {
                    None => self.receiver.wait(&mut freed),
                    Some(Duration::ZERO) => return Err(RequestLoss::Other),
                    Some(remaining) => drop(self.receiver.wait_for(&mut freed, remaining)),
                }
            }
        }
    }

    fn take_or_purge(self: &Arc<Self>) -> Option<ConnectionSlot> {
        loop {
            if let Some(slot) = self.take() {
                return Some(slot);
            }
            if !self.purge() {
                return None;
            }
        }
    }

    fn take(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let (relaxed, limit) = (Ordering::Relaxed, self.settings.limit);
        let before = self.open.fetch_update(relaxed, relaxed, |open| (open < limit).then_some(open + 1)).ok()?;
        if before + 1 >= limit.div_ceil(2) {
            // For good: who switched it off might be overtaken by one who has just opened another.
            self.is_watched.store(true, Ordering::Relaxed);
        }
        Some(ConnectionSlot(Arc::clone(self)))
    }

    /// Closes a connection that nobody uses; false if there is none, or none is to be closed.
    pub(crate) fn purge(&self) -> bool {
        let purging = self.settings.purging;
        if purging == Purging::Null {
            return false;
        }
        let members = self.members();
        loop {
            let candidates = members.iter().filter_map(|member| Some((member.eviction_candidate(purging)?, member)));
            let Some((rank, member)) = candidates.min_by_key(|(rank, _)| *rank) else { return false };
            // Somebody may have begun to use it.
            if member.evict(purging, rank) {
                return true;
            }
        }
    }

    fn members(&self) -> Vec<Arc<dyn CachedConnections>> {
        self.members.lock().all.iter().filter_map(Weak::upgrade).collect()
    }

    /// A connection is used by nobody any more, or gone.
    pub(super) fn tell(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            *self.freed.lock() += 1;
            self.receiver.notify_all();
        }
    }

    fn is_spent(&self) -> SystemException {
        let limit = self.settings.limit;
        SystemException::no_resources(0, CompletionStatus::No).with_detail(|| {
            format!("all {limit} connections that may be open are in use (`-ORBMaxClientConnections`), and none came free in time")
        })
    }

    /// How long it is from one look at idle connections to the next.
    fn period(&self) -> Option<Duration> {
        self.settings.idle.map(|idle| idle / LOOKS)
    }

    /// A connection is opened: sees to it that somebody looks whether others are idle.
    fn schedule_idle_sweep(self: &Arc<Self>) {
        let Some(period) = self.period() else { return };
        let mut members = self.members.lock();
        if let Some(schedule) = self.settings.schedule {
            if !members.is_kept {
                let cache = Arc::downgrade(self) as Weak<dyn Maintained>;
                members.is_kept = schedule(&self.maintenance_thread, cache, period);
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

    /// Has all connections looked at that nobody uses.
    fn sweep(&self) {
        self.members().iter().for_each(|member| member.close_idle());
    }
}

impl Maintained for ConnectionCache {
    fn maintain(&self, _now: Instant) -> Option<Duration> {
        self.sweep();
        let mut members = self.members.lock();
        members.is_kept = self.open.load(Ordering::Relaxed) > 0;
        if members.is_kept { self.period() } else { None }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.tell();
    }
}
