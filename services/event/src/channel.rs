//! The core of a channel: its proxies, and the way of an event from suppliers to the queues of consumers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use spandrel::cdr::to_octets;
use spandrel::net::sync::{Arc, RwLock};
use spandrel::poa::ObjectId;
use spandrel::server::Servant;
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_daemon::require_at_most;
use spandrel_delivery::{
    Connection, ConnectionCell, DiscardOrder, Event, EventQueue, Lifetime, QueueBounds, QueueCounts, QueueOrder,
    TaskEnd, TypedInterface, notify_disconnection,
};

use crate::content::EventContent;
use crate::settings::ChannelSettings;
use crate::shared::{PullReply, Shared};
use crate::store::{ConnectionRecord, ProxyKind, form};

/// A channel of events.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) number: u64,
    /// That of the settings, or one with the number.
    pub(crate) name: String,
    pub(crate) settings: ChannelSettings,
    pub(crate) shared: Arc<Shared>,
    proxies: RwLock<Proxies>,
    counts: ChannelCounts,
}

/// The proxies of a channel by their numbers.
#[derive(Debug, Default)]
struct Proxies {
    by_number: BTreeMap<u64, Arc<Proxy>>,
    is_destroyed: bool,
}

/// Counts since the start of the service. Those of consumers are added when they leave.
#[derive(Debug, Default)]
struct ChannelCounts {
    received: AtomicU64,
    filtered: AtomicU64,
    refused: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
}

/// The state of a channel in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChannelNumbers {
    pub(crate) consumers: usize,
    pub(crate) suppliers: usize,
    pub(crate) received: u64,
    /// Events of other types than the channel's `FilterId`.
    pub(crate) filtered: u64,
    /// Events that were refused: too large, or no memory.
    pub(crate) refused: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) longest_queue: usize,
    pub(crate) lag_ms: u64,
}

/// A proxy: the channel's side of one connection.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) number: u64,
    pub(crate) kind: ProxyKind,
    pub(crate) connection: ConnectionCell,
    /// The events for its consumer.
    pub(crate) queue: EventQueue<PullReply>,
    /// The end of the task that pushes or pulls.
    pub(crate) task: TaskEnd,
    /// The interface by whose operations a typed peer passes or gets events.
    pub(crate) interface: Option<Arc<TypedInterface>>,
    created: Instant,
}

/// The reason why a connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DisconnectCause {
    /// The peer called the proxy's operation.
    ByPeer,
    /// The peer failed too often, or does not exist.
    PeerFailed,
    /// The channel is destroyed.
    ChannelDestroyed,
}

impl Channel {
    pub(crate) fn new(shared: &Arc<Shared>, number: u64, name: String, settings: ChannelSettings) -> Arc<Self> {
        Arc::new(Self {
            number,
            name,
            settings,
            shared: Arc::clone(shared),
            proxies: RwLock::default(),
            counts: ChannelCounts::default(),
        })
    }

