//! Memory that another process reads and writes at the same time.
//!
//! No Rust reference to its octets is ever made: they are moved with relaxed atomic accesses. So no access of
//! the other side is a data race, and a value that was read stays as it was read. Words are borrowed as
//! atomics.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering}; // the machine's, also where a model checker replaces the others

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The unit in which aligned octets are moved.
const STEP: usize = size_of::<u64>();

/// Shared memory, mapped into this process until it is dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    len: usize,
    #[cfg(test)]
    ours: bool,
}

// SAFETY: `base` points to memory that belongs to this value alone in this process, and all access to it is
// atomic.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the first `len` octets of a file, shared with other processes that map it.
    ///
    /// The file must be sealed against shrinking; otherwise an access may end the process (`SIGBUS`), but
    /// cause no other harm.
    pub(crate) fn map(file: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        // SAFETY: the system chooses the address, so no existing mapping is replaced.
        let base =
            unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("memory was mapped at address zero"))?;
        Ok(Self {
            base,
            len,
            #[cfg(test)]
            ours: false,
        })
    }

    /// Ordinary memory, zeroed, for tests without system calls.
    #[cfg(test)]
    pub(crate) fn ordinary(len: usize) -> Self {
        let words = Box::into_raw(vec![0_u64; len.div_ceil(STEP)].into_boxed_slice());
        Self { base: NonNull::new(words.cast()).unwrap(), len, ours: true }
    }

    /// The word at `at`.
    ///
    /// # Panics
    /// If it lies outside, or not at a multiple of four.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(align_of::<AtomicU32>()) && at < self.len && self.len - at >= size_of::<AtomicU32>());
        // SAFETY: it lies within the memory, which lives as long as `self`, and is aligned, as `base` is at
        // least 8-aligned; all other accesses to these octets are atomic, or made by another process.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU32>() }
    }

    /// Copies `data` to `at`.
    ///
    /// # Panics
    /// If it does not fit there.
    #[inline]
    pub(crate) fn write(&self, at: usize, data: &[u8]) {
        self.check(at, data.len());
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if data.len() >= BLOCK {
            // SAFETY: both ranges lie within their memory, as was checked, and do not overlap, since one is ours alone.
            return unsafe { move_block(data.as_ptr(), self.base.as_ptr().add(at), data.len()) };
        }
        let (first, steps) = split(at, data.len());
        for (i, octet) in data[..first].iter().enumerate() {
            // SAFETY: `at + i` lies within the checked range.
            unsafe { self.octet(at + i) }.store(*octet, Ordering::Relaxed);
        }
        let (middle, last) = data[first..].split_at(steps * STEP);
        let at = at + first;
        for (i, octets) in middle.as_chunks::<STEP>().0.iter().enumerate() {
            // SAFETY: the whole step lies within the checked range, and `at` is aligned, as `split` computed.
            unsafe { self.step(at + i * STEP) }.store(u64::from_ne_bytes(*octets), Ordering::Relaxed);
        }
        let at = at + middle.len();
        for (i, octet) in last.iter().enumerate() {
            // SAFETY: `at + i` lies within the checked range.
            unsafe { self.octet(at + i) }.store(*octet, Ordering::Relaxed);
        }
    }

    /// Copies the octets at `at` to `buffer`.
    ///
    /// # Panics
    /// If the buffer extends beyond the end of the memory.
    #[inline]
    pub(crate) fn read(&self, at: usize, buffer: &mut [u8]) {
        self.check(at, buffer.len());
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if buffer.len() >= BLOCK {
            // SAFETY: both ranges lie within their memory, as was checked, and do not overlap, since one is ours alone.
            return unsafe { move_block(self.base.as_ptr().add(at), buffer.as_mut_ptr(), buffer.len()) };
        }
        let (first, steps) = split(at, buffer.len());
        for (i, octet) in buffer[..first].iter_mut().enumerate() {
            // SAFETY: `at + i` lies within the checked range.
            *octet = unsafe { self.octet(at + i) }.load(Ordering::Relaxed);
        }
        let (middle, last) = buffer[first..].split_at_mut(steps * STEP);
        let at = at + first;
        for (i, octets) in middle.as_chunks_mut::<STEP>().0.iter_mut().enumerate() {
            // SAFETY: the whole step lies within the checked range, and `at` is aligned, as `split` computed.
            *octets = unsafe { self.step(at + i * STEP) }.load(Ordering::Relaxed).to_ne_bytes();
        }
        let at = at + middle.len();
        for (i, octet) in last.iter_mut().enumerate() {
            // SAFETY: `at + i` lies within the checked range.
            *octet = unsafe { self.octet(at + i) }.load(Ordering::Relaxed);
        }
    }

    #[inline]
    fn check(&self, at: usize, len: usize) {
        assert!(at <= self.len && len <= self.len - at, "{len} octets at {at} of {}", self.len);
    }

    /// # Safety
    /// `at` is less than the length.
    #[inline]
    unsafe fn octet(&self, at: usize) -> &AtomicU8 {
        // SAFETY: within the memory, by the caller's contract; as for `word`.
        unsafe { &*self.base.as_ptr().add(at).cast() }
    }

    /// # Safety
    /// `at` is a multiple of eight, and at least eight octets lie there.
    #[inline]
    unsafe fn step(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the memory and aligned, by the caller's contract; as for `word`.
        unsafe { &*self.base.as_ptr().add(at).cast() }
    }
}

