//! Division of received octets into frames, without a connection.

use std::io;

use super::{FoundFrame, Framing};

/// The capacity that an empty buffer keeps.
const IDLE_OCTETS: usize = 4096;

/// Received octets, of which whole frames are taken. It performs no input itself.
///
/// It never holds more than the limit of its [`Framing`] and the octets of one [`push`](Self::push), if all
/// whole frames are taken in between.
#[derive(Debug)]
pub struct FrameBuffer<P> {
    framing: P,
    octets: Vec<u8>,
    /// The number of octets of frames that were taken.
    taken: usize,
}

impl<P: Framing> FrameBuffer<P> {
    /// Creates a buffer that divides its octets by `framing`.
    pub fn new(framing: P) -> Self {
        Self { framing, octets: Vec::new(), taken: 0 }
    }

    /// The rule by which it finds the ends of frames.
    pub fn framing(&self) -> &P {
        &self.framing
    }

    /// The number of octets that wait for the end of their frame, or to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.octets.len() - self.taken
    }

    /// Whether no octets wait.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends received octets behind those not yet taken.
    pub fn push(&mut self, received: &[u8]) {
        self.octets.drain(..self.taken);
        self.taken = 0;
        self.octets.extend_from_slice(received);
    }

    /// Takes the next frame, and returns its content; `None` until more octets arrive.
    ///
    /// # Errors
    /// As [`Framing::find`]. The stream cannot be divided any further.
    pub fn next_frame(&mut self) -> io::Result<Option<&[u8]>> {
        match self.framing.find(&self.octets[self.taken..])? {
            Some(found) => Ok(Some(self.take(&found))),
            None => {
                if self.is_empty() {
                    self.octets.clear();
                    self.taken = 0;
                    self.octets.shrink_to(IDLE_OCTETS); // an idle connection keeps little memory
                }
                Ok(None)
            }
        }
    }

    /// Takes the rest after the end of the stream, once there is no [next](Self::next_frame) frame; `None` if
    /// the stream ended with a frame.
    ///
    /// # Errors
    /// As [`Framing::find_last`].
    pub fn last_frame(&mut self) -> io::Result<Option<&[u8]>> {
        if self.is_empty() {
            return Ok(None);
        }
        let frame = self.framing.find_last(&self.octets[self.taken..])?;
        Ok(Some(self.take(&frame)))
    }

    fn take(&mut self, found: &FoundFrame) -> &[u8] {
        let rest = &self.octets[self.taken..];
        self.taken += found.len;
        &rest[found.content.clone()]
    }
}
