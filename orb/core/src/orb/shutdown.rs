//! The ORB's main thread and shutdown (CORBA 3.3 Part 1, 8.2.3): waiting, and the order in which parts are
//! closed.
//!
//! Shutdown ends the server side first: accepting stops, held requests are answered, and running requests get
//! `shutdown_timeout`. They may still call other objects. CloseConnection follows the last reply; then the
//! writing side is closed and late input is drained, so that closing destroys no written octet. A client that
//! does not close in time is cut off. After that the calls of this ORB end. At last the adapter releases its
//! servants.
//!
//! A wait for the shutdown is refused (BAD_INV_ORDER) in threads that it would wait for: in upcalls, in jobs of
//! the main thread, and in the thread that ends the ORB, with the wakers and destructors that run there.

use std::{future::poll_fn, sync::OnceLock};

use spandrel_giop::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use spandrel_sync::{Mutex, atomic::Ordering, held, thread};

use super::{Orb, OrbCore, has_shut_down};
use crate::{client::CallReactor, servant_side::upcall_scope::is_in_upcall};

impl Orb {
    /// Blocks until the ORB has been shut down. Other threads serve requests, except for those of the main
    /// thread, which run here: the first thread that calls this or [`perform_work`](Self::perform_work) is
    /// the main thread (CORBA 3.3 Part 1, 8.2.3).
    ///
    /// Connections that wait are accepted ([`accept_later`](crate::OrbBuilder::accept_later)). In a copy of the process
    /// it returns at once.
    pub fn run(&self) {
        if self.is_copied() {
            return;
        }
        self.accept_connections();
        self.0.main.run();
    }

    /// Runs one job of the main thread, if there is one and this is the main thread (see [`run`](Self::run));
    /// does not wait.
    ///
    /// # Errors
    /// BAD_INV_ORDER once the ORB has been shut down.
    pub fn perform_work(&self) -> Result<(), SystemException> {
        self.check_process()?;
        self.check_not_destroyed()?;
        self.0.main.perform_work().then_some(()).ok_or_else(has_shut_down)
    }

    /// Whether there is work for the main thread.
    ///
    /// # Errors
    /// BAD_INV_ORDER once the ORB has been shut down.
    pub fn work_pending(&self) -> Result<bool, SystemException> {
        self.check_process()?;
        self.check_not_destroyed()?;
        self.0.main.work_pending().ok_or_else(has_shut_down)
    }

