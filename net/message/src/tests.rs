//! Message blocks and receive buffers.

mod message_block;
mod receive_buffer;
