//! The system calls of transfers over sockets, on Windows.
//!
//! Winsock has no flag for a single nonblocking transfer, and a blocking send that times out leaves unknown
//! how much was sent ("the socket state is indeterminate", in the description of `SO_SNDTIMEO`). So no
//! transfer blocks in its call:
//!
//! - A receive that may wait is an overlapped operation, which is cancelled at its deadline or by a shutdown of
//!   the reading side. A cancelled receive has taken no octets.
//! - A send, and a receive that leaves the octets in the queue, wait for readiness between nonblocking
//!   attempts, with their own deadline. A wait is interrupted from time to time, since Winsock does not promise
//!   that a shutdown of the socket ends waits for it.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::ops::Deref;
use std::os::windows::io::{AsSocket, BorrowedSocket, OwnedSocket};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;
use socket2::Socket;
use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Mutex};

use super::Listener;
use crate::Shutdown;
use crate::sys::socket::WaitingReceives;

/// A stream socket with the settings of its waits. Clones of a stream share the settings, as on Unix.
#[derive(Debug)]
pub(crate) struct StreamSocket {
    socket: Socket,
    settings: Arc<Settings>,
}

#[derive(Debug, Default)]
struct Settings {
    nonblocking: AtomicBool,
    /// Whether the handle is nonblocking, which most attempts need.
    is_handle_nonblocking: AtomicBool,
    recv_timeout: Mutex<Option<Duration>>,
    send_timeout: Mutex<Option<Duration>>,
    /// Counts the calls of `shutdown`, so that waits begun before one check again.
    shutdowns: AtomicU64,
    /// This side receives the queued octets, and then the end. Winsock's own half-close would reset the
    /// connection if more octets arrived.
    is_reader_closed: AtomicBool,
    waiting_receives: WaitingReceives,
}

impl StreamSocket {
    /// Takes over a socket.
    pub(crate) fn adopt(socket: Socket) -> io::Result<Self> {
        Ok(Self { socket, settings: Arc::default() })
    }

    /// Takes over a connection of a listener.
    pub(crate) fn adopt_accepted(socket: Socket, listener: &Listener) -> io::Result<Self> {
        let this = Self::adopt(socket)?;
        this.settings.is_handle_nonblocking.store(listener.is_nonblocking(), Ordering::Relaxed);
        Ok(this)
    }

    /// The socket, with a nonblocking handle.
    pub(crate) fn nonblocking(&self) -> io::Result<&Socket> {
        if !self.settings.is_handle_nonblocking.load(Ordering::Relaxed) {
            self.socket.set_nonblocking(true)?;
            self.settings.is_handle_nonblocking.store(true, Ordering::Relaxed);
        }
        Ok(&self.socket)
    }

    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, settings: Arc::clone(&self.settings) })
    }

    pub(crate) fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.settings.nonblocking.store(on, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        *self.settings.recv_timeout.lock() = timeout;
        Ok(())
    }

    pub(crate) fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(*self.settings.recv_timeout.lock())
    }

    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        *self.settings.send_timeout.lock() = timeout;
        Ok(())
    }

    pub(crate) fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(*self.settings.send_timeout.lock())
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Write {
            self.settings.is_reader_closed.store(true, Ordering::SeqCst);
        }
        let result = if how == Shutdown::Read { Ok(()) } else { self.socket.shutdown(how) };
        self.settings.shutdowns.fetch_add(1, Ordering::SeqCst);
        if how != Shutdown::Write {
            self.settings.waiting_receives.end(self.socket.as_socket());
        }
        result
    }

    /// Receives as this socket is configured.
    fn receive(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let settings = &*self.settings;
        let is_closed = &settings.is_reader_closed;
        if settings.nonblocking.load(Ordering::Relaxed) || is_closed.load(Ordering::SeqCst) {
            return try_recv_v(self, slices);
        }
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0); // the operation would wait
        }
        let deadline = Deadline::after(*settings.recv_timeout.lock());
        loop {
            match settings.waiting_receives.receive(self.socket.as_socket(), slices, deadline, is_closed) {
                Ok(Some(count)) => return Ok(count),
                Ok(None) if is_closed.load(Ordering::SeqCst) => return try_recv_v(self, slices),
                Ok(None) if deadline.is_over() => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Ok(None) => {} // cancelled by other means
                Err(error) => return self.received(Err(error)),
            }
        }
    }

    /// The result of an attempt to receive: the end, if this side has closed its reader and nothing is
    /// queued.
    fn received(&self, attempt: io::Result<usize>) -> io::Result<usize> {
        match attempt {
            Err(error)
                if self.settings.is_reader_closed.load(Ordering::SeqCst)
                    && (error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(WSAESHUTDOWN)) =>
            {
                Ok(0)
            }
            attempt => attempt,
        }
    }

    /// Retries the attempt, with waits for `flags` in between, as this socket is configured.
    fn wait(
        &self,
        flags: PollFlags,
        timeout: &Mutex<Option<Duration>>,
        mut attempt: impl FnMut() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut deadline = None;
        loop {
            let shutdowns = self.settings.shutdowns.load(Ordering::SeqCst);
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            if self.settings.nonblocking.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let deadline = deadline.get_or_insert_with(|| Deadline::after(*timeout.lock()));
            // Ends on readiness, a timeout or a shutdown; the next attempt tells which.
            loop {
                let left = deadline.remaining();
                if left.is_some_and(|left| left.is_zero()) {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                let ready = is_ready(&self.socket, flags, left.unwrap_or(LOOK).min(LOOK))?;
                if ready || self.settings.shutdowns.load(Ordering::SeqCst) != shutdowns {
                    break;
                }
            }
        }
    }
}