    /// Enqueues a job for the ORB's main thread, which runs it inside [`run`](Self::run) or
    /// [`perform_work`](Self::perform_work), in the order of these calls. A job is an upcall: shutdown waits
    /// for running jobs. Jobs that have not run when the ORB has shut down are dropped. A panic ends only its
    /// own job.
    ///
    /// # Errors
    /// TRANSIENT if 1,024 jobs are enqueued; BAD_INV_ORDER after shutdown.
    pub fn run_in_main(&self, job: Box<dyn FnOnce() + Send>) -> Result<(), SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        self.0.main.enqueue(job).inspect_err(|refused| {
            if refused.kind() == SystemExceptionKind::Transient {
                self.statistics().refused_queue_full();
            }
        })
    }

    /// Whether the calling thread is the ORB's main thread; if so, its jobs may run at once.
    #[must_use]
    pub fn is_main_thread(&self) -> bool {
        self.0.main.is_current()
    }

    /// Whether this thread is polling the future of a request to this ORB; such a caller cannot wait for that
    /// request.
    #[must_use]
    pub fn is_polling_here(&self) -> bool {
        crate::servant_side::upcall_scope::PollScope::is_inside_of(self.instance())
    }

    /// Shuts the ORB down: it stops accepting connections, waits for running requests, sends CloseConnection
    /// to every client, and closes the connections. It returns when all this is done; IDL `shutdown(TRUE)`.
    /// Calling it again is harmless.
    ///
    /// # Errors
    /// BAD_INV_ORDER inside an upcall, where waiting would deadlock (see [`begin_shutdown`](Self::begin_shutdown));
    /// or in a copy of the process.
    pub fn shutdown(&self) -> Result<(), SystemException> {
        self.start_shutdown(true)?;
        self.await_closed();
        Ok(())
    }

    /// Begins to [shut the ORB down](Self::shutdown), and returns at once; IDL `shutdown(FALSE)`.
    /// [`run`](Self::run) returns when the ORB has been shut down.
    ///
    /// # Errors
    /// BAD_INV_ORDER in a copy of the process.
    pub fn begin_shutdown(&self) -> Result<(), SystemException> {
        self.start_shutdown(false)
    }

    /// As [`shutdown`](Self::shutdown), asynchronously: the shutdown begins at once, and the future waits for its
    /// end. Dropping the future does not stop the shutdown.
    ///
    /// Requests of the [main thread](Self::run) end only if that thread runs them: it must not block on this
    /// future.
    ///
    /// ```
    /// # fn run<T>(_: impl Future<Output = T> + Send + 'static) {}
    /// # let orb = spandrel_orb::Orb::builder().build()?;
    /// run(async move { orb.shutdown_async().await });
    /// # Ok::<(), spandrel_orb::SystemException>(())
    /// ```
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    pub fn shutdown_async(&self) -> impl Future<Output = Result<(), SystemException>> + Send + 'static + use<> {
        let begun = self.start_shutdown(true);
        let mut closed = Closed { orb: self.clone(), number: None };
        async move {
            begun?;
            poll_fn(|context| closed.orb.0.main.poll_closed(&mut closed.number, context.waker())).await;
            Ok(())
        }
    }

    fn start_shutdown(&self, wait: bool) -> Result<(), SystemException> {
        self.check_process()?;
        self.check_not_destroyed()?;
        if wait && (is_in_upcall() || self.0.main.is_closing_here()) {
            return Err(SystemException::bad_inv_order(minor::OPERATION_WOULD_DEADLOCK, CompletionStatus::No)
                .with_detail("an upcall, or a destructor run by shutdown, cannot wait for the shutdown"));
        }
        if !self.0.closing.swap(true, Ordering::AcqRel) {
            let orb = self.clone();
            let closing = thread::Builder::new().name("spandrel-close".into()).spawn(move || orb.close());
            if let Err(error) = closing {
                tracing::error!(%error, "cannot start the thread for shutdown; shutting down in the calling thread");
                self.close();
            }
        }
        Ok(())
    }

    /// [Shuts down](Self::shutdown) and destroys the ORB. Further operations on it end in
    /// OBJECT_NOT_EXIST, and calls by its references in BAD_INV_ORDER as after shutdown (CORBA 3.3 Part 1,
    /// 8.2.3).
    ///
    /// # Errors
    /// BAD_INV_ORDER inside an upcall, or if the ORB was destroyed before.
    pub fn destroy(&self) -> Result<(), SystemException> {
        self.check_process()?;
        if self.0.is_destroyed.load(Ordering::Acquire) {
            return Err(has_shut_down());
        }
        self.shutdown()?;
        if self.0.is_destroyed.swap(true, Ordering::AcqRel) { Err(has_shut_down()) } else { Ok(()) }
    }

    /// Blocks the thread until `at`.
    ///
    /// # Errors
    /// BAD_INV_ORDER if the ORB is shut down meanwhile.
    pub(crate) fn wait_until(&self, at: spandrel_sync::time::Instant) -> Result<(), SystemException> {
        self.0.main.wait_for(at.saturating_duration_since(spandrel_sync::time::Instant::now()));
        self.check_running()
    }

    fn await_closed(&self) {
        if self.0.main.is_current() {
            // Only this thread runs the jobs that shutdown waits for.
            return self.0.main.run();
        }
        self.0.main.await_closed();
    }

    fn close(&self) {
        let _closed = CloseOnDrop(&self.0);
        self.0.main.begin_close();
        self.diagnostics().begin_close();
        let server_side = self.take_server_side();
        if let Some(server_side) = server_side {
            server_side.begin_close();
            server_side.shut_down(self);
        }
        self.0.client_reactor.shut_down();
        self.0.peers.clear();
        if let Some(server_side) = server_side {
            held::assert_none("an adapter");
            server_side.close();
        }
        self.0.interception.destroy();
        self.diagnostics().close();
    }
}

/// A task's wait for the end of the shutdown.
struct Closed {
    orb: Orb,
    /// The task among those that wait.
    number: Option<u64>,
}

impl Drop for Closed {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.orb.0.main.forget_waker(number);
        }
    }
}

/// The reactor of asynchronous calls. The first of them makes it.
#[derive(Default)]
pub(crate) struct ReactorSlot {
    pub(super) reactor: OnceLock<Box<dyn CallReactor>>,
    /// Whether the ORB was shut down, so that a new reactor takes no calls. Held while one is made.
    pub(super) is_closed: Mutex<bool>,
}

impl ReactorSlot {
    fn shut_down(&self) {
        *self.is_closed.lock() = true;
        if let Some(reactor) = self.reactor.get() {
            reactor.shut_down();
        }
    }
}

/// Marks the ORB as closed when dropped, also after a panic.
struct CloseOnDrop<'c>(&'c OrbCore);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.main.close();
    }
}
