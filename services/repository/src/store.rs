//! The file with the definitions: one record for each, by number.

use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet, from_octets, to_octets};
use spandrel::net::sync::Arc;

use crate::model::Number;
use crate::records::records::Definition;

const DEFINITIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("definitions");
const SETTINGS: TableDefinition<'_, &str, u64> = TableDefinition::new("settings");
/// The version of the records.
const VERSION: u64 = 1;

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
    path: PathBuf,
    database: Option<Database>,
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
    pub(crate) fn open(path: &Path) -> Result<Opened, StoreError> {
        let mut store = Self { path: path.to_owned(), database: None };
        let corrupt = |detail: String| StoreError::Corrupt { path: path.to_owned(), detail };
        let mut records = Vec::new();
        let mut read = || -> Result<(Option<u64>, Number), redb::Error> {
            let database = store.database()?;
            let writing = database.begin_write()?;
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
            read().map_err(|cause| StoreError::Storage { path: path.to_owned(), cause: Box::new(cause) })?;
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
    pub(crate) fn commit(
        &mut self,
        changes: &[(Number, Option<Arc<Definition>>)],
        next: Number,
    ) -> Result<(), StoreError> {
        let mut octets = Vec::new();
        for (number, definition) in changes {
            let encoded = definition.as_ref().map(|definition| to_octets(&**definition, &form())).transpose();
            octets.push((
                *number,
                encoded.map_err(|error| StoreError::Corrupt {
                    path: self.path.clone(),
                    detail: format!("definition {number}: {error}"),
                })?,
            ));
        }
        let written = self.write(&octets, next);
        if written.is_err() {
            // `redb` refuses all work after an error of the file system.
            self.database = None;
        }
        written.map_err(|cause| StoreError::Storage { path: self.path.clone(), cause: Box::new(cause) })
    }

    fn write(&mut self, changes: &[(Number, Option<Vec<u8>>)], next: Number) -> Result<(), redb::Error> {
        let writing = self.database()?.begin_write()?;
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
        Ok(writing.commit()?)
    }

    fn database(&mut self) -> Result<&Database, redb::Error> {
        if self.database.is_none() {
            self.database = Some(Database::create(&self.path)?);
        }
        Ok(self.database.as_ref().expect("it was opened above"))
    }
}

/// The form of records: the same on each machine, for all characters.
fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16)
}
