//! Connections that a reactor serves: the visits of its threads, and the threads that take over from them.
//!
//! The reactor calls [`ServerConnection::serve_ready`] in one thread at a time. A long upcall keeps that
//! thread. The pool counts it as blocked, and a thread of the connection's own takes over reading. The new
//! thread suspends the registration and reads on. It returns the reading to the reactor when all upcalls have
//! ended that lost the reader role.

use std::{fmt, io, mem, time::Duration};

use spandrel_connection::{ReadSide, ReaderWord, WriteSide};
use spandrel_giop::SystemException;
use spandrel_sync::{Arc, atomic::Ordering};
use spandrel_transport::ReadError;

use super::{CloseOnDrop, NextRead, ServerConnection};
use crate::nesting::{self, PolledConnection};

/// How long a thread that took over from the reactor waits for a further request before it checks whether it
/// is still needed. The time doubles while it is, so that thousands of such threads do not keep a processor
/// busy.
pub(super) const READ_WAIT: Duration = Duration::from_millis(20);
/// The longest such time.
pub(super) const LONGEST_READ_WAIT: Duration = Duration::from_millis(320);

/// A connection's registration with a reactor. The reactor calls [`ServerConnection::serve_ready`] when there
/// is input, and [`ServerConnection::registration_closed`] when the registration has ended.
pub(crate) trait ReactorRegistration: Send + Sync + fmt::Debug {
    /// Suspends the calls.
    fn suspend(&self);
    /// Resumes the calls. Returns false if the registration has ended.
    fn resume(&self) -> bool;
    /// Resumes the calls, and has one made even if the handle shows no input. Returns false if the
    /// registration has ended.
    fn resume_marked(&self) -> bool;
    /// Has the reactor call [`ServerConnection::write_ready`] when the transport takes more, and make no
    /// other calls meanwhile; or ends that.
    fn want_output(&self, is_wanted: bool);
    /// Resumes the calls, and ends the registration after this time. Returns false if it has ended before.
    fn linger(&self, time: Duration) -> bool;
    /// Ends the registration.
    fn leave(&self);
    /// Registers the connection anew during a call, in the thread of that call: other threads may be called
    /// before the call returns. `is_ready`: there is input that the handle does not show.
    ///
    /// # Errors
    /// The registration has ended.
    fn renew(&self, connection: &Arc<ServerConnection>, is_ready: bool) -> io::Result<()>;
}

/// How a visit of a reactor's thread ended.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum VisitOutcome {
    /// No more input is available, or another thread reads.
    Idle,
    /// The connection has ended.
    Ended,
}

impl ServerConnection {
    /// Registers the connection with a reactor, which serves it from now on.
    pub(crate) fn register_with(&self, registration: Arc<dyn ReactorRegistration>) {
        *self.registration.lock() = Some(registration);
        if self.link.is_blocked() {
            self.update_registration();
        }
        // Checked afterwards: a thread that ends the connection first changes the phase and then ends the
        // registration that it finds.
        if self.is_gone() {
            self.unregister();
        }
    }

    /// Whether no reply is due any more, and the stream is closed in that direction.
    fn is_finished(&self) -> bool {
        self.phase().write_side() == WriteSide::Shut
    }

    /// Whether the connection is finished, and the reading of late octets has ended as well.
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

    /// Called when the registration has ended for any reason. A thread that took over reads on to the end.
    pub(crate) fn registration_closed(&self) {
        if self.word().is_registered() {
            self.end_reading();
        }
        if self.is_finished() {
            self.finish_close();
        }
    }

    /// Runs the requests that are available now.
    pub(crate) fn serve_ready(&self) -> VisitOutcome {
        if self.is_reading_finished() {
            return self.drop_ready();
        }
        if !self.word().is_registered() || self.is_blocked() {
            // A thread has taken over reading, or left a reply to be written, and is about to update the
            // registration.
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

    /// Reads and drops late octets. Without that, the peer could take the last reply for undelivered.
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
                    // The number of the upcall that may follow: no other thread reads, and so none takes a
                    // step.
                    let _inside = nesting::enter(|| self.shared(), self.turn() + 1);
                    if self.handle(&message)? == NextRead::ByOther {
                        return Ok(());
                    }
                }
                Err(error) => self.handle_read_failure(error)?,
            }
            let mut reader = self.reader.lock();
            if self.is_blocked() {
                // Progress is not checked meanwhile: the client is not to blame for the pause.
                reader.stop();
                break;
            }
            next = reader.buffered();
        }
        self.reader.lock().rest();
        Ok(())
    }

    /// Suspends the registration: an upcall keeps the reactor's thread, and this thread reads.
    pub(super) fn leave_reactor(&self) {
        if let Some(registration) = self.registration() {
            registration.suspend();
        }
    }

    /// Returns the reading to the reactor, unless an upcall still runs that has lost the reader role. If the
    /// registration has ended, `registration` becomes `None` and the caller reads on to the end.
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

    /// Counts the thread of the upcall of `turn` as a blocked one of the pool, once.
    pub(super) fn note_blocked(&self, turn: u64) {
        if self.is_held_up.load(Ordering::SeqCst) {
            return;
        }
        // Counted before the flag is set, so that no other thread uncounts it first.
        self.resources.pool.note_blocked();
        if self.is_held_up.swap(true, Ordering::SeqCst) {
            self.resources.pool.note_unblocked();
        } else if self.word().without_closing() != ReaderWord::from_bits(turn).without_closing() {
            // The upcall has ended meanwhile, and may have checked the flag too early.
            self.note_unblocked();
        }
    }

    /// Ends the count of the upcall's thread as a blocked one, if it is counted.
    #[inline]
    pub(super) fn note_unblocked(&self) {
        if self.is_held_up.load(Ordering::SeqCst) && self.is_held_up.swap(false, Ordering::SeqCst) {
            self.resources.pool.note_unblocked();
        }
    }
}

impl PolledConnection for ServerConnection {
    fn release_reading(self: Arc<Self>, turn: u64) -> Result<(), SystemException> {
        if self.turn() != turn {
            return Ok(());
        }
        let running = self.handed_over.load(Ordering::SeqCst) + 1;
        if running >= self.resources.settings.max_in_flight {
            // A thread that has taken over meanwhile was counted.
            if self.turn() != turn {
                return Ok(());
            }
            return Err(nesting::too_many(running));
        }
        // Counted before the change, so that the connection does not look idle in between.
        self.handed_over.fetch_add(1, Ordering::SeqCst);
        if self.change_word(|now| now.release(ReaderWord::from_bits(turn))).is_err() {
            self.end_handed_over();
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
            tracing::error!(%error, peer = %self.link.peer(), "could not register a connection anew to read on");
            self.end_reading();
        }
        Ok(())
    }
}
