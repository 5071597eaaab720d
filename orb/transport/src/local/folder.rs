//! The folder for sockets without an explicit path: the user's own, in which no other user can create or
//! replace a socket.

use std::{
    env, fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use spandrel_sync::atomic::{AtomicU32, Ordering};

use super::host;

/// A name that is unique among the endpoints of this host.
pub(super) fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Processes of different PID namespaces may have equal ids.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}-{:x}", process::id(), since.as_micros())
}

/// The folder, created if necessary: below the folder of the user's session if it exists, otherwise below the
/// one for temporary files.
pub(super) fn own_folder() -> io::Result<PathBuf> {
    let session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| is_own(folder));
    let folder = match session {
        Some(session) => session.join("spandrel"),
        None => env::temp_dir().join(format!("spandrel-{}", host::user())),
    };
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(io::Error::new(error.kind(), format!("cannot create the folder {}: {error}", folder.display())))
        }
        _ if is_own(&folder) => Ok(folder),
        _ => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the folder {} is accessible to other users: give the endpoint a path", folder.display()),
        )),
    }
}

/// Whether the path is a folder that only this user can modify.
fn is_own(folder: &Path) -> bool {
    let metadata = fs::symlink_metadata(folder);
    metadata.is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == host::user() && metadata.mode() & 0o077 == 0)
}
