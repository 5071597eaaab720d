//! The thread of a pool that watches the times of requests which run.
//!
//! It sleeps until the earliest of their limits. A request that begins wakes it only if its limit is earlier than that,
//! so that it is woken at most once in the time of a request, and never while the pool is idle.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_sync::time::Instant;

use super::Shared;
use super::execution::{ExecutionTimes, Overrun, OverrunAction, exceeded_time};
use crate::SchedulingClass;

impl<J> Shared<J> {
    /// Gives the watching thread its priority.
    pub(super) fn begin_watching(&self, times: &ExecutionTimes) {
        let class = self.scheduling.class();
        if class == SchedulingClass::Unchanged {
            if times.action() >= OverrunAction::Demote {
                tracing::warn!("threads have no native priorities here: one that exceeds its time is not demoted");
            }
        } else {
            self.change_native(*class.range().end());
        }
    }

    /// The body of the watching thread, which ends with the last thread of a closed pool.
    pub(super) fn watch(&self, times: &ExecutionTimes) {
        let class = self.scheduling.class();
        let mut lanes = self.lanes.lock();
        loop {
            if let Some(watched) = lanes.next_overrun(Instant::now()) {
                // The slot keeps the thread alive until the lock is released: the number is that of no other.
                let may_demote = times.action() >= OverrunAction::Demote && class != SchedulingClass::Unchanged;
                watched.is_demoted = may_demote && watched.thread.is_some_and(|thread| thread.demote().is_ok());
                let (adapter, request) = (watched.adapter.clone(), watched.request.clone());
                let (priority, lane, begun, is_demoted) =
                    (watched.priority, watched.lane, watched.begun, watched.is_demoted);
                let lane = lanes.lane_priority(lane);
                drop(lanes);
                let limit = times.of_lane(lane).unwrap_or_default();
                let is_cancelled = times.action() >= OverrunAction::Cancel
                    && request.as_ref().is_some_and(|request| request.end_early(&exceeded_time(limit)));
                let elapsed = begun.elapsed();
                let operation = request.map(|request| request.operation());
                let overrun = Overrun { adapter, operation, priority, lane, limit, elapsed, is_demoted, is_cancelled };
                if catch_unwind(AssertUnwindSafe(|| times.report(&overrun))).is_err() {
                    tracing::error!("an observer of execution times panicked");
                }
                lanes = self.lanes.lock();
                continue;
            }
            if lanes.is_closed() && lanes.thread_count() == 0 {
                return;
            }
            match lanes.earliest_end() {
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    self.watch_wake_up.wait_for(&mut lanes, left);
                }
                None => self.watch_wake_up.wait(&mut lanes),
            }
        }
    }
}
