//! Thread pools, with and without lanes: threads and bounded queues of requests by priority.
//!
//! A lane has a priority, threads and a queue of its own. It serves requests from its priority up to the one below the
//! next lane's. A pool without lanes is one lane for all priorities, whose threads take the priority of each request.
//!
//! # How a server uses it
//! The thread that reads a connection knows a request's priority once it has the header: from the client's context, or
//! declared by the object. It makes a [`Job`] of the message and calls [`ThreadPool::submit`], which never waits, and
//! allocates nothing unless a dynamic thread has to be started. Handing a request to a lane is the ordinary case, since
//! foreign clients send all priorities over one connection. A [`Refused`] request comes back whole: the reading thread
//! answers TRANSIENT (no room), or stops reading from this connection. A [`Discarded`] request was accepted and will
//! not run, because its deadline has passed or the pool is being destroyed: its job sends the reply.

mod clients;
mod execution;
mod lanes;
mod reservations;
mod settings;
mod watch;
mod work;

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering}; // numbers, on which no model decides
use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_server::EndpointNumber;
use spandrel_sync::time::Instant;
use spandrel_sync::{
    Arc, Guarded, Monitor, NativeThreadId, PriorityInheritanceCondition, PriorityInheritanceMutex, RwLock, Semaphore,
    ThreadManager, ThreadOptions, held, thread, thread_local,
};

use crate::protocols::Protocol;
use crate::{NativePriority, Priority, Scheduling, SchedulingClass, current};
use lanes::{Admission, Entry, Lanes};
use reservations::{Reservation, Reserved};
use settings::MAX_LANES;
use work::WatchedRequest;

pub use execution::{ExecutionTimes, Overrun, OverrunAction, OverrunObserver};
pub use reservations::ReservationLimits;
pub(crate) use reservations::Reservations;
pub use settings::{DynamicLifespan, LaneSettings, LaneStatistics, PoolSettings, WhenFull};
pub use work::{BoxedJob, Discarded, Job, PoolThread, RefusalReason, Refused, Work};

thread_local! {
    /// The address of the pool whose request this thread runs, and the lane of the request.
    static RUNNING: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// The longest time until a thread that waits for room in a lane asks whether it may go on waiting.
const LONGEST_WAIT_FOR_ROOM: Duration = Duration::from_millis(100);

/// The number of the next pool.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The strategy of the pool's lock: threads of all priorities take it.
type PoolLock = PriorityInheritanceMutex;

/// A pool of threads that run requests by priority. Dropping it discards the requests that wait, and waits until those
/// that run have ended.
///
/// ```
/// use std::sync::mpsc;
/// use spandrel_rt::{Discarded, Job, LaneSettings, LinearMapping, PoolSettings, PoolThread, Priority, Scheduling};
/// use spandrel_rt::{SchedulingClass, ThreadPool, Work};
/// use spandrel_sync::Arc;
///
/// struct Reading(mpsc::Sender<f64>, f64);
///
/// impl Job for Reading {
///     fn run(self, _: &PoolThread<'_>) {
///         self.0.send(self.1 * 1.8 + 32.0).unwrap();
///     }
///     fn discard(self, _: Discarded) {}
/// }
///
/// let lane = |priority, static_threads| LaneSettings { priority, static_threads, dynamic_threads: 0 };
/// let settings = PoolSettings::with_lanes(vec![lane(Priority::MIN, 2), lane(Priority::new(20_000)?, 1)]);
/// let scheduling = Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping));
/// let pool = ThreadPool::new(PoolSettings { buffering: Some((10, 4096)), ..settings }, scheduling)?;
/// let (results, result) = mpsc::channel();
/// pool.submit(Work::new(Priority::MAX, 64, Reading(results, 25.0))).unwrap();
/// assert_eq!(result.recv()?, 77.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ThreadPool<J: Job> {
    shared: Arc<Shared<J>>,
    manager: ThreadManager,
    /// Its part of the limits of its ORB, if it belongs to one: released after its threads have ended.
    _reservation: Option<Reservation>,
}

