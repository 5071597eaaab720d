//! Channels, connections, filters and events on disk.

use std::collections::BTreeMap;
use std::path::Path;

use redb::{ReadTransaction, ReadableTable as _, WriteTransaction};
use spandrel::Orb;
use spandrel::cdr::{CdrError, OctetForm, from_octets};
use spandrel_cdr::Decode;
use spandrel_store::{
    Backup, Layout, LogPolicy, OpenCause, OpenError, RedoLogError, Service, Storage, StoreFailure, StoreFile,
    StoreFileError, copy_table,
};

use crate::edit::{ADMINS, CHANNELS, EVENTS, Edit, FILTERS, PROXIES, SETTINGS, TARGETS, TargetKey, TargetLifetime};
use crate::encoding::form;
use crate::kind::Side;
use crate::pending::{PendingEvents, decode_record, encode_record};
use crate::records::{AdminRecord, ChannelRecord, EventRecord, FilterRecord, ProxyRecord};

/// The memory for pages, in octets. All records are read once, at the start.
const CACHE: usize = 16 << 20;
/// The size of the redo log, in octets: some ten thousand small events between two checkpoints.
const LOG: u64 = 4 << 20;

static LAYOUT: Layout = Layout { service: Service::Notification, version: 1, create, convert, copy };

fn create(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(CHANNELS)?;
    transaction.open_table(ADMINS)?;
    transaction.open_table(PROXIES)?;
    transaction.open_table(FILTERS)?;
    transaction.open_table(EVENTS)?;
    transaction.open_table(TARGETS)?;
    transaction.open_table(SETTINGS)?;
    Ok(())
}

fn convert(_: &WriteTransaction, _: &Storage) -> Result<(), OpenCause> {
    Err(OpenCause::NoStore("it has no header".to_owned()))
}

fn copy(reading: &ReadTransaction, copy: &WriteTransaction) -> Result<(), redb::Error> {
    copy_table(CHANNELS, reading, copy)?;
    copy_table(ADMINS, reading, copy)?;
    copy_table(PROXIES, reading, copy)?;
    copy_table(FILTERS, reading, copy)?;
    copy_table(EVENTS, reading, copy)?;
    copy_table(TARGETS, reading, copy)?;
    copy_table(SETTINGS, reading, copy)
}

/// A failure to open the database of channels, filters and events.
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

/// A channel of a store that was opened.
#[derive(Debug)]
pub(crate) struct StoredChannel {
    pub(crate) record: ChannelRecord,
    pub(crate) admins: Vec<((Side, i32), AdminRecord)>,
    pub(crate) proxies: BTreeMap<i32, ProxyRecord>,
}

/// The contents of a store that was opened.
#[derive(Debug, Default)]
pub(crate) struct StoredState {
    pub(crate) channels: BTreeMap<i32, StoredChannel>,
    pub(crate) filters: BTreeMap<u64, FilterRecord>,
    pub(crate) events: BTreeMap<u64, EventRecord>,
    pub(crate) targets: Vec<(TargetKey, TargetLifetime)>,
    /// The numbers up to which ids may be in use.
    pub(crate) last_channel: u64,
    pub(crate) last_filter: u64,
}

/// The database file of a service, with its redo log.
#[derive(Debug)]
pub(crate) struct Store {
    file: StoreFile,
    pending: PendingEvents,
}

/// The records of the tables, undecoded.
#[derive(Default)]
struct Records {
    channels: Vec<(i32, Vec<u8>)>,
    admins: Vec<((i32, bool, i32), Vec<u8>)>,
    proxies: Vec<((i32, i32), Vec<u8>)>,
    filters: Vec<(u64, Vec<u8>)>,
    events: BTreeMap<u64, Vec<u8>>,
    targets: BTreeMap<TargetKey, TargetLifetime>,
    last_channel: u64,
    last_filter: u64,
}

