//! Asynchronous calls, buffered one-ways and bidirectional use, as the connections of the client side see them.
//!
//! The first such use of a connection gives it an [`AsyncSide`]. A program without any does not contain them.

use std::{any::Any, fmt, io, sync::OnceLock};

use spandrel_cdr::Encoder;
use spandrel_giop::Message;
use spandrel_sync::MutexGuard;

use super::{CallFailure, ClientConnection, pending_calls::PendingCalls};

/// Whether a connection of this process has an asynchronous side. It selects nothing, as each connection has its own: a
/// program without any does not contain the code that others have for it.
pub(super) static HAS_ASYNC_SIDE: OnceLock<()> = OnceLock::new();

/// Whether there have been asynchronous calls, so that calls may have to be notified.
#[inline]
pub(in crate::client) fn has_async_calls() -> bool {
    HAS_ASYNC_SIDE.get().is_some()
}

/// The state of a write side for the asynchronous side of its connection.
pub(super) trait UnsentState: Any + Send + Sync + fmt::Debug {
    /// Whether a message was accepted before that comes first.
    fn has_unsent(&self) -> bool;
}

/// The asynchronous side of a connection: its state, and the functions that use it.
pub(super) trait AsyncSide: Any + Send + Sync + fmt::Debug {
    /// Whether the peer may send requests. Such a connection is not idle because this side sends none.
    fn is_bidirectional(&self) -> bool;

    /// Whether the peer has opened the connection.
    fn is_adopted(&self) -> bool;

    /// Before a thread waits for a reply: another thread has to read an adopted connection.
    ///
    /// # Errors
    /// If no other thread can; the request is no longer pending then.
    fn ensure_reading(&self, connection: &ClientConnection, request_id: u32) -> Result<(), CallFailure>;

    /// Hands reading over to the reactor, if messages are awaited that no thread waits for.
    fn hand_over_reading(&self, pending: MutexGuard<'_, PendingCalls>, has_taken_all: bool);

    /// Passes a request to the dispatcher, if the connection has one. Returns any other message. `is_batched`:
    /// it runs after what one read has brought.
    fn dispatch(&self, connection: &ClientConnection, message: Message, is_batched: bool) -> Option<Message>;

    /// Whether messages are queued.
    fn has_queued(&self) -> bool;

    /// Writes the messages that come first and those that are queued, before `message` or with it. Returns whether
    /// `message` is written, too. The reader is not with this thread, so that the replies to queued requests are read.
    ///
    /// # Errors
    /// Those of the transport. Once `update_timeout` has succeeded, a message may have been written in part.
    fn send_first(
        &self,
        connection: &ClientConnection,
        unsent: &mut Option<Box<dyn UnsentState>>,
        message: &Encoder<'_>,
        update_timeout: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<bool>;

    /// Handles a request that could not be written.
    fn write_failed(&self, connection: &ClientConnection);

    /// Writes the buffered one-ways before the connection is closed.
    fn flush_before_close(&self, connection: &ClientConnection);

    /// Ends the registration with the reactor.
    fn leave_reactor(&self);

    /// Ends the dispatcher of a connection that has ended.
    fn end_callbacks(&self, connection: &ClientConnection);
}
