//! The ORB's main thread and its end (CORBA 3.3 Part 1, 8.2.3): waiting for it, and the order in which its parts are let go.

#[cfg(feature = "server")]
use spandrel_giop::SystemExceptionKind;
use spandrel_giop::{CompletionStatus, SystemException, minor};
#[cfg(feature = "server")]
use spandrel_sync::held;
use spandrel_sync::{atomic::Ordering, thread};
#[cfg(feature = "server")]
use spandrel_transport::Deadline;

use super::{Orb, OrbCore, has_shut_down};
use crate::upcalls::is_in_upcall;

/// How long peers that may call this side have to close theirs at shutdown, once they were told.
#[cfg(feature = "server")]
const PEER_CLOSE_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(200);

impl Orb {
    /// Blocks until the ORB has been shut down. Requests are served by other threads, but those that are to be run in the main thread
    /// are run here: the first thread that calls this or [`perform_work`](Self::perform_work) is the main thread
    /// (CORBA 3.3 Part 1, 8.2.3).
    ///
    /// In a copy of the process it returns at once.
    pub fn run(&self) {
        if self.is_copied() {
            return;
        }
        #[cfg(feature = "server")]
        self.0.main.run();
        #[cfg(not(feature = "server"))]
        self.0.main.await_closed();
    }

    /// Runs one job of the main thread, if one is there and this is the main thread (see [`run`](Self::run)); does not wait.
    ///
    /// # Errors
    /// BAD_INV_ORDER once the ORB has been shut down.
    #[cfg(feature = "server")]
    pub fn perform_work(&self) -> Result<(), SystemException> {
        self.check_process()?;
        self.check_not_destroyed()?;
        self.0.main.perform_work().then_some(()).ok_or_else(has_shut_down)
    }

    /// Whether there is work for the main thread.
    ///
    /// # Errors
    /// BAD_INV_ORDER once the ORB has been shut down.
    #[cfg(feature = "server")]
    pub fn work_pending(&self) -> Result<bool, SystemException> {
        self.check_process()?;
        self.check_not_destroyed()?;
        self.0.main.work_pending().ok_or_else(has_shut_down)
    }

    /// Has the ORB's main thread, which is inside of [`run`](Self::run) or [`perform_work`](Self::perform_work), now or later, run this
    /// job, after those that were given before. It is an upcall: at shutdown, running ones are waited for. A job that is never run is
    /// dropped at the latest when the ORB has shut down; one that panics ends alone.
    ///
    /// # Errors
    /// TRANSIENT if 1,024 jobs wait already; BAD_INV_ORDER after shutdown.
    #[cfg(feature = "server")]
    pub fn run_in_main(&self, job: Box<dyn FnOnce() + Send>) -> Result<(), SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        self.0.main.enqueue(job).inspect_err(|refused| {
            if refused.kind() == SystemExceptionKind::Transient {
                self.statistics().refused_queue_full();
            }
        })
    }

    /// Whether the caller is the ORB's main thread: what has to run there may run at once.
    #[cfg(feature = "server")]
    #[must_use]
    pub fn is_main_thread(&self) -> bool {
        self.0.main.is_current()
    }

    /// Whether the caller is the future of a request to this ORB, polled by this thread: it cannot wait for that request.
    #[cfg(feature = "server")]
    #[must_use]
    pub fn is_polling_here(&self) -> bool {
        crate::upcalls::PollScope::is_inside_of(self.instance())
    }

    /// Ends the ORB: stops accepting, lets running requests end, tells every client (CloseConnection), closes.
    ///
    /// With `wait` it returns when all that is done, otherwise at once. Calling it again is harmless.
    ///
    /// # Errors
    /// BAD_INV_ORDER for waiting inside an upcall, which would wait for itself; or in a copy of the process.
    pub fn shutdown(&self, wait: bool) -> Result<(), SystemException> {
        self.check_process()?;
        self.check_not_destroyed()?;
        if wait && (is_in_upcall() || self.0.main.is_closing_here()) {
            return Err(SystemException::bad_inv_order(minor::OPERATION_WOULD_DEADLOCK, CompletionStatus::No)
                .with_detail("an upcall, or what is called at the end, cannot wait for all that to end"));
        }
        if !self.0.closing.swap(true, Ordering::AcqRel) {
            let orb = self.clone();
            let closing = thread::Builder::new().name("spandrel-close".into()).spawn(move || orb.close());
            if let Err(error) = closing {
                tracing::error!(%error, "no thread to shut down in; doing it here");
                self.close();
            }
        }
        if wait {
            self.await_closed();
        }
        Ok(())
    }

    /// [Shuts down](Self::shutdown), waits for the end, and lets go of the ORB: operations on it end in OBJECT_NOT_EXIST from now on,
    /// and calls by its references in BAD_INV_ORDER as after shutdown (CORBA 3.3 Part 1, 8.2.3).
    ///
    /// # Errors
    /// BAD_INV_ORDER inside of an upcall, or if that was done before.
    pub fn destroy(&self) -> Result<(), SystemException> {
        self.check_process()?;
        if self.0.is_destroyed.load(Ordering::Acquire) {
            return Err(has_shut_down());
        }
        self.shutdown(true)?;
        if self.0.is_destroyed.swap(true, Ordering::AcqRel) { Err(has_shut_down()) } else { Ok(()) }
    }

    /// Keeps the thread until then.
    ///
    /// # Errors
    /// BAD_INV_ORDER if the ORB is shut down meanwhile.
    pub(crate) fn wait_until(&self, at: spandrel_sync::time::Instant) -> Result<(), SystemException> {
        self.0.main.wait_for(at.saturating_duration_since(spandrel_sync::time::Instant::now()));
        self.check_running()
    }

    fn await_closed(&self) {
        #[cfg(feature = "server")]
        if self.0.main.is_current() {
            // Nobody else runs the jobs that the end waits for.
            return self.0.main.run();
        }
        self.0.main.await_closed();
    }

    fn close(&self) {
        let _closed = CloseOnDrop(&self.0);
        self.0.main.begin_close();
        self.diagnostics().begin_close();
        #[cfg(feature = "server")]
        {
            if let Some(adapter) = self.adapter() {
                adapter.begin_close();
            }
            let timeout = self.0.settings.serving.shutdown_timeout;
            let deadline = Deadline::after(timeout);
            self.0.serving.server.shutdown(timeout);
            self.0.serving.upcall_monitor.stop();
            self.0.serving.locals.shut_down(deadline.remaining());
        }
        #[cfg(feature = "server")]
        self.0.peers.send_close(PEER_CLOSE_TIMEOUT);
        #[cfg(feature = "asynchronous")]
        self.0.client_reactor.shut_down();
        self.0.peers.clear();
        #[cfg(feature = "server")]
        if let Some(adapter) = self.adapter() {
            held::assert_none("an adapter");
            adapter.close();
        }
        self.0.interception.destroy();
        self.diagnostics().close();
    }
}

/// Says at its end that the ORB is closed, whatever happened on the way.
struct CloseOnDrop<'c>(&'c OrbCore);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.main.close();
    }
}
