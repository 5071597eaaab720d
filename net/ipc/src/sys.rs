//! The `unsafe` code of this crate: system calls that neither `rustix` nor `socket2` offers safely.
//!
//! Each function here is safe to call with any arguments; the reasons stand beside each `unsafe` block.

#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
pub(crate) mod allocator;
#[cfg(unix)]
pub(crate) mod copies;
pub(crate) mod dgram;
#[cfg(unix)]
pub(crate) mod host_name;
#[cfg(windows)]
pub(crate) mod named_pipe;
#[cfg(windows)]
pub(crate) mod overlapped;
#[cfg(target_os = "linux")]
pub(crate) mod shm;
#[cfg(unix)]
pub(crate) mod signal_driven;
#[cfg(unix)]
pub(crate) mod socket;
#[cfg(windows)]
#[path = "sys/socket_windows.rs"]
pub(crate) mod socket;
