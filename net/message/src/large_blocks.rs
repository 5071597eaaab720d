//! Large blocks of memory that are free.

use spandrel_sync::Mutex;

/// The octets of all blocks that are retained.
const MAX_OCTETS: usize = 8 << 20;

/// The number of blocks that are retained.
const MAX_BLOCKS: usize = 4;

/// A few large blocks that are free, for all threads. The reader of a long message [gives](Self::give) its
/// memory back at the end, and the next long message on any connection [takes](Self::take) it, without a page
/// fault.
///
/// It retains four blocks at most, and 8 MiB. Others return to the allocator.
#[derive(Debug)]
pub struct LargeBlocks<B> {
    free: Mutex<Vec<B>>,
}

/// A block of memory that [`LargeBlocks`] keeps for further use.
pub trait LargeBlock {
    /// Its size in octets.
    fn octets(&self) -> usize;
}

impl<T> LargeBlock for Vec<T> {
    fn octets(&self) -> usize {
        size_of_val(self.as_slice())
    }
}

impl<B: LargeBlock> LargeBlocks<B> {
    /// Creates a list that keeps freed blocks for further use.
    #[must_use]
    pub const fn new() -> Self {
        Self { free: Mutex::new(Vec::new()) }
    }

    /// The smallest free block of at least `octets`, with what it holds. `None` if there is none.
    pub fn take(&self, octets: usize) -> Option<B> {
        let mut free = self.free.lock();
        let suitable = free.iter().enumerate().filter(|(_, block)| block.octets() >= octets);
        let (at, _) = suitable.min_by_key(|(_, block)| block.octets())?;
        Some(free.swap_remove(at))
    }

    /// Retains a block for others. Returns it if it is too large or enough are retained.
    pub fn give(&self, block: B) -> Option<B> {
        let mut free = self.free.lock();
        let retained: usize = free.iter().map(B::octets).sum();
        if retained.saturating_add(block.octets()) > MAX_OCTETS || free.len() >= MAX_BLOCKS {
            return Some(block);
        }
        free.push(block);
        None
    }
}

impl<B: LargeBlock> Default for LargeBlocks<B> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_block_that_suffices_is_taken() {
        let blocks = LargeBlocks::<Vec<u8>>::new();
        for size in [300_000, 100_000, 200_000] {
            assert_eq!(blocks.give(vec![1; size]), None);
        }
        assert_eq!(blocks.take(150_000).map(|block| block.len()), Some(200_000));
        assert_eq!(blocks.take(150_000).map(|block| block.len()), Some(300_000));
        assert_eq!(blocks.take(150_000), None);
    }

    #[test]
    fn what_is_retained_is_bounded() {
        let blocks = LargeBlocks::<Vec<u16>>::new();
        assert!(blocks.give(vec![0; MAX_OCTETS / 2 + 1]).is_some(), "it is too large");
        assert_eq!(blocks.take(1), None);
        for (octets, most) in [(1 << 17, MAX_BLOCKS), (3 << 20, 2)] {
            let refused = (0..20).filter_map(|_| blocks.give(vec![0; octets / 2])).count();
            assert_eq!(refused, 20 - most);
            let taken = (0..20).filter_map(|_| blocks.take(octets)).count();
            assert_eq!(taken, most);
        }
    }
}
