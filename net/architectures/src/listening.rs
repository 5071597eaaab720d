//! The listening socket, and its use by one server after another.

use std::io;
use std::time::Duration;

use spandrel_ipc::inet::{Acceptor, Addr, Inet, Stream};
use spandrel_reactor::strategy::{Acceptance, AtMost};
#[cfg(proactor)]
use spandrel_reactor::{ConnectionHandle, Waker};
#[cfg(proactor)]
use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use spandrel_sync::{Arc, thread};

use crate::Settings;

/// The pause after a failed `accept` that is not a matter of one connection.
pub(crate) const FAILURE_PAUSE: Duration = Duration::from_millis(20);

/// A listening socket that outlives the servers on it.
///
/// Cheap to clone. Servers that follow each other use clones of one port, so that connections in the backlog are lost
/// by none of them.
#[derive(Clone, Debug)]
pub struct Port {
    acceptor: Arc<Acceptor>,
    is_shared: bool,
    /// The number of connections that former servers still serve.
    former: Arc<AtomicUsize>,
}

impl Port {
    fn new(acceptor: Acceptor, is_shared: bool) -> Self {
        Self { acceptor: Arc::new(acceptor), is_shared, former: Arc::default() }
    }

    /// A listening socket for one server only. To stop accepting, that server shuts the socket down, so that waiting
    /// needs no system call but `accept`. Connections that are still in the backlog are reset then.
    ///
    /// # Errors
    /// The errors of [`Acceptor::open`].
    pub fn exclusive(addr: &Addr) -> io::Result<Self> {
        Ok(Self::new(Acceptor::open(addr)?, false))
    }

    /// A listening socket for servers that follow each other. Those with a thread that waits in `accept` check for
    /// the end besides, which costs a call of `poll` when no connection is waiting.
    ///
    /// # Errors
    /// The errors of [`Acceptor::open`].
    pub fn shared(addr: &Addr) -> io::Result<Self> {
        let acceptor = Acceptor::open(addr)?;
        acceptor.set_nonblocking(true)?;
        Ok(Self::new(acceptor, true))
    }

    /// The socket of another process, as [`is_shared`](Self::is_shared) there.
    #[cfg(target_os = "linux")]
    pub(crate) fn inherited(acceptor: Acceptor, is_shared: bool) -> Self {
        Self::new(acceptor, is_shared)
    }

    /// Whether several servers may use it, one after another.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The bound address, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn addr(&self) -> io::Result<Addr> {
        self.acceptor.local_addr()
    }

    /// Shuts the socket down if its server is the only one.
    pub(crate) fn shut_if_exclusive(&self) {
        if !self.is_shared
            && let Err(error) = self.acceptor.shutdown()
        {
            tracing::warn!(%error, "the listening socket cannot be shut down");
        }
    }

    /// The number of connections that a server may have besides those of former servers at this port.
    pub(crate) fn room(&self, limit: usize) -> usize {
        limit.saturating_sub(self.former.load(Ordering::Relaxed))
    }

    /// The listening socket of this port.
    pub(crate) fn acceptor(&self) -> &Arc<Acceptor> {
        &self.acceptor
    }

    /// Sets the options that accepted connections inherit where the system lets them: no delay of small segments, and
    /// on Linux the time limit of sending, and none of receiving. So they cost no system call for each connection.
    #[cfg_attr(not(target_os = "linux"), expect(unused_variables))]
    pub(crate) fn prepare(&self, settings: &Settings) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::net::sockopt::{Timeout, set_socket_timeout};
            set_socket_timeout(&*self.acceptor, Timeout::Recv, None)?;
            set_socket_timeout(&*self.acceptor, Timeout::Send, Some(settings.idle))?;
        }
        self.acceptor.set_no_delay(true)
    }

    /// As [`prepare`](Self::prepare), with a time limit of receiving, for connections that no other thread watches.
    #[cfg(target_os = "linux")]
    pub(crate) fn prepare_unwatched(&self, settings: &Settings) -> io::Result<()> {
        use rustix::net::sockopt::{Timeout, set_socket_timeout};
        self.prepare(settings)?;
        set_socket_timeout(&*self.acceptor, Timeout::Recv, Some(settings.idle))?;
        Ok(())
    }
}

/// The connections of one former server, counted at its port until this is dropped.
#[derive(Debug)]
pub(crate) struct FormerConnections {
    port: Port,
    count: usize,
}

impl FormerConnections {
    pub(crate) fn none(port: &Port) -> Self {
        Self { port: port.clone(), count: 0 }
    }

    pub(crate) fn set(&mut self, count: usize) {
        self.port.former.fetch_add(count.wrapping_sub(self.count), Ordering::Relaxed); // wraps around to subtract
        self.count = count;
    }
}

impl Drop for FormerConnections {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Admits connections up to a limit, which includes those of former servers at the port.
#[derive(Debug)]
pub(crate) struct PortLimit(pub(crate) Port, pub(crate) usize);

impl Acceptance<Inet> for PortLimit {
    fn admits(&mut self, stream: &Stream, remote: &Addr, open: usize) -> bool {
        Acceptance::<Inet>::admits(&mut AtMost(self.0.room(self.1)), stream, remote, open)
    }
}

/// Sets the options of an accepted connection that it does not inherit.
#[cfg_attr(target_os = "linux", allow(clippy::unnecessary_wraps))]
fn prepare_stream(stream: &Stream, settings: &Settings) -> io::Result<()> {
    if cfg!(target_os = "linux") {
        return Ok(());
    }
    stream.set_recv_timeout(Some(settings.idle))?;
    stream.set_send_timeout(Some(settings.idle))?;
    if cfg!(windows) { Ok(()) } else { stream.set_no_delay(true) }
}

/// The acceptance of connections by the threads of one server, until it is stopped.
#[derive(Debug)]
pub(crate) struct Accepting {
    port: Port,
    settings: Settings,
    is_stopped: AtomicBool,
    #[cfg(unix)]
    stop: StopHandle,
    #[cfg(proactor)]
    waker: Mutex<Option<Waker>>,
}

impl Accepting {
    pub(crate) fn new(port: Port, settings: &Settings) -> io::Result<Self> {
        port.prepare(settings)?;
        Ok(Self {
            port,
            settings: *settings,
            is_stopped: AtomicBool::new(false),
            #[cfg(unix)]
            stop: StopHandle::new()?,
            #[cfg(proactor)]
            waker: Mutex::default(),
        })
    }

