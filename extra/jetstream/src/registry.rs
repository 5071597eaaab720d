//! The channels and connections of the broker, as this server knows them, and the tasks of its consumers and suppliers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use async_nats::jetstream::kv::{Entry, Operation};
use futures_util::StreamExt as _;
use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel::poa::ObjectId;
use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException};
use spandrel_daemon::require_at_most;
use spandrel_delivery::notify_disconnection;
use spandrel_event::{ChannelSettings, CreateError, EventChannels, FACTORY_KEY, MONITOR_KEY};
use tokio::task::JoinHandle;

use crate::broker::{ATTEMPT, Broker, Record};
use crate::delivery;

/// The most channels of a broker.
const MAX_CHANNELS: usize = 1_000;
/// The most connections of a channel.
const MAX_CONNECTIONS: usize = 2_000;
/// The longest name of a channel, in octets.
const MAX_NAME: usize = 64;
/// The longest reference of a peer in its text form, in octets.
const MAX_REFERENCE: usize = 64 << 10;
/// The time after which all records are read again, in case that a change was missed.
const REREAD: Duration = Duration::from_secs(60);
/// The pause before the broker is asked again for the changes of records.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The time after which the mark of a deleted record is removed.
const MARK_AGE: Duration = Duration::from_secs(3_600);

/// The interface of a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ProxyKind {
    PushConsumer,
    PullConsumer,
    PushSupplier,
    PullSupplier,
}

impl ProxyKind {
    const ALL: [(Self, &'static str); 4] = [
        (Self::PushConsumer, "push-consumer"),
        (Self::PullConsumer, "pull-consumer"),
        (Self::PushSupplier, "push-supplier"),
        (Self::PullSupplier, "pull-supplier"),
    ];

    /// Whether its peer is a consumer.
    pub(crate) const fn is_of_consumer(self) -> bool {
        matches!(self, Self::PushSupplier | Self::PullSupplier)
    }

    /// The operation by which its peer learns of a disconnection.
    const fn disconnect_of_peer(self) -> &'static str {
        match self {
            Self::PushConsumer => "disconnect_push_supplier",
            Self::PullConsumer => "disconnect_pull_supplier",
            Self::PushSupplier => "disconnect_push_consumer",
            Self::PullSupplier => "disconnect_pull_consumer",
        }
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// The id of a proxy: its channel, its kind and a random number. Its reference contains all of it, so that each server can
/// serve each proxy.
#[derive(Clone, Debug, Eq, PartialEq, PartialOrd, Ord)]
pub(crate) struct ProxyId {
    pub(crate) channel: String,
    /// The kind and the number: the name of the durable consumer as well.
    pub(crate) name: String,
}

impl ProxyId {
    /// A new id.
    pub(crate) fn random(channel: &str, kind: ProxyKind) -> Self {
        Self { channel: channel.to_owned(), name: format!("{}-{:032x}", kind.name(), fastrand::u128(..)) }
    }

    /// The id in a text with this separator; `None` if it is that of no proxy.
    pub(crate) fn parse(text: &str, separator: char) -> Option<(Self, ProxyKind)> {
        let (channel, name) = text.split_once(separator)?;
        let (kind, number) = name.rsplit_once('-')?;
        let (kind, _) = ProxyKind::ALL.into_iter().find(|(_, name)| *name == kind)?;
        let is_number = number.len() == 32 && number.bytes().all(|octet| matches!(octet, b'0'..=b'9' | b'a'..=b'f'));
        (is_number && is_name(channel)).then(|| (Self { channel: channel.to_owned(), name: name.to_owned() }, kind))
    }

    pub(crate) fn object_id(&self) -> ObjectId {
        ObjectId::from(format!("{}/{}", self.channel, self.name).as_str())
    }

    fn key(&self) -> String {
        format!("{}.{}", self.channel, self.name)
    }
}

/// Whether a text can be the name of a channel: it is part of names in the broker.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fits) && ![FACTORY_KEY, MONITOR_KEY].contains(&name)
}

/// The counts of a connection since the start of this server.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounts {
    pub(crate) delivered: AtomicU64,
    /// Events that the consumer did not get, as too many waited for it.
    pub(crate) discarded: AtomicU64,
    pub(crate) failures: AtomicU64,
}

/// A connection of the broker.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) kind: ProxyKind,
    pub(crate) peer: Option<ObjectRef>,
    /// The number of the first event that its consumer gets.
    pub(crate) first_event: u64,
    pub(crate) counts: Arc<ConnectionCounts>,
}

/// The settings of peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSettings {
    /// The time limit of a call on a peer.
    pub(crate) timeout: Duration,
    /// The time for which events of a consumer that fails are kept, before it is disconnected.
    pub(crate) keep: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// The received events of this server by channels.
    channels: BTreeMap<String, Arc<AtomicU64>>,
    connections: BTreeMap<ProxyId, (Connection, Option<JoinHandle<()>>)>,
    /// The marks of connections that have ended, by the keys of their records, and the times at which they were found.
    marks: BTreeMap<String, Instant>,
}