    /// Puts an event into the queues of all connected consumers. No consumer is waited for.
    ///
    /// # Errors
    /// IMP_LIMIT for an event that is too large; NO_RESOURCES if the memory is full of events of other channels.
    pub(crate) fn publish(&self, content: EventContent) -> Result<(), SystemException> {
        self.counts.received.fetch_add(1, Ordering::Relaxed);
        let is_other = |filter: &String| content.value.type_code().without_aliases().id().ok() != Some(filter.as_str());
        if self.settings.filter.as_ref().is_some_and(is_other) {
            self.counts.filtered.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.distribute(content).inspect_err(|_| _ = self.counts.refused.fetch_add(1, Ordering::Relaxed))
    }

    fn distribute(&self, content: EventContent) -> Result<(), SystemException> {
        let encoded = to_octets(&content.value, &form()).map_err(|error| {
            let detail = move || format!("the event has no encoding: {error}");
            SystemException::bad_param(0, CompletionStatus::No).with_detail(detail)
        })?;
        let octets = encoded.len();
        drop(encoded);
        require_at_most(octets, self.shared.limits.event_octets, "octets in an event")?;
        let proxies = self.proxies.read();
        let consumers = || proxies.by_number.values().filter(|proxy| proxy.kind.is_of_consumer());
        let charge = loop {
            if let Some(charge) = self.shared.memory.charge(octets) {
                break charge;
            }
            // The longest queue of this channel loses its oldest events.
            let longest = consumers().max_by_key(|proxy| proxy.queue.counts().octets);
            if !longest.is_some_and(|proxy| proxy.queue.shed()) {
                return Err(SystemException::no_resources(0, CompletionStatus::No)
                    .with_detail("the memory for events is full of events of other channels"));
            }
        };
        let event = Arc::new(Event::new(content, charge));
        let mut ended = Vec::new();
        for proxy in consumers().filter(|proxy| proxy.is_for(&event.value)) {
            proxy.queue.add([(Arc::clone(&event), Lifetime::default())], &mut ended);
        }
        ended.into_iter().for_each(|pull| self.shared.replies.send(pull));
        Ok(())
    }

    /// The id of an object of this channel: itself, `consumers`, `suppliers` or a proxy.
    pub(crate) fn object_id(&self, part: Option<&str>) -> ObjectId {
        match part {
            None => ObjectId::from(self.number.to_string().as_str()),
            Some(part) => ObjectId::from(format!("{}/{part}", self.number).as_str()),
        }
    }

    /// Activates an object of this channel.
    pub(crate) fn serve(&self, part: Option<&str>, servant: Arc<dyn Servant>) -> Result<ObjectRef, SystemException> {
        let id = self.object_id(part);
        self.shared.adapter.activate_object_with_id(&id, servant)?;
        Ok(self.shared.adapter.id_to_reference(&id)?)
    }

    /// A new proxy, unconnected. If there are too many, the oldest one that was never connected goes.
    ///
    /// # Errors
    /// IMP_LIMIT if there are too many; OBJECT_NOT_EXIST if the channel is destroyed.
    pub(crate) fn add_proxy(
        &self,
        kind: ProxyKind,
        number: Option<u64>,
        interface: Option<Arc<TypedInterface>>,
    ) -> Result<Arc<Proxy>, SystemException> {
        let evicted = {
            let mut proxies = self.proxies.write();
            if proxies.is_destroyed {
                return Err(SystemException::object_not_exist(0, CompletionStatus::No));
            }
            let evicted = if proxies.by_number.len() < self.shared.limits.proxies {
                None
            } else {
                let unconnected = proxies.by_number.values().filter(|proxy| proxy.connection.is_unconnected());
                let number = unconnected.min_by_key(|proxy| proxy.created).map(|proxy| proxy.number);
                number.and_then(|number| proxies.by_number.remove(&number))
            };
            let same_kind = proxies.by_number.values().filter(|proxy| proxy.kind == kind).count();
            let of_pull = self.settings.max_proxies.filter(|_| kind == ProxyKind::PullSupplier);
            let bound = of_pull.and_then(|bound| usize::try_from(bound).ok()).unwrap_or(usize::MAX);
            require_at_most(same_kind + 1, bound, "pull suppliers of a channel (MaxNumProxies)")?;
            require_at_most(proxies.by_number.len() + 1, self.shared.limits.proxies, "proxies of a channel")?;
            let number = number.unwrap_or_else(|| {
                loop {
                    let number = fastrand::u64(1..);
                    if !proxies.by_number.contains_key(&number) {
                        break number;
                    }
                }
            });
            let length = self.settings.max_queue_length.and_then(|length| usize::try_from(length).ok());
            let bounds = QueueBounds {
                events: length.unwrap_or(self.shared.limits.queue_events),
                octets: self.shared.limits.queue_octets,
                waiting_pulls: self.shared.limits.waiting_pulls,
                order: QueueOrder::Fifo,
                discard: DiscardOrder::Fifo,
                keeps_failed: false,
            };
            let proxy = Arc::new(Proxy {
                number,
                kind,
                connection: ConnectionCell::default(),
                queue: EventQueue::new(bounds),
                task: TaskEnd::default(),
                interface,
                created: Instant::now(),
            });
            proxies.by_number.insert(number, Arc::clone(&proxy));
            (evicted, proxy)
        };
        let (evicted, proxy) = evicted;
        if let Some(evicted) = evicted {
            self.deactivate_proxy(&evicted);
        }
        Ok(proxy)
    }

    /// Makes a connection durable.
    pub(crate) fn store_connection(&self, proxy: &Proxy, peer: Option<&ObjectRef>) -> Result<(), SystemException> {
        // The interface of a typed supplier might not be described at the next start: the connection ends with the process.
        if proxy.interface.is_some() {
            return Ok(());
        }
        let record = ConnectionRecord { kind: proxy.kind, peer: peer.map(|peer| peer.ior().clone()) };
        self.shared.change(|store| store.connect(self.number, proxy.number, &record))
    }

    /// Removes a connection from the store.
    pub(crate) fn forget_connection(&self, proxy: &Proxy) {
        if proxy.interface.is_some() {
            return; // it was not stored
        }
        if let Err(error) = self.shared.change(|store| store.disconnect(self.number, proxy.number)) {
            // It is served again after a restart, and ends when its peer fails.
            tracing::error!(%error, channel = %self.name, "the end of a connection could not be stored");
        }
    }

    /// Ends a connection, and disposes of its proxy. The peer gets notice unless it failed.
    pub(crate) fn disconnect(&self, proxy: &Proxy, cause: DisconnectCause) {
        let connection = proxy.connection.disconnect();
        proxy.task.end();
        for pull in proxy.queue.close() {
            self.shared.replies.send(pull);
        }
        if let Connection::Disconnected = connection {
            return;
        }
        if self.proxies.write().by_number.remove(&proxy.number).is_some() {
            let counts = proxy.queue.counts();
            self.counts.delivered.fetch_add(counts.delivered, Ordering::Relaxed);
            self.counts.dropped.fetch_add(counts.dropped, Ordering::Relaxed);
        }
        self.deactivate_proxy(proxy);
        let Connection::Connected(peer) = connection else { return };
        if cause != DisconnectCause::ChannelDestroyed {
            self.forget_connection(proxy);
        }
        if let Some(peer) = peer.filter(|_| cause != DisconnectCause::PeerFailed) {
            let (shared, operation) = (&self.shared, proxy.kind.disconnect_of_peer());
            notify_disconnection(&shared.orb, &peer, operation, shared.peers.timeout);
        }
    }

    /// Ends all connections, with notice to the peers. The channel has no proxies after it.
    pub(crate) fn destroy(&self) {
        let proxies: Vec<_> = {
            let mut proxies = self.proxies.write();
            proxies.is_destroyed = true;
            proxies.by_number.values().cloned().collect()
        };
        for proxy in proxies {
            self.disconnect(&proxy, DisconnectCause::ChannelDestroyed);
        }
    }

    /// Ends the tasks of all proxies when the service ends. Connections stay as they are, for the next start.
    pub(crate) fn halt(&self) {
        for proxy in self.proxies.read().by_number.values() {
            proxy.task.end();
            for pull in proxy.queue.close() {
                self.shared.replies.send(pull);
            }
        }
    }

    pub(crate) fn deactivate(&self, part: &str) {
        // It may have been deactivated by another thread.
        _ = self.shared.adapter.deactivate_object(&self.object_id(Some(part)));
    }

    fn deactivate_proxy(&self, proxy: &Proxy) {
        self.deactivate(&proxy.part());
        if proxy.interface.is_some() && proxy.kind.is_called() {
            self.deactivate(&proxy.typed_part());
        }
    }

    pub(crate) fn numbers(&self) -> ChannelNumbers {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut numbers = ChannelNumbers {
            received: load(&self.counts.received),
            filtered: load(&self.counts.filtered),
            refused: load(&self.counts.refused),
            delivered: load(&self.counts.delivered),
            dropped: load(&self.counts.dropped),
            ..ChannelNumbers::default()
        };
        for proxy in self.proxies.read().by_number.values().filter(|proxy| proxy.connection.is_connected()) {
            if !proxy.kind.is_of_consumer() {
                numbers.suppliers += 1;
                continue;
            }
            let counts = proxy.queue.counts();
            numbers.consumers += 1;
            numbers.delivered += counts.delivered;
            numbers.dropped += counts.dropped;
            numbers.longest_queue = numbers.longest_queue.max(counts.queued);
            numbers.lag_ms = numbers.lag_ms.max(counts.lag_ms);
        }
        numbers
    }

    /// The connected consumers, those with the longest queues first.
    pub(crate) fn consumers(&self, how_many: usize) -> Vec<(Arc<Proxy>, QueueCounts)> {
        let mut consumers: Vec<_> = {
            let proxies = self.proxies.read();
            let consumers = proxies.by_number.values().filter(|proxy| proxy.kind.is_of_consumer());
            let connected = consumers.filter(|proxy| proxy.connection.is_connected());
            connected.map(|proxy| (Arc::clone(proxy), proxy.queue.counts())).collect()
        };
        consumers.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.queued, counts.dropped)));
        consumers.truncate(how_many);
        consumers
    }
}

impl Proxy {
    /// Whether the consumer is connected, and gets events with this content.
    fn is_for(&self, content: &EventContent) -> bool {
        let is_understood = |interface: &Arc<TypedInterface>| content.is_call_of(&interface.events);
        self.connection.is_connected() && self.interface.as_ref().is_none_or(is_understood)
    }

    /// The part of the object id of the object that a typed peer calls.
    pub(crate) fn typed_part(&self) -> String {
        format!("{:x}-typed", self.number)
    }

    /// Its part of the object id.
    pub(crate) fn part(&self) -> String {
        format!("{:x}", self.number)
    }
}