/// The length from which the processor's string instruction is faster than steps.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const BLOCK: usize = 1024;

/// Copies `len` octets from `from` to `to`. The compiler does not see the concurrent writes of the other
/// process: to it this is an opaque operation on memory. The processor may do the stores in any order, but
/// all of them before the locked instruction that publishes them.
///
/// # Safety
/// `from` is valid for reading and `to` for writing that many octets, and they do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn move_block(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by the caller's contract; the direction flag is clear at the entry of any `asm!` (by the ABI)
    // and stays so.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _, inout("rsi") from => _, inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// The number of octets before the first multiple of eight from `at` on, and the number of whole steps after
/// that.
#[inline]
fn split(at: usize, len: usize) -> (usize, usize) {
    let first = (at.wrapping_neg() % STEP).min(len);
    (first, (len - first) / STEP)
}

impl Drop for Memory {
    fn drop(&mut self) {
        #[cfg(test)]
        if self.ours {
            let words = std::ptr::slice_from_raw_parts_mut(self.base.as_ptr().cast::<u64>(), self.len.div_ceil(STEP));
            // SAFETY: made from such a box by `ordinary`.
            drop(unsafe { Box::from_raw(words) });
            return;
        }
        // SAFETY: mapped by `map` with this length; references to it cannot outlive `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Short inputs, and inputs long enough for the block copy.
    fn octets() -> impl Strategy<Value = Vec<u8>> {
        use proptest::collection::vec;
        prop_oneof![vec(any::<u8>(), 0..60), vec(any::<u8>(), 1000..4000)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 20 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn written_octets_are_read(at in 0..40_usize, data in octets()) {
            let memory = Memory::ordinary(4101);
            memory.write(at, &data);
            let mut all = [0; 4101];
            memory.read(0, &mut all);
            prop_assert_eq!(&all[at..at + data.len()], &data);
            prop_assert!(all[..at].iter().chain(&all[at + data.len()..]).all(|octet| *octet == 0));
            let mut read = vec![0; data.len()];
            memory.read(at, &mut read);
            prop_assert_eq!(read, data);
        }
    }

    #[test]
    #[should_panic(expected = "octets at")]
    fn beyond_the_end_is_refused() {
        Memory::ordinary(16).write(9, &[0; 8]);
    }

    #[test]
    #[should_panic(expected = "octets at")]
    fn a_length_that_wraps_is_refused() {
        Memory::ordinary(16).read(usize::MAX - 3, &mut [0; 8]);
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn a_word_beyond_the_end_is_refused() {
        Memory::ordinary(18).word(16);
    }
}
