//! Channels and connections on disk.

use std::path::Path;
use std::time::Duration;

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction};
use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet, from_octets, to_octets};
use spandrel::types::Ior;
use spandrel_store::{
    Backup, Layout, OpenCause, OpenError, Service, Storage, StoreFailure, StoreFile, StoreFileError, copy_table,
};

use crate::settings::ChannelSettings;

const CHANNELS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("channels");
/// By the numbers of channel and proxy.
const CONNECTIONS: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("connections");
/// `next` is the number of the next channel. Numbers are not used again.
const SETTINGS: TableDefinition<'_, &str, u64> = TableDefinition::new("settings");
/// The memory for pages, in octets. All records are read once, at the start.
const CACHE: usize = 4 << 20;

static LAYOUT: Layout = Layout { service: Service::Event, version: 1, create, convert, copy };

fn create(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(CHANNELS)?;
    transaction.open_table(CONNECTIONS)?;
    transaction.open_table(SETTINGS)?.insert("next", 1)?;
    Ok(())
}

fn convert(_: &WriteTransaction, _: &Storage) -> Result<(), OpenCause> {
    Err(OpenCause::NoStore("it has no header".to_owned()))
}

fn copy(reading: &ReadTransaction, copy: &WriteTransaction) -> Result<(), redb::Error> {
    copy_table(CHANNELS, reading, copy)?;
    copy_table(CONNECTIONS, reading, copy)?;
    copy_table(SETTINGS, reading, copy)
}

/// The form of a record, and of events as they are measured: the same on each machine, with all characters.
pub(crate) fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16)
}

/// A failure to open the database of channels and connections.
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

/// The interface of a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ProxyKind {
    PushConsumer,
    PullConsumer,
    PushSupplier,
    PullSupplier,
}

impl ProxyKind {
    const ALL: [Self; 4] = [Self::PushConsumer, Self::PullConsumer, Self::PushSupplier, Self::PullSupplier];

    /// Whether its peer is a consumer.
    pub(crate) const fn is_of_consumer(self) -> bool {
        matches!(self, Self::PushSupplier | Self::PullSupplier)
    }

    /// Whether its peer calls it to pass or get events.
    pub(crate) const fn is_called(self) -> bool {
        matches!(self, Self::PushConsumer | Self::PullSupplier)
    }

    /// The operation by which its peer learns of a disconnection.
    pub(crate) const fn disconnect_of_peer(self) -> &'static str {
        match self {
            Self::PushConsumer => "disconnect_push_supplier",
            Self::PullConsumer => "disconnect_pull_supplier",
            Self::PushSupplier => "disconnect_push_consumer",
            Self::PullSupplier => "disconnect_pull_consumer",
        }
    }
}

/// A connection in the store.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionRecord {
    pub(crate) kind: ProxyKind,
    pub(crate) peer: Option<Ior>,
}

/// A channel of a store that was opened.
#[derive(Debug)]
pub(crate) struct StoredChannel {
    pub(crate) number: u64,
    pub(crate) settings: ChannelSettings,
    pub(crate) connections: Vec<(u64, ConnectionRecord)>,
}

/// The settings of a channel as a record. Numbers: `MaxQueueLength`, `MaxNumProxies`, `PullRetryPeriod_ms`,
/// `CyclePeriod_ns`; zero is none, as an empty text is.
type ChannelFields = (String, String, Vec<u32>);

/// The index of its kind, and the reference of its peer; nil without one.
type ConnectionFields = (u32, Ior);

/// The database file of a service.
#[derive(Debug)]
pub(crate) struct Store(StoreFile);

impl Store {
    /// Opens the file, or creates it, and reads all channels. Returns the number of the next channel as well.
    pub(crate) fn open(storage: Storage) -> Result<(Self, Vec<StoredChannel>, u64), StoreError> {
        let mut file = StoreFile::open(storage, &LAYOUT, CACHE)?;
        type Records = (Vec<(u64, Vec<u8>)>, Vec<((u64, u64), Vec<u8>)>, u64);
        let (channels, connections, next): Records = file.read(|reading| {
            let mut channels = Vec::new();
            for record in reading.open_table(CHANNELS)?.iter()? {
                let (number, octets) = record?;
                channels.push((number.value(), octets.value().to_vec()));
            }
            let mut connections = Vec::new();
            for record in reading.open_table(CONNECTIONS)?.iter()? {
                let (key, octets) = record?;
                connections.push((key.value(), octets.value().to_vec()));
            }
            let next = reading.open_table(SETTINGS)?.get("next")?.map_or(1, |next| next.value());
            Ok((channels, connections, next))
        })?;
        let damaged = |text: String| file.storage().error(OpenCause::Contents(text));
        let mut stored = Vec::new();
        for (number, octets) in channels {
            let fields: Result<ChannelFields, _> = from_octets(&octets, &form());
            let fields = fields.map_err(|error| damaged(format!("channel {number}: {error}")))?;
            let settings = settings(fields).ok_or_else(|| damaged(format!("channel {number}: wrong settings")))?;
            stored.push(StoredChannel { number, settings, connections: Vec::new() });
        }
        for ((channel, proxy), octets) in connections {
            let fields: Result<ConnectionFields, _> = from_octets(&octets, &form());
            let (kind, peer) =
                fields.map_err(|error| damaged(format!("a connection of channel {channel}: {error}")))?;
            let kind = usize::try_from(kind).ok().and_then(|kind| ProxyKind::ALL.get(kind).copied());
            let owner = stored.iter_mut().find(|stored| stored.number == channel);
            let (Some(kind), Some(owner)) = (kind, owner) else {
                return Err(damaged(format!("a connection of channel {channel} has no channel or kind")).into());
            };
            let peer = Some(peer).filter(|peer| *peer != Ior::default());
            owner.connections.push((proxy, ConnectionRecord { kind, peer }));
        }
        if let Some(last) = stored.last().filter(|last| last.number >= next) {
            return Err(damaged(format!("channel {} is beyond the number of channels", last.number)).into());
        }
        Ok((Self(file), stored, next))
    }

