//! Pipelined requests: whole requests that one read has brought are served in turn, and their replies leave in one
//! write.
//!
//! While a further whole request is in memory, the thread that reads corks the link, which then holds short replies.
//! The held replies leave
//!
//! - in the upcall of the last request that is in memory, with its reply;
//! - before an upcall of an operation that is not known to be [quick](QuickOperations), 200 µs after the first of them
//!   (500 µs while upcalls spawn futures), and beyond 16 KiB;
//! - before a LocateRequest is answered;
//! - before a call that the servant makes (`held_replies` of `spandrel-orb`), a request of this side over the
//!   connection, and CloseConnection;
//! - when the [monitor](crate::monitor) first looks at the upcall, so that an operation which is slow for the first time
//!   delays them by one of its intervals.
//!
//! The future of an asynchronous servant is polled first in its upcall, so that a reply which need not wait is held as
//! that of a synchronous servant. An executor of the application may leave the replies to other threads, which hold them
//! meanwhile. An upcall with a future is quick if it takes 500 µs at most.
//! [`scheduled_replies`](super::scheduled_replies) has the replies of other threads.
//!
//! While replies are held, the connection is not idle, and begins no other request than the next one from memory. A
//! connection with one call at a time has none of this: it costs a load of an atomic and a look at the length of the
//! buffer.

use std::time::Duration;

use spandrel_connection::UpcallNumber;
use spandrel_orb::internal::held_replies::{self, HeldReplies, Holder};
use spandrel_sync::time::Instant;

use super::{
    ServerConnection,
    link::{SendProgress, TASK_HOLD_TIME},
    reply_queue::Cork,
};
use crate::{
    quick_operations::QuickOperations,
    reply_batch::{HOLD_TIME, ReplyBatch},
    request_of_thread::Frame,
};

/// The longest time of a quick operation.
const QUICK_TIME: Duration = Duration::from_micros(50);
/// The same for an operation that spawns a future: its reply may not be in the hands of this thread.
const QUICK_SPAWN_TIME: Duration = TASK_HOLD_TIME;

/// An upcall among several: of its connection, or of those that one wait has found ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelinedUpcall {
    /// Whether it is one of several of its connection.
    is_in_pipeline: bool,
    /// The hash of the operation's name.
    operation: u32,
    begin: Instant,
}

impl ServerConnection {
    /// Prepares the upcall of this step, if its request is one of several.
    #[inline]
    pub(super) fn begin_pipelined(&self, upcall: UpcallNumber, operation: &str) -> Option<PipelinedUpcall> {
        let is_in_pipeline = self.pipeline.is_active();
        let is_one_of_several = is_in_pipeline || ReplyBatch::is_collecting();
        if is_one_of_several { Some(self.begin_one_of_several(upcall, operation, is_in_pipeline)) } else { None }
    }

    fn begin_one_of_several(&self, upcall: UpcallNumber, operation: &str, is_in_pipeline: bool) -> PipelinedUpcall {
        let pipelined =
            PipelinedUpcall { is_in_pipeline, operation: QuickOperations::hash(operation), begin: Instant::now() };
        let is_quick = self.resources.quick_operations.contains(pipelined.operation);
        if let Some(batch) = self.resources.pool.reply_batch() {
            batch.begin_upcall(pipelined.begin, is_quick);
        }
        if is_in_pipeline {
            self.hold_in_pipeline(upcall, pipelined.begin, is_quick);
        }
        pipelined
    }

    #[cold]
    fn hold_in_pipeline(&self, upcall: UpcallNumber, now: Instant, is_quick: bool) {
        let hold_time = if self.pipeline.begin_upcall() { TASK_HOLD_TIME } else { HOLD_TIME };
        if !is_quick {
            self.end_pipeline();
        }
        // Also if it is not quick: its time does not include the writing of its own reply.
        if self.pipeline.has_further() || self.pipeline.is_corked() {
            if held_replies::record(&self.weak_self) {
                self.pipeline.enter();
            }
            let still_reads = || self.reader_role.word().number() == upcall;
            let end_schedule = || self.pipeline.end_schedule();
            self.go_on_writing(self.link.cork(now, hold_time, still_reads, end_schedule));
        }
    }

    /// Ends the upcall of this step. Sends the replies that are held, unless it was quick and this thread serves a further
    /// request next.
    pub(super) fn end_pipelined(&self, upcall: UpcallNumber, pipelined: PipelinedUpcall) {
        let took = pipelined.begin.elapsed();
        let has_spawned = pipelined.is_in_pipeline && self.pipeline.has_spawned();
        let is_quick = took <= if has_spawned { QUICK_SPAWN_TIME } else { QUICK_TIME };
        self.resources.quick_operations.record(pipelined.operation, is_quick);
        if pipelined.is_in_pipeline {
            let still_reads = self.reader_role.word().number() == upcall;
            if !(is_quick && still_reads && self.pipeline.has_further()) {
                self.end_pipeline();
            }
        }
        if !is_quick && let Some(batch) = self.resources.pool.reply_batch() {
            batch.send_or_leave();
        }
    }

    /// Records that this thread spawns a future that answers a request of this connection, if it runs one of several
    /// upcalls.
    pub(super) fn record_spawn(&self) {
        let here = std::ptr::from_ref(self).addr();
        if self.pipeline.is_active()
            && Frame::current().is_some_and(|frame| frame.connection == here)
            && held_replies::is_recorded(&self.weak_self, Holder::Thread)
        {
            self.pipeline.record_spawned();
        }
    }

    /// Sends the replies that this thread holds, if it holds any.
    #[inline]
    pub(super) fn end_pipeline(&self) {
        if held_replies::forget(&self.weak_self) {
            self.uncork();
        }
    }

    /// Sends the replies that the thread of the long upcall holds, and holds none for the rest of that upcall.
    pub(super) fn end_holding(&self) {
        if self.pipeline.join() {
            self.uncork();
        }
    }

    #[cold]
    fn uncork(&self) {
        let (progress, cork) = self.link.uncork();
        self.go_on_writing(progress);
        if cork == Cork::Scheduled {
            self.pipeline.end_schedule();
        }
        self.pipeline.leave();
        // Checked afterwards: a thread that began to close, or ended the reading, meanwhile found replies held.
        self.after_deferred();
    }

    pub(super) fn go_on_writing(&self, progress: SendProgress) {
        if progress == SendProgress::InPart {
            self.write_later();
        }
    }
}

impl HeldReplies for ServerConnection {
    fn send_held(&self, holder: Holder) {
        match holder {
            Holder::Thread => self.uncork(),
            Holder::Task => self.end_holding(),
        }
    }
}
