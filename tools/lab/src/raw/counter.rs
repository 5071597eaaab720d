//! The processor's count of instructions, by `perf_event_open`.

use std::io;

use libc::{c_int, c_void};

use super::{Socket, check};

/// The event type `PERF_TYPE_HARDWARE` of `perf_event_open(2)`.
const HARDWARE: u32 = 0;
/// The event `PERF_COUNT_HW_INSTRUCTIONS` of `perf_event_open(2)`.
const INSTRUCTIONS: u64 = 1;
/// Octets of the attributes in their first version, which has all needed fields.
const ATTRIBUTES: usize = 64;
/// `inherit`, `exclude_kernel`, `exclude_hv`: bit fields from the lowest bit on, on little-endian machines.
const FLAGS: u64 = 1 << 1 | 1 << 5 | 1 << 6;
/// The flag `PERF_FLAG_FD_CLOEXEC` of `perf_event_open(2)`.
const CLOSE_ON_EXEC: u64 = 8;

/// A counter of instructions that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Counter(Socket); // a descriptor, closed when dropped

impl Counter {
    /// Counts instructions in user mode, of this thread and those that it starts from now on.
    ///
    /// # Errors
    /// The errors of `perf_event_open`: often that there is no such counter, or no permission.
    pub(crate) fn instructions() -> io::Result<Self> {
        let mut attributes = [0u8; ATTRIBUTES];
        attributes[0..4].copy_from_slice(&HARDWARE.to_ne_bytes());
        attributes[4..8].copy_from_slice(&(ATTRIBUTES as u32).to_ne_bytes());
        attributes[8..16].copy_from_slice(&INSTRUCTIONS.to_ne_bytes());
        attributes[40..48].copy_from_slice(&FLAGS.to_ne_bytes());
        let (this_thread, any_core, no_group): (c_int, c_int, c_int) = (0, -1, -1);
        // SAFETY: the attributes contain their own length, and live until the call returns.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                attributes.as_ptr(),
                this_thread,
                any_core,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        Ok(Self(Socket(check(descriptor as isize)? as c_int)))
    }

    /// The count so far.
    ///
    /// # Errors
    /// The errors of `read`.
    pub(crate) fn read(&self) -> io::Result<u64> {
        let mut count = [0u8; 8];
        // SAFETY: the pointer and length describe `count`, which is borrowed exclusively until the call returns.
        let read = unsafe { libc::read(self.0.0, count.as_mut_ptr().cast::<c_void>(), count.len()) };
        match check(read)? {
            8 => Ok(u64::from_ne_bytes(count)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
