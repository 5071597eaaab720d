//! The connector of STREAM pipes.

use std::io;
use std::time::Duration;

use super::{Addr, Stream};
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::unix::retry_timer::RetryTimer;
use crate::{Connecting as _, Handle, Interest, Pollable, Prepared, unix};

/// Makes connections; carries no octets itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connector(());

impl Connector {
    /// Connects to `addr` and waits for an end of a pipe.
    ///
    /// # Errors
    /// As [`unix::Connector::connect`]; [`io::ErrorKind::ConnectionRefused`] also when the acceptor closes
    /// without passing a pipe.
    pub fn connect(addr: &Addr) -> io::Result<Stream> {
        let rendezvous = unix::Connector::connect(addr.rendezvous()?)?;
        finish(rendezvous.recv_handle(), &rendezvous)
    }

    /// Like [`connect`](Self::connect), but waits no longer than `timeout`. There is no pipe before the
    /// acceptor accepts.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); [`io::ErrorKind::TimedOut`] on a timeout, at once when it is zero.
    pub fn connect_timeout(addr: &Addr, timeout: Duration) -> io::Result<Stream> {
        match timeout {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            timeout => Self::start(addr)?.complete(Some(timeout)),
        }
    }

    /// Starts to connect to `addr` without waiting.
    ///
    /// # Errors
    /// Errors of the operating system that are known at once; the others are returned on completion.
    pub fn start(addr: &Addr) -> io::Result<Connecting> {
        let connecting = unix::Connector::new().start(addr.rendezvous()?)?;
        Ok(Connecting { state: State::Connecting(connecting), is_over: false })
    }
}

/// A pending STREAM pipe; from [`Connector::start`].
#[derive(Debug)]
pub struct Connecting {
    state: State,
    is_over: bool,
}

#[derive(Debug)]
enum State {
    /// Connecting to the listening socket.
    Connecting(unix::Connecting),
    /// Connected, waiting for the end of the pipe.
    Waiting(Waiting),
    /// Placeholder while the state changes.
    Transition,
}

#[derive(Debug)]
struct Waiting {
    rendezvous: unix::Stream,
    /// The handle used while connecting; it stays the handle.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    retry_timer: Option<RetryTimer>,
}

impl Waiting {
    fn handle(&self) -> Handle<'_> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(retry_timer) = &self.retry_timer {
            return retry_timer.handle();
        }
        self.rendezvous.handle()
    }

    fn try_complete(&mut self) -> io::Result<Option<Stream>> {
        match self.rendezvous.try_recv_handle() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                #[cfg(any(target_os = "linux", target_os = "android"))]
                self.retry_timer.as_mut().map_or(Ok(()), RetryTimer::restart)?;
                Ok(None)
            }
            received => finish(received, &self.rendezvous).map(Some),
        }
    }
}

impl Connecting {
    fn advance(&mut self) -> io::Result<Option<Stream>> {
        if let State::Connecting(connecting) = &mut self.state {
            let Some(rendezvous) = connecting.try_complete().map_err(refused)? else { return Ok(None) };
            let State::Connecting(_connecting) = std::mem::replace(&mut self.state, State::Transition) else {
                unreachable!()
            };
            self.state = State::Waiting(Waiting {
                rendezvous,
                #[cfg(any(target_os = "linux", target_os = "android"))]
                retry_timer: _connecting.into_retry_timer(),
            });
        }
        match &mut self.state {
            State::Waiting(waiting) => waiting.try_complete(),
            State::Connecting(_) | State::Transition => unreachable!("the state has just become Waiting"),
        }
    }
}

impl Pollable for Connecting {
    fn handle(&self) -> Handle<'_> {
        match &self.state {
            State::Connecting(connecting) => connecting.handle(),
            State::Waiting(waiting) => waiting.handle(),
            State::Transition => unreachable!("not visible between two states"),
        }
    }

    fn is_plain(&self) -> bool {
        false
    }

    fn prepare(&self, wanted: Interest) -> Prepared {
        match &self.state {
            State::Connecting(connecting) => connecting.prepare(wanted),
            _ if wanted.contains(Interest::OUTPUT) => Prepared { wait_for: Interest::INPUT, ready: Interest::NONE },
            _ => Prepared { wait_for: Interest::NONE, ready: Interest::NONE },
        }
    }

    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        match &self.state {
            State::Connecting(connecting) => connecting.interpret(seen, wanted),
            _ if seen.is_none() => Interest::NONE,
            _ => wanted & Interest::OUTPUT,
        }
    }
}

impl crate::Connecting for Connecting {
    type Stream = Stream;

    fn try_complete(&mut self) -> io::Result<Option<Stream>> {
        if self.is_over {
            return Err(io::Error::other("a connection attempt ends when its stream or its error is returned"));
        }
        let result = self.advance();
        self.is_over = !matches!(result, Ok(None));
        result
    }
}

/// The result of the wait for the end of the pipe.
fn finish(received: io::Result<Stream>, rendezvous: &unix::Stream) -> io::Result<Stream> {
    received.map_err(refused)?.with_peer_of(rendezvous)
}

/// An acceptor that closes, or has no descriptors left, passes no pipe.
fn refused(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => io::Error::new(
            io::ErrorKind::ConnectionRefused,
            "the acceptor closed the connection without passing a pipe",
        ),
        _ => error,
    }
}
