//! The stores of the naming, property, event and trading services, the interface repository and the activator: `redb` databases
//! that say what they are, with a redo log for the service that wants one.
//!
//! A [`Storage`] is a file, or other storage in tests. [`Storage::open`] verifies all of it: the checksums of all pages
//! of the database, and its [`StoreHeader`] with the service, the version of its tables, a random id, and the redo log
//! that it needs. A store of another service or version, and one that is damaged, is an [`OpenError`]. A store of a
//! version without a header is converted.
//!
//! [`StoreFile`] makes durable changes one at a time, and opens the database again after an error of input or output.
//! A [`RedoLog`] makes changes durable that the database has in memory alone, and a [`GroupCommit`] many of them together.
//!
//! A running service copies its store by a [`Backup`], which [`Administration`] offers to the command `backup`
//! ([`BackupCommand`]).
//!
//! [`Storage::read_only`] opens files that are not written to: for checks and exports.
//!
//! Damage that happens while a store is open is found by the next opening, unless `redb` panics over it
//! ([`catch_damage`]).
#![forbid(unsafe_code)]

mod administration;
mod backup;
mod damage;
mod error;
mod files;
mod group_commit;
mod header;
mod overlay;
mod record;
mod redo_log;
mod service;
mod storage;
mod store_file;

/// The IDL of the administration of stores, a whole file.
pub const IDL: &str = include_str!("../idl/StoreAdministration.idl");

pub use administration::{Administration, BackupCommand, StoreAdministration};
pub use backup::{Backup, copy_table};
pub use damage::catch_damage;
pub use error::{OpenCause, OpenError, RedoLogError, StoreFailure, StoreFileError};
pub use files::{private_file, synchronize_folder};
pub use group_commit::{Done, GroupCommit};
pub use header::StoreHeader;
pub use record::set_record;
pub use redo_log::{AppendError, CheckpointError, EarlierLog, RedoLog, Replay};
pub use service::Service;
pub use storage::{Layout, LogPolicy, Storage, begin_write};
pub use store_file::StoreFile;
