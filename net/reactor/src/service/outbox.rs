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

    /// Sets the limit in octets.
    pub(crate) fn limit(&mut self, octets: usize) {
        self.limit = octets;
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends as much as the peer takes now and queues the rest.
    pub(crate) fn put(&mut self, stream: &impl Transmit, data: &[u8]) -> io::Result<()> {
        let mut rest = data;
        if self.waiting.is_empty() {
            while !rest.is_empty() {
                match stream.try_send(rest) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(sent) => rest = &rest[sent..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
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
