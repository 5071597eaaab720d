//! Octets that arrive after the last reply of a connection: they are read and dropped.
//!
//! Without that, the peer's transport could take the last reply for undelivered.

use std::{io, time::Duration};

use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::time::Deadline;
use spandrel_transport::ReactorTransport;

/// The time for which octets from the peer are read and dropped when its connection ends.
pub(super) const LINGER: Duration = Duration::from_millis(500);
/// The most octets that are read and dropped.
const LINGER_OCTETS: usize = 1 << 20;
/// The most such reads in one visit of a thread that serves other connections, too.
const LINGER_READS: usize = 16;

/// The octets of one connection that are read and dropped, up to a limit.
#[derive(Debug)]
pub(super) struct LateOctets {
    dropped: AtomicUsize,
}

impl Default for LateOctets {
    fn default() -> Self {
        Self { dropped: AtomicUsize::new(0) }
    }
}

impl LateOctets {
    /// Reads and drops incoming octets for a bounded time, so that closing does not destroy the octets just
    /// written.
    pub(super) fn drain(&self, transport: &dyn ReactorTransport) {
        let deadline = Deadline::after(LINGER);
        let mut room = [0; 4096];
        loop {
            if deadline.is_over() || transport.set_recv_timeout(deadline.remaining()).is_err() {
                return;
            }
            match transport.recv(&mut room) {
                Ok(count) if count > 0 && !self.is_too_much(count) => {}
                _ => return,
            }
        }
    }

    /// Reads and drops incoming octets without waiting. Returns true if none will follow, or if too many have
    /// arrived.
    pub(super) fn drop_ready(&self, transport: &dyn ReactorTransport) -> bool {
        let mut room = [0; 4096];
        for _ in 0..LINGER_READS {
            match transport.try_recv(&mut room) {
                Ok(count) if count > 0 && !self.is_too_much(count) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                _ => return true,
            }
        }
        false
    }

    fn is_too_much(&self, count: usize) -> bool {
        self.dropped.fetch_add(count, Ordering::Relaxed) + count >= LINGER_OCTETS
    }
}
