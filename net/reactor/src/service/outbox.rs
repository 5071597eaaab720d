//! Octets that the peer has not taken yet.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use spandrel_ipc::Transmit;

/// Octets to be sent, in order.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: VecDeque<u8>,
    limit: usize,
}

impl Outbox {
    /// A queue of at most `limit` octets.
    pub(crate) fn new(limit: usize) -> Self {
        Self { waiting: VecDeque::new(), limit }
    }

    /// The limit in octets.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn set_limit(&mut self, octets: usize) {
        self.limit = octets;
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends as much as the peer takes now and queues the rest, within the limit.
    pub(crate) fn put(&mut self, stream: &impl Transmit, data: &[u8]) -> io::Result<()> {
        let rest = self.send_some(stream, data)?;
        if rest.is_empty() {
            return Ok(());
        }
        if self.waiting.len() + rest.len() > self.limit {
            let message = format!(
                "the peer does not read: {} octets are queued, the limit is {}",
                self.waiting.len(),
                self.limit
            );
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        }
        self.waiting.extend(rest);
        Ok(())
    }

    /// As [`put`](Self::put), for octets that were counted against the limit before.
    pub(crate) fn append(&mut self, stream: &impl Transmit, data: &[u8]) -> io::Result<()> {
        let rest = self.send_some(stream, data)?;
        self.waiting.extend(rest);
        Ok(())
    }

    /// Sends as much as the peer takes now, unless octets are queued, and returns the rest.
    fn send_some<'d>(&self, stream: &impl Transmit, data: &'d [u8]) -> io::Result<&'d [u8]> {
        let mut rest = data;
        while self.waiting.is_empty() && !rest.is_empty() {
            match stream.try_send(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(rest)
    }

    /// Sends everything, and waits for the peer.
    pub(crate) fn send_all(&mut self, stream: &impl Transmit) -> io::Result<()> {
        if !self.waiting.is_empty() {
            send_n(stream, self.waiting.make_contiguous())?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Sends as much as the peer takes now; true once the queue is empty.
    pub(crate) fn flush(&mut self, stream: &impl Transmit) -> io::Result<bool> {
        while !self.waiting.is_empty() {
            let (front, back) = self.waiting.as_slices();
            match stream.try_send_v(&[IoSlice::new(front), IoSlice::new(back)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => drop(self.waiting.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.waiting.shrink_to(4096); // an idle connection keeps little memory
        Ok(true)
    }
}

/// Sends all of `data`, and waits for the peer.
pub(crate) fn send_n(stream: &impl Transmit, data: &[u8]) -> io::Result<()> {
    stream.send_n(data).map_err(|error| {
        let error = io::Error::from(error);
        // Some systems report a timeout so; but the next call would then miss octets of this one.
        if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
    })
}
