//! The file with the definitions: one record for each, by number.

use std::collections::BTreeSet;
use std::path::Path;

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet, from_octets, to_octets};
use spandrel::net::sync::Arc;
use spandrel_store::{
    Backup, Layout, OpenCause, OpenError, Service, Storage, StoreFile, StoreFileError, copy_table, set_record,
};

use crate::model::Number;
use crate::records::records::Definition;

const DEFINITIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("definitions");
const SETTINGS: TableDefinition<'_, &str, u64> = TableDefinition::new("settings");
/// The key of the table of settings from which versions before the header know that they cannot read the store.
const VERSION_KEY: &str = "version";
/// The version of the records of stores without a header. They are the same.
const EARLIER_VERSION: u64 = 1;
/// The memory for pages, in octets. All definitions are read once, at the start.
const CACHE: usize = 16 << 20;

static LAYOUT: Layout = Layout { service: Service::Repository, version: 2, create, convert, copy };

fn create(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(SETTINGS)?.insert(VERSION_KEY, u64::from(LAYOUT.version))?;
    transaction.open_table(DEFINITIONS)?;
    Ok(())
}

fn convert(transaction: &WriteTransaction, _: &Storage) -> Result<(), OpenCause> {
    let expected = u64::from(LAYOUT.version);
    let mut settings = transaction.open_table(SETTINGS)?;
    let found = settings.insert(VERSION_KEY, expected)?.map(|found| found.value());
    match found {
        Some(EARLIER_VERSION) => Ok(()),
        None => Err(OpenCause::NoStore("it has no version".to_owned())),
        Some(found) => Err(OpenCause::Version { found, expected }),
    }
}

fn copy(reading: &ReadTransaction, copy: &WriteTransaction) -> Result<(), redb::Error> {
    copy_table(SETTINGS, reading, copy)?;
    copy_table(DEFINITIONS, reading, copy)
}

/// A failure to open, read or write the database of definitions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] StoreFileError),
    /// A definition has no encoding.
    #[error("definition {number} cannot be stored: {reason}")]
    Definition {
        /// The number of the definition.
        number: u64,
        /// The reason why it cannot be encoded or decoded.
        reason: String,
    },
}

/// A database file. After an error of the file system it is opened again for the next use.
#[derive(Debug)]
pub(crate) struct Store {
    file: StoreFile,
    /// The definitions that the file may have otherwise than the model, after a failed commit.
    unsettled: BTreeSet<Number>,
}

/// Definitions by number; `None` for removed ones.
pub(crate) type Changes = Vec<(Number, Option<Arc<Definition>>)>;

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
        let mut file = StoreFile::open(storage, &LAYOUT, CACHE)?;
        let (records, next) = file.read(|reading| {
            let next = reading.open_table(SETTINGS)?.get("next")?.map_or(0, |found| found.value());
            let mut records = Vec::new();
            for record in reading.open_table(DEFINITIONS)?.iter()? {
                let (number, octets) = record?;
                records.push((number.value(), octets.value().to_vec()));
            }
            Ok((records, next))
        })?;
        let decoded = records.into_iter().map(|(number, octets)| {
            let definition = from_octets(&octets, &form()).map(|definition| (number, definition));
            let damaged = |error| OpenCause::Contents(format!("record {number}: {error}"));
            definition.map_err(|error| file.storage().error(damaged(error)))
        });
        let definitions = decoded.collect::<Result<Vec<_>, _>>()?;
        Ok(Opened { store: Self { file, unsettled: BTreeSet::new() }, definitions, next })
    }

    /// Begins a copy of the definitions in the file.
    pub(crate) fn begin_backup(&mut self) -> Result<Backup, StoreFileError> {
        self.file.begin_backup()
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
                encoded.map_err(|error| StoreError::Definition { number: *number, reason: error.to_string() })?,
            ));
        }
        let written = self.file.change(|writing| {
            let mut table = writing.open_table(DEFINITIONS)?;
            for (number, octets) in &octets {
                set_record(&mut table, number, octets.as_deref())?;
            }
            writing.open_table(SETTINGS)?.insert("next", next)?;
            Ok(())
        });
        match &written {
            Ok(()) => self.unsettled.clear(),
            Err(StoreFileError::Uncertain { .. }) => self.unsettled.extend(changed),
            Err(_) => {}
        }
        Ok(written?)
    }
}

/// Verifies the store in a file, which is only read, as a service that does not run left it. Returns the number of
/// definitions that have a record.
///
/// # Errors
/// A file that cannot be read, is in use, is damaged, or is the store of another service or version.
pub fn check_store(file: &Path) -> Result<usize, StoreError> {
    Ok(Store::open(Storage::read_only(file))?.definitions.len())
}

/// The form of records: the same on each machine, for all characters.
fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16)
}
