//! A server whose architecture changes while it serves (as in JAWS, which paper 004 cites).

use std::fmt;
use std::io;
use std::time::Duration;

use spandrel_ipc::inet::Addr;
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Mutex, ThreadManager, Weak};

use crate::listening::FormerConnections;
use crate::{Architecture, Port, Server, Service, Settings};

/// The greatest number of former servers that still serve connections.
const MOST_FORMER: usize = 16;
/// The interval in which the connections of former servers are counted.
const COUNT: Duration = Duration::from_millis(50);

/// A server whose architecture can be changed while it serves.
///
/// New connections go to the new architecture. The former one serves those that it has accepted to their end, for at
/// most the time of [`start`](Self::start), and is stopped then. The listening socket stays open, so that no connection
/// is lost. The connections of former servers count towards [`Settings::max_connections`] of the present one, from the
/// moment in which it replaces them. Processes do not know those of former servers, and count their own.
pub struct SwitchingServer {
    port: Port,
    state: Mutex<State>,
    /// A thread for each former server.
    drains: ThreadManager,
}

struct State {
    current: Option<(Architecture, Arc<dyn Server>)>,
    former: Vec<Weak<dyn Server>>,
    drain: Duration,
}

impl fmt::Debug for SwitchingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwitchingServer").field("architecture", &self.architecture()).finish_non_exhaustive()
    }
}

impl SwitchingServer {
    /// Listens at an address. Connections wait in the backlog until the first [`switch`](Self::switch). Former servers
    /// have the time `drain` to serve their connections.
    ///
    /// # Errors
    /// The errors of listening.
    pub fn listen(addr: &Addr, drain: Duration) -> io::Result<Self> {
        let state = Mutex::new(State { current: None, former: Vec::new(), drain });
        Ok(Self { port: Port::shared(addr)?, state, drains: ThreadManager::with_limit(MOST_FORMER) })
    }

    /// As [`listen`](Self::listen), and serves.
    ///
    /// # Errors
    /// Those of listening, and of [`switch`](Self::switch).
    pub fn start(
        addr: &Addr,
        architecture: Architecture,
        service: &Service,
        settings: &Settings,
        drain: Duration,
    ) -> io::Result<Self> {
        let this = Self::listen(addr, drain)?;
        this.switch(architecture, service, settings)?;
        Ok(this)
    }

    /// The bound address, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn addr(&self) -> io::Result<Addr> {
        self.port.addr()
    }

    /// Sets the time that servers have to serve their connections after the next changes.
    pub fn set_drain(&self, drain: Duration) {
        self.state.lock().drain = drain;
    }

    /// The present architecture; none while it accepts nothing.
    #[must_use]
    pub fn architecture(&self) -> Option<Architecture> {
        self.state.lock().current.as_ref().map(|(architecture, _)| *architecture)
    }

    /// The number of former servers that still serve connections.
    #[must_use]
    pub fn former(&self) -> usize {
        self.drains.running()
    }

    /// Serves new connections in another architecture, with another service and other settings from now on. After an
    /// error, the present one goes on.
    ///
    /// # Errors
    /// As [`Architecture::start`]; [`io::ErrorKind::ResourceBusy`] while too many former servers still serve
    /// connections.
    pub fn switch(&self, architecture: Architecture, service: &Service, settings: &Settings) -> io::Result<()> {
        let mut state = self.state.lock();
        if self.drains.running() >= MOST_FORMER {
            let text = format!("{MOST_FORMER} former architectures still serve connections");
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
        }
        let new: Arc<dyn Server> = Arc::from(architecture.start(&self.port, service, settings)?);
        let old = state.current.replace((architecture, new));
        self.finish(&mut state, old)
    }

    /// Accepts nothing from now on: further connections wait in the backlog until the next [`switch`](Self::switch).
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn suspend(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let old = state.current.take();
        self.finish(&mut state, old)
    }

    /// Lets a former server serve its connections to their end.
    fn finish(&self, state: &mut State, old: Option<(Architecture, Arc<dyn Server>)>) -> io::Result<()> {
        let Some((architecture, old)) = old else { return Ok(()) };
        state.former.retain(|server| server.strong_count() > 0);
        state.former.push(Arc::downgrade(&old));
        old.retire();
        let mut counted = FormerConnections::none(&self.port);
        counted.set(old.connections());
        let drain = state.drain;
        let finish = move |_: &spandrel_sync::ThreadContext| {
            let is_closed = wait_counting(&*old, drain, counted);
            let cut = old.stop(Duration::ZERO);
            tracing::debug!(%architecture, is_closed, cut, "a former server has ended");
        };
        self.drains.spawn("former", finish).map(drop).map_err(io::Error::other)
    }

    /// The present server and the former ones.
    fn all(&self) -> Vec<Arc<dyn Server>> {
        let state = self.state.lock();
        let former = state.former.iter().filter_map(Weak::upgrade);
        former.chain(state.current.as_ref().map(|(_, server)| Arc::clone(server))).collect()
    }
}

/// Waits as [`Server::wait_closed`], and counts the connections that remain.
fn wait_counting(server: &dyn Server, timeout: Duration, mut counted: FormerConnections) -> bool {
    let deadline = Deadline::after(timeout);
    loop {
        counted.set(server.connections());
        let left = deadline.remaining().unwrap_or(COUNT);
        if server.wait_closed(left.min(COUNT)) {
            return true;
        }
        if left.is_zero() {
            return false;
        }
    }
}

impl Server for SwitchingServer {
    fn connections(&self) -> usize {
        self.all().iter().map(|server| server.connections()).sum()
    }

    fn retire(&self) {
        self.all().iter().for_each(|server| server.retire());
    }

    fn wait_closed(&self, timeout: Duration) -> bool {
        let deadline = Deadline::after(timeout);
        let left = || deadline.remaining().unwrap_or(timeout);
        self.all().iter().all(|server| server.wait_closed(left()))
    }

    fn stop(&self, timeout: Duration) -> usize {
        self.retire();
        let deadline = Deadline::after(timeout);
        let left = || deadline.remaining().unwrap_or(timeout);
        let cut = self.all().iter().map(|server| server.stop(left())).sum();
        let _ = self.drains.wait(); // their connections are closed
        cut
    }
}

impl Drop for SwitchingServer {
    fn drop(&mut self) {
        let _ = self.stop(Duration::ZERO);
    }
}
