//! The one place of this crate with `unsafe`: system calls that neither `rustix` nor `socket2` offers safely.
//!
//! Each function here is safe to call with any arguments; what that rests on stands beside each `unsafe` block.

#[cfg(unix)]
pub(crate) mod copies;
pub(crate) mod dgram;
#[cfg(windows)]
pub(crate) mod named_pipe;
#[cfg(target_os = "linux")]
pub(crate) mod shm;
#[cfg(unix)]
pub(crate) mod socket;
