//! The file with the definitions: one record for each, by number.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet, from_octets, to_octets};
use spandrel::net::sync::Arc;
use spandrel_daemon::{Storage, begin_write, catch_damage};

use crate::model::Number;
use crate::records::records::Definition;

const DEFINITIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("definitions");
const SETTINGS: TableDefinition<'_, &str, u64> = TableDefinition::new("settings");
/// The version of the records.
const VERSION: u64 = 1;
/// The memory for pages, in octets. All definitions are read once, at the start.
const CACHE: usize = 16 << 20;

/// The reason why a store cannot be opened or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened, read or written.
    #[error("cannot use the store {path}: {cause}")]
    Storage {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: Box<redb::Error>,
    },
    /// The changes of the last commit may be in the file, or not.
    #[error("cannot write the store {path}: {cause}; the change may be in the file")]
    Uncertain {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: Box<redb::Error>,
    },
    /// A record cannot be decoded, or is of another version of this program.
    #[error("the store {path} is corrupt or of another version: {detail}; restore a copy, or fill a new store")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The record.
        detail: String,
    },
}

/// A database file. After an error of the file system it is opened again for the next use.
#[derive(Debug)]
pub(crate) struct Store {
    storage: Storage,
    database: Option<Database>,
    /// The definitions that the file may have otherwise than the model, after a failed commit.
    unsettled: BTreeSet<Number>,
}

/// Definitions by number; `None` for removed ones.
pub(crate) type Changes = Vec<(Number, Option<Arc<Definition>>)>;

/// The failure of a transaction.
enum Failure {
    Before(redb::Error),
    /// A part of the transaction may have been written.
    Commit(redb::Error),
}

/// A store with its contents.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) definitions: Vec<(Number, Definition)>,
    /// The number of the next definition.
    pub(crate) next: Number,
}

impl Store {
    /// Opens the file, or creates it, and reads all definitions.
    pub(crate) fn open(storage: Storage) -> Result<Opened, StoreError> {
        let path = storage.path().to_owned();
        let mut store = Self { storage, database: None, unsettled: BTreeSet::new() };
        let corrupt = |detail: String| StoreError::Corrupt { path: path.clone(), detail };
        let mut records = Vec::new();
        let read = || -> Result<(Option<u64>, Number), redb::Error> {
            let database = store.database()?;
            let writing = begin_write(database)?;
            let (version, next) = {
                let mut settings = writing.open_table(SETTINGS)?;
                let found = settings.get("version")?.map(|found| found.value());
                if found.is_none() {
                    settings.insert("version", VERSION)?;
                }
                writing.open_table(DEFINITIONS)?;
                (found, settings.get("next")?.map_or(0, |found| found.value()))
            };
            writing.commit()?;
            let reading = database.begin_read()?;
            for record in reading.open_table(DEFINITIONS)?.iter()? {
                let (number, octets) = record?;
                records.push((number.value(), octets.value().to_vec()));
            }
            Ok((version, next))
        };
        let (version, next) =
            catch_damage(read).map_err(|cause| StoreError::Storage { path: path.clone(), cause: Box::new(cause) })?;
        if let Some(other) = version.filter(|version| *version != VERSION) {
            return Err(corrupt(format!("version {other}, not {VERSION}")));
        }
        let decoded = records.into_iter().map(|(number, octets)| {
            let definition = from_octets(&octets, &form());
            definition
                .map(|definition| (number, definition))
                .map_err(|error| corrupt(format!("record {number}: {error}")))
        });
        let decoded = decoded.collect::<Result<Vec<_>, _>>()?;
        Ok(Opened { store, definitions: decoded, next })
    }

    /// Writes these definitions, and removes those without one. They are durable when this returns.
    ///
    /// A failed commit may have been made, and the model has not its changes. The next one therefore writes these
    /// definitions, too, as the model has them now.
    pub(crate) fn commit(
        &mut self,
        mut changes: Changes,
        next: Number,
        current: impl Fn(Number) -> Option<Arc<Definition>>,
    ) -> Result<(), StoreError> {
        let changed: BTreeSet<Number> = changes.iter().map(|(number, _)| *number).collect();
        changes.extend(self.unsettled.difference(&changed).map(|number| (*number, current(*number))));
        let mut octets = Vec::new();
        for (number, definition) in &changes {
            let encoded = definition.as_ref().map(|definition| to_octets(&**definition, &form())).transpose();
            octets.push((
                *number,
                encoded.map_err(|error| StoreError::Corrupt {
                    path: self.storage.path().to_owned(),
                    detail: format!("definition {number}: {error}"),
                })?,
            ));
        }
        let path = self.storage.path().to_owned();
        let written = self.write(&octets, next).map_err(|failure| match failure {
            Failure::Before(cause) => StoreError::Storage { path, cause: Box::new(cause) },
            Failure::Commit(cause) => StoreError::Uncertain { path, cause: Box::new(cause) },
        });
        match &written {
            Ok(()) => self.unsettled.clear(),
            Err(error) => {
                // `redb` refuses all work after an error of the file system.
                self.database = None;
                if matches!(error, StoreError::Uncertain { .. }) {
                    self.unsettled.extend(changed);
                }
            }
        }
        written
    }

    fn write(&mut self, changes: &[(Number, Option<Vec<u8>>)], next: Number) -> Result<(), Failure> {
        let writing = self.begin(changes, next).map_err(Failure::Before)?;
        writing.commit().map_err(|error| match error.into() {
            // The file is enlarged before the transaction becomes valid.
            redb::Error::Io(error) if error.kind() == io::ErrorKind::StorageFull => Failure::Before(error.into()),
            error => Failure::Commit(error),
        })
    }

    fn begin(
        &mut self,
        changes: &[(Number, Option<Vec<u8>>)],
        next: Number,
    ) -> Result<redb::WriteTransaction, redb::Error> {
        let writing = begin_write(self.database()?)?;
        {
            let mut table = writing.open_table(DEFINITIONS)?;
            for (number, octets) in changes {
                match octets {
                    Some(octets) => table.insert(number, &**octets)?,
                    None => table.remove(number)?,
                };
            }
            writing.open_table(SETTINGS)?.insert("next", next)?;
        }
        Ok(writing)
    }

    fn database(&mut self) -> Result<&Database, redb::Error> {
        if self.database.is_none() {
            self.database = Some(self.storage.open(CACHE)?);
        }
        Ok(self.database.as_ref().expect("it was opened above"))
    }
}

/// The form of records: the same on each machine, for all characters.
fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16)
}
