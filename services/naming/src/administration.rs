//! The administration of a running service: copies of its store.

#[allow(clippy::all, missing_docs, unreachable_pub)]
mod generated {
    ::spandrel::include_idl!("NamingAdministration");
}

use std::fs;
use std::path::PathBuf;

use spandrel::net::sync::Arc;

pub use generated::spandrel::NamingAdministration;
use generated::spandrel::NamingAdministrationServant;
pub(crate) use generated::spandrel::NamingAdministrationSkeleton;
use generated::spandrel::naming_administration::{BackUpError, BackupFailed};

use crate::redb_store::RedbStore;

/// The folder of copies, below the data folder.
const BACKUPS: &str = "backups";

/// The servant of the administration.
#[derive(Debug)]
pub(crate) struct Administration {
    pub(crate) store: Arc<RedbStore>,
    pub(crate) data: PathBuf,
}

impl NamingAdministrationServant for Administration {
    fn back_up(&self, name: &str) -> Result<String, BackUpError> {
        let failed = |reason: String| BackUpError::from(BackupFailed { reason });
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if name.is_empty() || name.starts_with('.') || name.len() > 128 || !name.chars().all(is_plain) {
            let expected = "letters, digits, `.`, `-` and `_`, and no `.` at the beginning";
            return Err(failed(format!("invalid name `{name}` of a backup: expected {expected}")));
        }
        let folder = self.data.join(BACKUPS);
        let file = folder.join(name);
        fs::create_dir_all(&folder).map_err(|error| failed(format!("cannot create {}: {error}", folder.display())))?;
        self.store.back_up(&file).map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            failed(format!("cannot write {}: {cause}", file.display()))
        })?;
        Ok(file.display().to_string())
    }
}
