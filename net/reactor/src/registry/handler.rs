//! Event handlers, and their callbacks.

use std::fmt;
use std::io;

use spandrel_ipc::Pollable;

use super::Context;
use crate::queue::Expired;

/// Serves the events of one handle, of timers, of signals and of notices (paper 002, section 2.4).
///
/// A handler is owned by its reactor from [`register`](crate::Registry::register) on. At most one thread is
/// inside at any time, so that its methods take `&mut self` and need no locks. It must not block: waiting is
/// the reactor's task. (If it has to, [`Context::promote`] lets another thread take over first.)
///
/// An error or a panic of a method closes the handler: its handle is deregistered,
/// [`handle_close`](Self::handle_close) gets the reason, and the handler is dropped. The reactor and its
/// other handlers continue. Two errors close nothing, because they mean that there was nothing to do:
/// [`io::ErrorKind::WouldBlock`] and [`io::ErrorKind::Interrupted`].
///
/// The provided methods for events fail, so that unhandled events are noticed instead of spinning.
///
/// When one wait reports several kinds of events for a handle, output is dispatched first, then exception,
/// then input: so room is made before more arrives, and urgent data precedes the octets that follow it.
pub trait EventHandler: Send + 'static {
    /// The endpoint to wait on; `None` for a handler of timers, signals and notices alone.
    ///
    /// Its handle stays open and the same while it is registered. To exchange it, call
    /// [`set_interest`](crate::Registry::set_interest) right after: that calls this method again.
    fn pollable(&self) -> Option<&dyn Pollable>;

    /// Called once, before any other method, in a thread of the reactor.
    ///
    /// # Errors
    /// Any error closes the handler.
    fn handle_open(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Ok(())
    }

    /// There are octets to receive, a connection to accept, or the end of the stream.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Err(unhandled("input"))
    }

    /// There is room to send, or an attempt to connect has ended.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_output(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Err(unhandled("output"))
    }

    /// Out-of-band data has arrived.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_exception(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Err(unhandled("exceptions"))
    }

    /// A timer of this handler has expired.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_timeout(&mut self, cx: &Context<'_>, timer: Expired) -> io::Result<()> {
        let _ = (cx, timer);
        Err(unhandled("timers"))
    }

    /// A signal has arrived that this handler was [registered for](crate::Registry::on_signal). Runs like any
    /// other method, not in the restricted context of a signal handler. Signals of one kind in quick
    /// succession may be merged into one.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    #[cfg(unix)]
    fn handle_signal(&mut self, cx: &Context<'_>, signal: crate::Signal) -> io::Result<()> {
        let _ = (cx, signal);
        Err(unhandled("signals"))
    }

    /// [`notify`](crate::Registry::notify) was called for this handler.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_notice(&mut self, cx: &Context<'_>, notice: u64) -> io::Result<()> {
        let _ = (cx, notice);
        Err(unhandled("notices"))
    }

    /// The last call, after which the handler is dropped. Its handle is deregistered, and its identifier is
    /// stale.
    ///
    /// Called even if the handler was closed before [`handle_open`](Self::handle_open).
    fn handle_close(&mut self, cx: &Context<'_>, reason: CloseReason) {
        let _ = (cx, reason);
    }
}

fn unhandled(event: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("the handler does not handle {event}"))
}

/// The reason for closing a handler.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// It was removed, or closed itself.
    Removed,
    /// One of its methods failed with this error, or its handle cannot be waited on any more.
    Failed(io::Error),
    /// One of its methods panicked with this message.
    Panicked(String),
    /// The reactor was closed.
    Stopped,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed => f.write_str("removed"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Stopped => f.write_str("the reactor was closed"),
        }
    }
}
