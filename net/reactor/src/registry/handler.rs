//! What a reactor dispatches to: event handlers, and what they are told.

use std::fmt;
use std::io;

use spandrel_ipc::Pollable;

use super::Context;
use crate::queue::Expired;

/// Serves the events of one handle, of timers, of signals and of notices (paper 002, section 2.4).
///
/// A handler is owned by its reactor from [`register`](crate::Registry::register) on, and has at most one thread inside at any
/// time, so that its methods take `&mut self` and need no locks. It must not wait for long: what it waits for is the reactor's
/// business. (Where it has to, [`Context::promote`] lets another thread take over first.)
///
/// An error or a panic of a method closes the handler: it is waited for no longer, [`handle_close`](Self::handle_close) is told
/// why, and it is dropped. The reactor and its other handlers go on. There are two errors that close nothing, because all they
/// say is that there was nothing to do: [`io::ErrorKind::WouldBlock`] and [`io::ErrorKind::Interrupted`].
///
/// The provided methods for events fail, so that events nobody handles are noticed instead of spinning.
///
/// When one wait shows several kinds of events for a handle, output is dispatched first, then exception, then input: so room is
/// made before more comes in, and urgent data is seen before the octets that follow it.
pub trait EventHandler: Send + 'static {
    /// What to wait on; `None` for a handler of timers, signals and notices alone.
    ///
    /// Its handle stays open and the same while it is registered, or [`set_interest`](crate::Registry::set_interest) is called
    /// right after it was exchanged: that asks for it anew.
    fn pollable(&self) -> Option<&dyn Pollable>;

    /// Called once, before any other method, in a thread of the reactor.
    ///
    /// # Errors
    /// Any error closes the handler.
    fn handle_open(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let _ = cx;
        Ok(())
    }

    /// There is something to receive or to accept, or the end.
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

    /// Out-of-band data has come.
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

    /// A signal has come that this handler was [registered for](crate::Registry::on_signal). Runs like any other method, not in
    /// the restricted context of a signal handler. Signals of one kind that come in quick succession may be told as one.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    #[cfg(unix)]
    fn handle_signal(&mut self, cx: &Context<'_>, signal: crate::Signal) -> io::Result<()> {
        let _ = (cx, signal);
        Err(unhandled("signals"))
    }

    /// Somebody called [`notify`](crate::Registry::notify) for this handler.
    ///
    /// # Errors
    /// Any error but `WouldBlock` and `Interrupted` closes the handler.
    fn handle_notice(&mut self, cx: &Context<'_>, notice: u64) -> io::Result<()> {
        let _ = (cx, notice);
        Err(unhandled("notices"))
    }

    /// The last call, after which the handler is dropped. It is waited for no longer, and its id is stale for the registry.
    ///
    /// Called even if the handler was closed before [`handle_open`](Self::handle_open).
    fn handle_close(&mut self, cx: &Context<'_>, why: CloseReason) {
        let _ = (cx, why);
    }
}

fn unhandled(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("the handler was given {what}, which it does not handle"))
}

/// Why a handler is closed.
#[derive(Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// Somebody removed it, or it closed itself.
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
