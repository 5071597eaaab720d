//! The memory of message blocks: aligned, initialised once, reference counted.

use std::fmt;
use std::sync::LazyLock;

use memmap2::MmapMut;
use spandrel_sync::Arc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{
    account::BlockCharge,
    large_blocks::{LargeBlock, LargeBlocks},
};

/// The alignment of every block of memory, in octets.
pub const ALIGNMENT: usize = 16;

/// Blocks above this size are large: free ones are shared by all threads.
pub(crate) const LARGE: usize = 64 << 10;

/// Blocks up to this size are allocated in rounded sizes, so that the next message finds one that suffices.
const ROUNDED: usize = 8 << 20;

/// Blocks above this size are pages of their own: the allocator would keep much of such memory for itself, among
/// smaller blocks in use.
const PAGES: usize = 1 << 20;

/// The large blocks that are free.
static FREE: LargeBlocks<Block> = LargeBlocks::new();

/// The unit of allocation, which gives a block its alignment.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(16))]
struct Chunk([u8; ALIGNMENT]);

const _: () = assert!(align_of::<Chunk>() == ALIGNMENT && size_of::<Chunk>() == ALIGNMENT);

/// A number of octets at an address that is a multiple of [`ALIGNMENT`], shared by all clones.
#[derive(Clone)]
pub(crate) struct Block(Arc<BlockMemory>);

struct BlockMemory {
    octets: Octets,
    /// The charge to its account, if it has one.
    charge: Option<BlockCharge>,
}

enum Octets {
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
    pub(crate) fn new(octets: usize) -> Self {
        Self(Arc::new(BlockMemory { octets: zeroed(octets), charge: None }))
    }

    /// At least `octets` to receive into: zeros, or octets of earlier messages.
    ///
    /// # Panics
    /// Panics if the memory cannot be allocated.
    pub(crate) fn for_input(octets: usize, charge: Option<BlockCharge>) -> Self {
        let free = if octets > LARGE { FREE.take(octets) } else { None };
        let mut block = free.unwrap_or_else(|| Self::new(octets));
        block.unique().charge = charge;
        block
    }

    /// The size of the block that [`for_input`](Self::for_input) should be asked for to receive a message of
    /// `octets`.
    pub(crate) fn input_size(octets: usize) -> usize {
        const STEP: usize = 1 << 20;
        if octets <= LARGE || octets > ROUNDED {
            octets
        } else if octets <= STEP {
            octets.next_power_of_two()
        } else {
            octets.next_multiple_of(STEP)
        }
    }

    /// The block without memory, which is shared.
    pub(crate) fn empty() -> Self {
        static NONE: LazyLock<Block> =
            LazyLock::new(|| Block(Arc::new(BlockMemory { octets: Octets::Allocated(Vec::new()), charge: None })));
        NONE.clone()
    }

    /// A block of `headroom` zeros followed by `data`.
    pub(crate) fn copied(headroom: usize, data: &[u8]) -> Self {
        let mut block = Self::new(headroom.checked_add(data.len()).expect("headroom and data fit into memory"));
        block.octets_mut()[headroom..][..data.len()].copy_from_slice(data);
        block
    }

    /// A copy of `data` that is charged.
    pub(crate) fn charged_copy(data: &[u8], charge: BlockCharge) -> Self {
        let mut block = Self::for_input(data.len(), Some(charge));
        block.octets_mut()[..data.len()].copy_from_slice(data);
        block
    }

    /// Whether the block is charged to an account.
    #[inline]
    pub(crate) fn is_charged(&self) -> bool {
        self.0.charge.as_ref().is_some_and(BlockCharge::is_charged)
    }

    /// Ends the charge of a block that others may hold.
    #[inline]
    pub(crate) fn end_charge(&self) {
        if let Some(charge) = &self.0.charge {
            charge.end();
        }
    }

    /// Ends the charge of a block that is unique. Returns it.
    pub(crate) fn take_charge(&mut self) -> Option<BlockCharge> {
        Arc::get_mut(&mut self.0).and_then(|memory| memory.charge.take())
    }

    /// Charges a block that is unique.
    pub(crate) fn set_charge(&mut self, charge: BlockCharge) {
        self.unique().charge = Some(charge);
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.octets().len()
    }

    #[inline]
    pub(crate) fn octets(&self) -> &[u8] {
        match &self.0.octets {
            Octets::Allocated(chunks) => chunks.as_slice().as_bytes(),
            Octets::Pages(pages) => pages,
        }
    }

    /// Whether the caller holds the only reference to the block. There are no weak references, so with `&mut`
    /// it stays true; [`octets_mut`](Self::octets_mut) orders later accesses after the last use by other
    /// holders.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The octets of a block that is unique.
    #[inline]
    pub(crate) fn octets_mut(&mut self) -> &mut [u8] {
        match &mut self.unique().octets {
            Octets::Allocated(chunks) => chunks.as_mut_slice().as_mut_bytes(),
            Octets::Pages(pages) => pages,
        }
    }

    #[inline]
    fn unique(&mut self) -> &mut BlockMemory {
        Arc::get_mut(&mut self.0).expect("the block is unique")
    }

    /// Leaves a large block that nobody else holds to the next long message.
    #[cold]
    fn give(&mut self) {
        let Some(memory) = Arc::get_mut(&mut self.0) else { return };
        memory.charge = None;
        if let Some(mut refused) = FREE.give(std::mem::replace(self, Self::empty())) {
            refused.unique().octets = Octets::Allocated(Vec::new());
        }
    }
}

impl LargeBlock for Block {
    fn octets(&self) -> usize {
        self.capacity()
    }
}

impl Drop for Block {
    #[inline]
    fn drop(&mut self) {
        if self.capacity() > LARGE {
            self.give();
        }
    }
}

/// At least `octets` zeros.
///
/// # Panics
/// Panics if the memory cannot be allocated.
fn zeroed(octets: usize) -> Octets {
    #[cfg(test)]
    counter::count();
    let memory = if octets > PAGES {
        MmapMut::map_anon(octets).ok().map(Octets::Pages)
    } else {
        Chunk::new_vec_zeroed(octets.div_ceil(ALIGNMENT)).ok().map(Octets::Allocated)
    };
    memory.unwrap_or_else(|| panic!("cannot allocate a block of {octets} octets"))
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
