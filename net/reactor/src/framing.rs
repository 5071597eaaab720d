//! Frames: messages with a visible end in a stream of octets, such as lines or octets after their length.
//!
//! A [`Framed`] is a [`ServiceHandler`](crate::ServiceHandler) that divides its input into frames and passes
//! whole ones to a [`FrameHandler`]. A [`Framing`] is the form of the frames: [`Lines`], [`LengthPrefix`], or
//! an implementation of the program. It bounds them, so that a peer that sends an endless line or a huge
//! length ends its own connection, with [`CloseReason::LimitExceeded`](crate::CloseReason::LimitExceeded).
//!
//! ```
//! use std::io;
//! use spandrel_ipc::inet::{Addr, Inet};
//! use spandrel_reactor::framing::{FrameHandler, Framed, Lines};
//! use spandrel_reactor::{Acceptor, Family, Peer, Reactor};
//!
//! /// Answers each line with its length.
//! struct Lengths;
//!
//! impl<F: Family> FrameHandler<F> for Lengths {
//!     fn handle_frame(&mut self, peer: &mut Peer<'_, F>, line: &[u8]) -> io::Result<()> {
//!         peer.put(format!("{}\n", line.len()).as_bytes())
//!     }
//! }
//!
//! let reactor = Reactor::new()?;
//! let server = Acceptor::new(Inet::default(), || Framed::new(Lines::new(1024), Lengths))
//!     .open(reactor.registry(), &Addr::loopback(0))?;
//! # server.close();
//! # Ok::<(), io::Error>(())
//! ```

mod buffer;
mod framed;
mod length_prefix;
mod lines;

use std::io;
use std::ops::Range;

pub use buffer::FrameBuffer;
pub use framed::{FrameHandler, Framed};
pub use length_prefix::LengthPrefix;
pub use lines::Lines;

/// The form of the frames in a stream of octets.
///
/// One value serves one direction of one connection, since it may remember how far it has searched.
pub trait Framing: Send + 'static {
    /// Finds the first frame of `input`, which begins where the frame before ended; `None` while it is
    /// incomplete. Until a frame was found, the next call has the same octets and then more.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] for a frame beyond the limit, as soon as that is certain;
    /// [`io::ErrorKind::InvalidData`] for octets that are no frame.
    fn find(&mut self, input: &[u8]) -> io::Result<Option<FoundFrame>>;

    /// Finds the last frame in `input`, which is not empty and in which [`find`](Self::find) has found none:
    /// the stream has ended.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the frame is incomplete (the default); others as for
    /// [`find`](Self::find).
    fn find_last(&mut self, input: &[u8]) -> io::Result<FoundFrame> {
        let message = format!("the stream ended inside of a frame, after {} of its octets", input.len());
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, message))
    }

    /// The octets of one frame with this content, ready to be sent.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for content that is no frame or is beyond the limit.
    fn encode(&self, content: &[u8]) -> io::Result<Vec<u8>>;
}

/// A frame in a slice of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFrame {
    /// The octets of the content in the slice; headers and delimiters are outside.
    pub content: Range<usize>,
    /// The number of octets of the frame, with all that belongs to its form.
    pub len: usize,
}

fn too_long(what: std::fmt::Arguments<'_>, limit: usize) -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, format!("the peer sent {what}; the limit is {limit} octets"))
}

fn not_encodable(what: std::fmt::Arguments<'_>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("cannot encode a frame: {what}"))
}
