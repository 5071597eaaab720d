//! A pending connection attempt of a socket.

use std::io;
use std::time::Duration;

use socket2::{SockAddr, Socket};

use crate::{Handle, Interest, Pollable, wait_ready};

/// A nonblocking socket that is being connected.
///
/// The handle becomes ready for output when the attempt has ended, with or without success.
#[derive(Debug)]
pub(crate) struct Attempt(Option<Socket>);

const ATTEMPT_ENDED: &str = "a connection attempt ends when its stream or its error is returned";

impl Attempt {
    /// Starts to connect `socket`.
    pub(crate) fn start(socket: Socket, target: &SockAddr) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        match socket.connect(target) {
            Err(error) if !is_in_progress(&error) => Err(error),
            _ => Ok(Self(Some(socket))),
        }
    }

    /// For a nonblocking socket that is connected already.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn made(socket: Socket) -> Self {
        Self(Some(socket))
    }

    /// The socket, blocking again, once it is connected; `None` while it is pending.
    pub(crate) fn try_complete(&mut self) -> io::Result<Option<Socket>> {
        let Some(socket) = &self.0 else { return Err(io::Error::other(ATTEMPT_ENDED)) };
        if wait_ready(self, Interest::OUTPUT, Some(Duration::ZERO))?.is_none() {
            return Ok(None);
        }
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        let socket = self.0.take().expect(ATTEMPT_ENDED);
        socket.set_nonblocking(false)?;
        Ok(Some(socket))
    }
}

impl Pollable for Attempt {
    fn handle(&self) -> Handle<'_> {
        let socket = self.0.as_ref().expect(ATTEMPT_ENDED);
        #[cfg(unix)]
        return std::os::fd::AsFd::as_fd(socket);
        #[cfg(windows)]
        return std::os::windows::io::AsSocket::as_socket(socket);
    }
}

/// Whether a connection attempt is in progress.
///
/// `EAGAIN` does not mean that: for UNIX-domain sockets on Linux no attempt was started.
fn is_in_progress(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
        || error.kind() == io::ErrorKind::Interrupted;
    #[cfg(windows)]
    return error.kind() == io::ErrorKind::WouldBlock;
}

/// Connects; a signal does not cancel the attempt (POSIX: it continues asynchronously).
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
