//! Coming to a rendezvous to be given an end of a STREAM pipe.

use std::io;
use std::time::Duration;

use super::{Addr, Stream};
#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::unix::pace::Pace;
use crate::{Connecting as _, Handle, Interest, Pollable, Prepared, unix};

/// Makes connections; carries no octets itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connector(());

impl Connector {
    /// Comes to `addr` and waits to be given an end of a pipe.
    ///
    /// # Errors
    /// As [`unix::Connector::connect`]; [`io::ErrorKind::ConnectionRefused`] also when the acceptor makes no pipe.
    pub fn connect(addr: &Addr) -> io::Result<Stream> {
        let rendezvous = unix::Connector::connect(addr.rendezvous()?)?;
        met(rendezvous.recv_handle(), &rendezvous)
    }

    /// Like [`connect`](Self::connect), but waits no longer than `timeout`. Until the acceptor accepts, there is no pipe.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); [`io::ErrorKind::TimedOut`] when the time ran out, at once when it is zero.
    pub fn connect_timeout(addr: &Addr, timeout: Duration) -> io::Result<Stream> {
        match timeout {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            timeout => Self::start(addr)?.complete(Some(timeout)),
        }
    }

    /// Comes to `addr` without waiting.
    ///
    /// # Errors
    /// Those of the operating system that are known at once; the others come when it is completed.
    pub fn start(addr: &Addr) -> io::Result<Connecting> {
        let coming = unix::Connector::new().start(addr.rendezvous()?)?;
        Ok(Connecting { state: State::Coming(coming), is_over: false })
    }
}

/// A STREAM pipe that is being made; from [`Connector::start`].
#[derive(Debug)]
pub struct Connecting {
    state: State,
    is_over: bool,
}

#[derive(Debug)]
enum State {
    /// On the way to the rendezvous.
    Coming(unix::Connecting),
    /// There.
    Waiting(Waiting),
    /// On the way from one to the other.
    Between,
}

#[derive(Debug)]
struct Waiting {
    rendezvous: unix::Stream,
    /// What has been the handle on the way; then it stays the handle.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pace: Option<Pace>,
}

impl Waiting {
    fn handle(&self) -> Handle<'_> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(pace) = &self.pace {
            return pace.handle();
        }
        self.rendezvous.handle()
    }

    fn try_complete(&mut self) -> io::Result<Option<Stream>> {
        match self.rendezvous.try_recv_handle() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                #[cfg(any(target_os = "linux", target_os = "android"))]
                self.pace.as_mut().map_or(Ok(()), Pace::again)?;
                Ok(None)
            }
            received => met(received, &self.rendezvous).map(Some),
        }
    }
}

impl Connecting {
    fn go_on(&mut self) -> io::Result<Option<Stream>> {
        if let State::Coming(coming) = &mut self.state {
            let Some(rendezvous) = coming.try_complete().map_err(refused)? else { return Ok(None) };
            let State::Coming(_coming) = std::mem::replace(&mut self.state, State::Between) else { unreachable!() };
            self.state = State::Waiting(Waiting {
                rendezvous,
                #[cfg(any(target_os = "linux", target_os = "android"))]
                pace: _coming.into_pace(),
            });
        }
        match &mut self.state {
            State::Waiting(waiting) => waiting.try_complete(),
            State::Coming(_) | State::Between => unreachable!("it has just arrived"),
        }
    }
}

impl Pollable for Connecting {
    fn handle(&self) -> Handle<'_> {
        match &self.state {
            State::Coming(coming) => coming.handle(),
            State::Waiting(waiting) => waiting.handle(),
            State::Between => unreachable!("nobody sees it between two states"),
        }
    }

    fn is_plain(&self) -> bool {
        false
    }

    fn prepare(&self, wanted: Interest) -> Prepared {
        match &self.state {
            State::Coming(coming) => coming.prepare(wanted),
            _ if wanted.contains(Interest::OUTPUT) => Prepared { wait_for: Interest::INPUT, ready: Interest::NONE },
            _ => Prepared { wait_for: Interest::NONE, ready: Interest::NONE },
        }
    }

    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        match &self.state {
            State::Coming(coming) => coming.interpret(seen, wanted),
            _ if seen.is_none() => Interest::NONE,
            _ => wanted & Interest::OUTPUT,
        }
    }
}

impl crate::Connecting for Connecting {
    type Stream = Stream;

    fn try_complete(&mut self) -> io::Result<Option<Stream>> {
        if self.is_over {
            return Err(io::Error::other("an attempt is over once its stream or its error was given"));
        }
        let result = self.go_on();
        self.is_over = !matches!(result, Ok(None));
        result
    }
}

/// What came of the wait at the rendezvous.
fn met(received: io::Result<Stream>, rendezvous: &unix::Stream) -> io::Result<Stream> {
    received.map_err(refused)?.met_at(rendezvous)
}

/// An acceptor that goes away, or has no descriptors left, makes no pipe.
fn refused(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            io::Error::new(io::ErrorKind::ConnectionRefused, "the acceptor made no pipe")
        }
        _ => error,
    }
}