impl Records {
    fn read(reading: &ReadTransaction) -> Result<Self, redb::Error> {
        let mut records = Self::default();
        for record in reading.open_table(CHANNELS)?.iter()? {
            let (key, octets) = record?;
            records.channels.push((key.value(), octets.value().to_vec()));
        }
        for record in reading.open_table(ADMINS)?.iter()? {
            let (key, octets) = record?;
            records.admins.push((key.value(), octets.value().to_vec()));
        }
        for record in reading.open_table(PROXIES)?.iter()? {
            let (key, octets) = record?;
            records.proxies.push((key.value(), octets.value().to_vec()));
        }
        for record in reading.open_table(FILTERS)?.iter()? {
            let (key, octets) = record?;
            records.filters.push((key.value(), octets.value().to_vec()));
        }
        for record in reading.open_table(EVENTS)?.iter()? {
            let (key, octets) = record?;
            records.events.insert(key.value(), octets.value().to_vec());
        }
        for record in reading.open_table(TARGETS)?.iter()? {
            let (key, lifetime) = record?;
            records.targets.insert(key.value(), lifetime.value());
        }
        let settings = reading.open_table(SETTINGS)?;
        let setting = |name| Ok::<_, redb::Error>(settings.get(name)?.map_or(0, |number| number.value()));
        (records.last_channel, records.last_filter) = (setting("channels")?, setting("filters")?);
        Ok(records)
    }

    /// The changes of records of the redo log, which are made here as well.
    ///
    /// # Errors
    /// A record that this version does not know.
    fn repeat(&mut self, log: &[Vec<u8>]) -> Result<PendingEvents, RedoLogError> {
        let last_event = self.events.keys().last().copied().unwrap_or_default();
        let last_target = self.targets.keys().map(|key| key.2).max().unwrap_or_default();
        let mut pending = PendingEvents::new(last_event.max(last_target));
        for (nth, record) in log.iter().enumerate() {
            let edits = decode_record(record).ok_or_else(|| RedoLogError::Contents(format!("record {nth}")))?;
            edits.iter().for_each(|edit| pending.add(edit));
        }
        for (number, record) in pending.events() {
            match record {
                Some(record) => _ = self.events.insert(number, record.clone()),
                None => _ = self.events.remove(&number),
            }
        }
        for (key, lifetime) in pending.targets() {
            match lifetime {
                Some(lifetime) => _ = self.targets.insert(key, lifetime),
                None => _ = self.targets.remove(&key),
            }
        }
        Ok(pending)
    }

    /// # Errors
    /// The description of a record that is damaged.
    fn decode(self, form: &OctetForm<'_>) -> Result<StoredState, String> {
        fn record<T: Decode>(octets: &[u8], form: &OctetForm<'_>, name: String) -> Result<T, String> {
            from_octets(octets, form).map_err(|error: CdrError| format!("{name}: {error}"))
        }
        let mut state =
            StoredState { last_channel: self.last_channel, last_filter: self.last_filter, ..StoredState::default() };
        for (id, octets) in self.channels {
            let channel = ChannelRecord::from_fields(record(&octets, form, format!("channel {id}"))?)
                .ok_or_else(|| format!("channel {id}: wrong properties"))?;
            state.channels.insert(id, StoredChannel { record: channel, admins: Vec::new(), proxies: BTreeMap::new() });
        }
        for (number, octets) in self.filters {
            state.filters.insert(number, record(&octets, form, format!("filter {number}"))?);
        }
        for ((channel, is_of_consumers, id), octets) in self.admins {
            let name = || format!("administrator {id} of channel {channel}");
            let admin = AdminRecord::from_fields(record(&octets, form, name())?).ok_or_else(name)?;
            let owner = state.channels.get_mut(&channel).ok_or_else(name)?;
            let side = if is_of_consumers { Side::Consumers } else { Side::Suppliers };
            owner.admins.push(((side, id), admin));
        }
        for ((channel, id), octets) in self.proxies {
            let name = || format!("proxy {id} of channel {channel}");
            let proxy = ProxyRecord::from_fields(record(&octets, form, name())?).ok_or_else(name)?;
            let owner = state.channels.get_mut(&channel).ok_or_else(name)?;
            owner.proxies.insert(id, proxy);
        }
        for (number, octets) in self.events {
            state.events.insert(number, record(&octets, form, format!("event {number}"))?);
        }
        state.targets = self.targets.into_iter().collect();
        Ok(state)
    }
}

