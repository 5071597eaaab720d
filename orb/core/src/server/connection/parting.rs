//! How a connection ends: nobody reads, nobody runs, nobody is there.
//!
//! Reading ends first, by the end of what the peer sends or because it sent nonsense; requests that still run may answer after that.
//! With the last of them the connection is *finished*: what it said is left time to arrive. Then it is *gone*. At shutdown all that is
//! preceded by a goodbye, which comes after the last answer.

use std::time::Duration;

use spandrel_giop::MessageType;
use spandrel_sync::atomic::Ordering;

use super::{CLOSING, SEATED, ServerConnection, deferred::Cancelled};
use crate::{reader::Deadline, server::link::LINGER};

/// How long a peer is waited for to take a message that only tells it of the end.
const COURTESY: Duration = Duration::from_millis(200);
/// The same where others wait for the thread as well.
const BRIEF_COURTESY: Duration = Duration::from_millis(1);

/// How far a connection's end has come.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::server) enum Farewell {
    No,
    /// CloseConnection was sent, after the last answer.
    Said,
    /// Nobody reads any more.
    Ended,
}

impl ServerConnection {
    /// Nobody reads any more. Requests that still run may answer before the connection ends.
    pub(super) fn end_reading(&self) {
        self.is_read_out.store(true, Ordering::SeqCst);
        // A client that sends nothing more is gone: those who serve it in their own time need not go on.
        self.cancel_deferred(Cancelled::Awaited);
        self.finish_when_done();
    }

    /// True once nobody reads any more.
    pub(in crate::server) fn is_read_out(&self) -> bool {
        self.is_read_out.load(Ordering::SeqCst)
    }

    pub(super) fn one_less_relieved(&self) {
        if self.relieved.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.finish_when_done();
        }
    }

    /// A deferred call has ended.
    pub(in crate::server) fn after_deferred(&self) {
        self.finish_when_done();
        if self.turn() & CLOSING != 0 {
            self.say_goodbye_when_idle();
        }
    }

    /// Whoever comes last of those that read, run and answer finds that the others have ended.
    fn finish_when_done(&self) {
        let is_done = self.is_read_out.load(Ordering::SeqCst) && self.relieved.load(Ordering::SeqCst) == 0;
        if is_done && self.deferred.lock().is_empty() {
            self.finish();
        }
    }

    fn finish(&self) {
        if self.is_finished.swap(true, Ordering::SeqCst) {
            return;
        }
        self.link.close_writer();
        let lingers = match self.seat() {
            // The reactor's threads have others to serve: it calls again for what still comes.
            Some(seat) => !self.link.drop_ready() && seat.linger(LINGER),
            None => {
                self.link.drain();
                false
            }
        };
        if !lingers {
            self.vanish();
        }
    }

    /// The end of the end.
    pub(super) fn vanish(&self) {
        if self.is_gone.swap(true, Ordering::SeqCst) {
            return;
        }
        self.link.cut();
        self.leave_seat();
        self.orb.watcher().forget(self);
        self.orb.server().forget(self);
        self.part(Farewell::Ended);
    }

    /// Accepts no further request; says goodbye once those that run have been answered.
    pub(in crate::server) fn begin_close(&self) {
        self.turn.fetch_or(CLOSING, Ordering::SeqCst);
        self.say_goodbye_when_idle();
    }

    /// CloseConnection and half-close: the peer sees it, closes, and whoever reads here sees the end.
    pub(super) fn say_goodbye_when_idle(&self) {
        if !self.is_busy() && self.part(Farewell::Said) {
            self.say_bare(MessageType::CloseConnection);
            self.link.close_writer();
        }
    }

    /// Says something that ends the connection, whether or not the peer hears it.
    pub(super) fn say_bare(&self, message_type: MessageType) {
        let is_seated = self.turn() & SEATED != 0;
        self.link.send_bare(message_type, if is_seated { BRIEF_COURTESY } else { COURTESY });
    }

    /// Goes on to this stage; false if it had come so far already.
    fn part(&self, stage: Farewell) -> bool {
        let mut farewell = self.farewell.lock();
        let is_news = *farewell < stage;
        *farewell = stage.max(*farewell);
        self.parting.notify_all();
        is_news
    }

    /// Waits until the farewell has come so far; a connection that takes longer is cut.
    pub(in crate::server) fn await_farewell(&self, stage: Farewell, deadline: &Deadline) {
        let mut farewell = self.farewell.lock();
        while *farewell < stage {
            let remaining = deadline.remaining();
            if remaining.is_zero() {
                drop(farewell);
                self.link.cut();
                self.cancel_deferred(Cancelled::All);
                return;
            }
            self.parting.wait_for(&mut farewell, remaining);
        }
    }
}

/// Whoever reads ends the connection when it stops reading, also by a panic, unless another reads on.
pub(super) struct Ending<'c>(pub(super) &'c ServerConnection);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end_reading();
    }
}
