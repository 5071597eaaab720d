//! The memory that the allocator keeps.

/// Gives free memory of glibc's allocator back to the system (malloc_trim(3)).
pub(crate) fn trim() {
    // SAFETY: it may be called at any time, and changes only memory that is free; zero is the number of octets to
    // be left at the end of the heap.
    unsafe { libc::malloc_trim(0) };
}
