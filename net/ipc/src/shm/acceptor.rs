//! The acceptor of connections through shared memory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spandrel_sync::time::Deadline;

use super::Stream;
use super::adaptive_wait::DEFAULT_SPIN;
use super::handshake::{Handshake, is_trusted, read_handshake};
use super::segment::{self, MAX, Side};
use crate::unix::{self, Addr};
use crate::{Accept, Handle, Pollable};

/// Waits for connections at an address; carries no octets itself.
///
/// Several threads may accept at once. A connector that sends a wrong handshake, or none, is refused and
/// counted ([`refused`](Self::refused)), and delays no other. Dropping it stops listening and removes the
/// socket file.
#[derive(Debug)]
pub struct Acceptor {
    listener: unix::Acceptor, // never blocks
    /// An epoll instance with the listener and the pending connections, so that there is one handle for all.
    events: OwnedFd,
    pending: Mutex<PendingConnections>,
    options: AcceptorOptions,
    is_nonblocking: AtomicBool,
    refused: AtomicU64,
}

/// Options of an [`Acceptor`]; [`Acceptor::open`] uses [`AcceptorOptions::default`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptorOptions {
    /// The options of the socket at which connectors and acceptor meet.
    pub socket: unix::AcceptorOptions,
    /// Whether other users may connect. Default false. The superuser always may.
    pub any_user: bool,
    /// The largest ring of a connection in octets; the connector chooses the size, up to this. Default 16
    /// MiB.
    pub max_queue: usize,
    /// The time for which accepted streams spin before they sleep; as
    /// [`Connector::spin`](super::Connector::spin). Default 50 µs.
    pub spin: Duration,
}

impl Default for AcceptorOptions {
    fn default() -> Self {
        let socket = unix::AcceptorOptions::default();
        Self { socket, any_user: false, max_queue: 16 << 20, spin: DEFAULT_SPIN }
    }
}

impl AcceptorOptions {
    /// Sets [`socket`](Self::socket), the options of the meeting point.
    #[must_use]
    pub fn socket(mut self, options: unix::AcceptorOptions) -> Self {
        self.socket = options;
        self
    }

    /// Sets [`any_user`](Self::any_user): whether other users may connect.
    #[must_use]
    pub fn any_user(mut self, on: bool) -> Self {
        self.any_user = on;
        self
    }

    /// Sets [`max_queue`](Self::max_queue), in octets.
    #[must_use]
    pub fn max_queue(mut self, octets: usize) -> Self {
        self.max_queue = octets;
        self
    }

    /// Sets [`spin`](Self::spin), the time before a stream sleeps.
    #[must_use]
    pub fn spin(mut self, time: Duration) -> Self {
        self.spin = time;
        self
    }
}

/// Connections without a handshake yet, oldest first.
#[derive(Debug, Default)]
struct PendingConnections {
    waiting: Vec<PendingConnection>,
    last: u64,
}

#[derive(Debug)]
struct PendingConnection {
    id: u64,
    socket: unix::Stream,
    from: Addr,
    deadline: Deadline,
}

/// The maximum number of pending connections; one more drops the oldest.
const MAX_PENDING: usize = 64;
/// The time limit of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// The event identifier of the listener; no pending connection has it.
const LISTENER: u64 = 0;
const EVENTS: usize = 16;

