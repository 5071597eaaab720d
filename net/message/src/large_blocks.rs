//! Large blocks of memory that are free.

use spandrel_sync::Mutex;

/// The octets above which a free block is not retained.
const MAX_OCTETS: usize = 1 << 20;

/// The number of blocks that are retained.
const MAX_BLOCKS: usize = 4;

/// A few large blocks that are free, for all threads: whoever has finished a long message
/// [gives](Self::give) its memory back at once, and the next long message on any connection
/// [takes](Self::take) it, without a page fault.
///
/// It retains 4 MiB at most. Larger blocks return to the allocator.
#[derive(Debug)]
pub struct LargeBlocks<T> {
    free: Mutex<Vec<Vec<T>>>,
}

impl<T> LargeBlocks<T> {
    /// Without a block.
    #[must_use]
    pub const fn new() -> Self {
        Self { free: Mutex::new(Vec::new()) }
    }

    /// The smallest free block of at least `octets`, with what it holds. `None` if there is none.
    pub fn take(&self, octets: usize) -> Option<Vec<T>> {
        if octets > MAX_OCTETS {
            return None;
        }
        let mut free = self.free.lock();
        let suitable = free.iter().enumerate().filter(|(_, block)| size_of_val(&***block) >= octets);
        let (at, _) = suitable.min_by_key(|(_, block)| block.len())?;
        Some(free.swap_remove(at))
    }

    /// Retains a block for others, unless it is too large or enough are retained.
    pub fn give(&self, block: Vec<T>) {
        let mut free = self.free.lock();
        if size_of_val(&*block) <= MAX_OCTETS && free.len() < MAX_BLOCKS {
            free.push(block);
        }
    }
}

impl<T> Default for LargeBlocks<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_block_that_suffices_is_taken() {
        let blocks = LargeBlocks::<u8>::new();
        for size in [300_000, 100_000, 200_000] {
            blocks.give(vec![1; size]);
        }
        assert_eq!(blocks.take(150_000).map(|block| block.len()), Some(200_000));
        assert_eq!(blocks.take(150_000).map(|block| block.len()), Some(300_000));
        assert_eq!(blocks.take(150_000), None);
    }

    #[test]
    fn what_is_retained_is_bounded() {
        let blocks = LargeBlocks::<u16>::new();
        blocks.give(vec![0; MAX_OCTETS / 2 + 1]);
        assert_eq!(blocks.take(1), None, "it was too large");
        (0..20).for_each(|_| blocks.give(vec![0; MAX_OCTETS / 2]));
        let taken = (0..20).filter_map(|_| blocks.take(MAX_OCTETS)).count();
        assert_eq!(taken, MAX_BLOCKS);
    }
}
