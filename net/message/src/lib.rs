//! Received data: reference counted, aligned, chainable blocks.
//!
//! A connection reads into a [`ReceiveBuffer`] and takes each message from it as a [`MessageBlock`], which may be
//! cloned, cut and handed to other threads without copying an octet. When the last of them is gone, the buffer reads
//! into the same memory again: in the steady state nothing is allocated and nothing is zeroed.
//!
//! ```
//! use spandrel_message::ReceiveBuffer;
//!
//! let mut buffer = ReceiveBuffer::new(4096);
//! // As a `recv` from a stream would do it:
//! buffer.spare(16)[..8].copy_from_slice(b"ping:pon");
//! buffer.commit(8);
//!
//! let message = buffer.take(5);
//! assert_eq!(&*message, b"ping:");
//! assert_eq!(buffer.filled(), b"pon");
//! ```
//!
//! # Why not `BytesMut`
//!
//! `bytes::BytesMut` was made for the same purpose and lacks two things that the object request broker's short path
//! needs. What was read once becomes uninitialised memory again when it is refilled, so safe code must zero it before
//! every read (64 KiB cost more than the call that fills them) and code that does not is `unsafe`. And it promises no
//! alignment, while messages here start on a multiple of 16, so that the doubles in them can be lent to a
//! servant as `&[f64]`. Both follow from `bytes` owning plain octets; here a block is an array of aligned chunks that is
//! initialised once, for its whole life. Where the ecosystem wants [`bytes::Bytes`], a block turns into one without
//! copying.
//!
//! Reading from a socket belongs to `spandrel-ipc`, finding messages in the octets to `spandrel-giop`; queues of
//! messages come to this crate with the concurrency framework.

#![forbid(unsafe_code)]

mod block;
mod message_block;
mod receive_buffer;

pub use block::ALIGNMENT;
pub use message_block::{Links, MessageBlock};
pub use receive_buffer::{Memory, ReceiveBuffer};
