//! The listener of every family: errors to ignore, running out of descriptors, shutdown.

use std::io;
use std::time::Duration;

#[cfg(unix)]
use rustix::io::Errno;
use socket2::{SockAddr, Socket};
#[cfg(unix)]
use spandrel_sync::Mutex;
use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(windows)]
use crate::sys::socket::accept_unnamed;
use crate::{Handle, Pollable};
#[cfg(unix)]
use crate::{Interest, wait_ready};

/// A listening stream socket of any domain.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    #[cfg(windows)]
    is_nonblocking: AtomicBool,
    shut_down: AtomicBool,
    /// A spare descriptor for accepting, and thereby refusing, a connection when no others are left.
    #[cfg(unix)]
    spare: Mutex<Option<Socket>>,
    /// Whether the spare descriptor is in use, or something else in the process has taken it meanwhile.
    #[cfg(unix)]
    lacks_spare: AtomicBool,
    shed: AtomicU64,
}

/// The reaction to a failed accept.
enum Recovery {
    Retry,
    #[cfg(unix)]
    Shed,
    #[cfg(unix)]
    Pause,
    Fail,
}

impl Listener {
    /// Starts to listen with a socket that is bound.
    pub(crate) fn listen(socket: Socket, backlog: u16) -> io::Result<Self> {
        socket.listen(i32::from(backlog))?;
        Ok(Self::from_listening(socket))
    }

    /// For a socket that listens already.
    pub(crate) fn from_listening(socket: Socket) -> Self {
        #[cfg(unix)]
        let spare = spare_descriptor().ok();
        Self {
            socket,
            #[cfg(windows)]
            is_nonblocking: AtomicBool::new(false),
            shut_down: AtomicBool::new(false),
            #[cfg(unix)]
            lacks_spare: AtomicBool::new(spare.is_none()),
            #[cfg(unix)]
            spare: Mutex::new(spare),
            shed: AtomicU64::new(0),
        }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn local_addr(&self) -> io::Result<SockAddr> {
        self.socket.local_addr()
    }

    pub(crate) fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.socket.set_nonblocking(on)?;
        #[cfg(windows)]
        self.is_nonblocking.store(on, Ordering::SeqCst);
        Ok(())
    }

