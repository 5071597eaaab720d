//! The factory of an ORB's real-time objects (`RTCORBA::RTORB`).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_orb::Orb;
use spandrel_sync::{Arc, Mutex, RwLock};

use crate::mutex::NamedMutexes;
use crate::policies::{ThreadpoolId, ThreadpoolPolicy};
use crate::pool::Reservations;
use crate::protocols::TcpProtocolProperties;
use crate::{
    BoxedJob, DynamicLifespan, Job, LaneSettings, MutexNotFound, NetworkPriorityMapping, PoolSettings, Priority,
    PriorityTransform, ReservationLimits, RtCurrent, RtMutex, Scheduling, ThreadPool,
};

/// The dynamic threads of the default pool, beside its static one.
const DEFAULT_DYNAMIC_THREADS: usize = 31;
/// The time after which an idle dynamic thread of the default pool ends.
const DEFAULT_IDLE_TIME: Duration = Duration::from_secs(10);

/// The priority transform of an ORB, shared with its adapters.
pub(crate) type TransformSlot = Arc<RwLock<Option<Arc<dyn PriorityTransform>>>>;
/// The mapping to network priorities of an ORB, shared with its adapters.
pub(crate) type NetworkSlot = Arc<RwLock<Option<Arc<dyn NetworkPriorityMapping>>>>;

/// No thread pool has this number (`RTORB::InvalidThreadpool`).
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
#[error("no thread pool has the number {0}")]
pub struct InvalidThreadpool(pub ThreadpoolId);
spandrel_error::debug_as_report!(InvalidThreadpool);

/// Creates the real-time objects of an ORB: thread pools, mutexes and the current (`RTCORBA::RTORB`).
///
/// Policies are values with constructors of their own ([`policies`](crate::policies)), and so are the properties of
/// protocols other than TCP. The jobs of the pools have the type `J`.
///
/// ```
/// use spandrel_rt::{LinearMapping, Priority, RtOrb, Scheduling, SchedulingClass};
/// use spandrel_sync::Arc;
///
/// let rt_orb = RtOrb::<spandrel_rt::BoxedJob>::new(Scheduling::new(SchedulingClass::Fifo, Arc::new(LinearMapping)));
/// let id = rt_orb.create_threadpool(0, 2, 0, Priority::MIN, false, 0, 0)?;
/// assert!(rt_orb.threadpool(id).is_some());
/// rt_orb.destroy_threadpool(id)?;
/// assert_eq!(rt_orb.destroy_threadpool(id), Err(spandrel_rt::InvalidThreadpool(id)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RtOrb<J: Job = BoxedJob> {
    scheduling: Scheduling,
    named_mutexes: NamedMutexes,
    /// The sums of what all pools reserve.
    reservations: Arc<Reservations>,
    pools: Mutex<Pools<J>>,
    default_pool: Mutex<Option<Arc<ThreadPool<J>>>>,
    transform: TransformSlot,
    network: NetworkSlot,
}

struct Pools<J: Job> {
    by_id: BTreeMap<ThreadpoolId, Arc<ThreadPool<J>>>,
    next_id: ThreadpoolId,
}

impl<J: Job> RtOrb<J> {
    /// Creates the factory, without pools and named mutexes, and with the default [`ReservationLimits`].
    #[must_use]
    pub fn new(scheduling: Scheduling) -> Self {
        Self::with_limits(scheduling, ReservationLimits::default())
    }

    /// The factory of an ORB's objects, whose options limit what all pools reserve together.
    #[must_use]
    pub fn for_orb(orb: &Orb, scheduling: Scheduling) -> Self {
        Self::with_limits(scheduling, ReservationLimits::for_orb(orb))
    }

    /// As [`new`](Self::new), with limits of the program.
    #[must_use]
    pub fn with_limits(scheduling: Scheduling, limits: ReservationLimits) -> Self {
        let pools = Pools { by_id: BTreeMap::new(), next_id: 1 };
        Self {
            scheduling,
            named_mutexes: NamedMutexes::default(),
            reservations: Reservations::new(limits),
            pools: Mutex::new(pools),
            default_pool: Mutex::default(),
            transform: TransformSlot::default(),
            network: NetworkSlot::default(),
        }
    }

