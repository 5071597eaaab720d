//! A limit of the time without input, for any handler.

use std::io;
use std::time::Duration;

use spandrel::net::ipc::Family;
use spandrel::net::reactor::{CloseReason, Expired, Notice, Peer, ServiceHandler};

/// The argument of the timer; those of handlers are smaller.
const IDLE: u64 = u64::MAX;

/// Closes a connection that has brought no input for a time.
pub(crate) struct IdleLimit<H> {
    handler: H,
    limit: Duration,
    has_input: bool,
}

impl<H> IdleLimit<H> {
    pub(crate) fn new(handler: H, limit: Duration) -> Self {
        Self { handler, limit, has_input: false }
    }
}

impl<F: Family, H: ServiceHandler<F>> ServiceHandler<F> for IdleLimit<H> {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.schedule(self.limit, Some(self.limit), IDLE)?;
        self.handler.open(peer)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.has_input = true;
        self.handler.handle_input(peer)
    }

    fn handle_sent(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.has_input = true;
        self.handler.handle_sent(peer)
    }

    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, timer: Expired) -> io::Result<()> {
        if timer.argument != IDLE {
            return self.handler.handle_timeout(peer, timer);
        }
        if !std::mem::take(&mut self.has_input) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the connection was idle"));
        }
        Ok(())
    }

    fn handle_notice(&mut self, peer: &mut Peer<'_, F>, notice: Notice) -> io::Result<()> {
        self.handler.handle_notice(peer, notice)
    }

    fn close(&mut self, peer: &mut Peer<'_, F>, reason: &CloseReason) {
        self.handler.close(peer, reason);
    }
}