struct Shared<J> {
    lanes: Guarded<Lanes<J>, PoolLock>,
    /// By slot: where its thread waits.
    wake_ups: Vec<PriorityInheritanceCondition>,
    scheduling: Scheduling,
    /// The number of the pool in this process, from which those of its endpoints are made.
    number: u64,
    /// The native priorities of lanes, in the order of the lanes.
    native: Vec<NativePriority>,
    /// Of a pool without lanes, whose threads take the priority of each request.
    idle_priority: Option<Priority>,
    stack_octets: usize,
    lifespan: DynamicLifespan,
    /// The declared times of requests. A thread of its own watches them.
    execution_times: Option<ExecutionTimes>,
    when_full: WhenFull,
    /// The protocols whose properties the sockets of its endpoints have.
    protocols: RwLock<Vec<Protocol>>,
    /// Wakes the threads that wait until a lane has room.
    room: PriorityInheritanceCondition,
    /// Wakes the watching thread.
    watch_wake_up: PriorityInheritanceCondition,
}

impl<J: Job> ThreadPool<J> {
    /// Creates a pool and starts its static threads.
    ///
    /// # Errors
    /// BAD_PARAM for settings that contradict themselves, IMP_LIMIT beyond 256 lanes, 1,024 threads or 65,536 buffered
    /// requests, DATA_CONVERSION for a lane's priority without a native one, and NO_RESOURCES if a thread cannot be
    /// started.
    pub fn new(settings: PoolSettings, scheduling: Scheduling) -> Result<Self, SystemException> {
        Self::within(None, settings, scheduling)
    }

    /// As [`new`](Self::new), within the limits of an ORB.
    ///
    /// # Errors
    /// As [`new`](Self::new), and those of [`Reservations::reserve`].
    pub(crate) fn within(
        account: Option<&Arc<Reservations>>,
        settings: PoolSettings,
        scheduling: Scheduling,
    ) -> Result<Self, SystemException> {
        let settings = settings.checked()?;
        let part = Reserved::for_pool(&settings);
        let reservation = account.map(|account| Reservations::reserve(account, part)).transpose()?;
        let lanes = Lanes::new(&settings);
        let priority_of = |lane| settings.idle_priority.unwrap_or_else(|| lanes.lane_priority(lane));
        let native =
            (0..lanes.lane_count()).map(|lane| scheduling.to_native(priority_of(lane))).collect::<Result<_, _>>()?;
        let threads = settings.threads();
        let static_threads: Vec<usize> = (0..lanes.lane_count()).map(|lane| lanes.static_threads(lane)).collect();
        let shared = Arc::new(Shared {
            lanes: Guarded::new(lanes),
            wake_ups: (0..threads).map(|_| PriorityInheritanceCondition::new()).collect(),
            scheduling,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            native,
            idle_priority: settings.idle_priority,
            stack_octets: settings.stack_octets,
            lifespan: settings.lifespan,
            execution_times: settings.execution_times,
            when_full: settings.when_full,
            protocols: RwLock::default(),
            room: PriorityInheritanceCondition::new(),
            watch_wake_up: PriorityInheritanceCondition::new(),
        });
        // A thread that ends has given its slot back before: its successor may exist at the same time.
        let manager = ThreadManager::with_limit(2 * threads);
        let pool = Self { shared, manager, _reservation: reservation };
        for (lane, count) in static_threads.into_iter().enumerate() {
            for _ in 0..count {
                let slot = pool.shared.lanes.lock().begin_static_thread(lane);
                pool.start(slot, lane, false)?;
            }
        }
        if pool.shared.execution_times.is_some() {
            pool.start_watching()?;
        }
        Ok(pool)
    }

    /// Starts the thread that watches execution times. It ends by itself, after the last thread of the pool.
    fn start_watching(&self) -> Result<(), SystemException> {
        let shared = Arc::clone(&self.shared);
        let ready = Arc::new(Semaphore::new(0));
        let has_priority = Arc::clone(&ready);
        let body = move || {
            let Some(times) = &shared.execution_times else { return };
            shared.begin_watching(times);
            _ = has_priority.post(1);
            shared.watch(times);
        };
        thread::Builder::new().name("rt-watch".to_owned()).spawn(body).map_err(|error| {
            SystemException::no_resources(0, CompletionStatus::No)
                .with_detail("the thread that watches execution times cannot be started")
                .with_source(error)
        })?;
        // A request that spins could keep the processor from a thread without its priority.
        ready.acquire().forget();
        Ok(())
    }

    /// Hands a request to a thread, or lets it wait for one. It does not wait itself.
    ///
    /// # Errors
    /// [`Refused`], with the request.
    pub fn submit(&self, work: Work<J>) -> Result<(), Refused<J>> {
        self.submit_when_room(work, |_| false)
    }

