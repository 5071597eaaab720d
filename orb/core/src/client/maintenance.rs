//! The thread that maintains connections between calls; the first use starts it.
//!
//! It sleeps until the next visit, and never waits for a peer.

use std::time::Duration;

use spandrel_sync::{Arc, Condition, Mutex, Weak, thread, time::Instant};

/// [`MaintenanceThread::expect`], for settings that may leave the thread out.
pub(crate) type Schedule = fn(&Arc<MaintenanceThread>, Weak<dyn Maintained>, Duration) -> bool;

/// An object that the thread visits.
pub(crate) trait Maintained: Send + Sync {
    /// Does the work without waiting; returns the time until the next visit, if there is one.
    fn maintain(&self, now: Instant) -> Option<Duration>;
}

/// The thread and its schedule.
#[derive(Debug, Default)]
pub(crate) struct MaintenanceThread {
    rounds: Mutex<Rounds>,
    changed: Condition,
}

#[derive(Debug, Default)]
struct Rounds {
    visits: Vec<MaintenanceVisit>,
    is_running: bool,
    is_closed: bool,
}

/// A scheduled visit.
#[derive(Debug)]
struct MaintenanceVisit {
    at: Instant,
    whom: Weak<dyn Maintained>,
}

impl MaintenanceThread {
    /// Schedules a visit after this time; returns false if the thread cannot run.
    pub(crate) fn expect(self: &Arc<Self>, whom: Weak<dyn Maintained>, after: Duration) -> bool {
        let Some(at) = Instant::now().checked_add(after) else { return true };
        let mut rounds = self.rounds.lock();
        if rounds.is_closed || !self.is_running(&mut rounds) {
            return false;
        }
        let is_next = rounds.visits.iter().all(|visit| visit.at > at);
        rounds.visits.push(MaintenanceVisit { at, whom });
        drop(rounds);
        if is_next {
            self.changed.notify_one();
        }
        true
    }

    /// Starts the thread, unless it runs.
    fn is_running(self: &Arc<Self>, rounds: &mut Rounds) -> bool {
        if !rounds.is_running {
            let maintenance_thread = Arc::clone(self);
            let started = thread::Builder::new().name("spandrel-keeper".into()).spawn(move || maintenance_thread.run());
            match started {
                Ok(_) => rounds.is_running = true,
                Err(error) => tracing::error!(%error, "the thread that maintains connections could not be started"),
            }
        }
        rounds.is_running
    }

    fn run(&self) {
        let mut rounds = self.rounds.lock();
        while !rounds.is_closed {
            let now = Instant::now();
            let due: Vec<MaintenanceVisit> = rounds.visits.extract_if(.., |visit| visit.at <= now).collect();
            if !due.is_empty() {
                drop(rounds);
                let again: Vec<MaintenanceVisit> = due.into_iter().filter_map(|visit| visit.visit(now)).collect();
                rounds = self.rounds.lock();
                rounds.visits.extend(again);
                continue;
            }
            match rounds.visits.iter().map(|visit| visit.at).min() {
                None => self.changed.wait(&mut rounds),
                Some(next) => drop(self.changed.wait_for(&mut rounds, next.saturating_duration_since(now))),
            }
        }
    }

    /// Ends the thread; its last visit may still run.
    pub(crate) fn close(&self) {
        let mut rounds = self.rounds.lock();
        rounds.is_closed = true;
        rounds.visits.clear();
        drop(rounds);
        self.changed.notify_one();
    }
}

impl MaintenanceVisit {
    /// Makes the visit; returns the next one, if there is one.
    fn visit(self, now: Instant) -> Option<Self> {
        let visited = self.whom.upgrade()?;
        let at = visited.maintain(now).and_then(|delay| now.checked_add(delay));
        at.map(|at| Self { at, whom: self.whom })
    }
}
