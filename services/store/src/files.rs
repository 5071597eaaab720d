//! Files and folders that services create.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Options for files that only the user of the process can read, if they are new (on Unix).
#[must_use]
pub fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no mode"))]
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the entry of a new file in its folder durable.
///
/// # Errors
/// A folder that cannot be opened or written.
pub fn synchronize_folder(file: &Path) -> io::Result<()> {
    // Elsewhere folders cannot be opened as files, and their entries are durable with the files.
    if cfg!(unix) {
        File::open(folder_of(file))?.sync_all()?;
    }
    Ok(())
}

pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
