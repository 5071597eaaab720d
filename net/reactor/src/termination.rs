//! Requests of the system or the user to end the process: SIGTERM and SIGINT, or the events of a console.

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError}; // for the whole process, so not part of any model

use spandrel_sync::Arc;

/// The signal or console event that requests the end of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TerminationRequest {
    /// The user interrupts the program from the keyboard: SIGINT; on Windows Ctrl-C and Ctrl-Break.
    Interrupt,
    /// The system or another program ends it: SIGTERM; on Windows the end of the console, the session or the
    /// system.
    Terminate,
}

impl fmt::Display for TerminationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "interrupted from the keyboard (SIGINT)",
            Self::Terminate => "told to terminate (SIGTERM)",
        })
    }
}

/// Handles requests to end the process until it is dropped.
#[must_use = "the handler is removed when this is dropped"]
pub struct TerminationHandler(Arc<HandleRequest>);

type HandleRequest = dyn Fn(TerminationRequest) -> bool + Send + Sync;

/// The handlers of the process, and whether requests reach them.
struct Handlers {
    all: Vec<Arc<HandleRequest>>,
    is_started: bool,
}

static HANDLERS: Mutex<Handlers> = Mutex::new(Handlers { all: Vec::new(), is_started: false });

fn handlers() -> MutexGuard<'static, Handlers> {
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `handle` for each request to end the process, in a thread of its own. It returns whether it treats
/// the request, for example by starting an orderly shutdown; it should not wait for that.
///
/// When no handler of the process treats a request, the system's default action follows, which ends the
/// process at once. So a handler that returns false for the second request lets a user end a shutdown that
/// hangs. On Windows, a process that is told to terminate has the time that the system gives it, some five
/// seconds.
///
/// # Errors
/// Those of the system.
///
/// ```
/// # use spandrel_reactor::{Reactor, on_termination};
/// let reactor = Reactor::new()?;
/// let registry = reactor.registry().clone();
/// let handler = on_termination(move |request| {
///     eprintln!("{request}");
///     registry.stop();
///     true
/// })?;
/// # reactor.stop();
/// reactor.run()?;
/// drop(handler);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn on_termination(
    handle: impl Fn(TerminationRequest) -> bool + Send + Sync + 'static,
) -> io::Result<TerminationHandler> {
    let handle: Arc<HandleRequest> = Arc::new(handle);
    let mut handlers = handlers();
    if !handlers.is_started {
        system::start()?;
        handlers.is_started = true;
    }
    handlers.all.push(Arc::clone(&handle));
    Ok(TerminationHandler(handle))
}

impl Drop for TerminationHandler {
    fn drop(&mut self) {
        let mut handlers = handlers();
        let removed = handlers.all.iter().position(|handle| Arc::ptr_eq(handle, &self.0));
        let removed = removed.map(|at| handlers.all.swap_remove(at));
        drop(handlers);
        drop(removed);
    }
}

impl fmt::Debug for TerminationHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TerminationHandler")
    }
}

/// Calls all handlers, and returns whether one of them treats the request.
fn is_treated(is_interrupt: bool) -> bool {
    let request = if is_interrupt { TerminationRequest::Interrupt } else { TerminationRequest::Terminate };
    let all = handlers().all.clone();
    // All of them, so that each part of the program ends.
    all.iter().fold(false, |is_treated, handle| handle(request) | is_treated)
}

#[cfg(unix)]
mod system {
    use std::io;

    use signal_hook::low_level::emulate_default_handler;
    use spandrel_ipc::{Interest, Pollable};
    use spandrel_sync::thread;

    use crate::{Context, EventHandler, Options, Reactor, Signal};

    /// Ends the program at signals that ask for it.
    struct Signals;

    impl EventHandler for Signals {
        fn pollable(&self) -> Option<&dyn Pollable> {
            None
        }

        fn handle_signal(&mut self, _cx: &Context<'_>, signal: Signal) -> io::Result<()> {
            match super::is_treated(signal == Signal::INT) {
                true => Ok(()),
                false => emulate_default_handler(signal.number()),
            }
        }
    }

    /// Starts the thread that calls the handlers. It runs until the process ends.
    pub(super) fn start() -> io::Result<()> {
        let reactor = Reactor::with(&Options::new().max_handlers(8))?;
        let id = reactor.registry().register(Signals, Interest::NONE)?;
        reactor.registry().on_signal(id, Signal::INT)?;
        reactor.registry().on_signal(id, Signal::TERM)?;
        let run = move || {
            if let Err(error) = reactor.run() {
                tracing::error!(%error, "signals to end the process are no longer handled");
            }
        };
        thread::Builder::new().name("spandrel-signal".into()).spawn(run).map(drop)
    }
}

#[cfg(windows)]
mod system {
    use std::io;

    use crate::sys::console;

    /// Registers for the console's events. The system calls the handlers in threads of its own.
    pub(super) fn start() -> io::Result<()> {
        console::on_event(super::is_treated)
    }
}
