//! The sums of what the thread pools of an ORB reserve, and their limits.
//!
//! A pool reserves its threads and its memory when it is created, whether they are used or not: the dynamic threads that it
//! may start, and the octets that its lanes may buffer. They count until its last thread has ended.

use std::fmt;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_orb::Orb;
use spandrel_sync::{Arc, Mutex};

use super::settings::PoolSettings;

/// The greatest number of thread pools of an ORB.
const MAX_POOLS: usize = 256;
/// The octets of a lane's tables for each request that it may buffer, at most: its entry in the queue, and those of its
/// client.
const REQUEST_OCTETS: usize = 1_024;

/// The greatest sums over all thread pools of an ORB (`-ORBMaxLaneThreads`, `-ORBMaxLaneMemory`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReservationLimits {
    /// Static and dynamic threads.
    pub threads: usize,
    /// Octets: stacks of stated sizes, the requests that lanes may buffer, and 1,024 for each of those.
    pub octets: usize,
}

impl Default for ReservationLimits {
    /// The limits of an ORB without options: 4,096 threads and 1 GiB.
    fn default() -> Self {
        Self { threads: 4_096, octets: 1 << 30 }
    }
}

impl ReservationLimits {
    /// The limits that the options of an ORB set.
    #[must_use]
    pub fn for_orb(orb: &Orb) -> Self {
        let settings = orb.server_settings();
        Self { threads: settings.max_lane_threads, octets: settings.max_lane_memory }
    }
}

/// The pools of an ORB that exist, and the sums of their threads and octets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reserved {
    pools: usize,
    threads: usize,
    octets: usize,
}

impl Reserved {
    /// The part of one pool, whose settings have been checked.
    pub(super) fn for_pool(settings: &PoolSettings) -> Self {
        // A thread of its own watches execution times.
        let threads = settings.threads().saturating_add(usize::from(settings.execution_times.is_some()));
        let (requests, octets) = settings.buffering.unwrap_or_default();
        let of_lane = requests.saturating_mul(REQUEST_OCTETS).saturating_add(octets);
        let octets = of_lane.saturating_mul(settings.lanes.len());
        Self {
            pools: 1,
            threads,
            octets: settings.threads().saturating_mul(settings.stack_octets).saturating_add(octets),
        }
    }
}

/// The account of an ORB's thread pools.
pub(crate) struct Reservations {
    limits: ReservationLimits,
    reserved: Mutex<Reserved>,
}

impl Reservations {
    pub(crate) fn new(limits: ReservationLimits) -> Arc<Self> {
        Arc::new(Self { limits, reserved: Mutex::default() })
    }

    /// Adds the part of a pool, before any of it is allocated.
    ///
    /// # Errors
    /// IMP_LIMIT for the 257th pool, NO_RESOURCES beyond the other limits; then nothing is added.
    pub(super) fn reserve(account: &Arc<Self>, part: Reserved) -> Result<Reservation, SystemException> {
        let mut reserved = account.reserved.lock();
        let sum = Reserved {
            pools: reserved.pools.saturating_add(part.pools),
            threads: reserved.threads.saturating_add(part.threads),
            octets: reserved.octets.saturating_add(part.octets),
        };
        let before = *reserved;
        let is_within =
            sum.pools <= MAX_POOLS && sum.threads <= account.limits.threads && sum.octets <= account.limits.octets;
        if is_within {
            *reserved = sum;
        }
        drop(reserved);
        if is_within {
            return Ok(Reservation { account: Arc::clone(account), part });
        }
        if sum.pools > MAX_POOLS {
            return Err(SystemException::imp_limit(0, CompletionStatus::No)
                .with_detail(|| format!("there are {MAX_POOLS} thread pools already")));
        }
        let (kind, option, limit, of_pool, of_others) = if sum.threads > account.limits.threads {
            ("threads", "-ORBMaxLaneThreads", account.limits.threads, part.threads, before.threads)
        } else {
            ("octets", "-ORBMaxLaneMemory", account.limits.octets, part.octets, before.octets)
        };
        Err(SystemException::no_resources(0, CompletionStatus::No).with_detail(|| {
            format!(
                "a thread pool with {of_pool} {kind} beside {of_others} of others exceeds the limit of {limit} for all \
                 pools ({option})"
            )
        }))
    }
}

/// The part of one pool in the account of its ORB, until it is dropped.
pub(super) struct Reservation {
    account: Arc<Reservations>,
    part: Reserved,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = self.account.reserved.lock();
        let Reserved { pools, threads, octets } = &mut *reserved;
        (*pools, *threads, *octets) =
            (*pools - self.part.pools, *threads - self.part.threads, *octets - self.part.octets);
    }
}

impl fmt::Debug for Reservations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservations").field("limits", &self.limits).field("reserved", &*self.reserved.lock()).finish()
    }
}