    /// Whether accepted sockets are nonblocking: on Windows they have the mode of the listening one (the description of
    /// `accept`).
    #[cfg(windows)]
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.is_nonblocking.load(Ordering::SeqCst)
    }

    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }

    /// Waits for a connection and returns it with the peer's address.
    pub(crate) fn accept(&self) -> io::Result<(Socket, SockAddr)> {
        self.accept_by(accept)
    }

    /// Waits for a connection, and does not ask for the peer's address.
    pub(crate) fn accept_unnamed(&self) -> io::Result<Socket> {
        self.accept_by(accept_unnamed)
    }

    /// Waits for a connection and returns the result of the attempt that accepts it.
    #[inline]
    fn accept_by<T>(&self, attempt: fn(&Socket) -> io::Result<T>) -> io::Result<T> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            if self.is_shut_down() {
                return Err(shut_down());
            }
            match attempt(&self.socket) {
                Ok(_) if self.is_shut_down() => {
                    // Woken by a connection to ourselves; another thread may be waiting for the same.
                    let _ = self.wake();
                }
                #[cfg(unix)]
                Ok(accepted) if self.lacks_spare.load(Ordering::Acquire) => {
                    if let Some(accepted) = self.regain_spare(accepted) {
                        return Ok(accepted);
                    }
                }
                Ok(accepted) => return Ok(accepted),
                Err(_) if self.is_shut_down() => {}
                Err(error) => {
                    if let Some(accepted) = self.recover(error, attempt, &mut pause)? {
                        return Ok(accepted);
                    }
                }
            }
        }
    }

    /// Handles a failed accept: returns the error, or none for a retry, or a connection that could be
    /// accepted after all.
    #[cold]
    #[cfg_attr(windows, expect(unused_variables))]
    fn recover<T>(
        &self,
        error: io::Error,
        attempt: fn(&Socket) -> io::Result<T>,
        pause: &mut Duration,
    ) -> io::Result<Option<T>> {
        match recovery(&error) {
            Recovery::Retry => Ok(None),
            #[cfg(unix)]
            Recovery::Shed => self.shed_one(error, attempt, pause),
            #[cfg(unix)]
            Recovery::Pause => self.pause(error, pause).map(|()| None),
            Recovery::Fail => {
                *pause = SHORTEST_PAUSE;
                Err(error)
            }
        }
    }

    /// The number of connections that were closed at once because no descriptors were left.
    pub(crate) fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    /// Counts a connection that was accepted and could not be served.
    #[cfg(unix)]
    pub(crate) fn count_shed(&self) {
        self.shed.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes a new spare descriptor beside an accepted connection. If none is left, closes the connection for it: later
    /// ones would wait, neither accepted nor refused.
    #[cfg(unix)]
    #[cold]
    fn regain_spare<T>(&self, accepted: T) -> Option<T> {
        let mut slot = self.spare.lock();
        self.refill(&mut slot);
        if slot.is_some() {
            return Some(accepted);
        }
        self.count_shed();
        drop(accepted);
        self.refill(&mut slot);
        None
    }

    /// Makes a new spare descriptor, unless there is one, or no other is left.
    #[cfg(unix)]
    fn refill(&self, slot: &mut Option<Socket>) {
        if slot.is_none() {
            *slot = spare_descriptor().ok();
        }
        self.lacks_spare.store(slot.is_none(), Ordering::Release);
    }

    /// Without free descriptors: accepts a connection with the spare one. It is kept if a new spare can be
    /// made by then, otherwise closed.
    #[cfg(unix)]
    fn shed_one<T>(
        &self,
        error: io::Error,
        attempt: fn(&Socket) -> io::Result<T>,
        pause: &mut Duration,
    ) -> io::Result<Option<T>> {
        if !self.socket.nonblocking()? {
            // Linux allocates a descriptor before it waits for a connection: without this wait, the spare one
            // would be missing until the next connection.
            wait_ready(self, Interest::INPUT, None)?;
        }
        let mut slot = self.spare.lock();
        let Some(descriptor) = slot.take().or_else(|| spare_descriptor().ok()) else {
            drop(slot);
            return self.pause(error, pause).map(|()| None);
        };
        // Before: whoever takes the descriptor that is free now finds that the spare one is lacking.
        self.lacks_spare.store(true, Ordering::Release);
        drop(descriptor);
        let accepted = attempt(&self.socket);
        self.refill(&mut slot);
        if slot.is_some() {
            return match accepted {
                Ok(accepted) => Ok(Some(accepted)),
                Err(error) if matches!(recovery(&error), Recovery::Fail) => Err(error),
                Err(_) => Ok(None),
            };
        }
        if accepted.is_ok() {
            self.count_shed();
        }
        drop(accepted);
        self.refill(&mut slot);
        Ok(None)
    }

    /// Waits for the shortage to end; a nonblocking acceptor gets the error instead.
    #[cfg(unix)]
    fn pause(&self, error: io::Error, pause: &mut Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        if self.socket.nonblocking()? {
            return Err(error);
        }
        let time = Timespec::try_from(*pause).expect("it is short");
        *pause = (*pause * 2).min(LONGEST_PAUSE);
        // Waits for nothing but the shutdown of the listener.
        match poll(&mut [PollFd::new(&self.socket, PollFlags::empty())], Some(&time)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes every `accept`, waiting or yet to come, fail.
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        if self.shut_down.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.wake()
    }

    /// Linux ends a waiting `accept` when the listening socket is shut down.
    #[cfg(target_os = "linux")]
    fn wake(&self) -> io::Result<()> {
        self.socket.shutdown(std::net::Shutdown::Both)
    }

    /// Where shutting down a listening socket does not end a waiting `accept`, a connection to itself does.
    /// The woken thread wakes the next; the last such connection stays unaccepted until the acceptor is
    /// dropped.
    #[cfg(not(target_os = "linux"))]
    fn wake(&self) -> io::Result<()> {
        use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
        let mut addr = self.socket.local_addr()?;
        if let Some(mut inet) = addr.as_socket()
            && inet.ip().is_unspecified()
        {
            inet.set_ip(match inet {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
            addr = inet.into();
        }
        Socket::new(addr.domain(), socket2::Type::STREAM, None)?.connect_timeout(&addr, Duration::from_secs(1))
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::SeqCst)
    }
}

impl Pollable for Listener {
    fn handle(&self) -> Handle<'_> {
        #[cfg(unix)]
        return std::os::fd::AsFd::as_fd(&self.socket);
        #[cfg(windows)]
        return std::os::windows::io::AsSocket::as_socket(&self.socket);
    }
}

/// Accepts a connection, and sets the mode of its socket.
fn accept(listener: &Socket) -> io::Result<(Socket, SockAddr)> {
    let (socket, from) = listener.accept()?;
    // Elsewhere it inherits the mode of the listening socket, which the stream on Windows takes into account.
    if !cfg!(any(target_os = "linux", target_os = "android", windows)) {
        socket.set_nonblocking(false)?;
    }
    Ok((socket, from))
}

#[cfg(target_os = "linux")]
fn accept_unnamed(listener: &Socket) -> io::Result<Socket> {
    Ok(rustix::net::accept_with(listener, rustix::net::SocketFlags::CLOEXEC)?.into())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn accept_unnamed(listener: &Socket) -> io::Result<Socket> {
    accept(listener).map(|(socket, _)| socket)
}

fn shut_down() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the acceptor was shut down")
}

/// A socket that only holds a descriptor and an entry in the system's table of open files, and needs no file
/// system.
#[cfg(unix)]
fn spare_descriptor() -> io::Result<Socket> {
    Socket::new(socket2::Domain::UNIX, socket2::Type::DGRAM, None)
}

/// Ignores signals, connections that their peers reset before they were accepted, and network errors of a
/// connection not yet accepted, which Linux reports here (accept(2)).
#[cfg(unix)]
fn recovery(error: &io::Error) -> Recovery {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::NOPROTOOPT) => Recovery::Retry,
        Some(Errno::NETDOWN | Errno::HOSTDOWN | Errno::HOSTUNREACH | Errno::NETUNREACH) => Recovery::Retry,
        #[cfg(target_os = "linux")]
        Some(Errno::NONET) => Recovery::Retry,
        Some(Errno::MFILE | Errno::NFILE) => Recovery::Shed,
        Some(Errno::NOBUFS | Errno::NOMEM) => Recovery::Pause,
        _ => Recovery::Fail,
    }
}

/// As on Unix; a peer that resets before it is accepted is `WSAECONNRESET` here, or, under Wine,
/// `WSAENOTCONN`.
#[cfg(windows)]
fn recovery(error: &io::Error) -> Recovery {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, NotConnected};
    match error.kind() {
        Interrupted | ConnectionAborted | ConnectionReset | NotConnected => Recovery::Retry,
        _ => Recovery::Fail,
    }
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
#[cfg(unix)]
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
