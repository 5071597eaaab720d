//! An attempt to connect a socket, under way.

use std::io;
use std::time::Duration;

use socket2::{SockAddr, Socket};

use crate::{Handle, Interest, Pollable, wait_ready};

/// A socket that does not block and is being connected.
///
/// The handle becomes ready for output when the attempt has ended, one way or the other.
#[derive(Debug)]
pub(crate) struct Attempt(Option<Socket>);

const TAKEN: &str = "an attempt is over once its stream or its error was given";

impl Attempt {
    /// Starts to connect `socket`.
    pub(crate) fn start(socket: Socket, target: &SockAddr) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        match socket.connect(target) {
            Err(error) if !is_under_way(&error) => Err(error),
            _ => Ok(Self(Some(socket))),
        }
    }

    /// Of a socket that does not block and has been connected already.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn made(socket: Socket) -> Self {
        Self(Some(socket))
    }

    /// The socket, which blocks again, once it is connected; `None` if that is not decided yet.
    pub(crate) fn try_complete(&mut self) -> io::Result<Option<Socket>> {
        let Some(socket) = &self.0 else { return Err(io::Error::other(TAKEN)) };
        if wait_ready(self, Interest::OUTPUT, Some(Duration::ZERO))?.is_none() {
            return Ok(None);
        }
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        let socket = self.0.take().expect(TAKEN);
        socket.set_nonblocking(false)?;
        Ok(Some(socket))
    }
}

impl Pollable for Attempt {
    fn handle(&self) -> Handle<'_> {
        let socket = self.0.as_ref().expect(TAKEN);
        #[cfg(unix)]
        return std::os::fd::AsFd::as_fd(socket);
        #[cfg(windows)]
        return std::os::windows::io::AsSocket::as_socket(socket);
    }
}

/// Whether connecting has been started and not ended.
///
/// `EAGAIN` is none of it: for UNIX-domain sockets on Linux it means that nothing has been started.
fn is_under_way(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
        || error.kind() == io::ErrorKind::Interrupted;
    #[cfg(windows)]
    return error.kind() == io::ErrorKind::WouldBlock;
}

/// Connects; a signal does not break off the attempt (POSIX: it then goes on asynchronously).
pub(crate) fn connect(socket: &Socket, target: &SockAddr) -> io::Result<()> {
    match socket.connect(target) {
        #[cfg(unix)]
        Err(e) if e.kind() == io::ErrorKind::Interrupted => finish(socket),
        result => result,
    }
}

/// Waits for the end of an attempt that a signal made asynchronous.
#[cfg(unix)]
fn finish(socket: &Socket) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(socket, PollFlags::OUT)], None))?;
    socket.take_error()?.map_or(Ok(()), Err)
}
