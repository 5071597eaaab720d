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
use spandrel_sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

use super::{ServerConnection, link::SendProgress};
use crate::{quick_operations::QuickOperations, request_of_thread::Frame};

/// The longest time for which replies are held, unless an operation is slow for the first time.
const HOLD_TIME: Duration = Duration::from_micros(200);
/// Set in the number of a request whose reply may be held; 0 stands for none.
const MAY_HOLD: u64 = 1 << 32;

/// The state of a connection whose requests come in a pipeline. Only the thread that reads changes it.
#[derive(Debug, Default)]
pub(super) struct Pipeline {
    /// Whether a further whole request was in memory after the last one, or replies are held.
    is_active: AtomicBool,
    /// Whether a further whole request is in memory.
    has_further: AtomicBool,
    /// The id of the request whose reply may be held, and [`MAY_HOLD`].
    holds_for: AtomicU64,
    times: Mutex<Times>,
}

#[derive(Debug, Default)]
struct Times {
    /// The operation that runs, by the hash of its name, and the time of its begin.
    running: Option<(u32, Instant)>,
    /// The time at which the first of the held replies was held.
    held_since: Option<Instant>,
}

impl Pipeline {
    /// Records whether a further whole request is in memory, after a message was taken.
    #[inline]
    pub(super) fn record_read(&self, has_further: bool) {
        if has_further || self.is_active() {
            self.is_active.store(true, Ordering::Relaxed);
            self.has_further.store(has_further, Ordering::Relaxed);
        }
    }

    /// Whether the requests come in a pipeline.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Whether the reply that this thread sends may be held: it answers the request that the reading thread runs.
    #[inline(always)]
    pub(super) fn may_hold(&self, connection: &ServerConnection) -> bool {
        let holds_for = self.holds_for.load(Ordering::Relaxed);
        holds_for != 0 && Self::is_of_this_thread(holds_for, connection)
    }

    #[cold]
    #[inline(never)]
    fn is_of_this_thread(holds_for: u64, connection: &ServerConnection) -> bool {
        Frame::current().is_some_and(|frame| {
            frame.connection == std::ptr::from_ref(connection).addr()
                && u64::from(frame.request_id) | MAY_HOLD == holds_for
                && !frame.is_one_way
        })
    }
}

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
            self.pipeline.holds_for.store(u64::from(request.request_id) | MAY_HOLD, Ordering::Relaxed);
        }
        self.pipeline.times.lock().running = Some((operation, Instant::now()));
    }

    /// Ends the upcall of `turn` in a pipeline. Sends the replies that are held unless this thread serves a further
    /// request next: while an upcall runs, the connection is not closed.
    #[cold]
    #[inline(never)]
    pub(super) fn end_pipelined(&self, turn: u64) {
        self.pipeline.holds_for.store(0, Ordering::Relaxed);
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
        self.pipeline.holds_for.store(0, Ordering::Relaxed);
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
    fn send_held_replies(&self) {
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
