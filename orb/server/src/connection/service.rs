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

use spandrel_connection::ReaderWord;
use spandrel_orb::internal::RESERVED_THREADS;
use spandrel_sync::{Arc, atomic::Ordering};

use super::{ServerConnection, dispatch_queue::ConnectionService, pooled, registration::ReactorRegistration};

impl ServerConnection {
    /// Leaves the reading to the reactor's threads, for a thread that serves only this connection. Returns false if that
    /// is not possible now.
    #[cold]
    pub(super) fn share_threads(self: &Arc<Self>, registration: &mut Option<Arc<dyn ReactorRegistration>>) -> bool {
        self.end_pipeline();
        match registration {
            Some(_) => self.return_to_reactor(registration),
            None => self.has_own_thread() && self.move_to_reactor(),
        }
    }

    /// Registers the connection of this thread with the reactor. Returns false if something of it is under way besides
    /// the reading, or if the reactor cannot serve it.
    fn move_to_reactor(self: &Arc<Self>) -> bool {
        let is_quiet = !self.is_busy() && !self.is_bidirectional() && !self.reader_role.word().is_closing();
        let ConnectionService::ByReader { has_own_thread } = &self.service else { return false };
        if !is_quiet || self.pollable().is_none() || !self.registration.begin_writer() {
            return false;
        }
        // Nothing waits to be written, and only this thread begins requests: no other thread writes.
        self.registration.end_writer();
        has_own_thread.store(false, Ordering::SeqCst);
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
                has_own_thread.store(true, Ordering::SeqCst);
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