    /// Writes a new channel. It is durable when this returns, as the other changes are.
    pub(crate) fn create(&mut self, number: u64, settings: &ChannelSettings) -> Result<(), StoreFailure> {
        let interval = settings.pull_interval.map(|interval| u32::try_from(interval.as_millis()).unwrap_or(u32::MAX));
        let numbers = [settings.max_queue_length, settings.max_proxies, interval, settings.cycle_period];
        let fields: ChannelFields = (
            settings.name.clone().unwrap_or_default(),
            settings.filter.clone().unwrap_or_default(),
            numbers.into_iter().map(Option::unwrap_or_default).collect(),
        );
        let octets = to_octets(&fields, &form()).map_err(|error| StoreFailure::Unchanged(error.to_string()))?;
        Ok(self.0.change(|writing| {
            writing.open_table(CHANNELS)?.insert(number, &*octets)?;
            writing.open_table(SETTINGS)?.insert("next", number + 1)?;
            Ok(())
        })?)
    }

    /// Removes a channel with its connections.
    pub(crate) fn destroy(&mut self, number: u64) -> Result<(), StoreFailure> {
        Ok(self.0.change(|writing| {
            writing.open_table(CHANNELS)?.remove(number)?;
            writing.open_table(CONNECTIONS)?.retain_in((number, 0)..=(number, u64::MAX), |_, _| false)?;
            Ok(())
        })?)
    }

    pub(crate) fn connect(
        &mut self,
        channel: u64,
        proxy: u64,
        connection: &ConnectionRecord,
    ) -> Result<(), StoreFailure> {
        let kind = ProxyKind::ALL.iter().position(|kind| *kind == connection.kind).unwrap_or_default();
        let fields: ConnectionFields =
            (u32::try_from(kind).unwrap_or_default(), connection.peer.clone().unwrap_or_default());
        let octets = to_octets(&fields, &form()).map_err(|error| StoreFailure::Unchanged(error.to_string()))?;
        Ok(self.0.change(|writing| {
            writing.open_table(CONNECTIONS)?.insert((channel, proxy), &*octets)?;
            Ok(())
        })?)
    }

    pub(crate) fn disconnect(&mut self, channel: u64, proxy: u64) -> Result<(), StoreFailure> {
        Ok(self.0.change(|writing| {
            writing.open_table(CONNECTIONS)?.remove((channel, proxy))?;
            Ok(())
        })?)
    }

    /// Begins a copy of the state in the file.
    pub(crate) fn begin_backup(&mut self) -> Result<Backup, StoreFileError> {
        self.0.begin_backup()
    }
}

/// The settings in a record; `None` if it has another form.
fn settings((name, filter, numbers): ChannelFields) -> Option<ChannelSettings> {
    let text = |text: String| Some(text).filter(|text| !text.is_empty());
    let [queue, proxies, interval, cycle] = <[u32; 4]>::try_from(numbers).ok()?.map(|n| Some(n).filter(|n| *n != 0));
    Some(ChannelSettings {
        name: text(name),
        max_queue_length: queue,
        max_proxies: proxies,
        pull_interval: interval.map(|ms| Duration::from_millis(ms.into())),
        filter: text(filter),
        cycle_period: cycle,
    })
}

/// Verifies the store in a file, which is only read, as a service that does not run left it. Returns the number of
/// channels, and that of their connections.
///
/// # Errors
/// A file that cannot be read, is in use, is damaged, or is the store of another service or version.
pub fn check_store(file: &Path) -> Result<(usize, usize), StoreError> {
    let (_, channels, _) = Store::open(Storage::read_only(file))?;
    Ok((channels.len(), channels.iter().map(|channel| channel.connections.len()).sum()))
}