    /// The number of connections that the server may have now.
    pub(crate) fn room(&self) -> usize {
        self.port.room(self.settings.max_connections)
    }

    /// Waits for a connection; none once stopped. Failures are logged, and waited out. While the server has no room for
    /// more connections than the number `open`, because former servers have some, the others stay in the backlog.
    pub(crate) fn accept(&self, open: impl Fn() -> usize) -> Option<Stream> {
        while !self.is_stopped() {
            let room = self.room();
            if room < self.settings.max_connections && open() >= room {
                thread::park_timeout(FAILURE_PAUSE); // former servers do not report the ends of their connections
                continue;
            }
            let accepted = self.port.acceptor.accept_unnamed();
            let prepared = accepted.and_then(|stream| prepare_stream(&stream, &self.settings).map(|()| stream));
            match prepared {
                Ok(stream) => return Some(stream),
                // A shared port does not wait by itself.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(),
                Err(_) if self.is_stopped() || self.port.acceptor.is_shut_down() => return None,
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return None, // shut down by another process
                Err(error) => {
                    tracing::warn!(%error, "cannot accept");
                    thread::park_timeout(FAILURE_PAUSE);
                }
            }
        }
        None
    }

    /// The listening socket, for operations that keep it open.
    #[cfg(proactor)]
    pub(crate) fn acceptor(&self) -> &Arc<Acceptor> {
        &self.port.acceptor
    }

    /// Prepares a connection that a proactor has accepted.
    #[cfg(proactor)]
    pub(crate) fn prepare(&self, accepted: ConnectionHandle) -> io::Result<ConnectionHandle> {
        if cfg!(target_os = "linux") {
            return Ok(accepted);
        }
        let stream = self.port.acceptor.adopt(accepted)?;
        prepare_stream(&stream, &self.settings)?;
        Ok(stream.into())
    }

    /// Ends the sending side of such a connection. A peer that has ended is noticed by the next operation.
    #[cfg(proactor)]
    pub(crate) fn end_output(&self, accepted: ConnectionHandle) -> io::Result<ConnectionHandle> {
        let stream = self.port.acceptor.adopt(accepted)?;
        let _ = stream.shutdown(std::net::Shutdown::Write);
        Ok(stream.into())
    }

    /// Has the system reset such a connection when it is closed.
    #[cfg(proactor)]
    pub(crate) fn reset_at_close(&self, accepted: ConnectionHandle) -> io::Result<ConnectionHandle> {
        let stream = self.port.acceptor.adopt(accepted)?;
        stream.set_linger(Some(Duration::ZERO))?;
        Ok(stream.into())
    }

    /// Lets [`stop`](Self::stop) end the waits of a proactor.
    #[cfg(proactor)]
    pub(crate) fn set_waker(&self, waker: Waker) {
        *self.waker.lock() = Some(waker);
    }

    /// Whether accepting is stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Waits until a shared port has a connection, or accepting is stopped.
    fn wait(&self) {
        if !self.port.is_shared {
            return;
        }
        #[cfg(unix)]
        let waited = self.stop.wait(&self.port.acceptor);
        // Looks for the end in this interval: the system has no wait for two sockets of different kinds.
        #[cfg(not(unix))]
        let waited = spandrel_ipc::wait_ready(&*self.port.acceptor, spandrel_ipc::Interest::INPUT, Some(FAILURE_PAUSE));
        if let Err(error) = waited {
            tracing::warn!(%error, "cannot wait for connections");
            thread::park_timeout(FAILURE_PAUSE);
        }
    }

    /// Makes every [`accept`](Self::accept), waiting or future, return none.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        #[cfg(unix)]
        self.stop.raise();
        self.wake();
        self.port.shut_if_exclusive();
    }

    /// Ends the wait of a proactor.
    pub(crate) fn wake(&self) {
        #[cfg(proactor)]
        if let Some(waker) = &*self.waker.lock() {
            waker.wake();
        }
    }
}

/// A handle that becomes ready when accepting is stopped, for any number of waiting threads.
#[cfg(unix)]
#[derive(Debug)]
struct StopHandle {
    waiting: Arc<std::os::unix::net::UnixStream>,
    raising: std::os::unix::net::UnixStream,
}

#[cfg(unix)]
impl StopHandle {
    fn new() -> io::Result<Self> {
        let (waiting, raising) = std::os::unix::net::UnixStream::pair()?;
        Ok(Self { waiting: Arc::new(waiting), raising })
    }

    fn raise(&self) {
        // Fails only if it is closed already, which has the same effect.
        let _ = self.raising.shutdown(std::net::Shutdown::Both);
    }

    fn wait(&self, acceptor: &Acceptor) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut handles = [PollFd::new(acceptor, PollFlags::IN), PollFd::new(&*self.waiting, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut handles, None))?;
        Ok(())
    }
}
