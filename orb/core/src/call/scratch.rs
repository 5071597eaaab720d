//! One scratch block per thread, so that marshaling allocates nothing in the steady state.

use std::cell::Cell;

use spandrel_cdr::Encoder;
use spandrel_message::LargeBlocks;
use spandrel_sync::thread_local;

/// The octets above which a block is not the thread's own: a thread that waits has no more.
const OWN_OCTETS: usize = 64 << 10;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The size of the last message's block, if that was too large for the thread.
    static LARGE: Cell<usize> = const { Cell::new(0) };
}

/// The larger blocks that are free.
static FREE: LargeBlocks<Vec<u8>> = LargeBlocks::new();

/// Takes a scratch block: one as large as this thread's last long message, otherwise the thread's own, which is
/// empty if it is in use further up the stack.
#[inline]
pub fn take() -> Vec<u8> {
    let large = LARGE.with(Cell::get);
    if large != 0
        && let Some(block) = FREE.take(large)
    {
        return block;
    }
    SCRATCH.with(Cell::take)
}

/// Returns the block of a message that is not needed any more, for the next message: of this thread, or of any
/// if the block is large.
#[inline]
pub fn give(message: Encoder<'_>) {
    let len = message.position();
    let block = message.into_scratch();
    if block.len() <= OWN_OCTETS {
        LARGE.with(|large| large.set(0));
        SCRATCH.with(|scratch| scratch.set(block));
    } else {
        give_large(block, len);
    }
}

/// Returns a large block. The thread takes such a one again if the message of `len` octets was long itself.
#[cold]
fn give_large(block: Vec<u8>, len: usize) {
    LARGE.with(|large| large.set(if len > OWN_OCTETS { block.len() } else { 0 }));
    drop(FREE.give(block));
}
