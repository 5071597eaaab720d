//! The memory of message blocks: aligned, initialised once, reference counted.

use std::fmt;
use std::sync::LazyLock;

use memmap2::MmapMut;
use spandrel_sync::Arc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{account::BlockCharge, large_blocks::LargeBlocks};

/// The alignment of every block of memory, in octets.
pub const ALIGNMENT: usize = 16;

/// Blocks above this size are large: free ones are shared by all threads.
pub(crate) const LARGE: usize = 64 << 10;

/// Blocks up to this size are allocated in sizes that are powers of two, so that the next message finds one that
/// suffices. Larger ones are pages of their own: the allocator would keep much of such memory for itself, among
/// smaller blocks in use.
const ROUNDED: usize = 1 << 20;

/// The large blocks that are free.
static FREE: LargeBlocks<Chunk> = LargeBlocks::new();

/// The unit of allocation, which gives a block its alignment.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(16))]
struct Chunk([u8; ALIGNMENT]);

const _: () = assert!(align_of::<Chunk>() == ALIGNMENT && size_of::<Chunk>() == ALIGNMENT);

/// A number of octets at an address that is a multiple of [`ALIGNMENT`].
pub(crate) struct Block {
    memory: BlockMemory,
    /// The charge to its account, if it has one.
    charge: Option<BlockCharge>,
}

/// The octets of a block.
enum BlockMemory {
    Allocated(Vec<Chunk>),
    Pages(MmapMut),
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
        Arc::new(Self { memory: zeroed(octets), charge: None })
    }

    /// At least `octets` to receive into: zeros, or octets of earlier messages.
    ///
    /// # Panics
    /// Panics if the memory cannot be allocated.
    pub(crate) fn for_input(octets: usize, charge: Option<BlockCharge>) -> Arc<Self> {
        let free = if octets > LARGE { FREE.take(octets) } else { None };
        let memory = free.map_or_else(|| zeroed(octets), BlockMemory::Allocated);
        Arc::new(Self { memory, charge })
    }

    /// The size of the block that [`for_input`](Self::for_input) should be asked for to receive a message of
    /// `octets`.
    pub(crate) fn input_size(octets: usize) -> usize {
        if octets > LARGE && octets <= ROUNDED { octets.next_power_of_two() } else { octets }
    }

    /// The block without memory, which is shared.
    pub(crate) fn empty() -> Arc<Self> {
        static NONE: LazyLock<Arc<Block>> =
            LazyLock::new(|| Arc::new(Block { memory: BlockMemory::default(), charge: None }));
        Arc::clone(&NONE)
    }

    /// A block of `headroom` zeros followed by `data`.
    pub(crate) fn copied(headroom: usize, data: &[u8]) -> Arc<Self> {
        let mut block = Self::new(headroom.checked_add(data.len()).expect("headroom and data fit into memory"));
        Self::octets_mut(&mut block)[headroom..][..data.len()].copy_from_slice(data);
        block
    }

    /// A copy of `data` that is charged.
    pub(crate) fn charged_copy(data: &[u8], charge: BlockCharge) -> Arc<Self> {
        let mut block = Self::for_input(data.len(), Some(charge));
        Self::octets_mut(&mut block)[..data.len()].copy_from_slice(data);
        block
    }

    /// Whether the block is charged to an account.
    pub(crate) fn is_charged(&self) -> bool {
        self.charge.is_some()
    }

    /// The charge of a block that is unique, which is charged no longer.
    pub(crate) fn take_charge(block: &mut Arc<Self>) -> Option<BlockCharge> {
        Arc::get_mut(block).and_then(|block| block.charge.take())
    }

    /// Charges a block that is unique.
    pub(crate) fn set_charge(block: &mut Arc<Self>, charge: BlockCharge) {
        Arc::get_mut(block).expect("the block is unique").charge = Some(charge);
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.octets().len()
    }

    #[inline]
    pub(crate) fn octets(&self) -> &[u8] {
        match &self.memory {
            BlockMemory::Allocated(chunks) => chunks.as_slice().as_bytes(),
            BlockMemory::Pages(pages) => pages,
        }
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
        match &mut Arc::get_mut(block).expect("the block is unique").memory {
            BlockMemory::Allocated(chunks) => chunks.as_mut_slice().as_mut_bytes(),
            BlockMemory::Pages(pages) => pages,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.capacity() > LARGE
            && let BlockMemory::Allocated(chunks) = &mut self.memory
        {
            FREE.give(std::mem::take(chunks));
        }
    }
}

/// At least `octets` zeros.
///
/// # Panics
/// Panics if the memory cannot be allocated.
fn zeroed(octets: usize) -> BlockMemory {
    #[cfg(test)]
    counter::count();
    let memory = if octets > ROUNDED {
        MmapMut::map_anon(octets).ok().map(BlockMemory::Pages)
    } else {
        Chunk::new_vec_zeroed(octets.div_ceil(ALIGNMENT)).ok().map(BlockMemory::Allocated)
    };
    memory.unwrap_or_else(|| panic!("cannot allocate a block of {octets} octets"))
}

impl Default for BlockMemory {
    fn default() -> Self {
        Self::Allocated(Vec::new())
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