    /// The class and range of native priorities in force.
    #[must_use]
    pub fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }

    /// The priorities of calling threads (`RTCORBA::Current`).
    #[must_use]
    pub fn current(&self) -> RtCurrent {
        RtCurrent::new(self.scheduling.clone())
    }

    /// A new mutex. `destroy_mutex` is to drop it.
    #[must_use]
    pub fn create_mutex(&self) -> RtMutex {
        RtMutex::new()
    }

    /// The mutex of this name, and whether it is a new one.
    ///
    /// # Errors
    /// IMP_LIMIT for the 1,025th name in use.
    pub fn create_named_mutex(&self, name: &str) -> Result<(RtMutex, bool), SystemException> {
        self.named_mutexes.create(name)
    }

    /// The mutex that was created with this name.
    ///
    /// # Errors
    /// [`MutexNotFound`] if no program has such a mutex.
    pub fn open_named_mutex(&self, name: &str) -> Result<RtMutex, MutexNotFound> {
        self.named_mutexes.open(name)
    }

    /// Makes the value of a protocol's TCP properties; zero leaves a buffer size to the system.
    ///
    /// # Errors
    /// BAD_PARAM for a negative size.
    pub fn create_tcp_protocol_properties(
        &self,
        send_buffer_size: i32,
        recv_buffer_size: i32,
        keep_alive: bool,
        dont_route: bool,
        no_delay: bool,
        enable_network_priority: bool,
    ) -> Result<TcpProtocolProperties, SystemException> {
        let mut properties = TcpProtocolProperties::default();
        properties.set_buffer_sizes(send_buffer_size, recv_buffer_size)?;
        (properties.keep_alive, properties.dont_route) = (keep_alive, dont_route);
        (properties.no_delay, properties.enable_network_priority) = (no_delay, enable_network_priority);
        Ok(properties)
    }

    /// Creates a pool without lanes. The arguments are those of the standard's operation; zero stands for the system's
    /// stack size, and for the pool's own limits ([`PoolSettings::buffering`]).
    ///
    /// # Errors
    /// As [`create`](Self::create).
    #[allow(clippy::too_many_arguments, reason = "the standard's operation")]
    pub fn create_threadpool(
        &self,
        stacksize: u32,
        static_threads: u32,
        dynamic_threads: u32,
        default_priority: Priority,
        allow_request_buffering: bool,
        max_buffered_requests: u32,
        max_request_buffer_size: u32,
    ) -> Result<ThreadpoolId, SystemException> {
        let settings = PoolSettings::without_lanes(size(static_threads), size(dynamic_threads), default_priority);
        let limits = (size(max_buffered_requests), size(max_request_buffer_size));
        let buffering = allow_request_buffering.then_some(limits);
        self.create(PoolSettings { stack_octets: size(stacksize), buffering, ..settings })
    }

    /// Creates a pool with lanes. The arguments are those of the standard's operation, as for
    /// [`create_threadpool`](Self::create_threadpool). The limits of buffering apply to each lane, so that the requests
    /// of one cannot take the room of another's.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_threadpool_with_lanes(
        &self,
        stacksize: u32,
        lanes: Vec<LaneSettings>,
        allow_borrowing: bool,
        allow_request_buffering: bool,
        max_buffered_requests: u32,
        max_request_buffer_size: u32,
    ) -> Result<ThreadpoolId, SystemException> {
        let limits = (size(max_buffered_requests), size(max_request_buffer_size));
        self.create(PoolSettings {
            stack_octets: size(stacksize),
            allows_borrowing: allow_borrowing,
            buffering: allow_request_buffering.then_some(limits),
            ..PoolSettings::with_lanes(lanes)
        })
    }

    /// Creates a pool with these settings, among them some that the standard's operations do not have. What exceeds a limit
    /// is refused before anything is reserved.
    ///
    /// # Errors
    /// As [`ThreadPool::new`]. IMP_LIMIT for the 257th pool, and NO_RESOURCES beyond the [`ReservationLimits`]: destroyed
    /// pools count until their last thread has ended.
    pub fn create(&self, settings: PoolSettings) -> Result<ThreadpoolId, SystemException> {
        let pool = Arc::new(ThreadPool::within(Some(&self.reservations), settings, self.scheduling.clone())?);
        let mut pools = self.pools.lock();
        let mut id = pools.next_id;
        while id == 0 || pools.by_id.contains_key(&id) {
            id = id.wrapping_add(1);
        }
        pools.next_id = id.wrapping_add(1);
        pools.by_id.insert(id, pool);
        Ok(id)
    }

    /// The pool of adapters without a [`ThreadpoolPolicy`], which is created here: without lanes, with up to 32 threads
    /// and request buffering.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn default_threadpool(&self) -> Result<Arc<ThreadPool<J>>, SystemException> {
        let mut default_pool = self.default_pool.lock();
        if let Some(pool) = &*default_pool {
            return Ok(Arc::clone(pool));
        }
        let settings = PoolSettings {
            buffering: Some((0, 0)),
            lifespan: DynamicLifespan::Idle(DEFAULT_IDLE_TIME),
            ..PoolSettings::without_lanes(1, DEFAULT_DYNAMIC_THREADS, Priority::MIN)
        };
        let pool = Arc::new(ThreadPool::within(Some(&self.reservations), settings, self.scheduling.clone())?);
        Ok(Arc::clone(default_pool.insert(pool)))
    }

    /// Sets the transform of the priorities of requests that adapters of this ORB receive, or removes it. It holds for
    /// requests that arrive later, of both priority models (`PriorityTransformManager`).
    pub fn set_priority_transform(&self, transform: Option<Arc<dyn PriorityTransform>>) {
        let before = std::mem::replace(&mut *self.transform.write(), transform);
        drop(before);
    }

    /// Sets the mapping to network priorities of the replies of adapters whose server protocol policy enables these
    /// ([`TcpProtocolProperties::enable_network_priority`]), or removes it. It holds for requests that arrive later.
    pub fn set_network_priorities(&self, mapping: Option<Arc<dyn NetworkPriorityMapping>>) {
        let before = std::mem::replace(&mut *self.network.write(), mapping);
        drop(before);
    }

    pub(crate) fn network_slot(&self) -> NetworkSlot {
        Arc::clone(&self.network)
    }

    pub(crate) fn transform_slot(&self) -> TransformSlot {
        Arc::clone(&self.transform)
    }

    /// The pool that was created with this number, unless it is destroyed.
    #[must_use]
    pub fn threadpool(&self, id: ThreadpoolId) -> Option<Arc<ThreadPool<J>>> {
        self.pools.lock().by_id.get(&id).cloned()
    }

    /// Destroys a pool: it refuses requests, and discards those that wait. Waits until those that run have ended, unless
    /// the pool is also in use elsewhere.
    ///
    /// # Errors
    /// [`InvalidThreadpool`] if there is no such pool.
    pub fn destroy_threadpool(&self, id: ThreadpoolId) -> Result<(), InvalidThreadpool> {
        let pool = self.pools.lock().by_id.remove(&id).ok_or(InvalidThreadpool(id))?;
        pool.close();
        Ok(())
    }

    /// Makes the policy by which an adapter uses the pool with this number.
    ///
    /// # Errors
    /// BAD_PARAM if there is no such pool.
    pub fn create_threadpool_policy(&self, id: ThreadpoolId) -> Result<ThreadpoolPolicy, SystemException> {
        let exists = self.pools.lock().by_id.contains_key(&id);
        exists.then_some(ThreadpoolPolicy(id)).ok_or_else(|| {
            SystemException::bad_param(0, CompletionStatus::No).with_detail(InvalidThreadpool(id).to_string())
        })
    }
}

impl<J: Job> fmt::Debug for RtOrb<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtOrb")
            .field("scheduling", &self.scheduling)
            .field("reservations", &self.reservations)
            .field("pools", &self.pools.lock().by_id)
            .finish()
    }
}

/// A number of the standard's operations as a size.
fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