    /// As [`submit`](Self::submit). With [`WhenFull::StopReading`] the calling thread waits until the lane has room, for as
    /// long as `may_wait` and the deadline of the request permit; it asks again at least ten times a second.
    pub(crate) fn submit_when_room(
        &self,
        work: Work<J>,
        may_wait: impl Fn(&Work<J>) -> bool,
    ) -> Result<(), Refused<J>> {
        // A lane has a native priority since its creation.
        if self.shared.idle_priority.is_some() && self.shared.scheduling.to_native(work.priority).is_err() {
            return Err(Refused { reason: RefusalReason::NoNativePriority, work });
        }
        let mut lanes = self.shared.lanes.lock();
        while self.shared.when_full == WhenFull::StopReading && lanes.is_full_for(&work) && may_wait(&work) {
            let left = work.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                break;
            }
            lanes.count_waiting_readers(work.priority, 1);
            let longest = left.map_or(LONGEST_WAIT_FOR_ROOM, |left| left.min(LONGEST_WAIT_FOR_ROOM));
            _ = self.shared.room.wait_for(&mut lanes, longest);
            lanes.count_waiting_readers(work.priority, -1);
        }
        let admission = lanes.admit(work);
        drop(lanes);
        let refused = |(work, reason)| Refused { reason, work };
        match admission.map_err(refused)? {
            Admission::Buffered => Ok(()),
            Admission::Assigned(slot) => {
                PoolLock::notify_one(&self.shared.wake_ups[slot]);
                Ok(())
            }
            Admission::Spawn(slot) => self.start_dynamic(slot).map_err(refused),
        }
    }

    /// The state of each lane, from the lowest priority to the highest.
    #[must_use]
    pub fn statistics(&self) -> Vec<LaneStatistics> {
        self.shared.lanes.lock().statistics()
    }

    /// The priority of idle threads in a pool without lanes; `None` for one with lanes.
    #[must_use]
    pub fn idle_priority(&self) -> Option<Priority> {
        self.shared.idle_priority
    }

    /// The greatest number of requests that run or wait at the same time.
    pub(crate) fn max_requests(&self) -> usize {
        self.shared.lanes.lock().max_requests()
    }

    /// The number of the endpoint that the lane of a priority may have; `None` if no lane serves it, or the pool has no
    /// lanes.
    pub(crate) fn endpoint_of(&self, priority: Priority) -> Option<EndpointNumber> {
        let lane = self.shared.lanes.lock().lane_of(priority).filter(|_| self.shared.idle_priority.is_none())?;
        Some(EndpointNumber(self.shared.number * MAX_LANES as u64 + lane as u64))
    }

    /// Gives the sockets that endpoints of its lanes accept from now on the properties of these protocols.
    ///
    /// # Errors
    /// The number of a protocol that has other properties already; none is changed then.
    pub(crate) fn set_socket_properties(&self, protocols: &[Protocol]) -> Result<(), u32> {
        let mut set = self.shared.protocols.write();
        let mut added = Vec::new();
        for protocol in protocols.iter().filter(|protocol| protocol.transport.is_some()) {
            match set.iter().find(|other| other.protocol_type == protocol.protocol_type) {
                Some(other) if other != protocol => return Err(protocol.protocol_type),
                Some(_) => {}
                None => added.push(protocol.clone()),
            }
        }
        set.append(&mut added);
        Ok(())
    }

    /// The protocol of this scheme, if its sockets have properties.
    pub(crate) fn socket_properties(&self, scheme: &str) -> Option<Protocol> {
        let protocols = self.shared.protocols.read();
        protocols.iter().find(|protocol| protocol.schemes().contains(&scheme)).cloned()
    }

    /// Whether a lane has exactly this priority. Pools without lanes have one of each.
    #[must_use]
    pub fn has_lane(&self, priority: Priority) -> bool {
        self.shared.idle_priority.is_some() || self.shared.lanes.lock().has_lane(priority)
    }

    /// Whether a lane runs requests of this priority.
    #[must_use]
    pub fn serves(&self, priority: Priority) -> bool {
        self.shared.lanes.lock().lane_of(priority).is_some()
    }

    /// Whether the calling thread runs a request of this pool, and may run one of this priority inside it: both have
    /// the same lane, or the same priority in a pool without lanes.
    #[must_use]
    pub fn runs_here(&self, priority: Priority) -> bool {
        let Some((pool, lane)) = RUNNING.with(Cell::get) else { return false };
        pool == Arc::as_ptr(&self.shared).addr()
            && match self.shared.idle_priority {
                Some(_) => current::present() == Some(priority),
                None => self.shared.lanes.lock().lane_of(priority) == Some(lane),
            }
    }

    /// Refuses requests from now on, and discards those that wait. Those that run go on.
    pub fn close(&self) {
        let waiting = self.shared.lanes.lock().close();
        for condition in &self.shared.wake_ups {
            PoolLock::notify_all(condition);
        }
        PoolLock::notify_all(&self.shared.watch_wake_up);
        PoolLock::notify_all(&self.shared.room);
        for work in waiting {
            discard(work.job, Discarded::PoolDestroyed);
        }
    }

    /// Starts a thread for a request that has found none. If that fails, the request waits like others.
    fn start_dynamic(&self, slot: usize) -> Result<(), (Work<J>, RefusalReason)> {
        let lane = self.shared.lanes.lock().lane_of_slot(slot);
        if self.start(slot, lane, true).is_ok() {
            return Ok(());
        }
        let mut lanes = self.shared.lanes.lock();
        let Some(entry) = lanes.end_thread(slot) else {
            return Ok(());
        };
        if let Admission::Assigned(other) = lanes.readmit(entry)? {
            drop(lanes);
            PoolLock::notify_one(&self.shared.wake_ups[other]);
        }
        Ok(())
    }

    /// Starts the thread of a slot. It changes its native priority itself.
    fn start(&self, slot: usize, lane: usize, is_dynamic: bool) -> Result<(), SystemException> {
        let shared = Arc::clone(&self.shared);
        let mut options = ThreadOptions::named(format!("rt-lane-{lane}"));
        if shared.stack_octets != 0 {
            options = options.stack_octets(shared.stack_octets);
        }
        let body = move |_: &_| shared.serve(slot, lane, is_dynamic);
        self.manager.spawn(options, body).map(drop).map_err(|error| {
            tracing::warn!("a thread of the lane {lane} cannot be started: {error}");
            SystemException::no_resources(0, CompletionStatus::No).with_source(error)
        })
    }
}

