//! One end of a STREAM pipe.

use std::io;
use std::time::Duration;

use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::time::Deadline;
use spandrel_sync::{Arc, Mutex};

use crate::sys::named_pipe::{Outgoing, Pipe};
use crate::sys::overlapped::Event;

/// One end of a STREAM pipe.
///
/// All methods take `&self`: one thread may send while another receives. Dropping the last clone of it closes
/// it.
///
/// Octets are copied into a queue of this stream first, of 65,536 octets, which Windows moves to the queue of
/// the pipe as the peer makes room. `send` waits for that within its time limit. Octets still in the queue
/// after it count as sent, so that a timeout never leaves unknown how many were. After the stream is closed,
/// Windows has ten seconds for them, as long as the process lives.
#[derive(Debug)]
pub struct Stream {
    pub(super) end: Arc<End>,
}

/// The state that the clones of a stream share.
#[derive(Debug)]
pub(super) struct End {
    pub(super) outgoing: Arc<Outgoing>,
    /// Set when this end is shut down.
    pub(super) stop: Event,
    pub(super) settings: Settings,
    peer_process_id: Option<u32>,
}

#[derive(Debug, Default)]
pub(super) struct Settings {
    nonblocking: AtomicBool,
    pub(super) recv_timeout: Mutex<Option<Duration>>,
    pub(super) send_timeout: Mutex<Option<Duration>>,
}

/// The time limit of a transfer, and the error after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitLimit {
    pub(super) deadline: Deadline,
    pub(super) on_timeout: io::ErrorKind,
}

impl WaitLimit {
    /// A limit under which a call returns at once.
    pub(super) fn none() -> Self {
        Self { deadline: Deadline::after(Duration::ZERO), on_timeout: io::ErrorKind::WouldBlock }
    }

    /// The timeout from now; without a limit for `None`.
    pub(super) fn of(timeout: Option<Duration>) -> Self {
        Self { deadline: Deadline::after(timeout), on_timeout: io::ErrorKind::TimedOut }
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
                settings: Settings::default(),
            }),
        })
    }

    /// As this stream is configured.
    pub(super) fn limit(&self, timeout: &Mutex<Option<Duration>>) -> WaitLimit {
        match self.end.settings.nonblocking.load(Ordering::Relaxed) {
            true => WaitLimit::none(),
            false => WaitLimit::of(*timeout.lock()),
        }
    }

    /// The process at the other end when the pipe was made, as reported by the system
    /// (`GetNamedPipeClientProcessId`, `GetNamedPipeServerProcessId`); this process for the ends of a
    /// [`pair`](super::pair). It may have ended since, and its ID been reused. `None` where the system does
    /// not report it.
    #[must_use]
    pub fn peer_process_id(&self) -> Option<u32> {
        self.end.peer_process_id
    }

    /// Sets for all clones of the stream whether transfers fail at once with [`io::ErrorKind::WouldBlock`]
    /// instead of waiting.
    ///
    /// # Errors
    /// None.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.end.settings.nonblocking.store(on, Ordering::Relaxed);
        Ok(())
    }

    /// Ends both directions, for all clones of this stream; also ends waits in other threads. From then on,
    /// receiving returns the end, and sending fails with [`io::ErrorKind::BrokenPipe`]. The peer receives the
    /// octets sent, then the end. (A named pipe has no half-close.)
    ///
    /// # Errors
    /// None.
    pub fn shutdown(&self) -> io::Result<()> {
        self.end.shutdown();
        Ok(())
    }

    /// Another handle to the same end: clones share everything.
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

/// Sets a timeout; rejects zero.
pub(super) fn set_timeout(slot: &Mutex<Option<Duration>>, timeout: Option<Duration>) -> io::Result<()> {
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a timeout of zero; use the `try_` methods, which never wait",
        ));
    }
    *slot.lock() = timeout;
    Ok(())
}
