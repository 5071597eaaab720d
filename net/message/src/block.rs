//! The memory of message blocks: aligned, initialised once, reference counted.

use std::fmt;
use std::sync::LazyLock;

use spandrel_sync::Arc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// The alignment of every block of memory, in octets.
pub const ALIGNMENT: usize = 16;

/// The unit of allocation, which gives a block its alignment.
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
    /// The system provides large blocks as pages that use no memory before they are written, so an announced
    /// message length alone costs nothing.
    ///
    /// # Panics
    /// Panics if the memory cannot be allocated.
    pub(crate) fn new(octets: usize) -> Arc<Self> {
        #[cfg(test)]
        counter::count();
        let chunks = Chunk::new_vec_zeroed(octets.div_ceil(ALIGNMENT));
        Arc::new(Self { chunks: chunks.unwrap_or_else(|_| panic!("cannot allocate a block of {octets} octets")) })
    }

    /// The block without memory, which is shared.
    pub(crate) fn empty() -> Arc<Self> {
        static NONE: LazyLock<Arc<Block>> = LazyLock::new(|| Arc::new(Block { chunks: Vec::new() }));
        Arc::clone(&NONE)
    }

    /// A block of `headroom` zeros followed by `data`.
    pub(crate) fn copied(headroom: usize, data: &[u8]) -> Arc<Self> {
        let mut block = Self::new(headroom.checked_add(data.len()).expect("headroom and data fit into memory"));
        Self::octets_mut(&mut block)[headroom..][..data.len()].copy_from_slice(data);
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

    /// Whether the caller holds the only reference to `block`. There are no weak references, so with `&mut`
    /// it stays true; [`octets_mut`](Self::octets_mut) orders later accesses after the last use by other
    /// holders.
    #[inline]
    pub(crate) fn is_unique(block: &Arc<Self>) -> bool {
        Arc::strong_count(block) == 1
    }

    /// The octets of a block that is unique.
    #[inline]
    pub(crate) fn octets_mut(block: &mut Arc<Self>) -> &mut [u8] {
        Arc::get_mut(block).expect("the block is unique").chunks.as_mut_slice().as_mut_bytes()
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} octets)", self.capacity())
    }
}

/// The number of blocks that the current thread has allocated, for tests.
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
