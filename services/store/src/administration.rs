//! The administration of the store of a running service: its copies.

#[allow(clippy::all, missing_docs, unreachable_pub)]
mod generated {
    ::spandrel::include_idl!("StoreAdministration");
}

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use spandrel::{ObjectRef, Orb, Poa, SystemException};
use spandrel_daemon::{DaemonArgs, Failure};

pub use self::generated::spandrel::StoreAdministration;
use self::generated::spandrel::store_administration::{BackUpError, BackupFailed};
use self::generated::spandrel::{StoreAdministrationServant, StoreAdministrationSkeleton};
use crate::backup::Backup;
use crate::files::synchronize_folder;
use crate::service::Service;

/// The folder of copies, below the data folder. It has a folder for each service.
const BACKUPS: &str = "backups";

/// The most octets in the name of a copy.
const MAX_NAME: usize = 128;
/// The most copies in the folder of a service. So a peer that may make them does not fill the disk.
const MAX_COPIES: usize = 100;

/// The object by which commands make a running service copy its store: [`BackupCommand`].
///
/// Its key is [`Service::administration_key`]. Dropping this value ends the object.
#[derive(Debug)]
pub struct Administration {
    orb: Orb,
    root_adapter: Poa,
    object: ObjectRef,
    service: Service,
}

impl Administration {
    /// Serves the administration of a store with the ORB's root adapter. The copies are in the data folder, and `begin`
    /// begins each of them.
    ///
    /// # Errors
    /// An ORB that cannot listen, or has such an object already.
    pub fn serve<E: Error>(
        orb: &Orb,
        service: Service,
        data: &Path,
        begin: impl Fn() -> Result<Backup, E> + Send + Sync + 'static,
    ) -> Result<Self, SystemException> {
        let begin = Box::new(move || begin().map_err(|error| reason(&error)));
        let folder = data.join(BACKUPS).join(service.name());
        let root_adapter = Poa::root(orb)?;
        let object = root_adapter.activate(StoreAdministrationSkeleton::new(Backups {
            folder,
            begin,
            writing: Mutex::default(),
        }))?;
        let administration = Self { orb: orb.clone(), root_adapter, object, service };
        orb.set_object_key_alias(service.administration_key(), &administration.object)?;
        Ok(administration)
    }
}

impl Drop for Administration {
    fn drop(&mut self) {
        self.orb.remove_object_key_alias(self.service.administration_key());
        // An ORB that was shut down has no active objects.
        _ = self.root_adapter.deactivate(&self.object);
    }
}

/// The servant of the administration.
struct Backups {
    folder: PathBuf,
    begin: Box<dyn Fn() -> Result<Backup, String> + Send + Sync>,
    /// One copy is written at a time.
    writing: Mutex<()>,
}

impl StoreAdministrationServant for Backups {
    fn back_up(&self, name: &str) -> Result<String, BackUpError> {
        let failed = |reason: String| BackUpError::from(BackupFailed { reason });
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if name.is_empty() || name.starts_with('.') || name.len() > MAX_NAME || !name.chars().all(is_plain) {
            let expected = "letters, digits, `.`, `-` and `_`, and no `.` at the beginning";
            return Err(failed(format!("invalid name `{name}` of a backup: expected {expected}")));
        }
        let file = self.folder.join(name);
        let cannot = |reason: String| failed(format!("cannot write {}: {reason}", file.display()));
        create_folders(&self.folder)
            .map_err(|error| failed(format!("cannot create {}: {error}", self.folder.display())))?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = fs::read_dir(&self.folder).map_or(0, Iterator::count);
        if copies >= MAX_COPIES {
            return Err(failed(format!(
                "{} has {copies} files, and a service makes {MAX_COPIES} copies: remove those that are not needed",
                self.folder.display()
            )));
        }
        let backup = (self.begin)().map_err(cannot)?;
        backup.write(&file).map_err(|error| cannot(reason(&error)))?;
        Ok(file.display().to_string())
    }
}

impl fmt::Debug for Backups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backups").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Creates the folder of a service's copies and that above it, durably.
fn create_folders(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    synchronize_folder(folder)?;
    folder.parent().map_or(Ok(()), synchronize_folder)
}

/// The text of an error with its causes.
fn reason(error: &dyn Error) -> String {
    spandrel::net::error::report_in_line(error)
}

/// The arguments of the subcommand `backup`.
#[derive(Clone, Debug, clap::Args)]
pub struct BackupCommand {
    /// The name of the file
    pub name: String,
    /// The address of the service, also with ssliop:// before it, or the URL of the object of its store. The default is the
    /// server of the service's initial reference, such as that of the site, or else 127.0.0.1 with the service's port
    #[arg(long, value_name = "HOST[:PORT]")]
    pub server: Option<String>,
    /// The time limit of the whole copy, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

impl BackupCommand {
    /// Makes a running service copy its store, and prints the path of the copy on the machine of the service.
    ///
    /// # Errors
    /// Wrong options; a service that does not answer in time or has no copy; standard output that cannot be written.
    pub fn run(&self, service: Service, daemon: &DaemonArgs, default_port: u16) -> Result<(), Failure> {
        let timeout = std::time::Duration::from_secs(self.timeout.into());
        let keys = (service.initial_reference(), service.administration_key());
        let served = daemon.served_object(self.server.as_deref(), default_port, keys, timeout)?;
        let path = StoreAdministration::unchecked_narrow(&served.object)
            .back_up(&self.name)
            .with_context(|| format!("no backup by the service at {}", served.address))
            .map_err(Failure::failed)?;
        spandrel_daemon::print(&format!("{}\n", spandrel::net::error::escape(&path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_refused_from_a_number_on() {
        let folder = tempfile::tempdir().unwrap();
        let begin = Box::new(|| Err("no database".to_owned()));
        let backups = Backups { folder: folder.path().to_owned(), begin, writing: Mutex::default() };
        let refusal = || match backups.back_up("next").unwrap_err() {
            BackUpError::BackupFailed(BackupFailed { reason }) => reason,
            other => panic!("{other}"),
        };
        for number in 1..MAX_COPIES {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        assert!(refusal().ends_with("no database"), "{}", refusal());
        fs::write(folder.path().join("last"), "").unwrap();
        assert!(refusal().contains("has 100 files"), "{}", refusal());
    }
}
