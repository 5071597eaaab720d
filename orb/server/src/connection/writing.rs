//! Replies that a client does not take: which thread writes them, and how the connection waits.
//!
//! A thread of the connection's own waits in [`Link::send`](super::link::Link::send). So does any thread if
//! no reactor can serve the transport. All others leave the reply there, and a reactor writes it when the
//! transport takes more.
//!
//! Nothing further is read from a client until it has taken everything. A bidirectional connection is read
//! on, because replies to this side's requests may arrive.

use spandrel_cdr::Encoder;
use spandrel_giop::{CompletionStatus, SystemException, SystemExceptionKind};
use spandrel_sync::atomic::Ordering;
use spandrel_transport::{Charge, MemoryLimitExceeded};

use super::{
    ServerConnection,
    link::{NoMemory, SendProgress},
    pooled,
};
use crate::{frame::Frame, upcall::origin::AnswerKind};

impl ServerConnection {
    /// Sends a reply, or keeps it until the client takes it.
    ///
    /// # Errors
    /// There is no memory to keep it; nothing was sent.
    #[inline]
    pub(super) fn send(&self, answer: &Encoder<'_>, kind: AnswerKind) -> Result<(), SystemException> {
        match self.link.send(answer, kind, || self.is_own_thread() || self.pollable().is_none()) {
            Ok(SendProgress::Whole) => Ok(()),
            Ok(SendProgress::InPart) => {
                self.write_later();
                Ok(())
            }
            Err(no_memory) => self.refuse_over_budget(kind, &no_memory),
        }
    }

    #[cold]
    fn refuse_over_budget(&self, kind: AnswerKind, no_memory: &NoMemory) -> Result<(), SystemException> {
        self.orb.statistics().refused_memory();
        match (kind, no_memory) {
            (AnswerKind::Reply { .. }, NoMemory::Limit(no_room)) => Err(no_room_for_reply(no_room)),
            (AnswerKind::Reply { .. }, NoMemory::OfSystem) => {
                let no_memory = SystemException::new(SystemExceptionKind::NoMemory, 0, CompletionStatus::Yes);
                Err(no_memory.with_detail("the reply could not be kept until the client takes it"))
            }
            (AnswerKind::Refusal, no_memory) => {
                tracing::debug!(peer = %self.link.peer(), reason = %no_memory, "cut off: it does not take its replies");
                self.cut();
                Ok(())
            }
        }
    }

    /// Checks the memory for a further waiting reply, as long as the longest recent one. It exists twice for
    /// a moment: as the servant's result and as the copy that is kept.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(super) fn check_room_for_reply(&self) -> Result<(), MemoryLimitExceeded> {
        let longest = self.resources.budget.longest_reply();
        Charge::new(&self.intake, longest.saturating_mul(2)).map(drop)
    }

    /// Whether this thread runs a request of this connection and serves no other connection.
    fn is_own_thread(&self) -> bool {
        let here = std::ptr::from_ref(self).addr();
        self.has_own_thread && Frame::current().is_some_and(|frame| frame.connection == here)
    }

    /// Whether reading pauses because the client does not take its replies.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        self.link.is_blocked() && !self.is_bidirectional()
    }

    /// Waits in the reading thread until the client has taken its replies.
    #[cold]
    pub(super) fn await_unblocked(&self) {
        // Progress is not checked meanwhile: the client is not to blame for the pause.
        self.reader.lock().stop();
        self.link.await_unblocked(self.has_own_thread || self.pollable().is_none());
        self.after_deferred();
    }

    /// Has a reactor write the waiting replies, or leaves them to a thread that will.
    #[cold]
    fn write_later(&self) {
        if let Some(adopted) = self.link.adopted() {
            if let Err(exception) = adopted.write_in(self.orb.client_reactor()) {
                tracing::debug!(peer = %self.link.peer(), %exception, "no reactor to write a reply");
                self.cut();
            }
        } else if self.pollable().is_none() {
            // A thread that is writing a reply also writes those behind it. Otherwise the reading thread
            // writes them before it reads on.
        } else if !self.has_own_thread {
            self.update_registration();
        } else if self.link.waits_for_reactor()
            && !self.has_writer.swap(true, Ordering::SeqCst)
            && let Err(error) = pooled::write_in(&self.resources.pool, self.shared())
        {
            tracing::debug!(peer = %self.link.peer(), %error, "no reactor to write a reply");
            self.has_writer.store(false, Ordering::SeqCst);
            self.cut();
        }
    }

    /// Updates the registration: it waits for output if replies wait to be written.
    pub(super) fn update_registration(&self) {
        // One update at a time, so that the last one sets the present state.
        let _order = self.output.lock();
        if let Some(registration) = self.registration() {
            registration.want_output(self.link.is_blocked());
        }
    }

    /// Writes what the client takes now; called by the reactor. Returns whether no reply waits any more.
    pub(crate) fn write_ready(&self) -> bool {
        let is_done = self.link.write_ready();
        if is_done && !self.has_own_thread {
            self.update_registration();
            self.after_deferred();
        }
        is_done
    }

    /// Called when the reactor no longer writes for this connection, which has a thread of its own.
    pub(crate) fn writer_left(&self) {
        self.has_writer.store(false, Ordering::SeqCst);
        // Checked afterwards: a thread that leaves a reply first queues it and then checks for the writer.
        self.write_later();
        self.after_deferred();
    }

    /// Cuts the connection. The reading thread finds the end; if reading has ended, the connection ends here.
    pub(crate) fn cut(&self) {
        self.link.cut();
        self.after_deferred();
    }
}

/// NO_RESOURCES for a reply that exceeds a memory limit; the request was carried out.
pub(crate) fn no_room_for_reply(no_room: &MemoryLimitExceeded) -> SystemException {
    SystemException::no_resources(0, CompletionStatus::Yes)
        .with_detail(|| format!("the reply cannot be kept until the client takes it: {no_room}"))
}
