//! The identity of this host, and of files on it.
//!
//! The parent module compares them with those in a reference (`is_here`).

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::Path,
    sync::OnceLock,
};

use spandrel_ipc::unix::Addr;

/// An identifier of this host since its last start; `None` if the system has none.
pub(super) fn host_id() -> Option<&'static str> {
    static ID: OnceLock<Option<String>> = OnceLock::new();
    ID.get_or_init(find_host_id).as_deref()
}

#[cfg(target_os = "linux")]
fn find_host_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = id.trim();
    (!id.is_empty()).then(|| id.to_owned())
}

/// On other systems the host name is used; devices and inodes distinguish the rest.
#[cfg(not(target_os = "linux"))]
fn find_host_id() -> Option<String> {
    Some(crate::host_name::host_name()).filter(|name| !name.is_empty())
}

/// The user that this process runs as.
pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Device and inode of the socket's file, or of the network namespace of an abstract name.
pub(super) fn file_of(addr: &Addr) -> io::Result<(u64, u64)> {
    let file = match addr.as_path() {
        Some(path) => socket_at(path)?,
        None => fs::metadata("/proc/self/ns/net")?,
    };
    Ok((file.dev(), file.ino()))
}

/// The file at a path, if it is a socket.
pub(super) fn socket_at(path: &Path) -> io::Result<fs::Metadata> {
    let file = fs::metadata(path)?;
    if file.file_type().is_socket() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}
