//! The lock and the state of the write side.

use std::{io, time::Duration};

use spandrel_cdr::Encoder;
use spandrel_connection::SendHalf;
use spandrel_giop::Fragments;
use spandrel_sync::MutexGuard;
use spandrel_transport::{Deadline, Transport, is_timeout, send_message, send_slices};

use super::{AsyncSide, ClientConnection, UnsentState, has_async_calls};

/// The state of the write side, for the thread that holds its lock.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The time-out that the transport has now.
    pub(super) timeout: Option<Duration>,
    /// The messages that may still be written.
    pub(super) half: SendHalf,
    /// The message that comes before all others: buffered one-ways, or one that an asynchronous call could not
    /// write whole without waiting.
    pub(super) unsent: Option<Box<dyn UnsentState>>,
}

impl Writer {
    /// Whether a message comes before all others.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        has_async_calls() && self.unsent.as_ref().is_some_and(|unsent| unsent.has_unsent())
    }

    /// Waits for the write lock until the deadline.
    pub(super) fn lock<'c>(
        connection: &'c ClientConnection,
        deadline: Option<&Deadline>,
    ) -> io::Result<MutexGuard<'c, Self>> {
        match deadline {
            None => Ok(connection.writer.lock()),
            Some(deadline) => {
                let left = deadline.left_to_send();
                connection.writer.try_lock_for(left).ok_or_else(|| io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Sends a message under the write lock, unless the deadline passes before.
    pub(super) fn lock_and_send(
        connection: &ClientConnection,
        request: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        let mut writer = Self::lock(connection, deadline)?;
        if connection.is_retired() {
            // A call was abandoned, and its reply may have no reader now. The server would block on that
            // reply, and this thread on the server.
            return Err(io::ErrorKind::NotConnected.into());
        }
        writer.send(connection, request, deadline)
    }

    /// Sends a message after those that come first and those that are queued.
    pub(super) fn send(
        &mut self,
        connection: &ClientConnection,
        message: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        self.send_after(connection.async_side(), connection, message, deadline)
    }

    /// Sends a message by itself. Nothing [comes first](Self::has_unsent); what other threads queue meanwhile follows.
    pub(super) fn send_alone(
        &mut self,
        connection: &ClientConnection,
        message: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        self.send_after(None, connection, message, deadline)
    }

    /// Sends a message after the messages of `side`, if there is one.
    fn send_after(
        &mut self,
        side: Option<&dyn AsyncSide>,
        connection: &ClientConnection,
        message: &Encoder<'_>,
        deadline: Option<&Deadline>,
    ) -> io::Result<()> {
        if !self.half.may_write() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let Self { timeout, half, unsent } = self;
        let mut has_begun = false;
        let mut update_timeout = || {
            let result = update_timeout(connection, timeout, deadline, Deadline::wait_to_send);
            has_begun |= result.is_ok();
            result
        };
        let before = match side {
            Some(side) => side.send_first(connection, unsent, message, &mut update_timeout),
            None => Ok(false),
        };
        let sent = before.and_then(|is_sent| match connection.send_fragmented {
            _ if is_sent => Ok(()),
            Some(send_fragmented) if message.position() > connection.fragment_size => {
                send_fragmented(&*connection.transport, message, connection.fragment_size, &mut update_timeout)
            }
            _ => send_message(&*connection.transport, message, update_timeout),
        });
        sent.inspect_err(|_| {
            if has_begun {
                half.cut();
            }
        })
    }
}

/// Sets the transport's time-out to the time that `wait` derives from the deadline. `current`: the
/// time-out that was set last.
#[inline]
pub(super) fn update_timeout(
    connection: &ClientConnection,
    current: &mut Option<Duration>,
    deadline: Option<&Deadline>,
    wait: impl Fn(&Deadline) -> Option<Duration>,
) -> io::Result<()> {
    let new_timeout = match deadline {
        None => None,
        Some(deadline) => Some(wait(deadline).ok_or(io::ErrorKind::TimedOut)?),
    };
    if *current != new_timeout {
        connection.transport.set_send_timeout(new_timeout)?;
        *current = new_timeout;
    }
    Ok(())
}

/// Whether a write failed for a local reason, so that the peer's reason need not be read.
pub(super) fn is_local_failure(error: &io::Error) -> bool {
    is_timeout(error) || error.kind() == io::ErrorKind::NotConnected
}

/// The type of [`send_fragmented`], for settings that may leave it out.
pub(crate) type SendFragmented =
    fn(&dyn Transport, &Encoder<'_>, usize, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;

/// Writes a message that is longer than `limit` in fragments, or whole if it cannot be divided. `before` runs
/// before each call of the transport.
pub fn send_fragmented(
    transport: &dyn Transport,
    message: &Encoder<'_>,
    limit: usize,
    before: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    match Fragments::of(message, limit) {
        Some(fragments) => send_slices(transport, &mut fragments.slices(message), before),
        None => send_message(transport, message, before),
    }
}
