//! The listening socket, and its use by one server after another.

use std::io;
use std::time::Duration;

use spandrel_ipc::inet::{Acceptor, Addr, Stream};
#[cfg(proactor)]
use spandrel_reactor::{ConnectionHandle, Waker};
#[cfg(proactor)]
use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::{Arc, thread};

use crate::Settings;

/// The pause after a failed `accept` that is not a matter of one connection.
pub(crate) const FAILURE_PAUSE: Duration = Duration::from_millis(20);

/// A listening socket.
///
/// Cheap to clone. Servers that follow each other use clones of one port, so that connections in the backlog are lost
/// by none of them.
#[derive(Clone, Debug)]
pub struct Port {
    acceptor: Arc<Acceptor>,
    is_shared: bool,
}

impl Port {
    /// A listening socket for one server only. To stop accepting, that server shuts the socket down, so that waiting
    /// needs no system call but `accept`. Connections that are still in the backlog are reset then.
    ///
    /// # Errors
    /// The errors of [`Acceptor::open`].
    pub fn exclusive(addr: &Addr) -> io::Result<Self> {
        Ok(Self { acceptor: Arc::new(Acceptor::open(addr)?), is_shared: false })
    }

    /// A listening socket for servers that follow each other. Those with a thread that waits in `accept` check for
    /// the end besides, which costs a call of `poll` when no connection is waiting.
    ///
    /// # Errors
    /// The errors of [`Acceptor::open`].
    pub fn shared(addr: &Addr) -> io::Result<Self> {
        let acceptor = Acceptor::open(addr)?;
        acceptor.set_nonblocking(true)?;
        Ok(Self { acceptor: Arc::new(acceptor), is_shared: true })
    }

    /// The socket of another process, as [`is_shared`](Self::is_shared) there.
    #[cfg(target_os = "linux")]
    pub(crate) fn inherited(acceptor: Acceptor, is_shared: bool) -> Self {
        Self { acceptor: Arc::new(acceptor), is_shared }
    }

    /// Whether several servers may use it, one after another.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The address.
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

    /// The socket.
    pub(crate) fn acceptor(&self) -> &Arc<Acceptor> {
        &self.acceptor
    }

    /// Sets the options that accepted connections inherit where the system lets them: no delay of small segments, and
    /// on Linux the time limits of transfers. So they cost no system call for each connection.
    #[cfg_attr(not(target_os = "linux"), expect(unused_variables))]
    pub(crate) fn prepare(&self, settings: &Settings) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::net::sockopt::{Timeout, set_socket_timeout};
            set_socket_timeout(&*self.acceptor, Timeout::Recv, Some(settings.idle))?;
            set_socket_timeout(&*self.acceptor, Timeout::Send, Some(settings.idle))?;
        }
        self.acceptor.set_no_delay(true)
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

    /// Waits for a connection; none once stopped. Failures are logged, and waited out.
    pub(crate) fn accept(&self) -> Option<Stream> {
        while !self.is_stopped() {
            let accepted = self.port.acceptor.accept_stream();
            let prepared = accepted.and_then(|stream| prepare_stream(&stream, &self.settings).map(|()| stream));
            match prepared {
                Ok(stream) => return Some(stream),
                // On an exclusive port, the inherited time limit of receiving has passed.
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

    /// Takes over a connection that a proactor has accepted.
    #[cfg(proactor)]
    pub(crate) fn adopt(&self, accepted: ConnectionHandle) -> io::Result<Stream> {
        let stream = self.port.acceptor.adopt(accepted)?;
        prepare_stream(&stream, &self.settings)?;
        Ok(stream)
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
        #[cfg(proactor)]
        if let Some(waker) = &*self.waker.lock() {
            waker.wake();
        }
        self.port.shut_if_exclusive();
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
