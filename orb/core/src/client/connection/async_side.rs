//! The part of a connection for asynchronous calls, buffered one-ways and bidirectional use, as the rest of the
//! connection sees it.
//!
//! The first such use makes it. A connection without one has neither the state nor its cost.

use std::{any::Any, fmt, io};

use spandrel_cdr::Encoder;
use spandrel_connection::SendHalf;
use spandrel_giop::Message;
use spandrel_sync::MutexGuard;

use super::{CallFailure, ClientConnection, pending_calls::PendingCalls};

/// The asynchronous side of a connection.
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
    fn hand_over_reading(
        &self,
        connection: &ClientConnection,
        pending: MutexGuard<'_, PendingCalls>,
        has_taken_all: bool,
    );

    /// Passes a request to the dispatcher, if the connection has one. Returns any other message.
    fn dispatch(&self, message: Message) -> Option<Message>;

    /// Handles a request that could not be written.
    fn write_failed(&self, connection: &ClientConnection);

    /// Writes the buffered one-ways before the connection is closed.
    fn flush_before_close(&self, connection: &ClientConnection);

    /// Ends the dispatcher of a connection that has ended.
    fn end_callbacks(&self);

    /// Ends the registration with the reactor.
    fn leave_reactor(&self);
}

/// The messages on the write side that were accepted before and come first.
pub(super) trait UnsentSide: Any + Send + fmt::Debug {
    /// Whether there is one.
    fn is_waiting(&self) -> bool;

    /// Writes it before `message`, or with it. Returns whether `message` is written, too.
    fn send_first(
        &mut self,
        connection: &ClientConnection,
        half: &mut SendHalf,
        message: &Encoder<'_>,
        update_timeout: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<bool>;
}