/// The channels and connections of a broker.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) orb: Orb,
    pub(crate) adapter: Poa,
    pub(crate) broker: Broker,
    pub(crate) peers: PeerSettings,
    /// The calls of `pull` that wait in this server.
    pub(crate) waiting_pulls: AtomicUsize,
    state: RwLock<State>,
    watch: Mutex<Option<JoinHandle<()>>>,
}

/// The exception for an object whose channel or connection has ended.
pub(crate) fn gone() -> SystemException {
    SystemException::object_not_exist(0, CompletionStatus::No)
}

/// The end of an attempt to connect a proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ConnectOutcome {
    Connected,
    /// The proxy is connected already.
    Twice,
}

impl Registry {
    pub(crate) fn new(orb: &Orb, adapter: Poa, broker: Broker, peers: PeerSettings) -> Arc<Self> {
        Arc::new(Self {
            orb: orb.clone(),
            adapter,
            broker,
            peers,
            waiting_pulls: AtomicUsize::new(0),
            state: RwLock::default(),
            watch: Mutex::default(),
        })
    }

    /// Follows the records of the broker until the end of the service.
    pub(crate) fn start(self: &Arc<Self>) {
        let registry = Arc::downgrade(self);
        let watch = self.broker.spawn(async move {
            while let Some(registry) = registry.upgrade() {
                // A broker that is away is asked again.
                _ = tokio::time::timeout(REREAD, registry.follow()).await;
                registry.remove_marks().await;
                drop(registry);
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        });
        *self.watch.lock() = Some(watch);
    }

    /// Ends all tasks.
    pub(crate) fn stop(&self) {
        if let Some(watch) = self.watch.lock().take() {
            watch.abort();
        }
        for (_, task) in self.state.read().connections.values() {
            if let Some(task) = task {
                task.abort();
            }
        }
        for name in self.channels() {
            self.orb.remove_object_key_alias(name);
        }
    }

    /// Applies all records, then each change, until the broker fails.
    async fn follow(self: &Arc<Self>) {
        let mut changes = match self.broker.bucket.watch_with_history(">").await {
            Ok(changes) => changes,
            Err(error) => return tracing::warn!(%error, "cannot follow the records of the broker"),
        };
        while let Some(change) = changes.next().await {
            match change {
                Ok(entry) => self.apply(&entry),
                Err(error) => return tracing::warn!(%error, "cannot follow the records of the broker"),
            }
        }
    }

    fn apply(self: &Arc<Self>, entry: &Entry) {
        let exists = entry.operation == Operation::Put;
        match ProxyId::parse(&entry.key, '.') {
            // The record of a channel comes before those of its connections. Without it they are left from another channel.
            Some((id, kind)) if exists && self.has_channel(&id.channel) => {
                self.add(&id, kind, &String::from_utf8_lossy(&entry.value));
            }
            Some(_) if exists => {}
            Some((id, kind)) => self.apply_end(&entry.key, id, kind),
            None if exists && is_name(&entry.key) => {
                if let Err(error) = self.add_channel(&entry.key) {
                    tracing::error!(%error, channel = %entry.key, "a channel cannot be served");
                }
            }
            None => self.apply_destruction(&entry.key),
        }
    }

    /// Applies the end of a connection. The consumer is deleted also if the server that ended the connection has died since.
    fn apply_end(self: &Arc<Self>, key: &str, id: ProxyId, kind: ProxyKind) {
        self.remove(&id);
        let is_new = self.state.write().marks.insert(key.to_owned(), Instant::now()).is_none();
        if is_new && kind.is_of_consumer() {
            let registry = Arc::clone(self);
            self.broker.spawn(async move {
                // A request of a server that did not know of the end may have created the consumer again.
                tokio::time::sleep(ATTEMPT).await;
                registry.broker.delete_consumer(&id.channel, &id.name).await;
            });
        }
    }

    /// Applies the destruction of a channel: its connections end, also those that its destroyer did not know.
    fn apply_destruction(self: &Arc<Self>, name: &str) {
        self.remove_channel(name);
        for (id, _) in self.connections(name) {
            let registry = Arc::clone(self);
            self.broker.spawn(async move {
                if let Err(error) = registry.disconnect(&id, true).await {
                    tracing::warn!(%error, channel = %id.channel, proxy = %id.name, "the end of a connection is not stored");
                }
            });
        }
    }

    /// Removes the marks of connections that ended an hour ago. Numbers of proxies are not used again.
    async fn remove_marks(&self) {
        let marks = self.state.read().marks.clone();
        for key in self.broker.remove_marks(&marks, MARK_AGE).await {
            self.state.write().marks.remove(&key);
        }
    }

    fn add_channel(&self, name: &str) -> Result<(), SystemException> {
        let reference = self.channel_reference(name)?;
        self.state.write().channels.entry(name.to_owned()).or_default();
        self.orb.set_object_key_alias(name, &reference)
    }

    fn remove_channel(&self, name: &str) {
        if self.state.write().channels.remove(name).is_some() {
            self.orb.remove_object_key_alias(name);
        }
    }

    /// Adds a connection by its record, and starts the task that calls its peer.
    fn add(self: &Arc<Self>, id: &ProxyId, kind: ProxyKind, record: &str) {
        let mut state = self.state.write();
        if state.connections.contains_key(id) {
            return;
        }
        let (first_event, peer) = record.split_once(' ').unwrap_or_default();
        let Ok(first_event) = first_event.parse() else {
            return tracing::error!(proxy = %id.name, "the record of a connection is damaged");
        };
        let peer = match peer {
            "" => None,
            peer => match self.orb.string_to_object(peer) {
                Ok(peer) => Some(peer),
                Err(error) => return tracing::error!(%error, proxy = %id.name, "the record of a connection is damaged"),
            },
        };
        let connection = Connection { kind, peer, first_event, counts: Arc::default() };
        let (registry, id_of_task, of_task) = (Arc::downgrade(self), id.clone(), connection.clone());
        let task = match (kind, connection.peer.clone()) {
            (ProxyKind::PushSupplier, Some(peer)) => {
                Some(self.broker.spawn(delivery::push(registry, id_of_task, peer, of_task)))
            }
            (ProxyKind::PullSupplier, _) => Some(self.broker.spawn(delivery::bound(registry, id_of_task, of_task))),
            (ProxyKind::PullConsumer, Some(peer)) => {
                Some(self.broker.spawn(delivery::pull(registry, id_of_task, peer, of_task)))
            }
            _ => None,
        };
        state.connections.insert(id.clone(), (connection, task));
    }

    fn remove(&self, id: &ProxyId) {
        if let Some((_, Some(task))) = self.state.write().connections.remove(id) {
            task.abort();
        }
    }

    pub(crate) fn channels(&self) -> Vec<String> {
        self.state.read().channels.keys().cloned().collect()
    }

    /// The connections of a channel.
    pub(crate) fn connections(&self, channel: &str) -> Vec<(ProxyId, Connection)> {
        let state = self.state.read();
        let of_channel = state.connections.iter().filter(|(id, _)| id.channel == channel);
        of_channel.map(|(id, (connection, _))| (id.clone(), connection.clone())).collect()
    }

    /// Whether a connection is not known to have ended.
    pub(crate) fn has_connection(&self, id: &ProxyId) -> bool {
        self.state.read().connections.contains_key(id)
    }

    /// The count of the events that this server has received for a channel.
    pub(crate) fn received(&self, channel: &str) -> Option<Arc<AtomicU64>> {
        self.state.read().channels.get(channel).cloned()
    }

    pub(crate) fn has_channel(&self, name: &str) -> bool {
        self.state.read().channels.contains_key(name)
    }

    /// Requires a channel, which another server may just have created.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST without it.
    pub(crate) fn require_channel(&self, name: &str) -> Result<(), SystemException> {
        if self.has_channel(name) {
            return Ok(());
        }
        match self.broker.wait(self.broker.record(name))? {
            Some(Record::Value(_)) => self.add_channel(name),
            _ => Err(gone()),
        }
    }

    /// The connection of a proxy, which another server may just have made; `None` if it is not connected.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST after its end, or without its channel.
    pub(crate) fn connection(
        self: &Arc<Self>,
        id: &ProxyId,
        kind: ProxyKind,
    ) -> Result<Option<Connection>, SystemException> {
        let local = || self.state.read().connections.get(id).map(|(connection, _)| connection.clone());
        if let Some(connection) = local() {
            return Ok(Some(connection));
        }
        match self.broker.wait(self.broker.record(&id.key()))? {
            Some(Record::Value(record)) => {
                self.require_channel(&id.channel)?;
                self.add(id, kind, &record);
                Ok(local())
            }
            Some(Record::Deleted) => Err(gone()),
            None => self.require_channel(&id.channel).map(|()| None),
        }
    }

    /// Connects a peer durably. A consumer gets the events that are pushed after it.
    pub(crate) fn connect(
        self: &Arc<Self>,
        id: &ProxyId,
        kind: ProxyKind,
        peer: Option<&ObjectRef>,
    ) -> Result<ConnectOutcome, SystemException> {
        self.require_channel(&id.channel)?;
        let connections = self.connections(&id.channel).len();
        require_at_most(connections + 1, MAX_CONNECTIONS, "connections of a channel")?;
        let reference = peer.map(ToString::to_string).unwrap_or_default();
        require_at_most(reference.len(), MAX_REFERENCE, "octets in a reference")?;
        self.broker.wait(async {
            let first_event = if kind.is_of_consumer() { self.broker.next_sequence(&id.channel).await? } else { 0 };
            let record = format!("{first_event} {reference}");
            match self.broker.create_record(&id.key(), &record, false).await? {
                Some(Record::Deleted) => return Err(gone()),
                Some(Record::Value(_)) => return Ok(ConnectOutcome::Twice),
                None => {}
            }
            if kind.is_of_consumer() {
                self.broker.consumer(&id.channel, &id.name, first_event).await?;
            }
            self.add(id, kind, &record);
            Ok(ConnectOutcome::Connected)
        })
    }

    /// Ends a connection durably, with notice to its peer unless that failed.
    pub(crate) async fn disconnect(&self, id: &ProxyId, has_failed: bool) -> Result<(), SystemException> {
        let connection = self.state.read().connections.get(id).map(|(connection, _)| connection.clone());
        let Some(connection) = connection else { return Ok(()) };
        self.broker.delete_record(&id.key()).await?;
        if let Some(peer) = connection.peer.filter(|_| !has_failed) {
            notify_disconnection(&self.orb, &peer, connection.kind.disconnect_of_peer(), self.peers.timeout);
        }
        if connection.kind.is_of_consumer() {
            self.broker.delete_consumer(&id.channel, &id.name).await;
        }
        self.remove(id);
        Ok(())
    }

    /// Destroys a channel with its connections.
    pub(crate) fn destroy(&self, name: &str) -> Result<(), SystemException> {
        self.require_channel(name)?;
        self.broker.wait(async {
            self.broker.delete_record(name).await?;
            self.remove_channel(name);
            for (id, _) in self.connections(name) {
                self.disconnect(&id, false).await?;
            }
            self.broker.delete_stream(name).await
        })
    }

    pub(crate) fn channel_reference(&self, name: &str) -> Result<ObjectRef, SystemException> {
        Ok(self.adapter.create_reference_with_id(&ObjectId::from(name), "IDL:omniEvents/EventChannel:1.0")?)
    }

    /// Creates a channel. Another server may do so at the same time: one of them succeeds.
    fn create_channel(&self, name: &str) -> Result<(), CreateError> {
        require_at_most(self.channels().len() + 1, MAX_CHANNELS, "channels")?;
        self.broker.wait(async {
            // A record without its stream would be a channel that takes no events.
            self.broker.create_stream(name).await?;
            // The value is unique, so that its own record is told from that of another server.
            let value = format!("{:032x}", fastrand::u128(..));
            match self.broker.create_record(name, &value, true).await? {
                Some(_) => Err(CreateError::Name),
                None => Ok(self.add_channel(name)?),
            }
        })
    }

    /// The channel with this name, which is created if it does not exist.
    pub(crate) fn channel(&self, name: &str) -> Result<ObjectRef, CreateError> {
        if !is_name(name) {
            return Err(CreateError::Name);
        }
        match self.require_channel(name) {
            Ok(()) => {}
            Err(error) if error.kind() == spandrel::SystemExceptionKind::ObjectNotExist => {
                match self.create_channel(name) {
                    Ok(()) => {}
                    Err(CreateError::Name) => self.require_channel(name)?, // another server was faster
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.channel_reference(name)?)
    }
}

/// The channels, as the factory creates and finds them.
#[derive(Clone, Debug)]
pub(crate) struct SharedChannels(pub(crate) Arc<Registry>);

impl EventChannels for SharedChannels {
    fn create(&self, settings: ChannelSettings) -> Result<ObjectRef, CreateError> {
        if settings.filter.is_some() || settings.max_queue_length.is_some() {
            let detail = "channels of a broker have neither FilterId nor MaxQueueLength";
            return Err(SystemException::no_implement(0, CompletionStatus::No).with_detail(detail).into());
        }
        let name = settings.name.unwrap_or_else(|| format!("channel-{:032x}", fastrand::u128(..)));
        if !is_name(&name) || self.0.has_channel(&name) {
            return Err(CreateError::Name);
        }
        self.0.create_channel(&name)?;
        Ok(self.0.channel_reference(&name)?)
    }

    fn find(&self, name: &str) -> Result<Option<ObjectRef>, SystemException> {
        match self.0.require_channel(name) {
            Ok(()) => self.0.channel_reference(name).map(Some),
            Err(error) if error.kind() == spandrel::SystemExceptionKind::ObjectNotExist => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn monitor(&self) -> Result<ObjectRef, SystemException> {
        Ok(self.0.adapter.create_reference_with_id(&ObjectId::from(MONITOR_KEY), "IDL:EventMonitoring/Monitor:1.0")?)
    }
}
