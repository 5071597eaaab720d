//! The thread that maintains connections between calls; the first use starts it.
//!
//! It sleeps until the next visit, and never waits for a peer.
//!
//! `connection_cache` finds idle connections, `peer/purging` closes them, and `one_way_buffer` writes buffered one-ways; both implement
//! [`Maintained`].

use std::time::Duration;

use spandrel_sync::{Arc, Condition, Mutex, Weak, thread, time::Instant};

/// [`MaintenanceThread::schedule`], for settings that may leave the thread out.
pub(crate) type Schedule = fn(&Arc<MaintenanceThread>, Weak<dyn Maintained>, Duration) -> bool;

/// An object that the thread visits.
pub(crate) trait Maintained: Send + Sync {
    /// Does the work without waiting; returns the time until the next visit, if there is one.
    fn maintain(&self, now: Instant) -> Option<Duration>;
}

/// The thread and its schedule.
#[derive(Debug, Default)]
pub(crate) struct MaintenanceThread {
    schedule: Mutex<VisitSchedule>,
    changed: Condition,
}

#[derive(Debug, Default)]
struct VisitSchedule {
    visits: Vec<MaintenanceVisit>,
    is_running: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct MaintenanceVisit {
    at: Instant,
    target: Weak<dyn Maintained>,
}

impl MaintenanceThread {
    /// Schedules a visit after this time; returns false if the thread cannot run.
    pub(crate) fn schedule(self: &Arc<Self>, target: Weak<dyn Maintained>, after: Duration) -> bool {
        let Some(at) = Instant::now().checked_add(after) else { return true };
        let mut schedule = self.schedule.lock();
        if schedule.is_closed || !self.ensure_running(&mut schedule) {
            return false;
        }
        let is_next = schedule.visits.iter().all(|visit| visit.at > at);
        schedule.visits.push(MaintenanceVisit { at, target });
        drop(schedule);
        if is_next {
            self.changed.notify_one();
        }
        true
    }

    /// Starts the thread, unless it runs.
    fn ensure_running(self: &Arc<Self>, schedule: &mut VisitSchedule) -> bool {
        if !schedule.is_running {
            let maintenance_thread = Arc::clone(self);
            let started = thread::Builder::new().name("spandrel-maint".into()).spawn(move || maintenance_thread.run());
            match started {
                Ok(_) => schedule.is_running = true,
                Err(error) => tracing::error!(%error, "the thread that maintains connections could not be started"),
            }
        }
        schedule.is_running
    }

    fn run(&self) {
        let mut schedule = self.schedule.lock();
        while !schedule.is_closed {
            let now = Instant::now();
            let due: Vec<MaintenanceVisit> = schedule.visits.extract_if(.., |visit| visit.at <= now).collect();
            if !due.is_empty() {
                drop(schedule);
                let next_visits: Vec<MaintenanceVisit> = due.into_iter().filter_map(|visit| visit.visit(now)).collect();
                schedule = self.schedule.lock();
                schedule.visits.extend(next_visits);
                continue;
            }
            match schedule.visits.iter().map(|visit| visit.at).min() {
                None => self.changed.wait(&mut schedule),
                Some(next) => drop(self.changed.wait_for(&mut schedule, next.saturating_duration_since(now))),
            }
        }
    }

    /// Ends the thread; its last visit may still run.
    pub(crate) fn close(&self) {
        let mut schedule = self.schedule.lock();
        schedule.is_closed = true;
        schedule.visits.clear();
        drop(schedule);
        self.changed.notify_one();
    }
}

impl MaintenanceVisit {
    /// Makes the visit; returns the next one, if there is one.
    fn visit(self, now: Instant) -> Option<Self> {
        let object = self.target.upgrade()?;
        let at = object.maintain(now).and_then(|delay| now.checked_add(delay));
        at.map(|at| Self { at, target: self.target })
    }
}
