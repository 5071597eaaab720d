//! Services that handle whole frames.

use std::io;

use spandrel_ipc::Family;

use super::{FrameBuffer, Framing};
use crate::{CloseReason, Expired, Notice, Peer, ServiceHandler};

/// The octets received at once.
const CHUNK_OCTETS: usize = 8192;

/// Serves one connection whose input consists of frames, as the handler of a [`Framed`].
///
/// All methods but these two are those of [`ServiceHandler`]: `handle_frame` in place of `handle_input`, and
/// `handle_end`.
pub trait FrameHandler<F: Family>: Send + 'static {
    /// As [`ServiceHandler::open`].
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let _ = peer;
        Ok(())
    }

    /// A whole frame has arrived, with this content. Frames that arrive together are handled one after the
    /// other, as long as the peer takes the octets that are [put](Peer::put) for it.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_frame(&mut self, peer: &mut Peer<'_, F>, frame: &[u8]) -> io::Result<()>;

    /// The input has ended, after the last frame. Closes the connection unless it is implemented otherwise.
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_end(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.close();
        Ok(())
    }

    /// As [`ServiceHandler::handle_sent`].
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_sent(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let _ = peer;
        Ok(())
    }

    /// As [`ServiceHandler::handle_timeout`].
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, timer: Expired) -> io::Result<()> {
        let _ = (peer, timer);
        Ok(())
    }

    /// As [`ServiceHandler::handle_notice`].
    ///
    /// # Errors
    /// Any; the connection is closed then.
    fn handle_notice(&mut self, peer: &mut Peer<'_, F>, notice: Notice) -> io::Result<()> {
        let _ = (peer, notice);
        Ok(())
    }

    /// As [`ServiceHandler::close`]. A frame beyond the limit is [`CloseReason::LimitExceeded`]; an end
    /// inside of a frame is [`CloseReason::Failed`] with [`io::ErrorKind::UnexpectedEof`].
    fn close(&mut self, peer: &mut Peer<'_, F>, reason: &CloseReason) {
        let _ = (peer, reason);
    }
}

/// A service that divides its input into frames, for a [`FrameHandler`].
#[derive(Debug)]
pub struct Framed<P, H> {
    buffer: FrameBuffer<P>,
    handler: H,
}

impl<P: Framing, H> Framed<P, H> {
    /// Passes the frames of `framing` to `handler`.
    pub fn new(framing: P, handler: H) -> Self {
        Self { buffer: FrameBuffer::new(framing), handler }
    }

    /// Handles whole frames while the peer takes the answers: the others wait for `handle_sent`.
    fn deliver<F: Family>(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()>
    where
        H: FrameHandler<F>,
    {
        while !peer.connection.is_closing && peer.waiting() == 0 {
            let Some(frame) = self.buffer.next_frame()? else { break };
            nothing_to_do(self.handler.handle_frame(peer, frame))?;
        }
        Ok(())
    }
}

/// `WouldBlock` closes no connection.
fn nothing_to_do(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        result => result,
    }
}

impl<F: Family, P: Framing, H: FrameHandler<F>> ServiceHandler<F> for Framed<P, H> {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        self.handler.open(peer)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        let mut chunk = [0; CHUNK_OCTETS];
        match peer.recv(&mut chunk)? {
            0 => {
                if let Some(frame) = self.buffer.last_frame()? {
                    nothing_to_do(self.handler.handle_frame(peer, frame))?;
                }
                self.handler.handle_end(peer)
            }
            count => {
                self.buffer.push(&chunk[..count]);
                self.deliver(peer)
            }
        }
    }

    fn handle_sent(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        nothing_to_do(self.handler.handle_sent(peer))?;
        self.deliver(peer)
    }

    fn handle_timeout(&mut self, peer: &mut Peer<'_, F>, timer: Expired) -> io::Result<()> {
        self.handler.handle_timeout(peer, timer)
    }

    fn handle_notice(&mut self, peer: &mut Peer<'_, F>, notice: Notice) -> io::Result<()> {
        self.handler.handle_notice(peer, notice)
    }

    fn close(&mut self, peer: &mut Peer<'_, F>, reason: &CloseReason) {
        self.handler.close(peer, reason);
    }
}
