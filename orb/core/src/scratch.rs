//! One scratch block per thread, so that marshaling allocates nothing in the steady state.

use std::cell::Cell;

use spandrel_sync::thread_local;

/// Larger blocks than this are returned to the allocator.
const KEEP_OCTETS: usize = 1 << 20;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Takes this thread's scratch block; empty if it is in use further up the stack.
#[inline]
pub fn take() -> Vec<u8> {
    SCRATCH.with(Cell::take)
}

/// Returns a block for the next message of this thread.
#[inline]
pub fn give(block: Vec<u8>) {
    if block.len() <= KEEP_OCTETS {
        SCRATCH.with(|scratch| scratch.set(block));
    }
}
