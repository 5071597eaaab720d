//! The core of a channel: its administrators and proxies, and the way of an event to the queues of consumers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use spandrel::net::sync::{Arc, RwLock};
use spandrel::poa::ObjectId;
use spandrel::server::Servant;
use spandrel::services::cos_notification::EventType;
use spandrel::services::cos_notify_channel_admin::{
    AdminLimit, AdminLimitExceeded, InterFilterGroupOperator, ObtainInfoMode,
};
use spandrel::types::Any;
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_daemon::require_at_most;
use spandrel_delivery::{Connection, Event, QueueCounts, notify_disconnection};

use crate::admin::Admin;
use crate::admin_properties::AdminSettings;
use crate::encoding::encoded_octets;
use crate::event_types::TypeSet;
use crate::filter::FilteredEvent;
use crate::kind::{EventForm, ProxyKind, Side};
use crate::live::LiveEvent;
use crate::notification::{Content, EventTimes, Notification};
use crate::proxy::Proxy;
use crate::qos::Qos;
use crate::shared::Shared;

/// The id of the administrators that each channel has from its creation on.
pub(crate) const DEFAULT_ADMIN: i32 = 0;

/// A channel with its administrators and proxies.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: i32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) qos: RwLock<Qos>,
    pub(crate) settings: RwLock<AdminSettings>,
    members: RwLock<Members>,
    /// The events in its queues.
    live: Arc<AtomicUsize>,
    /// The events that wait for their start.
    delayed: Arc<AtomicUsize>,
    counts: ChannelCounts,
}

/// Administrators and proxies by their ids.
#[derive(Debug, Default)]
struct Members {
    suppliers: BTreeMap<i32, Arc<Admin>>,
    consumers: BTreeMap<i32, Arc<Admin>>,
    proxies: BTreeMap<i32, Arc<Proxy>>,
    last_admin: i32,
    last_proxy: i32,
    is_destroyed: bool,
}

/// Counts since the creation. Those of consumers are added when they leave.
#[derive(Debug, Default)]
struct ChannelCounts {
    received: AtomicU64,
    filtered: AtomicU64,
    refused: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
    expired: AtomicU64,
}

/// The state of a channel in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChannelNumbers {
    pub(crate) consumers: usize,
    pub(crate) suppliers: usize,
    pub(crate) received: u64,
    /// Events that did not pass the filters of their supplier.
    pub(crate) filtered: u64,
    /// Events that were refused: too large, rejected, or without memory.
    pub(crate) refused: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) expired: u64,
    pub(crate) longest_queue: usize,
    pub(crate) lag_ms: u64,
}

/// The reason why a connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DisconnectCause {
    /// The peer called the proxy's operation.
    ByPeer,
    /// The peer failed too often, or does not exist.
    PeerFailed,
    /// The channel or the administrator is destroyed, or the proxy gave way to another.
    Destroyed,
}

