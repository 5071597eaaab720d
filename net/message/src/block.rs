//! The memory under message blocks: aligned, initialised once, shared by counting.

use std::fmt;
use std::sync::LazyLock;

use spandrel_sync::Arc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Every block of memory starts at a multiple of this many octets.
pub const ALIGNMENT: usize = 16;

/// The unit of allocation, from which a block has its alignment.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(16))]
struct Chunk([u8; ALIGNMENT]);

const _: () = assert!(align_of::<Chunk>() == ALIGNMENT && size_of::<Chunk>() == ALIGNMENT);

/// A number of octets at an address that is a multiple of [`ALIGNMENT`].
pub(crate) struct Block {
    chunks: Vec<Chunk>,
}

impl Block {
    /// At least `octets` zeros.
    ///
    /// The system gives large blocks as pages that cost no memory before they are written, so that the mere
    /// announcement of a large message does not cost its length.
    ///
    /// # Panics
    /// Panics if the memory cannot be had.
    pub(crate) fn new(octets: usize) -> Arc<Self> {
        #[cfg(test)]
        counter::count();
        let chunks = Chunk::new_vec_zeroed(octets.div_ceil(ALIGNMENT));
        Arc::new(Self { chunks: chunks.unwrap_or_else(|_| panic!("no memory for a block of {octets} octets")) })
    }

    /// A block without memory; all that are made share one.
    pub(crate) fn none() -> Arc<Self> {
        static NONE: LazyLock<Arc<Block>> = LazyLock::new(|| Arc::new(Block { chunks: Vec::new() }));
        Arc::clone(&NONE)
    }

    /// A block that starts with `headroom` zeros and goes on with `data`.
    pub(crate) fn copied(headroom: usize, data: &[u8]) -> Arc<Self> {
        let mut block = Self::new(headroom.checked_add(data.len()).expect("headroom and data fit into memory"));
        Self::unique(&mut block)[headroom..][..data.len()].copy_from_slice(data);
        block
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.chunks.len() * ALIGNMENT
    }

    #[inline]
    pub(crate) fn octets(&self) -> &[u8] {
        self.chunks.as_slice().as_bytes()
    }

    /// Whether `block` is held by no one else. There are no weak references, so to a holder with `&mut` it then stays
    /// true; [`unique`](Self::unique) orders what follows after the other holders' last use.
    #[inline]
    pub(crate) fn is_unique(block: &Arc<Self>) -> bool {
        Arc::strong_count(block) == 1
    }

    /// The octets of a block that was found to be unique.
    #[inline]
    pub(crate) fn unique(block: &mut Arc<Self>) -> &mut [u8] {
        Arc::get_mut(block).expect("the block is unique").chunks.as_mut_slice().as_mut_bytes()
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} octets)", self.capacity())
    }
}

/// How many blocks the current thread has allocated, for tests that say when there must be none.
#[cfg(test)]
pub(crate) mod counter {
    use std::cell::Cell;

    thread_local!(static ALLOCATED: Cell<usize> = const { Cell::new(0) });

    pub(super) fn count() {
        ALLOCATED.set(ALLOCATED.get() + 1);
    }

    pub(crate) fn allocated() -> usize {
        ALLOCATED.get()
    }
}
