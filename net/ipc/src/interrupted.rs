//! Transfers interrupted by signals: they continue, and still respect their timeout.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use socket2::SockRef;
use spandrel_sync::time::Deadline;

use crate::{Interest, Pollable, wait_ready};

/// Runs a transfer of this side of the socket, and repeats it after each signal.
///
/// A socket with a timeout restarts the timeout with each call, and does not report the time waited. Under
/// frequent signals, as in a profiled program, that would wait for ever. So the time counts from the first
/// signal on. An interrupted transfer takes at most twice its timeout, and an uninterrupted one reads no
/// clock.
#[inline]
pub(crate) fn retry_interrupted<T>(
    socket: impl AsFd,
    side: Interest,
    mut transfer: impl FnMut() -> rustix::io::Result<T>,
) -> io::Result<T> {
    match transfer() {
        Err(Errno::INTR) => after_signal(socket.as_fd(), side, &mut transfer),
        outcome => Ok(outcome?),
    }
}

#[cold]
fn after_signal<T>(
    socket: BorrowedFd<'_>,
    side: Interest,
    transfer: &mut dyn FnMut() -> rustix::io::Result<T>,
) -> io::Result<T> {
    let options = SockRef::from(&socket);
    let timeout = if side == Interest::INPUT { options.read_timeout()? } else { options.write_timeout()? };
    let deadline = Deadline::after(timeout);
    loop {
        let left = deadline.remaining();
        let is_last = left.is_some_and(|left| left.is_zero());
        if timeout.is_some() && wait_ready(&Waiting(socket), side, left)?.is_none() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match transfer() {
            Err(Errno::INTR) if is_last => return Err(io::ErrorKind::WouldBlock.into()),
            Err(Errno::INTR) => {}
            outcome => return Ok(outcome?),
        }
    }
}

/// A socket whose handle shows all events.
struct Waiting<'s>(BorrowedFd<'s>);

impl Pollable for Waiting<'_> {
    fn handle(&self) -> BorrowedFd<'_> {
        self.0
    }
}