impl Acceptor {
    /// Starts to listen at `addr`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when there is such a file or name, [`io::ErrorKind::NotFound`] when there
    /// is no such folder, [`io::ErrorKind::PermissionDenied`] and others of the operating system.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, &AcceptorOptions::default())
    }

    /// Starts to listen at `addr` with the given options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(addr: &Addr, options: &AcceptorOptions) -> io::Result<Self> {
        let listener = unix::Acceptor::open_with(addr, &options.socket)?;
        listener.set_nonblocking(true)?;
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&events, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        Ok(Self {
            listener,
            events,
            pending: Mutex::default(),
            options: *options,
            is_nonblocking: AtomicBool::new(false),
            refused: AtomicU64::new(0),
        })
    }

    /// Waits for a connection and returns it with the peer's address.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] once [`shutdown`](Self::shutdown) was called. Any other error, such as
    /// too many open files, concerns this call only.
    pub fn accept(&self) -> io::Result<(Stream, Addr)> {
        loop {
            let time =
                if self.is_nonblocking.load(Ordering::Relaxed) { Some(Duration::ZERO) } else { self.until_expiry() };
            let mut events = Vec::with_capacity(EVENTS);
            let time = time.map(|time| Timespec::try_from(time).expect("it is short"));
            let found = match epoll::wait(&self.events, rustix::buffer::spare_capacity(&mut events), time.as_ref()) {
                Ok(found) => found,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if self.listener.is_shut_down() {
                return Err(io::Error::new(io::ErrorKind::NotConnected, "the acceptor was shut down"));
            }
            for event in &events {
                if let Some(connection) = self.serve(event.data.u64())? {
                    return Ok(connection);
                }
            }
            self.expire();
            if found == 0 && self.is_nonblocking.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    /// The connection of an event, if its handshake is complete.
    fn serve(&self, event: u64) -> io::Result<Option<(Stream, Addr)>> {
        if event != LISTENER {
            let Some(connection) = self.pending.lock().take(event) else { return Ok(None) }; // another thread took it
            let _ = epoll::delete(&self.events, &connection.socket);
            return self.accept_or_defer(connection.socket, connection.from);
        }
        loop {
            let (socket, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            };
            if !self.options.any_user && !socket.peer_credentials().is_ok_and(|peer| is_trusted(&peer)) {
                self.refuse();
                continue;
            }
            if let Some(connection) = self.accept_or_defer(socket, from)? {
                return Ok(Some(connection));
            }
        }
    }

    /// Reads the handshake; a connection without one becomes pending.
    fn accept_or_defer(&self, socket: unix::Stream, from: Addr) -> io::Result<Option<(Stream, Addr)>> {
        let limit = u32::try_from(self.options.max_queue).unwrap_or(MAX);
        match read_handshake(&socket, limit) {
            Ok(Handshake::None) => self.keep(socket, from).map(|()| None),
            Ok(Handshake::Some(layout, file)) => match segment::map(&file, layout) {
                Ok(memory) => {
                    let stream = Stream::new(socket, memory, layout, Side::Acceptor, self.options.spin);
                    Ok(Some((stream, from)))
                }
                Err(_) => {
                    self.refuse();
                    Ok(None)
                }
            },
            Err(_) => {
                self.refuse();
                Ok(None)
            }
        }
    }

    fn keep(&self, socket: unix::Stream, from: Addr) -> io::Result<()> {
        let mut pending = self.pending.lock();
        if pending.waiting.len() >= MAX_PENDING {
            pending.waiting.remove(0); // closing it removes it from the epoll instance
            self.refuse();
        }
        pending.last += 1;
        let id = pending.last;
        // In the table before its first event can arrive.
        epoll::add(&self.events, &socket, epoll::EventData::new_u64(id), epoll::EventFlags::IN)?;
        pending.waiting.push(PendingConnection { id, socket, from, deadline: Deadline::after(HANDSHAKE_TIMEOUT) });
        Ok(())
    }

    /// Refuses pending connections whose time limit has passed.
    fn expire(&self) {
        let mut pending = self.pending.lock();
        while pending.waiting.first().is_some_and(|connection| connection.deadline.is_over()) {
            pending.waiting.remove(0);
            self.refuse();
        }
    }

    fn until_expiry(&self) -> Option<Duration> {
        self.pending.lock().waiting.first().and_then(|connection| connection.deadline.remaining())
    }

    fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of refused connections: of other users, and without a valid handshake.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The number of connections that were closed at once because no descriptors were left.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.listener.shed()
    }

    /// Stops accepting: every [`accept`](Self::accept), waiting or future, returns
    /// [`io::ErrorKind::NotConnected`]. Calling it again does nothing.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn shutdown(&self) -> io::Result<()> {
        self.listener.shutdown()
    }

    /// Whether [`shutdown`](Self::shutdown) was called.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.listener.is_shut_down()
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        self.listener.local_addr()
    }

    /// Whether `accept` waits for a connection or fails at once with [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// None; the result is that of all families.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.is_nonblocking.store(on, Ordering::Relaxed);
        Ok(())
    }
}

impl PendingConnections {
    fn take(&mut self, id: u64) -> Option<PendingConnection> {
        let at = self.waiting.iter().position(|connection| connection.id == id)?;
        Some(self.waiting.remove(at))
    }
}

impl Accept for Acceptor {
    type Addr = Addr;
    type Stream = Stream;

    fn accept(&self) -> io::Result<(Stream, Addr)> {
        Acceptor::accept(self)
    }
    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        Acceptor::set_nonblocking(self, on)
    }
    fn shutdown(&self) -> io::Result<()> {
        Acceptor::shutdown(self)
    }
    fn local_addr(&self) -> io::Result<Addr> {
        Acceptor::local_addr(self)
    }
}

impl Pollable for Acceptor {
    fn handle(&self) -> Handle<'_> {
        self.events.as_fd()
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}
