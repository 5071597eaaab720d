//! A pending UNIX-domain connection.

use std::io;

use socket2::{SockAddr, Socket};

use super::Stream;
#[cfg(any(target_os = "linux", target_os = "android"))]
use super::retry_timer::RetryTimer;
use crate::socket::Attempt;
use crate::{Handle, Interest, Pollable, Prepared};

/// A pending UNIX-domain connection; from [`Connector::start`](super::Connector::start).
///
/// Most connections are established at once. While the queue of the listener is full, Linux starts no attempt
/// and signals no event: then this retries from time to time, with a timer as the handle.
#[derive(Debug)]
pub struct Connecting(State);

#[derive(Debug)]
enum State {
    InProgress(Attempt),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    QueueFull(QueueFull),
}

impl Connecting {
    pub(super) fn start(socket: Socket, target: SockAddr) -> io::Result<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            socket.set_nonblocking(true)?;
            match socket.connect(&target) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Self(State::QueueFull(QueueFull {
                    socket: Some(socket),
                    target,
                    retry_timer: RetryTimer::start()?,
                }))),
                Err(error) => Err(error),
                Ok(()) => Ok(Self(State::InProgress(Attempt::made(socket)))),
            }
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Ok(Self(State::InProgress(Attempt::start(socket, &target)?)))
    }

    /// The timer that was its handle, for a family that continues with it: a handle that is being waited for
    /// must not change.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn into_retry_timer(self) -> Option<RetryTimer> {
        match self.0 {
            State::InProgress(_) => None,
            State::QueueFull(full) => Some(full.retry_timer),
        }
    }
}

impl Pollable for Connecting {
    fn handle(&self) -> Handle<'_> {
        match &self.0 {
            State::InProgress(attempt) => attempt.handle(),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::QueueFull(full) => full.retry_timer.handle(),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self.0, State::InProgress(_))
    }

    fn prepare(&self, wanted: Interest) -> Prepared {
        let wait_for = match &self.0 {
            State::InProgress(_) => wanted,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::QueueFull(_) if wanted.contains(Interest::OUTPUT) => Interest::INPUT,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::QueueFull(_) => Interest::NONE,
        };
        Prepared { wait_for, ready: Interest::NONE }
    }

    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        match &self.0 {
            State::InProgress(_) => seen,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::QueueFull(_) if seen.is_none() => Interest::NONE,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::QueueFull(_) => wanted & Interest::OUTPUT,
        }
    }
}

impl crate::Connecting for Connecting {
    type Stream = Stream;

    fn try_complete(&mut self) -> io::Result<Option<Stream>> {
        let socket = match &mut self.0 {
            State::InProgress(attempt) => attempt.try_complete()?,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::QueueFull(full) => full.retry()?,
        };
        socket.map(Stream::from_socket).transpose()
    }
}

/// An attempt that the system refuses to start while the listener's queue is full.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Debug)]
struct QueueFull {
    socket: Option<Socket>,
    target: SockAddr,
    retry_timer: RetryTimer,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl QueueFull {
    /// The socket once it is connected, blocking again.
    fn retry(&mut self) -> io::Result<Option<Socket>> {
        let socket = self.socket.as_ref().ok_or_else(|| io::Error::other("the connection was made already"))?;
        match socket.connect(&self.target) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                self.retry_timer.restart().map(|()| None)
            }
            Err(error) => Err(error),
            Ok(()) => {
                socket.set_nonblocking(false)?;
                Ok(self.socket.take())
            }
        }
    }
}
