//! The orderly shutdown of a process that is told to end.
//!
//! The signals and events themselves are in `net/reactor`, with which the ORB has this only if it has a
//! reactor.

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_reactor::on_termination;
use spandrel_sync::atomic::{AtomicBool, Ordering};

use crate::{Orb, orb::WeakOrb};

impl Orb {
    /// As [`run`](Self::run), and [shuts the ORB down](Self::shutdown) when the process is told to end: by
    /// SIGTERM or SIGINT, on Windows by Ctrl-C, Ctrl-Break, or the end of the console or session. Running
    /// requests are answered first, and clients get CloseConnection. The process can then end as usual, with
    /// the exit code that it chooses.
    ///
    /// A second signal has the system's default action and ends the process at once, so that a shutdown that
    /// hangs can be ended, too. Several ORBs of a process may each be run this way.
    ///
    /// # Errors
    /// INITIALIZE if the system does not let the process handle signals.
    pub fn run_until_signal(&self) -> Result<(), SystemException> {
        let orb = WeakOrb::of(self);
        let is_first = AtomicBool::new(true);
        let handler = on_termination(move |request| {
            let orb = orb.upgrade().filter(|_| is_first.swap(false, Ordering::Relaxed));
            orb.is_some_and(|orb| {
                tracing::info!(%request, "shutting down");
                orb.begin_shutdown().is_ok()
            })
        });
        let handler = handler.map_err(|error| {
            SystemException::initialize(0, CompletionStatus::No)
                .with_detail(|| "cannot handle the signals that end the process".to_owned())
                .with_source(error)
        })?;
        self.run();
        drop(handler);
        Ok(())
    }
}
