//! The acceptor of STREAM pipes on Windows.

use std::io;
use std::time::Duration;

use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Mutex};

use super::{AcceptorOptions, Addr, Stream};
use crate::sys::named_pipe::{Instance, Listening, Pipe, is_busy, is_in_use};
use crate::sys::overlapped::{Event, is_aborted};

/// Listens under a name and makes a pipe with each process of this machine that connects; carries no octets
/// itself.
///
/// Several threads may accept at once. Dropping it stops listening. Processes of the acceptor's user, of
/// administrators and of the system may connect; connections over the network are rejected.
#[derive(Debug)]
pub struct Acceptor {
    addr: Addr,
    instance: Instance,
    /// The instance without a client yet; none after a shutdown.
    next: Mutex<Option<Arc<Listening>>>,
    stop: Event,
    shut_down: AtomicBool,
    nonblocking: AtomicBool,
}

/// The result of polling for a client.
enum Polled {
    Stream(Stream),
    /// No client has connected.
    NoClient(Arc<Listening>),
    /// A client may have connected, but the maximum number of streams is open.
    TooMany,
}

impl Acceptor {
    /// Starts to listen at `addr`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when there is such a pipe, which also means that no other process can
    /// have made an instance of this one before; [`io::ErrorKind::InvalidInput`] for an address without a
    /// name; others of the operating system.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, &AcceptorOptions::default())
    }

    /// Starts to listen at `addr` with the given options.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`io::ErrorKind::InvalidInput`] for a number of connections out of range.
    pub fn open_with(addr: &Addr, options: &AcceptorOptions) -> io::Result<Self> {
        let instance = options.instance()?;
        let first = Pipe::create(addr.rendezvous()?, &instance, true).map_err(|error| match is_in_use(&error) {
            true => io::Error::new(io::ErrorKind::AddrInUse, error),
            false => error,
        })?;
        Ok(Self {
            addr: addr.clone(),
            instance,
            next: Mutex::new(Some(Arc::new(Listening::start(Arc::new(first))?))),
            stop: Event::new()?,
            shut_down: AtomicBool::new(false),
            nonblocking: AtomicBool::new(false),
        })
    }

    /// Waits for a client. Its address has no name.
    ///
    /// When the maximum number of accepted streams ([`AcceptorOptions::connections`]) is open, this waits
    /// until one of them is closed.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] once [`shutdown`](Self::shutdown) was called;
    /// [`io::ErrorKind::WouldBlock`] when it is nonblocking ([`set_nonblocking`](Self::set_nonblocking)) and
    /// no client has connected. Any other error concerns this call only.
    pub fn accept(&self) -> io::Result<(Stream, Addr)> {
        match self.nonblocking.load(Ordering::Relaxed) {
            true => self.try_accept(),
            false => self.accept_until(Deadline::NEVER),
        }
    }

    /// Like [`accept`](Self::accept), but never waits.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn try_accept(&self) -> io::Result<(Stream, Addr)> {
        match self.next()? {
            Polled::Stream(stream) => Ok((stream, Addr::unnamed())),
            Polled::NoClient(_) | Polled::TooMany => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Like [`accept`](Self::accept), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`accept`](Self::accept); [`io::ErrorKind::TimedOut`] on a timeout.
    pub fn accept_within(&self, timeout: Duration) -> io::Result<(Stream, Addr)> {
        self.accept_until(Deadline::after(timeout))
    }

    /// Stops accepting: every [`accept`](Self::accept), waiting or future, returns
    /// [`io::ErrorKind::NotConnected`]. A client that has connected and was not accepted sees the end.
    /// Calling it again does nothing.
    ///
    /// # Errors
    /// None.
    pub fn shutdown(&self) -> io::Result<()> {
        self.shut_down.store(true, Ordering::SeqCst);
        self.stop.set();
        let next = self.next.lock().take();
        drop(next);
        Ok(())
    }

    /// Whether [`shutdown`](Self::shutdown) was called.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::SeqCst)
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<Addr> {
        Ok(self.addr.clone())
    }

    /// Whether `accept` waits for a client or fails at once with [`io::ErrorKind::WouldBlock`]. Accepted
    /// streams wait in any case.
    ///
    /// # Errors
    /// None.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.nonblocking.store(on, Ordering::Relaxed);
        Ok(())
    }

    fn accept_until(&self, deadline: Deadline) -> io::Result<(Stream, Addr)> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let in_time = match self.next()? {
                Polled::Stream(stream) => return Ok((stream, Addr::unnamed())),
                Polled::NoClient(listening) => listening.wait(&self.stop, deadline)?,
                Polled::TooMany => {
                    let rest = pause.min(deadline.remaining().unwrap_or(pause));
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    self.stop.wait(Deadline::after(rest))?;
                    !deadline.is_over()
                }
            };
            if !in_time {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// The stream of the connected client, if another instance can replace it: the name always has an
    /// instance.
    fn next(&self) -> io::Result<Polled> {
        let mut slot = self.next.lock();
        let Some(listening) = slot.as_ref() else {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the acceptor was shut down"));
        };
        match listening.has_connected() {
            Ok(false) => return Ok(Polled::NoClient(Arc::clone(listening))),
            // The thread that started the wait has ended, and with it the pending operation; or the cause is
            // unknown.
            Err(error) => {
                *slot = Some(Arc::new(Listening::start(Arc::clone(listening.pipe()))?));
                return if is_aborted(&error) {
                    drop(slot);
                    self.next()
                } else {
                    Err(error)
                };
            }
            Ok(true) => {}
        }
        let another = match Pipe::create(self.addr.rendezvous()?, &self.instance, false) {
            Err(error) if is_busy(&error) => return Ok(Polled::TooMany),
            created => Listening::start(Arc::new(created?))?,
        };
        let pipe = Arc::clone(listening.pipe());
        *slot = Some(Arc::new(another));
        drop(slot);
        Stream::new(pipe).map(Polled::Stream)
    }
}

/// Pauses between polls: no event signals that an instance is free.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
