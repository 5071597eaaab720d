//! The memory of the process.

/// Gives memory that has been freed back to the system, for a time after large blocks were freed. The allocator of
/// glibc keeps such memory, up to tens of megabytes for each of its arenas, for the threads of the process.
///
/// It takes about a millisecond for each 10 MiB that are given back. Other allocators decide for themselves; there it
/// does nothing.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    crate::sys::allocator::trim();
}