impl<J: Job> Drop for ThreadPool<J> {
    fn drop(&mut self) {
        self.close();
        // Panics of jobs end in `run`.
        let _ = self.manager.wait();
    }
}

impl<J: Job> fmt::Debug for ThreadPool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool").field("lanes", &self.statistics()).finish()
    }
}

/// Ends a request; a panic of the job ends there.
fn discard<J: Job>(job: J, reason: Discarded) {
    if catch_unwind(AssertUnwindSafe(|| job.discard(reason))).is_err() {
        tracing::error!("a discarded request panicked");
    }
}

impl<J: Job> Shared<J> {
    /// The body of a thread: runs requests until the pool is closed or the thread's life-span is over.
    fn serve(&self, slot: usize, lane: usize, is_dynamic: bool) {
        let mut native = self.native[lane];
        self.change_native(native);
        let end = match self.lifespan {
            DynamicLifespan::Fixed(span) if is_dynamic => Instant::now().checked_add(span),
            _ => None,
        };
        let longest_wait = || match self.lifespan {
            DynamicLifespan::Idle(span) if is_dynamic => Some(span),
            _ => end.map(|end| end.saturating_duration_since(Instant::now())),
        };
        // The number is valid for as long as the slot is taken.
        let thread = self.execution_times.as_ref().and_then(|_| NativeThreadId::current());
        let mut is_new = true;
        while let Some((entry, is_late)) = self.wait_for_work(slot, std::mem::take(&mut is_new), longest_wait) {
            let Entry { work, lane: of_request, .. } = entry;
            held::assert_none("a job of a thread pool");
            if is_late {
                discard(work.job, Discarded::Late);
            } else {
                self.change_native_if_needed(&mut native, self.native_of(work.priority, of_request));
                let is_watched = self.begin_watch(&work, (slot, of_request), thread);
                self.run(work.priority, work.job, (slot, of_request));
                let is_demoted =
                    is_watched && self.lanes.lock().end_watch(slot).is_some_and(|watched| watched.is_demoted);
                if is_demoted | current::take_native_change() {
                    native = self.native[lane];
                    self.change_native(native);
                }
            }
            self.change_native_if_needed(&mut native, self.native[lane]);
        }
        self.lanes.lock().end_thread(slot);
        PoolLock::notify_all(&self.watch_wake_up);
    }

