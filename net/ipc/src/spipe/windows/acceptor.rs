//! Making STREAM pipes for those who come.

use std::io;
use std::time::Duration;

use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::{Arc, Mutex};

use super::{AcceptorOptions, Addr, Stream};
use crate::deadline::Deadline;
use crate::sys::named_pipe::{Event, Instance, Listening, Pipe, is_aborted, is_busy, is_in_use};

/// Waits under a name for processes of this machine to come, each of which is given a pipe; carries no octets itself.
///
/// Several threads may accept at once. Dropping it stops listening. Processes of the user whose process this is may come, and those of
/// administrators and of the system; whoever comes over the network is rejected.
#[derive(Debug)]
pub struct Acceptor {
    addr: Addr,
    instance: Instance,
    /// The instance that nobody has been given yet; none after a shutdown.
    next: Mutex<Option<Arc<Listening>>>,
    stop: Event,
    shut_down: AtomicBool,
    nonblocking: AtomicBool,
}

/// What there is to be accepted.
enum Next {
    Stream(Stream),
    /// Nobody has come.
    Nobody(Arc<Listening>),
    /// Perhaps somebody has, but there are as many streams as there may be.
    TooMany,
}

impl Acceptor {
    /// Starts to listen at `addr`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when there is such a pipe, which also means that nobody else can have made an instance of this one
    /// before us; [`io::ErrorKind::InvalidInput`] for an address without a name; others of the operating system.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, &AcceptorOptions::default())
    }

    /// Starts to listen at `addr` with the given options.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`io::ErrorKind::InvalidInput`] for a number of connections that there cannot be.
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

    /// Waits for somebody to come. The address has no name.
    ///
    /// When there are as many accepted streams as [`AcceptorOptions::connections`] allows, this waits until one of them is gone.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] once [`shutdown`](Self::shutdown) was called; [`io::ErrorKind::WouldBlock`] when it must not
    /// block ([`set_nonblocking`](Self::set_nonblocking)) and there is nobody. Any other error concerns this call only.
    pub fn accept(&self) -> io::Result<(Stream, Addr)> {
        match self.nonblocking.load(Ordering::Relaxed) {
            true => self.try_accept(),
            false => self.accept_until(Deadline::after(None)),
        }
    }

    /// Like [`accept`](Self::accept), but never waits.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn try_accept(&self) -> io::Result<(Stream, Addr)> {
        match self.next()? {
            Next::Stream(stream) => Ok((stream, Addr::unnamed())),
            Next::Nobody(_) | Next::TooMany => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Like [`accept`](Self::accept), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`accept`](Self::accept); [`io::ErrorKind::TimedOut`] when the time ran out.
    pub fn accept_within(&self, timeout: Duration) -> io::Result<(Stream, Addr)> {
        self.accept_until(Deadline::after(Some(timeout)))
    }

    /// Stops accepting: every [`accept`](Self::accept), waiting or yet to come, ends with [`io::ErrorKind::NotConnected`]. Whoever has
    /// come and was not accepted sees the end. Calling it again does nothing.
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

    /// Where it listens.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<Addr> {
        Ok(self.addr.clone())
    }

    /// Whether `accept` waits for somebody or fails at once with [`io::ErrorKind::WouldBlock`]. Accepted streams wait in any case.
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
                Next::Stream(stream) => return Ok((stream, Addr::unnamed())),
                Next::Nobody(listening) => listening.wait(&self.stop, deadline)?,
                Next::TooMany => {
                    let rest = pause.min(deadline.left().unwrap_or(pause));
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    self.stop.wait(Deadline::after(Some(rest)))?;
                    !deadline.left().is_some_and(|left| left.is_zero())
                }
            };
            if !in_time {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// The stream of whoever has come, if there is another instance to put in its place: the name is never without one.
    fn next(&self) -> io::Result<Next> {
        let mut slot = self.next.lock();
        let Some(listening) = slot.as_ref() else {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the acceptor was shut down"));
        };
        match listening.has_come() {
            Ok(false) => return Ok(Next::Nobody(Arc::clone(listening))),
            // The thread that had begun to wait has ended, and with it what the system did for it; or nobody knows why.
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
            Err(error) if is_busy(&error) => return Ok(Next::TooMany),
            created => Listening::start(Arc::new(created?))?,
        };
        let pipe = Arc::clone(listening.pipe());
        *slot = Some(Arc::new(another));
        drop(slot);
        Stream::new(pipe).map(Next::Stream)
    }
}

/// There is nothing to wait for that tells that an instance is gone.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
