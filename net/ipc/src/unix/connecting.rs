//! A UNIX-domain connection that is being made.

use std::io;

use socket2::{SockAddr, Socket};

use super::Stream;
#[cfg(any(target_os = "linux", target_os = "android"))]
use super::pace::Pace;
use crate::socket::Attempt;
use crate::{Handle, Interest, Pollable, Prepared};

/// A UNIX-domain connection that is being made; from [`Connector::start`](super::Connector::start).
///
/// Most are made at once. When too many wait to be accepted already, Linux starts nothing and has nothing to wait for: then this
/// tries again from time to time, with a timer for a handle.
#[derive(Debug)]
pub struct Connecting(State);

#[derive(Debug)]
enum State {
    UnderWay(Attempt),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Full(Full),
}

impl Connecting {
    pub(super) fn start(socket: Socket, target: SockAddr) -> io::Result<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            socket.set_nonblocking(true)?;
            match socket.connect(&target) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Ok(Self(State::Full(Full { socket: Some(socket), target, pace: Pace::start()? })))
                }
                Err(error) => Err(error),
                Ok(()) => Ok(Self(State::UnderWay(Attempt::made(socket)))),
            }
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Ok(Self(State::UnderWay(Attempt::start(socket, &target)?)))
    }

    /// The timer that has been its handle, for a family that goes on with it: a handle that is being waited for must not change.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn into_pace(self) -> Option<Pace> {
        match self.0 {
            State::UnderWay(_) => None,
            State::Full(full) => Some(full.pace),
        }
    }
}

impl Pollable for Connecting {
    fn handle(&self) -> Handle<'_> {
        match &self.0 {
            State::UnderWay(attempt) => attempt.handle(),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::Full(full) => full.pace.handle(),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self.0, State::UnderWay(_))
    }

    fn prepare(&self, wanted: Interest) -> Prepared {
        let wait_for = match &self.0 {
            State::UnderWay(_) => wanted,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::Full(_) if wanted.contains(Interest::OUTPUT) => Interest::INPUT,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::Full(_) => Interest::NONE,
        };
        Prepared { wait_for, ready: Interest::NONE }
    }

    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        match &self.0 {
            State::UnderWay(_) => seen,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::Full(_) if seen.is_none() => Interest::NONE,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::Full(_) => wanted & Interest::OUTPUT,
        }
    }
}

impl crate::Connecting for Connecting {
    type Stream = Stream;

    fn try_complete(&mut self) -> io::Result<Option<Stream>> {
        let socket = match &mut self.0 {
            State::UnderWay(attempt) => attempt.try_complete()?,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::Full(full) => full.try_again()?,
        };
        socket.map(Stream::from_socket).transpose()
    }
}

/// An attempt that the system refuses to start for the time being.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Debug)]
struct Full {
    socket: Option<Socket>,
    target: SockAddr,
    pace: Pace,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Full {
    /// The socket once it is connected, which blocks again.
    fn try_again(&mut self) -> io::Result<Option<Socket>> {
        let socket = self.socket.as_ref().ok_or_else(|| io::Error::other("the connection was made already"))?;
        match socket.connect(&self.target) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                self.pace.again().map(|()| None)
            }
            Err(error) => Err(error),
            Ok(()) => {
                socket.set_nonblocking(false)?;
                Ok(self.socket.take())
            }
        }
    }
}
