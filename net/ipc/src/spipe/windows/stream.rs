//! One end of a STREAM pipe.

use std::io;
use std::time::Duration;

use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::{Arc, Mutex};

use crate::deadline::Deadline;
use crate::sys::named_pipe::{Event, Outgoing, Pipe};

/// One end of a STREAM pipe.
///
/// All methods take `&self`: one thread may send while another receives. Dropping the last clone of it closes it.
///
/// What is sent is copied into a queue of this stream first, of 65,536 octets, which Windows empties into the queue of the pipe as the
/// peer makes room there. `send` waits for that as long as it may; octets that then still lie in the queue count as sent, so that a time-out
/// never leaves unknown how many were. After the stream was closed, Windows has ten seconds for them, and as long as the process lives.
#[derive(Debug)]
pub struct Stream {
    pub(super) end: Arc<End>,
}

/// What the clones of a stream have in common.
#[derive(Debug)]
pub(super) struct End {
    pub(super) outgoing: Arc<Outgoing>,
    /// Set when this end is shut down.
    pub(super) stop: Event,
    /// Events that no operation uses now: as many as threads have ever received at once.
    pub(super) events: Mutex<Vec<Event>>,
    pub(super) settings: Settings,
    peer_process_id: Option<u32>,
}

#[derive(Debug, Default)]
pub(super) struct Settings {
    nonblocking: AtomicBool,
    pub(super) recv_timeout: Mutex<Option<Duration>>,
    pub(super) send_timeout: Mutex<Option<Duration>>,
}

/// How long a transfer may wait, and what it says then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) deadline: Deadline,
    pub(super) over: io::ErrorKind,
}

impl Patience {
    /// None at all.
    pub(super) fn none() -> Self {
        Self { deadline: Deadline::after(Some(Duration::ZERO)), over: io::ErrorKind::WouldBlock }
    }

    /// For so long from now; for ever if there is no time-out.
    pub(super) fn of(timeout: Option<Duration>) -> Self {
        Self { deadline: Deadline::after(timeout), over: io::ErrorKind::TimedOut }
    }
}

impl Stream {
    pub(super) fn new(pipe: impl Into<Arc<Pipe>>) -> io::Result<Self> {
        let pipe = pipe.into();
        Ok(Self {
            end: Arc::new(End {
                peer_process_id: pipe.peer_process_id().ok(),
                outgoing: Outgoing::new(pipe)?,
                stop: Event::new()?,
                events: Mutex::default(),
                settings: Settings::default(),
            }),
        })
    }

    /// As this stream is set up to.
    pub(super) fn patience(&self, timeout: &Mutex<Option<Duration>>) -> Patience {
        match self.end.settings.nonblocking.load(Ordering::Relaxed) {
            true => Patience::none(),
            false => Patience::of(*timeout.lock()),
        }
    }

    /// The process at the other end when the pipe was made, as the system tells (`GetNamedPipeClientProcessId`,
    /// `GetNamedPipeServerProcessId`); our own for the ends of a [`pair`](super::pair). It may have ended since, and its number be another's. `None`
    /// where the system does not tell.
    #[must_use]
    pub fn peer_process_id(&self) -> Option<u32> {
        self.end.peer_process_id
    }

    /// Whether transfers fail at once with [`io::ErrorKind::WouldBlock`] instead of waiting; for all clones of this stream.
    ///
    /// # Errors
    /// None.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.end.settings.nonblocking.store(on, Ordering::Relaxed);
        Ok(())
    }

    /// Ends both directions, for all clones of this stream; also ends waits in other threads. From then on, receiving brings the end,
    /// and sending fails with [`io::ErrorKind::BrokenPipe`]. The peer receives what was sent, then the end. (A named pipe has no
    /// half-close.)
    ///
    /// # Errors
    /// None.
    pub fn shutdown(&self) -> io::Result<()> {
        self.end.shutdown();
        Ok(())
    }

    /// The same end once more: clones have everything in common.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { end: Arc::clone(&self.end) })
    }
}

impl End {
    fn shutdown(&self) {
        self.stop.set();
        self.outgoing.close();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// A time-out, unless it is of no time.
pub(super) fn set_timeout(slot: &Mutex<Option<Duration>>, timeout: Option<Duration>) -> io::Result<()> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a time-out of zero"));
    }
    *slot.lock() = timeout;
    Ok(())
}
