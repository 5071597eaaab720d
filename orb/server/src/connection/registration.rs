//! A connection that a reactor serves: visits of the reactor's threads, and who takes over from them.
//!
//! The reactor calls [`ServerConnection::serve_ready`] in one thread at a time. An upcall that lasts keeps that thread: the pool is
//! told to let another stand in for it, and a thread of the connection's own takes the reading over. That one suspends the seat, reads
//! on, and gives the reading back once nothing runs any more that it was taken from.

use std::{fmt, io, mem, time::Duration};

use spandrel_connection::{ReadSide, ReaderWord, WriteSide};
use spandrel_giop::SystemException;
use spandrel_sync::{Arc, atomic::Ordering};
use spandrel_transport::ReadError;

use super::{CloseOnDrop, NextRead, ServerConnection};
use crate::{
    ServingOrb,
    nesting::{self, PolledConnection},
};

/// How long a thread that took over from the reactor waits for a further request before it looks whether it is still needed. Twice as
/// long after each time that it was, so that thousands of such threads do not keep a processor busy.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);
/// The longest.
pub(super) const LONGEST_PATIENCE: Duration = Duration::from_millis(320);

/// A connection's place in a reactor, which calls [`ServerConnection::serve_ready`] when there is something to read, and
/// [`ServerConnection::registration_closed`] when it never will again.
pub(crate) trait ReactorRegistration: Send + Sync + fmt::Debug {
    /// Calls no more for now.
    fn suspend(&self);
    /// Calls again; false if it never will.
    fn resume(&self) -> bool;
    /// Calls again, also for what the handle does not show; false if it never will.
    fn resume_marked(&self) -> bool;
    /// Calls [`ServerConnection::write_ready`] when the transport takes more, and for nothing else meanwhile; or no longer.
    fn want_output(&self, is_wanted: bool);
    /// Calls again, and leaves by itself after this time; false if it has left before.
    fn linger(&self, time: Duration) -> bool;
    /// Calls never again.
    fn leave(&self);
    /// For the thread that is being called: calls others from now on, in a new place, also before that call has returned.
    /// `is_ready`: there is something to look at that the handle does not show.
    ///
    /// # Errors
    /// It never calls again.
    fn renew(&self, connection: &Arc<ServerConnection>, is_ready: bool) -> io::Result<()>;
}

/// How a visit of a reactor's thread ended.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum VisitOutcome {
    /// Nothing more is there now, or another thread reads.
    Idle,
    /// Nothing more will come.
    Ended,
}

impl ServerConnection {
    /// A reactor serves it from now on.
    pub(crate) fn register_with(&self, registration: Arc<dyn ReactorRegistration>) {
        *self.registration.lock() = Some(registration);
        if self.link.is_blocked() {
            self.update_registration();
        }
        // Looked at afterwards: whoever makes it go either finds the seat, or has said so before this.
        if self.is_gone() {
            self.unregister();
        }
    }

    /// No reply is due any more.
    fn is_finished(&self) -> bool {
        self.phase().write_side() == WriteSide::Shut
    }

    /// Nor is anything read and dropped.
    fn is_gone(&self) -> bool {
        self.phase().read_side() == ReadSide::Closed
    }

    pub(super) fn registration(&self) -> Option<Arc<dyn ReactorRegistration>> {
        self.registration.lock().clone()
    }

    pub(super) fn unregister(&self) {
        let registration = self.registration.lock().take();
        if let Some(registration) = registration {
            registration.leave();
        }
    }

    /// The reactor has closed its place, whoever wanted that. A thread that took over reads on, to the end.
    pub(crate) fn registration_closed(&self) {
        if self.word().is_registered() {
            self.end_reading();
        }
        if self.is_finished() {
            self.finish_close();
        }
    }

    /// Runs the requests that are there now.
    pub(crate) fn serve_ready(&self) -> VisitOutcome {
        if self.is_reading_finished() {
            return self.drop_ready();
        }
        if !self.word().is_registered() || self.is_blocked() {
            // A thread has taken over, or left a reply to be written, and is about to say so to the reactor.
            return VisitOutcome::Idle;
        }
        let ending = CloseOnDrop(self);
        match self.serve_read() {
            Ok(()) => mem::forget(ending),
            Err(error) => {
                self.read_failed(&error);
                self.reader.lock().end();
                drop(ending);
            }
        }
        if self.is_gone() { VisitOutcome::Ended } else { VisitOutcome::Idle }
    }