impl Channel {
    pub(crate) fn new(shared: &Arc<Shared>, id: i32, qos: Qos, settings: AdminSettings) -> Arc<Self> {
        let members = Members {
            suppliers: BTreeMap::from([(DEFAULT_ADMIN, Arc::new(default_admin(Side::Suppliers)))]),
            consumers: BTreeMap::from([(DEFAULT_ADMIN, Arc::new(default_admin(Side::Consumers)))]),
            ..Members::default()
        };
        Arc::new(Self {
            id,
            shared: Arc::clone(shared),
            qos: RwLock::new(qos),
            settings: RwLock::new(settings),
            members: RwLock::new(members),
            live: Arc::default(),
            delayed: Arc::default(),
            counts: ChannelCounts::default(),
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("channel-{}", self.id)
    }

    /// Receives an event of a supplier, through the filters of its proxy.
    ///
    /// # Errors
    /// IMP_LIMIT for an event that is too large, or that the channel rejects; NO_RESOURCES if the memory is full of events of
    /// other channels.
    pub(crate) fn receive(self: &Arc<Self>, proxy: &Proxy, content: Content) -> Result<(), SystemException> {
        self.counts.received.fetch_add(1, Ordering::Relaxed);
        let is_match = proxy.is_match(
            &FilteredEvent::new(&content, &self.shared.filter_bounds),
            &mut self.shared.limits.filter_steps.clone(),
        );
        if !is_match {
            self.counts.filtered.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.publish(content, &proxy.own_qos()).inspect_err(|_| _ = self.counts.refused.fetch_add(1, Ordering::Relaxed))
    }

    fn publish(self: &Arc<Self>, content: Content, supplier: &Qos) -> Result<(), SystemException> {
        let shared = &self.shared;
        let octets = match &content {
            Content::Any(value) => encoded_octets(value)?,
            Content::Structured(event) => encoded_octets(&**event)?,
        };
        require_at_most(octets, shared.limits.event_octets, "octets in an event")?;
        let times = EventTimes::new(&content, &supplier.or(&self.qos.read().times()));
        let live = self.live_event()?;
        let charge = loop {
            if let Some(charge) = shared.memory.charge(octets) {
                break charge;
            }
            if !self.shed() {
                return Err(SystemException::no_resources(0, CompletionStatus::No)
                    .with_detail("the memory for events is full of events of other channels"));
            }
        };
        let notification = Notification { content, priority: times.priority, expires: times.expires, _live: live };
        let event = Arc::new(Event::new(notification, charge));
        match times.starts.filter(|start| *start > Instant::now()) {
            Some(start) => self.delay(event, start),
            None => {
                self.distribute(&event);
                Ok(())
            }
        }
    }

    /// A place for one more event in the channel: an older one is discarded for it, or it is rejected.
    fn live_event(&self) -> Result<LiveEvent, SystemException> {
        let settings = *self.settings.read();
        if let Some(bound) = settings.max_queue_length() {
            while self.live.load(Ordering::Relaxed) >= bound {
                if settings.rejects_new_events || !self.shed() {
                    let detail = move || format!("the channel has {bound} events (MaxQueueLength)");
                    return Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail));
                }
            }
        }
        Ok(LiveEvent::new(&self.live))
    }

    /// Discards an event of the longest queue, by the policy of the queue.
    fn shed(&self) -> bool {
        let members = self.members.read();
        let consumers = members.proxies.values().filter(|proxy| proxy.kind.side == Side::Consumers);
        consumers.max_by_key(|proxy| proxy.queue.counts().octets).is_some_and(|proxy| proxy.queue.shed())
    }

    /// Distributes an event at its start, by a task.
    fn delay(self: &Arc<Self>, event: Arc<Event<Notification>>, start: Instant) -> Result<(), SystemException> {
        let delayed = LiveEvent::new(&self.delayed);
        let waiting = self.delayed.load(Ordering::Relaxed);
        require_at_most(waiting, self.shared.limits.delayed_events, "events of a channel wait for their StartTime")?;
        let channel = Arc::downgrade(self);
        let shared = Arc::clone(&self.shared);
        self.shared.orb.spawn(async move {
            shared.timer.pause(start.saturating_duration_since(Instant::now())).await;
            drop(delayed);
            if let Some(channel) = channel.upgrade() {
                channel.distribute(&event);
            }
        })
    }

    /// Puts an event into the queues of the consumers that it concerns. No consumer is waited for.
    fn distribute(&self, event: &Arc<Event<Notification>>) {
        let qos = *self.qos.read();
        let members = self.members.read();
        let consumers = members.proxies.values().filter(|proxy| proxy.kind.side == Side::Consumers);
        for proxy in consumers.filter(|proxy| proxy.connection.is_connected()) {
            proxy.offer(&self.shared, &qos, event);
        }
    }

    /// The id of an object of this channel: itself, an administrator or a proxy.
    pub(crate) fn object_id(&self, part: Option<&str>) -> ObjectId {
        match part {
            None => ObjectId::from(format!("channel/{}", self.id).as_str()),
            Some(part) => ObjectId::from(format!("channel/{}/{part}", self.id).as_str()),
        }
    }

    pub(crate) fn serve(&self, part: Option<&str>, servant: Arc<dyn Servant>) -> Result<ObjectRef, SystemException> {
        self.shared.serve(&self.object_id(part), servant)
    }

    pub(crate) fn reference(&self, part: Option<&str>) -> Result<ObjectRef, SystemException> {
        Ok(self.shared.adapter.id_to_reference(&self.object_id(part))?)
    }

    fn deactivate(&self, part: &str) {
        // It may have been deactivated by another thread.
        _ = self.shared.adapter.deactivate_object(&self.object_id(Some(part)));
    }

    /// Adds an administrator to the channel.
    ///
    /// # Errors
    /// IMP_LIMIT if there are too many; OBJECT_NOT_EXIST if the channel is destroyed.
    pub(crate) fn add_admin(
        &self,
        side: Side,
        operator: InterFilterGroupOperator,
    ) -> Result<Arc<Admin>, SystemException> {
        let mut members = self.members.write();
        require_live(&members)?;
        let count = members.suppliers.len() + members.consumers.len();
        require_at_most(count + 1, self.shared.limits.admins, "administrators of a channel")?;
        members.last_admin = next_id(members.last_admin)?;
        let admin = Arc::new(Admin::new(members.last_admin, side, operator));
        let (id, admins) = (admin.id, members.admins(side));
        admins.insert(id, Arc::clone(&admin));
        Ok(admin)
    }

    pub(crate) fn admin(&self, side: Side, id: i32) -> Option<Arc<Admin>> {
        self.members.write().admins(side).get(&id).cloned()
    }

    pub(crate) fn admin_ids(&self, side: Side) -> Vec<i32> {
        self.members.write().admins(side).keys().copied().collect()
    }

    /// A new proxy, unconnected. If there are too many, the oldest one that was never connected goes.
    ///
    /// # Errors
    /// The admin property whose bound is reached; OBJECT_NOT_EXIST if the channel is destroyed.
    pub(crate) fn add_proxy<E: From<AdminLimitExceeded> + From<SystemException>>(
        &self,
        admin: &Arc<Admin>,
        kind: ProxyKind,
    ) -> Result<Arc<Proxy>, E> {
        let settings = *self.settings.read();
        let (name, bound) = match kind.side {
            Side::Suppliers => ("MaxSuppliers", settings.max_suppliers()),
            Side::Consumers => ("MaxConsumers", settings.max_consumers()),
        };
        let qos = *self.qos.read();
        let limits = &self.shared.limits;
        let (evicted, proxy) = {
            let mut members = self.members.write();
            require_live(&members)?;
            if !members.admins(kind.side).contains_key(&admin.id) {
                return Err(SystemException::object_not_exist(0, CompletionStatus::No).into());
            }
            let of_side = |proxies: &BTreeMap<i32, Arc<Proxy>>| {
                proxies.values().filter(|proxy| proxy.kind.side == kind.side).count()
            };
            let is_full = |proxies: &BTreeMap<i32, Arc<Proxy>>| {
                proxies.len() >= limits.proxies || bound.is_some_and(|bound| of_side(proxies) >= bound)
            };
            let mut evicted = None;
            if is_full(&members.proxies) {
                let unconnected = members.proxies.values().filter(|proxy| proxy.connection.is_unconnected());
                let unconnected = unconnected.filter(|proxy| proxy.kind.side == kind.side);
                let oldest = unconnected.min_by_key(|proxy| proxy.created).map(|proxy| proxy.id);
                evicted = oldest.and_then(|id| members.proxies.remove(&id));
            }
            if is_full(&members.proxies) {
                let bound = i32::try_from(bound.unwrap_or(limits.proxies)).unwrap_or(i32::MAX);
                let value = Any::new(bound).unwrap_or_default();
                return Err(
                    AdminLimitExceeded { admin_property_err: AdminLimit { name: name.to_owned(), value } }.into()
                );
            }
            members.last_proxy = next_id(members.last_proxy)?;
            let proxy = Proxy::new(members.last_proxy, kind, admin, &qos, limits);
            members.proxies.insert(proxy.id, Arc::clone(&proxy));
            (evicted, proxy)
        };
        if let Some(evicted) = evicted {
            self.disconnect(&evicted, DisconnectCause::Destroyed);
            self.deactivate(&evicted.name());
        }
        Ok(proxy)
    }

    /// The proxy of an administrator with this id.
    pub(crate) fn proxy(&self, admin: &Admin, id: i32) -> Option<Arc<Proxy>> {
        let members = self.members.read();
        let proxy = members.proxies.get(&id)?;
        (proxy.admin.side == admin.side && proxy.admin.id == admin.id).then(|| Arc::clone(proxy))
    }

    /// The proxies of an administrator for pushes, or for pulls. Those for clients of the event service have no id.
    pub(crate) fn proxy_ids(&self, admin: &Admin, is_push: bool) -> Vec<i32> {
        let members = self.members.read();
        let proxies = members.proxies.values().filter(|proxy| {
            proxy.admin.side == admin.side
                && proxy.admin.id == admin.id
                && proxy.kind.is_push == is_push
                && proxy.kind.form != EventForm::EventService
        });
        proxies.map(|proxy| proxy.id).collect()
    }

    fn proxies(&self, is_wanted: impl Fn(&Proxy) -> bool) -> Vec<Arc<Proxy>> {
        self.members.read().proxies.values().filter(|proxy| is_wanted(proxy)).cloned().collect()
    }

    /// Changes the properties of the channel, and applies them to all queues.
    pub(crate) fn set_qos(&self, qos: Qos) {
        *self.qos.write() = qos;
        for proxy in self.proxies(|_| true) {
            proxy.apply_qos(&qos, &self.shared.limits);
        }
    }

    /// Changes the properties of an administrator, and applies them to the queues of its proxies.
    pub(crate) fn set_admin_qos(&self, admin: &Admin, qos: Qos) {
        *admin.qos.write() = qos;
        let channel = *self.qos.read();
        for proxy in self.proxies(|proxy| proxy.admin.side == admin.side && proxy.admin.id == admin.id) {
            proxy.apply_qos(&channel, &self.shared.limits);
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
        if self.members.write().proxies.remove(&proxy.id).is_some() {
            let counts = proxy.queue.counts();
            self.counts.delivered.fetch_add(counts.delivered, Ordering::Relaxed);
            self.counts.dropped.fetch_add(counts.dropped, Ordering::Relaxed);
            self.counts.expired.fetch_add(counts.expired, Ordering::Relaxed);
        }
        self.deactivate(&proxy.name());
        let Connection::Connected(Some(peer)) = connection else { return };
        if cause != DisconnectCause::PeerFailed {
            let shared = &self.shared;
            notify_disconnection(&shared.orb, &peer, proxy.kind.disconnect_of_peer(), shared.peers.timeout);
        }
    }

    /// Ends an administrator with its proxies. The two of the channel's creation stay.
    ///
    /// # Errors
    /// NO_PERMISSION for a default administrator.
    pub(crate) fn destroy_admin(&self, admin: &Admin) -> Result<(), SystemException> {
        if admin.id == DEFAULT_ADMIN {
            return Err(SystemException::no_permission(0, CompletionStatus::No)
                .with_detail("the default administrators end with their channel"));
        }
        self.members.write().admins(admin.side).remove(&admin.id);
        for proxy in self.proxies(|proxy| proxy.admin.side == admin.side && proxy.admin.id == admin.id) {
            self.disconnect(&proxy, DisconnectCause::Destroyed);
        }
        self.deactivate(&admin.name());
        Ok(())
    }

    /// Ends all connections with notice to the peers, and all objects of the channel.
    pub(crate) fn destroy(&self) {
        let (proxies, admins) = {
            let mut members = self.members.write();
            members.is_destroyed = true;
            let suppliers = std::mem::take(&mut members.suppliers).into_values();
            let admins: Vec<_> = suppliers.chain(std::mem::take(&mut members.consumers).into_values()).collect();
            (members.proxies.values().cloned().collect::<Vec<_>>(), admins)
        };
        for proxy in proxies {
            self.disconnect(&proxy, DisconnectCause::Destroyed);
        }
        for admin in admins {
            self.deactivate(&admin.name());
        }
        _ = self.shared.adapter.deactivate_object(&self.object_id(None)); // after this call
    }

    /// Ends the tasks of all proxies when the service ends.
    pub(crate) fn halt(&self) {
        for proxy in self.proxies(|_| true) {
            proxy.task.end();
            for pull in proxy.queue.close() {
                self.shared.replies.send(pull);
            }
        }
    }

    /// The types that one side of the channel subscribes to or offers.
    pub(crate) fn types(&self, side: Side) -> Vec<EventType> {
        let mut types = TypeSet::empty();
        for proxy in self.proxies(|proxy| proxy.kind.side == side && proxy.connection.is_connected()) {
            types.extend(&proxy.types.read());
        }
        types.list()
    }

    /// Answers `obtain_subscription_types` and `obtain_offered_types`.
    pub(crate) fn obtain_types(&self, proxy: &Proxy, mode: ObtainInfoMode) -> Vec<EventType> {
        proxy.news.lock().is_off = matches!(mode, ObtainInfoMode::AllNowUpdatesOff | ObtainInfoMode::NoneNowUpdatesOff);
        let other = if proxy.kind.side == Side::Suppliers { Side::Consumers } else { Side::Suppliers };
        match mode {
            ObtainInfoMode::AllNowUpdatesOff | ObtainInfoMode::AllNowUpdatesOn => self.types(other),
            ObtainInfoMode::NoneNowUpdatesOff | ObtainInfoMode::NoneNowUpdatesOn => Vec::new(),
        }
    }

    /// Changes the types of an administrator or proxy, and tells the peers of the other side.
    ///
    /// # Errors
    /// IMP_LIMIT if they are too many.
    pub(crate) fn change_types(
        &self,
        side: Side,
        types: &RwLock<TypeSet>,
        added: &[EventType],
        removed: &[EventType],
    ) -> Result<(), SystemException> {
        let limits = &self.shared.limits;
        require_at_most(added.len().max(removed.len()), limits.event_types, "event types of a change")?;
        {
            let mut types = types.write();
            let changed = types.changed(added, removed);
            require_at_most(changed.len(), limits.event_types, "event types of an object")?;
            require_at_most(changed.octets(), limits.constraint_octets, "octets in the event types of an object")?;
            *types = changed;
        }
        let peers = self.proxies(|proxy| proxy.kind.side != side && proxy.kind.form != EventForm::EventService);
        for proxy in peers {
            let Connection::Connected(Some(peer)) = proxy.connection.get() else { continue };
            if proxy.news.lock().is_off {
                continue;
            }
            match side {
                Side::Suppliers => self.shared.notify_offer(&peer, added, removed),
                Side::Consumers => self.shared.notify_subscription(&peer, added, removed),
            }
        }
        Ok(())
    }

    pub(crate) fn numbers(&self) -> ChannelNumbers {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut numbers = ChannelNumbers {
            received: load(&self.counts.received),
            filtered: load(&self.counts.filtered),
            refused: load(&self.counts.refused),
            delivered: load(&self.counts.delivered),
            dropped: load(&self.counts.dropped),
            expired: load(&self.counts.expired),
            ..ChannelNumbers::default()
        };
        for proxy in self.proxies(|proxy| proxy.connection.is_connected()) {
            if proxy.kind.side == Side::Suppliers {
                numbers.suppliers += 1;
                continue;
            }
            let counts = proxy.queue.counts();
            numbers.consumers += 1;
            numbers.delivered += counts.delivered;
            numbers.dropped += counts.dropped;
            numbers.expired += counts.expired;
            numbers.longest_queue = numbers.longest_queue.max(counts.queued);
            numbers.lag_ms = numbers.lag_ms.max(counts.lag_ms);
        }
        numbers
    }

    /// The connected consumers, those with the longest queues first.
    pub(crate) fn consumers(&self, how_many: usize) -> Vec<(Arc<Proxy>, QueueCounts)> {
        let consumers = self.proxies(|proxy| proxy.kind.side == Side::Consumers && proxy.connection.is_connected());
        let mut consumers: Vec<_> =
            consumers.into_iter().map(|proxy| (Arc::clone(&proxy), proxy.queue.counts())).collect();
        consumers.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.queued, counts.dropped)));
        consumers.truncate(how_many);
        consumers
    }
}

impl Members {
    fn admins(&mut self, side: Side) -> &mut BTreeMap<i32, Arc<Admin>> {
        match side {
            Side::Suppliers => &mut self.suppliers,
            Side::Consumers => &mut self.consumers,
        }
    }
}

fn default_admin(side: Side) -> Admin {
    Admin::new(DEFAULT_ADMIN, side, InterFilterGroupOperator::AndOp)
}

fn require_live(members: &Members) -> Result<(), SystemException> {
    if members.is_destroyed { Err(SystemException::object_not_exist(0, CompletionStatus::No)) } else { Ok(()) }
}

/// The id behind the last one; ids are not used again.
pub(crate) fn next_id(last: i32) -> Result<i32, SystemException> {
    last.checked_add(1)
        .ok_or_else(|| SystemException::imp_limit(0, CompletionStatus::No).with_detail("all ids have been used"))
}
