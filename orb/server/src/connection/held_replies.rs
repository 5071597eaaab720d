//! Pipelined requests: whole requests that one read has brought are served in turn, and their replies leave in one
//! write.
//!
//! A short reply is held while its thread has a further whole request of the connection in memory, which it serves
//! next. Held replies leave with the first reply that is not held, and at the latest before
//!
//! - an upcall of an operation that is not known to be [quick](QuickOperations), [`HOLD_TIME`] after the first of them, and beyond 16 KiB;
//! - a read, and the end of a visit of a reactor's thread;
//! - a call that the servant makes (`held_replies` of `spandrel-orb`), a request of this side over the connection,
//!   and CloseConnection;
//! - the hand-over of the reading. The [monitor](crate::monitor) sends them at its first look at a long upcall, so
//!   that an operation which is slow for the first time delays them by one of its intervals.
//!
//! A connection with one call at a time has none of this: it costs two loads of an atomic and a look at the length of
//! the buffer.

use std::time::Duration;

use spandrel_giop::{Message, RequestHeader};
use spandrel_orb::internal::held_replies::{self, HeldReplies};
use spandrel_sync::{atomic::Ordering, time::Instant};

use super::{ServerConnection, link::SendProgress};
use crate::quick_operations::QuickOperations;

/// The longest time for which replies are held, unless an operation is slow for the first time.
const HOLD_TIME: Duration = Duration::from_micros(200);
impl ServerConnection {
    /// Prepares the upcall of a request in a pipeline.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_pipelined(&self, message: &Message) {
        // A header that cannot be decoded is reported by the regular way.
        let Ok(request) = RequestHeader::decode(&mut self.decoder(message)) else { return };
        let operation = QuickOperations::hash(&request.operation);
        if !self.resources.quick_operations.contains(operation) {
            self.send_held_replies();
        }
        if self.pipeline.has_further.load(Ordering::Relaxed) {
            self.pipeline.hold_for(request.request_id);
        }
        self.pipeline.times.lock().running = Some((operation, Instant::now()));
    }

    /// Ends the upcall of `turn` in a pipeline. Sends the replies that are held unless this thread serves a further
    /// request next: while an upcall runs, the connection is not closed.
    #[cold]
    #[inline(never)]
    pub(super) fn end_pipelined(&self, turn: u64) {
        self.pipeline.hold_none();
        let now = Instant::now();
        let mut times = self.pipeline.times.lock();
        let (running, held_since) = (times.running.take(), times.held_since);
        drop(times);
        if let Some((operation, begin)) = running {
            self.resources.quick_operations.record(operation, now.saturating_duration_since(begin));
        }
        let goes_on = self.pipeline.has_further.load(Ordering::Relaxed) && self.reader_role.word().count() == turn;
        let is_late = |since: Instant| now.saturating_duration_since(since) >= HOLD_TIME;
        if !goes_on || held_since.is_some_and(is_late) {
            self.send_held_replies();
        }
    }

    /// Records that a reply is held. The first one is sent before this thread makes a call.
    #[cold]
    pub(super) fn record_held(&self) {
        // Another thread may have taken over the reading meanwhile, and found the end of the pipeline.
        self.pipeline.is_active.store(true, Ordering::SeqCst);
        let mut times = self.pipeline.times.lock();
        if times.held_since.is_none() {
            times.held_since = Some(Instant::now());
            drop(times);
            held_replies::record(self.weak_self.clone());
        }
    }

    /// Ends the holding of replies while an upcall keeps its thread for long, and sends those that are held.
    #[cold]
    pub(super) fn stop_holding(&self) {
        self.pipeline.hold_none();
        if self.pipeline.times.lock().held_since.is_some() {
            self.write_held();
        }
    }

    /// Ends the pipeline, because nothing further is in memory: sends the replies that are held.
    #[cold]
    pub(super) fn end_pipeline(&self) {
        self.pipeline.is_active.store(false, Ordering::Relaxed);
        self.send_held_replies();
    }

    /// Sends the replies that are held, for the thread that holds them.
    pub(super) fn send_held_replies(&self) {
        if self.pipeline.times.lock().held_since.take().is_some() {
            held_replies::forget();
            self.write_held();
        }
    }

    fn write_held(&self) {
        if self.link.send_held() == SendProgress::InPart {
            self.write_later();
        }
    }
}

impl HeldReplies for ServerConnection {
    fn send_held(&self) {
        self.pipeline.times.lock().held_since = None;
        self.write_held();
    }
}
