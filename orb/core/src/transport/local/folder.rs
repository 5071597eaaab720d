//! The folder for sockets whose path nobody has chosen: this user's own, where nobody else can put or replace one.

use std::{
    env, fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use spandrel_sync::atomic::{AtomicU32, Ordering};

use super::host;

/// A name that no other endpoint of this host has.
pub(super) fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Processes of different namespaces may have one number.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}-{:x}", process::id(), since.as_micros())
}

/// The folder, made if need be: in that of the user's session if there is one, otherwise in that for temporary files.
pub(super) fn own_folder() -> io::Result<PathBuf> {
    let session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| is_own(folder));
    let folder = match session {
        Some(session) => session.join("spandrel"),
        None => env::temp_dir().join(format!("spandrel-{}", host::user())),
    };
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(io::Error::new(error.kind(), format!("cannot make the folder {}: {error}", folder.display())))
        }
        _ if is_own(&folder) => Ok(folder),
        _ => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the folder {} is not for this user alone: say a path for the socket", folder.display()),
        )),
    }
}

/// Whether it is a folder, and nobody but this user can change what is in it.
fn is_own(folder: &Path) -> bool {
    let found = fs::symlink_metadata(folder);
    found.is_ok_and(|found| found.is_dir() && found.uid() == host::user() && found.mode() & 0o077 == 0)
}
