//! A UNIX-domain connection that is being made.

use std::io;

use socket2::{SockAddr, Socket};

use super::Stream;
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
    Full(full::Full),
}

impl Connecting {
    pub(super) fn start(socket: Socket, target: SockAddr) -> io::Result<Self> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            socket.set_nonblocking(true)?;
            match socket.connect(&target) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Ok(Self(State::Full(full::Full::new(socket, target)?)))
                }
                Err(error) => Err(error),
                Ok(()) => Ok(Self(State::UnderWay(Attempt::made(socket)))),
            }
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Ok(Self(State::UnderWay(Attempt::start(socket, &target)?)))
    }
}

impl Pollable for Connecting {
    fn handle(&self) -> Handle<'_> {
        match &self.0 {
            State::UnderWay(attempt) => attempt.handle(),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            State::Full(full) => full.handle(),
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
        Ok(socket.map(Stream::from_socket))
    }
}

/// Attempts that the system refuses to start for the time being.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod full {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use socket2::{SockAddr, Socket};

    use crate::Handle;

    #[derive(Debug)]
    pub(super) struct Full {
        socket: Option<Socket>,
        target: SockAddr,
        timer: OwnedFd,
        pause: Duration,
    }

    impl Full {
        pub(super) fn new(socket: Socket, target: SockAddr) -> io::Result<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            let mut full = Self { socket: Some(socket), target, timer, pause: SHORTEST };
            full.arm()?;
            Ok(full)
        }

        pub(super) fn handle(&self) -> Handle<'_> {
            self.timer.as_fd()
        }

        /// The socket once it is connected, which blocks again.
        pub(super) fn try_again(&mut self) -> io::Result<Option<Socket>> {
            let socket = self.socket.as_ref().ok_or_else(|| io::Error::other("the connection was made already"))?;
            match socket.connect(&self.target) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    self.arm().map(|()| None)
                }
                Err(error) => Err(error),
                Ok(()) => {
                    socket.set_nonblocking(false)?;
                    Ok(self.socket.take())
                }
            }
        }

        /// The timer becomes readable after the next pause, and not before.
        fn arm(&mut self) -> io::Result<()> {
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let after = Timespec::try_from(self.pause).expect("it is short");
            let once = Itimerspec { it_interval: zero, it_value: after };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
            self.pause = (self.pause * 2).min(LONGEST);
            Ok(())
        }
    }

    const SHORTEST: Duration = Duration::from_millis(1);
    const LONGEST: Duration = Duration::from_millis(50);
}
