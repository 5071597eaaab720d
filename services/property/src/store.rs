//! The sets on disk: a record for each set, and one for each property.

use std::collections::BTreeMap;
use std::path::Path;

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use spandrel::cdr::{CdrError, from_octets, to_octets};
use spandrel::net::sync::Arc;
use spandrel::services::cos_property_service::{PropertyDef, PropertyModeType};
use spandrel::types::{Any, TypeCode};
use spandrel::{CompletionStatus, SystemException};
use spandrel_store::{
    Backup, Layout, OpenCause, OpenError, Service, Storage, StoreFile, StoreFileError, copy_table, set_record,
};

use crate::encoding::{form, octets_of};
use crate::table::{Changes, Constraints, Entry, Table};

const SETS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("sets");
const PROPERTIES: TableDefinition<'_, (u64, &str), &[u8]> = TableDefinition::new("properties");
/// `next` is the number of the next set. Numbers are not used again.
const SETTINGS: TableDefinition<'_, &str, u64> = TableDefinition::new("settings");
/// The memory for pages, in octets. All records are read once, at the start.
const CACHE: usize = 16 << 20;

static LAYOUT: Layout = Layout { service: Service::Property, version: 1, create, convert, copy };

fn create(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(SETS)?;
    transaction.open_table(PROPERTIES)?;
    transaction.open_table(SETTINGS)?.insert("next", 0)?;
    Ok(())
}

fn convert(_: &WriteTransaction, _: &Storage) -> Result<(), OpenCause> {
    Err(OpenCause::NoStore("it has no header".to_owned()))
}

fn copy(reading: &ReadTransaction, copy: &WriteTransaction) -> Result<(), redb::Error> {
    copy_table(SETS, reading, copy)?;
    copy_table(PROPERTIES, reading, copy)?;
    copy_table(SETTINGS, reading, copy)
}

/// A failure to open the database of property sets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened, is damaged, or is that of another service.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A record of the database cannot be read.
    #[error(transparent)]
    File(#[from] StoreFileError),
}

/// The failure of a write.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// The file is as it was before.
    #[error("{0}")]
    Unchanged(String),
    /// The change may be in the file.
    #[error("{0}")]
    Uncertain(String),
}

impl From<JournalError> for SystemException {
    fn from(error: JournalError) -> Self {
        let completed = match &error {
            JournalError::Unchanged(_) => CompletionStatus::No,
            JournalError::Uncertain(_) => CompletionStatus::Maybe,
        };
        Self::persist_store(0, completed).with_detail(move || error.to_string())
    }
}

impl From<StoreFileError> for JournalError {
    fn from(error: StoreFileError) -> Self {
        let text = error.to_string();
        match error {
            StoreFileError::Uncertain { .. } => Self::Uncertain(text),
            _ => Self::Unchanged(text),
        }
    }
}

/// A set without its properties.
#[derive(Clone, Debug)]
pub(crate) struct SetRecord {
    /// Whether it is a `PropertySetDef`.
    pub(crate) has_modes: bool,
    /// The address of the peer that created it; empty for one of this process.
    pub(crate) owner: String,
    pub(crate) constraints: Constraints,
}

/// A record of a set as octets.
type SetFields = (bool, String, Vec<TypeCode>, Vec<PropertyDef>);

/// A set of a store that was opened.
#[derive(Debug)]
pub(crate) struct StoredSet {
    pub(crate) number: u64,
    pub(crate) record: SetRecord,
    pub(crate) table: Table,
}

/// The database file of a service.
#[derive(Debug)]
pub(crate) struct Store(StoreFile);

