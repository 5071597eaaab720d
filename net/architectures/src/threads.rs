//! The threads of a server whose threads wait for one connection each.

use std::io;
use std::time::Duration;

use spandrel_reactor::OpenConnections;
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, ThreadContext, ThreadManager};

use crate::blocking::Connection;
use crate::listening::Accepting;
use crate::{Port, Protocol, Server, Settings};

/// The time for threads to end after their connections are cut.
const END: Duration = Duration::from_secs(1);

/// The state that the threads of a server share.
#[derive(Debug)]
pub(crate) struct Shared<P> {
    pub(crate) accepting: Accepting,
    pub(crate) open: Arc<OpenConnections>,
    pub(crate) protocol: P,
    pub(crate) settings: Settings,
}

impl<P: Protocol> Shared<P> {
    /// Waits for a connection; none once the server is stopped.
    pub(crate) fn accept(&self) -> Option<Connection> {
        let stream = self.accepting.accept(|| self.open.len())?;
        Connection::new(stream, &self.open)
    }

    /// Serves a connection to its end.
    pub(crate) fn serve(&self, connection: Connection) {
        connection.serve(&self.protocol, &self.settings);
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
        let shared = Arc::new(Shared { accepting, open: Arc::default(), protocol, settings: *settings });
        Ok(Self { shared, threads: ThreadManager::with_limit(limit) })
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
        self.shared.open.wait_empty(timeout)
    }

    fn stop(&self, timeout: Duration) -> usize {
        let began = Instant::now();
        self.retire();
        let cut = self.shared.open.drain(timeout);
        let left = timeout.saturating_sub(Instant::now().saturating_duration_since(began));
        if let Err(error) = self.threads.wait_for(left.max(END)) {
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
