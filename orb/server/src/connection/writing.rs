//! Replies that a client does not take: who writes them, and what the connection does meanwhile.
//!
//! A thread of the connection's own, and any thread if no reactor can serve the transport, waits in [`Link::send`](crate::link::Link::send). All others leave the reply there, and a reactor writes it when the transport
//! takes more. Until the client has taken everything, nothing further is read from it, except over a bidirectional
//! connection, where replies to this side's requests may come.

use spandrel_cdr::Encoder;
use spandrel_giop::{CompletionStatus, SystemException, SystemExceptionKind};
use spandrel_sync::atomic::Ordering;
use spandrel_transport::{Charge, MemoryLimitExceeded};

use super::ServerConnection;
use crate::{
    ServingOrb,
    frame::Frame,
    link::{NoMemory, SendProgress},
    origin::AnswerKind,
};

impl ServerConnection {
    /// Sends an answer, or keeps it until the client takes it.
    ///
    /// # Errors
    /// There is no memory for that; nothing was sent.
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

    /// Whether a reply as long as the longest of late could be kept, where others wait already. It exists twice for a moment, as the
    /// servant's result and as what is kept of it.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(super) fn check_room_for_reply(&self) -> Result<(), MemoryLimitExceeded> {
        let longest = self.orb.server().budget().longest_reply();
        Charge::new(&self.intake, longest.saturating_mul(2)).map(drop)
    }

    /// Whether this thread runs a request of this connection and serves no other connection.
    fn is_own_thread(&self) -> bool {
        let here = std::ptr::from_ref(self).addr();
        self.has_own_thread && Frame::current().is_some_and(|frame| frame.connection == here)
    }

    /// Whether nothing is read, because the client does not take its replies.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        self.link.is_blocked() && !self.is_bidirectional()
    }

    /// The thread that reads waits until the client has taken its replies.
    #[cold]
    pub(super) fn await_unblocked(&self) {
        // The client is not to blame for what is not read.
        self.reader.lock().stop();
        self.link.await_unblocked(self.has_own_thread || self.pollable().is_none());
        self.after_deferred();
    }

    /// Has a reactor write what waits.
    #[cold]
    fn write_later(&self) {
        if let Some(adopted) = self.link.adopted() {
            if let Err(exception) = adopted.write_in(self.orb.client_reactor()) {
                tracing::debug!(peer = %self.link.peer(), %exception, "no reactor to write a reply");
                self.cut();
            }
        } else if self.pollable().is_none() {
            // Left behind one that is being written, it is written by that thread; otherwise by the one that reads, before it reads on.
        } else if !self.has_own_thread {
            self.update_registration();
        } else if self.link.waits_for_reactor()
            && !self.has_writer.swap(true, Ordering::SeqCst)
            && let Err(error) = self.orb.server().pool().write_for(&self.shared())
        {
            tracing::debug!(peer = %self.link.peer(), %error, "no reactor to write a reply");
            self.has_writer.store(false, Ordering::SeqCst);
            self.cut();
        }
    }

    /// Tells the seat whether replies wait to be written.
    pub(super) fn update_registration(&self) {
        // Whoever comes last tells what is true then.
        let _order = self.output.lock();
        if let Some(registration) = self.registration() {
            registration.want_output(self.link.is_blocked());
        }
    }

    /// Writes what the client takes now; called by the reactor. True once nothing waits.
    pub(crate) fn write_ready(&self) -> bool {
        let is_done = self.link.write_ready();
        if is_done && !self.has_own_thread {
            self.update_registration();
            self.after_deferred();
        }
        is_done
    }

    /// The reactor writes no longer for this connection, which has a thread of its own.
    pub(crate) fn writer_left(&self) {
        self.has_writer.store(false, Ordering::SeqCst);
        // Looked at afterwards: whoever leaves something to be written looks for the writer after that.
        self.write_later();
        self.after_deferred();
    }

    /// Cuts it; whoever reads sees the end, and if nobody reads any more this is the end.
    pub(crate) fn cut(&self) {
        self.link.cut();
        self.after_deferred();
    }
}

/// NO_RESOURCES for a reply that there is no memory to keep; the request was carried out.
pub(crate) fn no_room_for_reply(no_room: &MemoryLimitExceeded) -> SystemException {
    SystemException::no_resources(0, CompletionStatus::Yes)
        .with_detail(|| format!("the reply cannot be kept until the client takes it: {no_room}"))
}
