//! One datagram socket of any family: the transfers in all their forms, written once.

mod batches;
mod buffers;
#[cfg(unix)]
#[path = "socket/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "socket/windows.rs"]
mod system;

use std::io;
use std::time::Duration;

use socket2::Socket;
use spandrel_sync::time::Deadline;

pub(crate) use self::buffers::{Data, Room};
use super::{Batch, Name, Received, SendError};
use crate::{Handle, Interest, Pollable, wait_ready};

/// A datagram socket of any domain.
#[derive(Debug)]
pub(crate) struct DgramSocket(Socket);

/// The time limit of a transfer.
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    /// As the socket is configured.
    Configured,
    /// Returns `WouldBlock` in place of a wait.
    Never,
    /// At most that long.
    For(Duration),
}

impl DgramSocket {
    pub(crate) fn new(socket: Socket) -> Self {
        Self(socket)
    }

    /// The socket, for its options.
    pub(crate) fn socket(&self) -> &Socket {
        &self.0
    }

    pub(crate) fn into_socket(self) -> Socket {
        self.0
    }

    /// Sends one datagram, to the peer or to `to`.
    #[inline]
    pub(crate) fn send(&self, data: Data<'_>, to: Option<&Name>, wait: Wait) -> Result<(), SendError> {
        data.check()?;
        let sent = match wait {
            Wait::Configured => system::send(&self.0, data, to, false),
            Wait::Never => system::send(&self.0, data, to, true),
            Wait::For(timeout) => {
                let deadline = Deadline::after(timeout);
                let attempt = || system::send(&self.0, data, to, true);
                retry_within(deadline, attempt, |left| self.wait_to_send(to, left))
            }
        };
        sent.map_err(|cause| SendError::classify(cause, data.len()))
    }

    /// Receives one datagram, without its sender.
    #[inline]
    pub(crate) fn recv(&self, mut room: Room<'_, '_>, wait: Wait) -> io::Result<Received> {
        match wait {
            Wait::Configured => system::recv(&self.0, &mut room, false),
            Wait::Never => system::recv(&self.0, &mut room, true),
            Wait::For(timeout) => {
                let deadline = Deadline::after(timeout);
                retry_within(deadline, || system::recv(&self.0, &mut room, true), |left| self.wait_for_input(left))
            }
        }
    }

    /// Receives one datagram and the name of its sender.
    #[inline]
    pub(crate) fn recv_from(&self, mut room: Room<'_, '_>, wait: Wait) -> io::Result<(Received, Option<Name>)> {
        match wait {
            Wait::Configured => system::recv_from(&self.0, &mut room, false),
            Wait::Never => system::recv_from(&self.0, &mut room, true),
            Wait::For(timeout) => {
                let deadline = Deadline::after(timeout);
                retry_within(deadline, || system::recv_from(&self.0, &mut room, true), |left| self.wait_for_input(left))
            }
        }
    }

    /// Sends the unsent datagrams of `batch`, and returns their number.
    pub(crate) fn send_batch<A>(&self, batch: &mut Batch<A>, wait: Wait) -> Result<usize, SendError> {
        let Some(next) = batch.first_unsent() else { return Ok(0) };
        let len = next.octets().len();
        let sent = match wait {
            Wait::Configured => batches::send(&self.0, batch, false),
            Wait::Never => batches::send(&self.0, batch, true),
            Wait::For(timeout) => {
                let deadline = Deadline::after(timeout);
                let to = batch.first_unsent_name().cloned();
                let attempt = || batches::send(&self.0, batch, true);
                retry_within(deadline, attempt, |left| self.wait_to_send(to.as_ref(), left))
            }
        };
        let sent = sent.map_err(|cause| SendError::classify(cause, len))?;
        batch.mark_sent(sent);
        Ok(sent)
    }

    /// Replaces the contents of `batch` by the queued datagrams, at least one, and returns their number.
    pub(crate) fn recv_batch<A>(&self, batch: &mut Batch<A>, wait: Wait) -> io::Result<usize> {
        batch.clear();
        match wait {
            Wait::Configured => batches::recv(&self.0, batch, false),
            Wait::Never => batches::recv(&self.0, batch, true),
            Wait::For(timeout) => {
                let deadline = Deadline::after(timeout);
                retry_within(deadline, || batches::recv(&self.0, batch, true), |left| self.wait_for_input(left))
            }
        }
    }

    /// Waits until a datagram can be sent to the peer or to `to`, or for that long.
    fn wait_to_send(&self, to: Option<&Name>, left: Option<Duration>) -> io::Result<()> {
        match to.map(system::connect_if_local).transpose()?.flatten() {
            Some(probe) => wait_ready(&Self(probe), Interest::OUTPUT, left).map(drop),
            None => wait_ready(self, Interest::OUTPUT, left).map(drop),
        }
    }

    pub(crate) fn wait_for_input(&self, left: Option<Duration>) -> io::Result<()> {
        wait_ready(self, Interest::INPUT, left).map(drop)
    }

    /// Sets the time limit of one receive.
    pub(crate) fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        not_zero(timeout)?;
        self.0.set_read_timeout(timeout)
    }

    /// Sets the time limit of one send.
    pub(crate) fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        not_zero(timeout)?;
        self.0.set_write_timeout(timeout)
    }
}

/// Rejects zero, which the system takes for no limit.
fn not_zero(timeout: Option<Duration>) -> io::Result<()> {
    if timeout == Some(Duration::ZERO) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a timeout of zero; use the `try_` methods, which never wait",
        ));
    }
    Ok(())
}

impl Pollable for DgramSocket {
    #[inline]
    fn handle(&self) -> Handle<'_> {
        #[cfg(unix)]
        return std::os::fd::AsFd::as_fd(&self.0);
        #[cfg(windows)]
        return std::os::windows::io::AsSocket::as_socket(&self.0);
    }
}

/// Retries the attempt, with waits in between, until it succeeds or times out.
pub(crate) fn retry_within<T>(
    deadline: Deadline,
    mut attempt: impl FnMut() -> io::Result<T>,
    wait: impl Fn(Option<Duration>) -> io::Result<()>,
) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
        let left = deadline.remaining();
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        wait(left)?;
    }
}