impl Store {
    /// Opens the file, or creates it, and reads its contents. References are those of the ORB; without one, they are only
    /// verified.
    pub(crate) fn open(storage: Storage, orb: Option<&Orb>) -> Result<(Self, StoredState), StoreError> {
        let (mut file, log) = StoreFile::open_logged(storage, &LAYOUT, CACHE, LOG)?;
        let mut records = file.read(Records::read)?;
        let pending = records.repeat(&log).map_err(|cause| {
            let storage = file.storage();
            storage.error(OpenCause::RedoLog { file: storage.log_path(), cause })
        })?;
        let form = match orb {
            Some(orb) => form().binder(orb),
            None => form(),
        };
        let damaged = |text: String| file.storage().error(OpenCause::Contents(text));
        let state = records.decode(&form).map_err(damaged)?;
        Ok((Self { file, pending }, state))
    }

    /// Writes edits in their order. They are durable when this returns: as a record of the redo log, if they are of events
    /// alone and the log has room for them, otherwise by a checkpoint.
    pub(crate) fn write<'e>(&mut self, edits: impl Iterator<Item = &'e Edit> + Clone) -> Result<(), StoreFailure> {
        if let Some(record) = encode_record(edits.clone())
            && self.file.append(&record)?
        {
            edits.for_each(|edit| self.pending.add(edit));
            return Ok(());
        }
        self.pending.begin_write(edits.clone());
        let pending = &self.pending;
        self.file.change(|writing| {
            pending.apply(writing)?;
            edits.clone().try_for_each(|edit| edit.apply(writing))
        })?;
        self.pending.end_write();
        Ok(())
    }

    /// Writes all changes to the file of the database, which needs no redo log until the next one.
    pub(crate) fn complete(&mut self) -> Result<(), StoreFailure> {
        self.pending.begin_write(std::iter::empty());
        let pending = &self.pending;
        self.file.complete(|writing| pending.apply(writing))?;
        self.pending.end_write();
        Ok(())
    }

    /// Begins a copy of the state in the file, after a checkpoint.
    pub(crate) fn begin_backup(&mut self) -> Result<Backup, StoreFailure> {
        if !self.pending.is_empty() {
            self.complete()?;
        }
        Ok(self.file.begin_backup()?)
    }
}

/// The error of records of a storage that do not belong together.
pub(crate) fn damaged(storage: &Storage, text: String) -> StoreError {
    storage.error(OpenCause::Contents(text)).into()
}

/// The numbers of objects that a verification of the database has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct StoreCounts {
    /// The channels whose connections are persistent.
    pub channels: usize,
    /// The persistent connections of these channels.
    pub connections: usize,
    /// The filters that these objects use.
    pub filters: usize,
    /// The events that a consumer has not yet got.
    pub events: usize,
}

/// Verifies the store in a file, which is only read, as a service that does not run left it.
///
/// # Errors
/// A file that cannot be read, is in use, is damaged, or is the store of another service or version.
pub fn check_store(file: &Path) -> Result<StoreCounts, StoreError> {
    let (_, state) = Store::open(Storage::read_only(file), None)?;
    Ok(state.counts())
}

/// Opens the store of a service that does not run also if its redo log is damaged, or belongs to another store: the changes
/// before the damage are repeated, and the others are dropped. A warning in the log has their number.
///
/// # Errors
/// As [`check_store`], except for the redo log; a file that cannot be written.
pub fn recover_store(file: &Path) -> Result<StoreCounts, StoreError> {
    let (mut store, state) = Store::open(Storage::file(file).with_policy(LogPolicy::DropDamaged), None)?;
    let pending = &store.pending;
    store.file.complete(|writing| pending.apply(writing))?;
    // The log gets the header of this store, after the database has all changes.
    store.file.change(|_| Ok(()))?;
    store.file.complete(|_| Ok(()))?;
    Ok(state.counts())
}

impl StoredState {
    fn counts(&self) -> StoreCounts {
        StoreCounts {
            channels: self.channels.len(),
            connections: self.channels.values().map(|channel| channel.proxies.len()).sum(),
            filters: self.filters.len(),
            events: self.events.len(),
        }
    }
}
