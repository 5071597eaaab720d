//! The threads of a server whose threads wait for one connection each.

use std::io;
use std::time::Duration;

use spandrel_reactor::ConnectionThread;
#[cfg(proactor)]
use spandrel_sync::atomic::AtomicBool;
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, ThreadContext, ThreadManager};

use crate::blocking::{self, ROOM};
use crate::listening::Accepting;
use crate::open_streams::{OpenStream, OpenStreams};
use crate::{Port, Protocol, Server, Settings};

/// The time for threads to end after their connections are cut.
const END: Duration = Duration::from_secs(1);

/// The state that the threads of a server share.
#[derive(Debug)]
pub(crate) struct Shared<P> {
    pub(crate) accepting: Accepting,
    pub(crate) open: OpenStreams<Arc<Shared<P>>>,
    /// An asynchronous server is to check its time limits.
    #[cfg(proactor)]
    pub(crate) is_check_due: AtomicBool,
    pub(crate) protocol: P,
    pub(crate) settings: Settings,
}

impl<P: Protocol> Shared<P> {
    /// Waits for a connection; none once the server is stopped.
    pub(crate) fn accept(self: &Arc<Self>) -> Option<Connection<P>> {
        let stream = self.accepting.accept(|| self.open.len())?;
        self.open.add(stream, Arc::clone(self)).map(|entry| Connection(Some(entry)))
    }
}

/// An accepted connection, open until it is dropped.
pub(crate) struct Connection<P: Protocol>(Option<Arc<OpenStream<Arc<Shared<P>>>>>);

impl<P: Protocol> Connection<P> {
    /// Serves it to its end. An error or a panic ends this connection only.
    pub(crate) fn serve(mut self, buffer: &mut [u8; ROOM]) {
        if let Some(entry) = &mut self.0 {
            let (stream, server) = entry.content();
            blocking::serve(stream, &server.protocol, &server.settings, &entry.waits, buffer);
        }
    }

    /// Serves it in a thread of its own. If that cannot be started, it is closed.
    pub(crate) fn serve_in_thread(mut self, stack: usize) {
        let Some(entry) = self.0.take() else { return };
        if let Err((error, entry)) = spandrel_reactor::start_connection_thread(stack, entry) {
            tracing::warn!(%error, "a connection is closed, since no thread can be started");
            drop(Self(Some(entry)));
        }
    }
}

impl<P: Protocol> ConnectionThread for OpenStream<Arc<Shared<P>>> {
    fn run(self: Arc<Self>) {
        Connection(Some(self)).serve(&mut [0; ROOM]);
    }
}

impl<P: Protocol> Drop for Connection<P> {
    fn drop(&mut self) {
        if let Some(entry) = self.0.take() {
            let server = Arc::clone(entry.content().1);
            drop(server.open.remove(entry)); // closed without the lock
        }
    }
}

/// A server with threads that wait for one connection each.
pub(crate) struct ThreadedServer<P: Protocol> {
    shared: Arc<Shared<P>>,
    threads: ThreadManager,
}

impl<P: Protocol> std::fmt::Debug for ThreadedServer<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let threads = self.threads.running();
        f.debug_struct("ThreadedServer").field("threads", &threads).finish_non_exhaustive()
    }
}

impl<P: Protocol> ThreadedServer<P> {
    /// A server without threads, which may have `limit` of them.
    pub(crate) fn new(port: &Port, protocol: P, settings: &Settings, limit: usize) -> io::Result<Self> {
        settings.check()?;
        let accepting = Accepting::new(port.clone(), settings)?;
        let shared = Arc::new(Shared {
            accepting,
            open: OpenStreams::default(),
            #[cfg(proactor)]
            is_check_due: AtomicBool::new(false),
            protocol,
            settings: *settings,
        });
        Ok(Self { shared, threads: ThreadManager::with_limit(limit.saturating_add(1)) })
    }

    /// Starts the thread that limits the waits for input to `limit`, and calls `tick` in intervals.
    pub(crate) fn watch(&self, limit: Duration, tick: impl Fn(&Shared<P>) + Send + Sync + 'static) -> io::Result<()> {
        self.spawn("limits", 1, move |shared| shared.open.watch(limit, || tick(shared)))
    }

    /// Starts `count` threads with this body.
    pub(crate) fn spawn(
        &self,
        name: &str,
        count: usize,
        body: impl Fn(&Arc<Shared<P>>) + Send + Sync + 'static,
    ) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let body = move |_: &ThreadContext| body(&shared);
        self.threads.group(name).spawn_n(count, name, body).map_err(io::Error::other)
    }
}

impl<P: Protocol> Server for ThreadedServer<P> {
    fn connections(&self) -> usize {
        self.shared.open.len()
    }

    fn retire(&self) {
        self.shared.accepting.stop();
        self.shared.protocol.begin_drain();
    }

    fn wait_closed(&self, timeout: Duration) -> bool {
        self.shared.open.wait_below(1, timeout)
    }

    fn stop(&self, timeout: Duration) -> usize {
        let deadline = Deadline::after(timeout);
        self.retire();
        let cut = self.shared.open.drain(timeout, || self.shared.accepting.wake());
        if let Err(error) = self.threads.wait_for(deadline.remaining().unwrap_or(timeout).max(END)) {
            tracing::warn!(%error, "threads of a server have not ended");
        }
        cut
    }
}

impl<P: Protocol> Drop for ThreadedServer<P> {
    fn drop(&mut self) {
        let _ = self.stop(Duration::ZERO);
    }
}
