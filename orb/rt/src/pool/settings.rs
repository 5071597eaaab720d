//! The settings of thread pools, their limits, and the state that a pool reports.

use std::time::Duration;

use spandrel_giop::{CompletionStatus, SystemException};

use super::execution::ExecutionTimes;
use crate::Priority;

/// The greatest number of threads of a pool.
const MAX_THREADS: usize = 1_024;
/// The greatest number of lanes of a pool.
pub(super) const MAX_LANES: usize = 256;
/// The greatest number of requests that a lane buffers, and the number if the settings leave it open.
const MAX_BUFFERED_REQUESTS: usize = 65_536;
const DEFAULT_BUFFERED_REQUESTS: usize = 1_024;
/// The octets that a lane buffers if the settings leave it open.
const DEFAULT_BUFFERED_OCTETS: usize = 16 << 20;
/// The smallest stack of a thread: that of the POSIX limit for threads, with room for an upcall.
const MIN_STACK: usize = 64 * 1024;

/// A lane's priority and threads (`RTCORBA::ThreadpoolLane`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LaneSettings {
    /// The priority of its threads, and the lowest of its requests.
    pub priority: Priority,
    /// Threads that exist for as long as the pool; at least one.
    pub static_threads: usize,
    /// Further threads, which are started while all others are busy.
    pub dynamic_threads: usize,
}

/// The end of threads that a pool has started beyond its static ones.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DynamicLifespan {
    /// They exist for as long as the pool.
    #[default]
    Infinite,
    /// They end when no request has come for this time.
    Idle(Duration),
    /// They end this long after their start, once they are idle.
    Fixed(Duration),
}

/// The treatment of requests for which a lane has neither a thread nor room in its buffer.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum WhenFull {
    /// They are refused with TRANSIENT.
    #[default]
    Refuse,
    /// The endpoint of the lane ([`RtServerOrb::listen_for_lane`](crate::RtServerOrb)) is not read until there is room, so
    /// that its clients wait in their writes. Requests by other endpoints, and those that the lane could never buffer, are
    /// refused.
    StopReading,
}

/// The lanes, stacks and limits that a thread pool is created with.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Octets of each thread's stack; zero for the system's own.
    pub stack_octets: usize,
    /// The lanes, each with its priority and threads, in any order.
    pub lanes: Vec<LaneSettings>,
    /// Whether idle threads of lower lanes run requests of a lane whose threads are all busy. They have the priority of
    /// that lane meanwhile.
    pub allows_borrowing: bool,
    /// The greatest numbers of requests and of their octets that wait in each lane; `None` lets none wait. Zero leaves a
    /// number to the pool: 1,024 requests, 16 MiB.
    pub buffering: Option<(usize, usize)>,
    /// The treatment of requests for which a lane has neither a thread nor room.
    pub when_full: WhenFull,
    /// Whether a client may have no more buffered requests and octets in a lane than are free for others: one that floods
    /// gets half of the buffer, and two of them a third each. The others find room, and requests beyond are refused with
    /// TRANSIENT.
    pub shares_buffers: bool,
    /// The end of threads that lanes have started beyond their static ones.
    pub lifespan: DynamicLifespan,
    /// In a pool without lanes, the priority of threads while they run no request; during one they have its priority.
    /// `None` for a pool with lanes.
    pub idle_priority: Option<Priority>,
    /// The declared times of requests; `None` (the default) watches no request.
    pub execution_times: Option<ExecutionTimes>,
}

impl PoolSettings {
    /// A pool with lanes, without borrowing and buffering.
    #[must_use]
    pub fn with_lanes(lanes: Vec<LaneSettings>) -> Self {
        Self {
            stack_octets: 0,
            lanes,
            allows_borrowing: false,
            buffering: None,
            when_full: WhenFull::default(),
            shares_buffers: false,
            lifespan: DynamicLifespan::default(),
            idle_priority: None,
            execution_times: None,
        }
    }

    /// A pool without lanes and buffering: its threads run requests of all priorities. `idle_priority` is their own.
    #[must_use]
    pub fn without_lanes(static_threads: usize, dynamic_threads: usize, idle_priority: Priority) -> Self {
        let lane = LaneSettings { priority: Priority::MIN, static_threads, dynamic_threads };
        Self { idle_priority: Some(idle_priority), ..Self::with_lanes(vec![lane]) }
    }

    /// The greatest number of threads.
    pub(super) fn threads(&self) -> usize {
        let of_lane = |lane: &LaneSettings| lane.static_threads.saturating_add(lane.dynamic_threads);
        self.lanes.iter().map(of_lane).fold(0, usize::saturating_add)
    }

    /// Checks the settings, and replaces the limits that are left open.
    pub(super) fn checked(mut self) -> Result<Self, SystemException> {
        let wrong = |text: String| SystemException::bad_param(0, CompletionStatus::No).with_detail(text);
        if !(1..=MAX_LANES).contains(&self.lanes.len()) {
            return Err(wrong(format!("a thread pool has from 1 to {MAX_LANES} lanes")));
        }
        if self.idle_priority.is_some() && (self.lanes.len() > 1 || self.lanes[0].priority != Priority::MIN) {
            return Err(wrong("a pool without lanes is one lane for all priorities".to_owned()));
        }
        for (at, lane) in self.lanes.iter().enumerate() {
            if lane.static_threads == 0 {
                return Err(wrong(format!("the lane of priority {} has no static thread", lane.priority)));
            }
            if self.lanes[..at].iter().any(|other| other.priority == lane.priority) {
                return Err(wrong(format!("two lanes have the priority {}", lane.priority)));
            }
        }
        let threads = self.threads();
        if threads > MAX_THREADS {
            return Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(|| {
                format!("{threads} threads are more than the limit of {MAX_THREADS} for a thread pool")
            }));
        }
        if self.stack_octets != 0 && self.stack_octets < MIN_STACK {
            return Err(wrong(format!("a stack of {} octets is smaller than {MIN_STACK}", self.stack_octets)));
        }
        if let Some(times) = &self.execution_times {
            times.check(|priority| self.lanes.iter().any(|lane| lane.priority == priority))?;
        }
        if let Some((requests, octets)) = &mut self.buffering {
            if *requests > MAX_BUFFERED_REQUESTS {
                return Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(|| {
                    format!(
                        "{requests} buffered requests are more than the limit of {MAX_BUFFERED_REQUESTS} for a lane"
                    )
                }));
            }
            if *requests == 0 {
                *requests = DEFAULT_BUFFERED_REQUESTS;
            }
            if *octets == 0 {
                *octets = DEFAULT_BUFFERED_OCTETS;
            }
        }
        Ok(self)
    }
}

/// The threads and requests of one lane at a moment; the last five count since the creation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LaneStatistics {
    /// The number by which the lane was created.
    pub priority: Priority,
    /// The threads of the lane, busy or idle.
    pub threads: usize,
    /// Threads that wait for a request.
    pub idle: usize,
    /// Requests that wait for a thread.
    pub buffered_requests: usize,
    /// The octets that the waiting requests occupy.
    pub buffered_octets: usize,
    /// The clients whose requests wait.
    pub buffered_clients: usize,
    /// Threads that read the endpoint of the lane, and wait until it has room ([`WhenFull::StopReading`]).
    pub waiting_readers: usize,
    /// Requests that were begun.
    pub begun: u64,
    /// The requests among `begun` that a thread of a lower lane ran.
    pub borrowed: u64,
    /// Requests that were discarded after their deadline.
    pub late: u64,
    /// Requests that were refused because all threads were busy.
    pub refused: u64,
    /// Requests that exceeded their declared time.
    pub overruns: u64,
}