/// The longest wait between two checks for actions of other threads.
const LOOK: Duration = Duration::from_millis(50);

/// Winsock takes more, without benefit, and some implementations do not.
const MAX_SLICES: usize = 1024;

pub(crate) fn send(socket: &StreamSocket, data: &[u8]) -> io::Result<usize> {
    socket.wait(PollFlags::OUT, &socket.settings.send_timeout, || try_send(socket, data))
}

pub(crate) fn recv(socket: &StreamSocket, buffer: &mut [u8]) -> io::Result<usize> {
    socket.receive(&mut [IoSliceMut::new(buffer)])
}

pub(crate) fn send_v(socket: &StreamSocket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    socket.wait(PollFlags::OUT, &socket.settings.send_timeout, || try_send_v(socket, slices))
}

pub(crate) fn recv_v(socket: &StreamSocket, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    let count = slices.len().min(MAX_SLICES);
    socket.receive(&mut slices[..count])
}

pub(crate) fn peek(socket: &StreamSocket, buffer: &mut [u8]) -> io::Result<usize> {
    let attempt = || Ok(rustix::net::recv(socket.nonblocking()?, &mut *buffer, RecvFlags::PEEK)?.1);
    socket.wait(PollFlags::IN, &socket.settings.recv_timeout, attempt)
}

/// Whether octets wait to be received.
pub(crate) fn has_unread(socket: &StreamSocket) -> bool {
    let peek = |socket| rustix::net::recv(socket, &mut [0], RecvFlags::PEEK);
    socket.nonblocking().is_ok_and(|socket| peek(socket).is_ok_and(|(count, _)| count > 0))
}

pub(crate) fn try_send(socket: &StreamSocket, data: &[u8]) -> io::Result<usize> {
    socket.nonblocking()?.write(data).map_err(broken)
}

pub(crate) fn try_recv(socket: &StreamSocket, buffer: &mut [u8]) -> io::Result<usize> {
    socket.received(socket.nonblocking()?.read(buffer))
}

pub(crate) fn try_send_v(socket: &StreamSocket, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    socket.nonblocking()?.write_vectored(&slices[..slices.len().min(MAX_SLICES)]).map_err(broken)
}

pub(crate) fn try_recv_v(socket: &StreamSocket, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    let count = slices.len().min(MAX_SLICES);
    socket.received(socket.nonblocking()?.read_vectored(&mut slices[..count]))
}

/// Sending after a shutdown (`WSAESHUTDOWN`) is a broken pipe, as on Unix.
fn broken(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(WSAESHUTDOWN) => io::Error::new(io::ErrorKind::BrokenPipe, error),
        _ => error,
    }
}

const WSAESHUTDOWN: i32 = 10_058;

/// Waits for readiness, including failures.
fn is_ready(socket: &Socket, flags: PollFlags, time: Duration) -> io::Result<bool> {
    let time = Timespec::try_from(time).expect("it is short");
    let mut handles = [PollFd::from_borrowed_fd(socket.as_socket(), flags)];
    Ok(poll(&mut handles, Some(&time))? > 0)
}

impl Deref for StreamSocket {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.socket
    }
}

impl AsSocket for StreamSocket {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.socket.as_socket()
    }
}

/// Its handle may be nonblocking.
impl From<StreamSocket> for OwnedSocket {
    fn from(socket: StreamSocket) -> Self {
        socket.socket.into()
    }
}