    /// What a peer still sends when all is over is dropped, lest it take the last answer for undelivered.
    fn drop_ready(&self) -> VisitOutcome {
        let is_over = self.is_finished() && self.link.drop_ready();
        if is_over { VisitOutcome::Ended } else { VisitOutcome::Idle }
    }

    fn serve_read(&self) -> Result<(), ReadError> {
        if let Some(dispatch_queue) = &self.dispatch_queue {
            return self.read_for_others(dispatch_queue);
        }
        let mut next = {
            let mut reader = self.reader.lock();
            reader.wake();
            reader.next_ready(self.link.transport())
        };
        loop {
            match next {
                Ok(None) => break,
                Ok(Some(message)) => {
                    // The turn of the upcall that follows, if one does: nobody else reads, and so nobody else takes turns.
                    let _inside = nesting::enter(|| self.shared(), self.turn() + 1);
                    if self.handle(&message)? == NextRead::Relieved {
                        return Ok(());
                    }
                }
                Err(error) => self.handle_read_failure(error)?,
            }
            let mut reader = self.reader.lock();
            if self.is_blocked() {
                // The client is not to blame for what is not read.
                reader.stop();
                break;
            }
            next = reader.buffered();
        }
        self.reader.lock().rest();
        Ok(())
    }

    /// The reactor's thread is kept by an upcall, and this one reads.
    pub(super) fn leave_reactor(&self) {
        if let Some(registration) = self.registration() {
            registration.suspend();
        }
    }

    /// Leaves the reading to the reactor, once no upcall runs that it could wait for. Where there is none any more, the caller reads on
    /// without looking again.
    pub(super) fn return_to_reactor(&self, registration: &mut Option<Arc<dyn ReactorRegistration>>) -> bool {
        if self.handed_over.load(Ordering::SeqCst) != 0 {
            return false;
        }
        let Some(place) = registration.take() else { return false };
        self.reader.lock().rest();
        let _ = self.change_word(|now| Some(now.register()));
        if place.resume() {
            return true;
        }
        let _ = self.change_word(|now| Some(now.unregister()));
        false
    }

    /// Another is to do the work of the reactor's thread that the upcall of `turn` keeps.
    pub(super) fn note_blocked(&self, turn: u64) {
        if self.is_held_up.load(Ordering::SeqCst) {
            return;
        }
        // Counted before it is said, so that nobody counts it back first.
        self.orb.server().pool().note_blocked();
        if self.is_held_up.swap(true, Ordering::SeqCst) {
            self.orb.server().pool().note_unblocked();
        } else if self.word().without_closing() != ReaderWord::from_bits(turn).without_closing() {
            // It has ended meanwhile, and may have looked too early.
            self.note_unblocked();
        }
    }

    /// The upcall keeps the reactor's thread no longer.
    #[inline]
    pub(super) fn note_unblocked(&self) {
        if self.is_held_up.load(Ordering::SeqCst) && self.is_held_up.swap(false, Ordering::SeqCst) {
            self.orb.server().pool().note_unblocked();
        }
    }
}

impl PolledConnection for ServerConnection {
    fn release_reading(self: Arc<Self>, turn: u64) -> Result<(), SystemException> {
        if self.turn() != turn {
            return Ok(());
        }
        let running = self.handed_over.load(Ordering::SeqCst) + 1;
        if running >= self.settings.max_in_flight {
            // Who has taken over meanwhile is among those that were counted.
            if self.turn() != turn {
                return Ok(());
            }
            return Err(nesting::too_many(running));
        }
        // Counted before it happens, so that nobody takes the connection for idle in between.
        self.handed_over.fetch_add(1, Ordering::SeqCst);
        if self.change_word(|now| now.release(ReaderWord::from_bits(turn))).is_err() {
            self.one_less_relieved();
            return Ok(());
        }
        self.note_unblocked();
        let is_drained = {
            let mut reader = self.reader.lock();
            reader.rest();
            reader.is_drained()
        };
        let renewed = self.registration().map(|registration| registration.renew(&self, !is_drained));
        if let Some(Err(error)) = renewed {
            tracing::error!(%error, peer = %self.link.peer(), "a connection can be read from no longer");
            self.end_reading();
        }
        Ok(())
    }
}