impl Store {
    /// Opens the file, or creates it, and reads all sets. Returns the number of the next set as well.
    pub(crate) fn open(storage: Storage) -> Result<(Self, Vec<StoredSet>, u64), StoreError> {
        let mut file = StoreFile::open(storage, &LAYOUT, CACHE)?;
        type Records = (Vec<(u64, Vec<u8>)>, Vec<(u64, String, Vec<u8>)>, u64);
        let (sets, properties, next): Records = file.read(|reading| {
            let mut sets = Vec::new();
            for record in reading.open_table(SETS)?.iter()? {
                let (number, octets) = record?;
                sets.push((number.value(), octets.value().to_vec()));
            }
            let mut properties = Vec::new();
            for record in reading.open_table(PROPERTIES)?.iter()? {
                let (key, octets) = record?;
                let (number, name) = key.value();
                properties.push((number, name.to_owned(), octets.value().to_vec()));
            }
            let next = reading.open_table(SETTINGS)?.get("next")?.map_or(0, |next| next.value());
            Ok((sets, properties, next))
        })?;
        let damaged = |text: String| file.storage().error(OpenCause::Contents(text));
        let mut tables = BTreeMap::<u64, BTreeMap<String, Arc<Entry>>>::new();
        for (number, name, octets) in properties {
            let fields: Result<(Any, PropertyModeType), _> = from_octets(&octets, &form());
            let (value, mode) = fields.map_err(|error| damaged(format!("a property of set {number}: {error}")))?;
            let size = octets_of(&name, to_octets(&value, &form()));
            let octets = size.map_err(|error| damaged(format!("a property of set {number}: {error}")))?;
            tables.entry(number).or_default().insert(name, Arc::new(Entry { value, mode, octets }));
        }
        let mut stored = Vec::new();
        for (number, octets) in sets {
            let fields: Result<SetFields, _> = from_octets(&octets, &form());
            let (has_modes, owner, types, properties) =
                fields.map_err(|error| damaged(format!("set {number}: {error}")))?;
            let constraints = Constraints::measured(types, properties);
            let constraints = constraints.map_err(|error| damaged(format!("set {number}: {error}")))?;
            let table = Table::new(&constraints, tables.remove(&number).unwrap_or_default());
            let record = SetRecord { has_modes, owner, constraints };
            stored.push(StoredSet { number, record, table });
        }
        if let Some(number) = tables.keys().next() {
            return Err(damaged(format!("set {number} has properties and no record")).into());
        }
        if let Some(last) = stored.last().filter(|last| last.number >= next) {
            return Err(damaged(format!("set {} is beyond the number of sets", last.number)).into());
        }
        Ok((Self(file), stored, next))
    }

    /// Makes all changes in one transaction. They are durable when this returns.
    pub(crate) fn write(&mut self, records: &[&Record]) -> Result<(), JournalError> {
        Ok(self.0.change(|writing| {
            let mut sets = writing.open_table(SETS)?;
            let mut properties = writing.open_table(PROPERTIES)?;
            for record in records {
                if let Some(octets) = &record.set {
                    sets.insert(record.number, &**octets)?;
                    let mut settings = writing.open_table(SETTINGS)?;
                    // Sets are not written in the order of their numbers.
                    let next = settings.get("next")?.map_or(0, |next| next.value());
                    settings.insert("next", next.max(record.number + 1))?;
                }
                for (name, octets) in &record.properties {
                    set_record(&mut properties, (record.number, &**name), octets.as_deref())?;
                }
            }
            Ok(())
        })?)
    }

    /// Begins a copy of the sets in the file.
    pub(crate) fn begin_backup(&mut self) -> Result<Backup, StoreFileError> {
        self.0.begin_backup()
    }
}

/// A change of one set as octets.
#[derive(Debug)]
pub(crate) struct Record {
    number: u64,
    /// The set without its properties, for one that is new.
    set: Option<Vec<u8>>,
    /// The changed properties; `None` for deleted ones.
    properties: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// The record of changed properties.
    pub(crate) fn of_changes(number: u64, changes: &Changes) -> Result<Self, JournalError> {
        let properties = changes.iter().map(|(name, entry)| {
            let fields = entry.as_ref().map(|entry| (entry.value.clone(), entry.mode));
            let octets = fields.map(|fields| to_octets(&fields, &form())).transpose();
            Ok::<_, JournalError>((name.clone(), octets.map_err(unchanged)?))
        });
        Ok(Self { number, set: None, properties: properties.collect::<Result<_, _>>()? })
    }

    /// The record of a new set.
    pub(crate) fn of_set(number: u64, set: &SetRecord, table: &Table) -> Result<Self, JournalError> {
        let SetRecord { has_modes, owner, constraints } = set.clone();
        let fields: SetFields = (has_modes, owner, constraints.types, constraints.properties);
        let octets = to_octets(&fields, &form()).map_err(unchanged)?;
        let properties = table.entries.iter().map(|(name, entry)| (name.clone(), Some(Arc::clone(entry)))).collect();
        Ok(Self { set: Some(octets), ..Self::of_changes(number, &properties)? })
    }
}

fn unchanged(error: CdrError) -> JournalError {
    JournalError::Unchanged(error.to_string())
}

/// Verifies the store in a file, which is only read, as a service that does not run left it. Returns the number of sets,
/// and that of their properties.
///
/// # Errors
/// A file that cannot be read, is in use, is damaged, or is the store of another service or version.
pub fn check_store(file: &Path) -> Result<(usize, usize), StoreError> {
    let (_, sets, _) = Store::open(Storage::read_only(file))?;
    Ok((sets.len(), sets.iter().map(|set| set.table.entries.len()).sum()))
}
