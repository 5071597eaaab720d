//! The move of a connection between a thread of its own and the threads of the reactor, in the adaptive strategy.
//!
//! The [monitor](crate::monitor) decides by `ServiceModeRule` of `spandrel-connection` where busy connections are
//! served. Each connection moves by itself:
//!
//! - its own thread registers it with the reactor, between two requests and only while nothing else of the connection
//!   is under way, and ends;
//! - a thread that reads in the reactor's stead returns the reading;
//! - a thread of the reactor that is called often for the connection starts a thread for it, which reads in the
//!   reactor's stead until the connection is quiet.

use std::time::Duration;

use spandrel_connection::ReaderWord;
use spandrel_orb::internal::RESERVED_THREADS;
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
    time::Instant,
};

use super::{ServerConnection, pooled, registration::ReactorRegistration};

/// The visits of the reactor's threads in [`FREQUENT_TIME`] from which on a connection gets a thread.
const FREQUENT_VISITS: u32 = 64;
const FREQUENT_TIME: Duration = Duration::from_millis(100);

/// How often the reactor's threads visit a connection.
#[derive(Debug, Default)]
pub(super) struct VisitRate {
    visits: AtomicU32,
    /// The time of the last visit whose number is a multiple of [`FREQUENT_VISITS`].
    last: Mutex<Option<Instant>>,
}

impl VisitRate {
    /// Counts a visit. Returns whether the visits are frequent.
    fn count(&self) -> bool {
        let visits = self.visits.fetch_add(1, Ordering::Relaxed);
        visits.is_multiple_of(FREQUENT_VISITS) && self.are_frequent(Instant::now())
    }

    #[cold]
    fn are_frequent(&self, now: Instant) -> bool {
        let last = self.last.lock().replace(now);
        last.is_some_and(|last| now.saturating_duration_since(last) <= FREQUENT_TIME)
    }
}

impl ServerConnection {
    /// Leaves the reading to the reactor's threads, for a thread that serves only this connection. Returns false if that
    /// is not possible now.
    #[cold]
    pub(super) fn share_threads(self: &Arc<Self>, registration: &mut Option<Arc<dyn ReactorRegistration>>) -> bool {
        if self.pipeline.is_active() {
            self.end_pipeline();
        }
        match registration {
            Some(_) => self.return_to_reactor(registration),
            None => self.has_own_thread() && self.move_to_reactor(),
        }
    }

    /// Registers the connection of this thread with the reactor. Returns false if something of it is under way besides
    /// the reading, or if the reactor cannot serve it.
    fn move_to_reactor(self: &Arc<Self>) -> bool {
        let is_quiet = !self.is_busy() && !self.is_bidirectional() && !self.reader_role.word().is_closing();
        if !is_quiet || self.pollable().is_none() || !self.registration.begin_writer() {
            return false;
        }
        // Nothing waits to be written, and only this thread begins requests: no other thread writes.
        self.registration.end_writer();
        self.has_own_thread.store(false, Ordering::SeqCst);
        self.reader_role.step(ReaderWord::register);
        let is_drained = {
            let mut reader = self.reader.lock();
            reader.rest();
            reader.is_drained()
        };
        let moved = pooled::serve_in(&self.resources.pool, self, !is_drained);
        match &moved {
            Ok(()) => {
                if let Some(owner) = self.owner.upgrade() {
                    owner.left_thread();
                }
            }
            Err(error) => {
                self.has_own_thread.store(true, Ordering::SeqCst);
                self.reader_role.step(ReaderWord::unregister);
                log_limited!(
                    warn, self.resources, "no reactor", peer = %self.link.peer(), %error, "a connection stays with its thread"
                );
            }
        }
        moved.is_ok()
    }

    /// Has a thread read in the reactor's stead if the connection is visited often and such threads are wanted. Called
    /// at the end of a visit, in which this thread reads.
    #[inline]
    pub(super) fn end_visit(&self) {
        let pool = &self.resources.pool;
        if pool.is_adaptive() && !pool.shares_threads() && self.visits.count() {
            self.start_thread();
        }
    }

    #[cold]
    fn start_thread(&self) {
        let word = self.reader_role.word();
        let is_read_here = word.is_registered() && !word.is_in_upcall() && !word.is_closing();
        let Some(registration) = self.registration.get() else { return };
        if !is_read_here || self.is_blocked() || !self.resources.threads.has_room_for(1 + RESERVED_THREADS) {
            return;
        }
        registration.suspend();
        self.reader_role.step(ReaderWord::unregister);
        let connection = self.shared();
        if let Err(error) = self.resources.threads.spawn("spandrel-serve", move || connection.serve()) {
            tracing::debug!(peer = %self.link.peer(), %error, "no thread for a busy connection");
            self.reader_role.step(ReaderWord::register);
            registration.resume_marked();
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn visits_are_frequent_if_the_last_64_were_quick() {
        let rate = VisitRate::default();
        let begin = Instant::now();
        assert!(!rate.are_frequent(begin), "the first visit");
        assert!(rate.are_frequent(begin + FREQUENT_TIME));
        assert!(!rate.are_frequent(begin + 2 * FREQUENT_TIME + Duration::from_millis(1)));
        assert_eq!((0..10 * FREQUENT_VISITS).filter(|_| rate.count()).count(), 9, "asked at each 64th");
    }
}
