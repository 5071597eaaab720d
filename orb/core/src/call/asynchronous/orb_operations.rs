//! Operations of an ORB that are asynchronous, or need its reactor: tasks, buffered one-ways, references from URLs
//! and names without blocking a thread, and the orderly shutdown of a process that is told to end.
//!
//! The signals and events themselves are in `net/reactor`, with which the ORB has this only if it has a
//! reactor.

use spandrel_cdr::{Decode, Ior};
use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_reactor::on_termination;
use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_transport::Deadline;

use crate::{
    ObjectRef, Orb,
    client::{ClientReactor, first_failure},
    orb::WeakOrb,
    reference::{
        corbaname::{Resolution, ResolveError},
        references::UrlPath,
    },
};

impl Orb {
    /// The reactor that reads the replies of asynchronous calls, with the pending calls and their deadlines.
    pub fn client_reactor(&self) -> &ClientReactor {
        self.0.client_reactor.get()
    }

    /// Runs a future in the ORB's reactor thread for asynchronous calls, until it is ready or the ORB is shut
    /// down. The future must not block: all asynchronous calls of this ORB would block with it.
    ///
    /// # Errors
    /// NO_RESOURCES if the thread could not be started; BAD_INV_ORDER after shutdown.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), SystemException> {
        self.check_not_destroyed()?;
        self.check_running()?;
        self.client_reactor().run(Box::pin(task))
    }

    /// Waits for a future in this thread. Any executor can run the ORB's futures; this one is the fastest for many calls in
    /// flight, because the thread that waits also reads the replies and writes the requests once the future has been woken
    /// some times. The ORB's own thread rests meanwhile.
    ///
    /// The future must not block, nor compute for long: the other asynchronous calls of this ORB may wait meanwhile. In a
    /// completion that runs on the ORB's thread, this would wait for itself.
    ///
    /// ```
    /// let orb = spandrel_orb::Orb::builder().build()?;
    /// assert_eq!(orb.block_on(async { 1 + 2 }), 3);
    /// # Ok::<(), spandrel_orb::SystemException>(())
    /// ```
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.client_reactor().block_on(future)
    }

    /// Writes all buffered one-ways with the sync scope NONE ([`ObjectRef::flush`](crate::ObjectRef::flush)).
    ///
    /// # Errors
    /// As [`ObjectRef::flush`](crate::ObjectRef::flush), by the ORB's time-out.
    pub fn flush(&self) -> Result<(), SystemException> {
        self.check_running()?;
        let deadline = self.settings().request_timeout.map(Deadline::after);
        first_failure(self.peers().all().iter().map(|peer| peer.flush(deadline.as_ref())))
            .map_err(|failure| failure.exception)
    }

    /// As [`string_to_object`](Self::string_to_object), asynchronously. Only a `corbaname:` with a name after `#`
    /// waits.
    ///
    /// # Errors
    /// As [`string_to_object`](Self::string_to_object).
    pub fn string_to_object_async(
        &self,
        text: &str,
    ) -> impl Future<Output = Result<ObjectRef, SystemException>> + Send + 'static + use<> {
        let path = if self.parts().urls().is_some() {
            self.check_not_destroyed().and_then(|()| self.check_process()).and_then(|()| self.locate_url(text))
        } else {
            self.string_to_object(text).map(UrlPath::to)
        };
        async move { resolve(path?).await }
    }

    /// As [`resolve_initial_references`](Self::resolve_initial_references), asynchronously.
    ///
    /// # Errors
    /// As [`resolve_initial_references`](Self::resolve_initial_references).
    pub fn resolve_initial_references_async(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<ObjectRef, SystemException>> + Send + 'static + use<> {
        let path = self.locate_initial(name);
        async move { resolve(path?).await }
    }

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

/// Calls the naming services of a path.
async fn resolve(path: UrlPath) -> Result<ObjectRef, SystemException> {
    let mut object = path.object;
    for name in &path.names {
        let mut resolution = Resolution::new(object, name);
        object = loop {
            let reply = {
                let (context, operation, encode) = resolution.request();
                context.invoke_async::<Ior, ResolveError>(operation, encode, Ior::decode)
            };
            if let Some(object) = resolution.accept(reply.await)? {
                break object;
            }
        };
    }
    Ok(object)
}
