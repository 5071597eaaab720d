//! Received data: reference counted, aligned, chainable blocks.
//!
//! A connection reads into a [`ReceiveBuffer`] and takes each message from it as a [`MessageBlock`], which
//! can be cloned, split and passed to other threads without copying an octet. When the last of them is
//! dropped, the buffer reads into the same memory again: in the steady state nothing is allocated and nothing
//! is zeroed.
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
//! `bytes::BytesMut` serves the same purpose and lacks two properties that the short path of a call needs.
//! First, refilled memory counts as uninitialised again, so safe code must zero it before every read; for 64
//! KiB that costs more than the system call that fills it. Second, it promises no alignment, while messages
//! here start at a multiple of 16, so that a servant can borrow their doubles as `&[f64]`. Both follow from
//! plain octets as the storage of `bytes`; a block here is an array of aligned chunks that is initialised
//! once for its lifetime. A block converts to [`bytes::Bytes`] without copying.
//!
//! Reading from a socket belongs to `spandrel-ipc`, message framing to `spandrel-giop`.

#![forbid(unsafe_code)]

mod account;
mod block;
mod large_blocks;
mod message_block;
mod receive_buffer;
#[cfg(test)]
mod tests;

pub use account::{MemoryAccount, SharedAccount};
pub use block::ALIGNMENT;
pub use large_blocks::{LargeBlock, LargeBlocks};
pub use message_block::{Links, MessageBlock};
pub use receive_buffer::{Memory, ReceiveBuffer};