    /// Begins the time of a request, if its lane has a limit. Whether it has one.
    fn begin_watch(&self, work: &Work<J>, (slot, lane): (usize, usize), thread: Option<NativeThreadId>) -> bool {
        let Some(times) = &self.execution_times else { return false };
        let request = work.job.running();
        let mut lanes = self.lanes.lock();
        let Some(limit) = times.of_lane(lanes.lane_priority(lane)) else { return false };
        let begun = Instant::now();
        let watched = WatchedRequest {
            adapter: work.adapter.clone(),
            request,
            thread,
            priority: work.priority,
            lane,
            begun,
            end: begun.checked_add(limit),
            is_demoted: false,
        };
        let is_earlier = lanes.begin_watch(slot, watched);
        drop(lanes);
        if is_earlier {
            PoolLock::notify_one(&self.watch_wake_up);
        }
        true
    }

    /// The native priority for a request of this lane.
    fn native_of(&self, priority: Priority, lane: usize) -> NativePriority {
        let of_lane = self.native[lane];
        if self.idle_priority.is_some() { self.scheduling.to_native(priority).unwrap_or(of_lane) } else { of_lane }
    }

    /// The next request, and whether its deadline has passed; `None` ends the thread. A thread that is new or was
    /// released stands in the list of idle ones already, or has a request.
    fn wait_for_work(
        &self,
        slot: usize,
        is_new: bool,
        longest_wait: impl Fn() -> Option<Duration>,
    ) -> Option<(Entry<J>, bool)> {
        let mut lanes = self.lanes.lock();
        if !is_new && !lanes.end_release(slot) {
            if lanes.is_closed() {
                return None;
            }
            let next = lanes.next(slot);
            // A thread is idle, or the buffer has one request less.
            if lanes.is_room_awaited() {
                PoolLock::notify_all(&self.room);
            }
            if let Some(entry) = next {
                if self.scheduling.class() == SchedulingClass::Fifo {
                    // This thread has not waited. It would keep the processor for as long as requests wait, from threads
                    // of the same native priority that already have one.
                    drop(lanes);
                    thread::yield_now();
                    lanes = self.lanes.lock();
                }
                return Some(lanes.begin(entry, slot, Instant::now));
            }
        }
        loop {
            if let Some(entry) = lanes.take_assigned(slot) {
                return Some(lanes.begin(entry, slot, Instant::now));
            }
            if lanes.is_closed() {
                return None;
            }
            let condition = &self.wake_ups[slot];
            let is_over = match longest_wait() {
                Some(Duration::ZERO) => true,
                Some(limit) => condition.wait_for(&mut lanes, limit).timed_out(),
                None => {
                    condition.wait(&mut lanes);
                    false
                }
            };
            if is_over && lanes.retire(slot) {
                return None;
            }
        }
    }

    /// Lets a thread count as idle whose request is about to end.
    fn release(&self, slot: usize) {
        let mut lanes = self.lanes.lock();
        lanes.release(slot);
        if lanes.is_room_awaited() {
            PoolLock::notify_all(&self.room);
        }
    }

    /// Runs a request. The thread has its native priority already.
    fn run(&self, priority: Priority, job: J, (slot, lane): (usize, usize)) {
        let before = current::replace(Some(priority));
        RUNNING.with(|running| running.set(Some((std::ptr::from_ref(self).addr(), lane))));
        if catch_unwind(AssertUnwindSafe(|| job.run(&PoolThread { release: &|| self.release(slot) }))).is_err() {
            tracing::error!("a request of priority {priority} panicked");
        }
        RUNNING.with(|running| running.set(None));
        current::replace(before);
    }
}

impl<J> Shared<J> {
    fn change_native_if_needed(&self, native: &mut NativePriority, needed: NativePriority) {
        if std::mem::replace(native, needed) != needed {
            self.change_native(needed);
        }
    }

    /// Changes the calling thread's native priority. A failure leaves the present one, and is logged.
    fn change_native(&self, native: NativePriority) {
        if let Err(error) = self.scheduling.apply_native(native) {
            tracing::warn!("a thread of a pool keeps its native priority: {error}");
        }
    }
}
