//! The core of a channel: its administrators and proxies, and the way of an event to the queues of consumers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel::poa::ObjectId;
use spandrel::server::Servant;
use spandrel::services::cos_notification::EventType;
use spandrel::services::cos_notify_channel_admin::{
    AdminLimit, AdminLimitExceeded, InterFilterGroupOperator, ObtainInfoMode,
};
use spandrel::types::Any;
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_daemon::require_at_most;
use spandrel_delivery::{Connection, MemoryCharge, QueueCounts, notify_disconnection};

use crate::admin::Admin;
use crate::admin_properties::AdminSettings;
use crate::batches::Batches;
use crate::changed_member::Member;
use crate::channel_counts::{ChannelCounts, ChannelNumbers};
use crate::channel_edits::{ChannelEdits, forget_proxy, peer_reference};
use crate::constraints::FilteredEvent;
use crate::content::Content;
use crate::distribution::Distribution;
use crate::durable::{DurableStore, StoredEvent};
use crate::edit::Edit;
use crate::encoded_content::EncodedContent;
use crate::event_interface::EventInterface;
use crate::event_types::TypeSet;
use crate::keys::TYPED;
use crate::kind::{EventForm, ProxyKind, Side};
use crate::live::LiveEvent;
use crate::member::MemberState;
use crate::members::{DEFAULT_ADMIN, Members, next_id};
use crate::notification::EventTimes;
use crate::proxy::Proxy;
use crate::qos::{Qos, Reliability};
use crate::received::ReceivedEvent;
use crate::records::ChannelRecord;
use crate::shared::Shared;

/// The ids of proxies that the store takes as used with one write.
const RESERVED_PROXIES: i32 = 1_000;

/// The time between two attempts to store the distribution of an event.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A channel with its administrators and proxies.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: i32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) qos: RwLock<Qos>,
    pub(crate) settings: RwLock<AdminSettings>,
    /// The name on the command line; empty without one.
    pub(crate) name: String,
    /// Held while the channel or one of its objects is changed, and the store is written.
    changes: Mutex<()>,
    members: RwLock<Members>,
    /// The events in its queues.
    live: Arc<AtomicUsize>,
    /// The events that wait for their start.
    delayed: Arc<AtomicUsize>,
    counts: ChannelCounts,
    /// The batches that are being pushed.
    pub(crate) batches: Batches,
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
    pub(crate) fn new(shared: &Arc<Shared>, id: i32, record: ChannelRecord) -> Arc<Self> {
        let members = Members::new(record.last_admin, record.last_proxy);
        Arc::new(Self {
            id,
            shared: Arc::clone(shared),
            qos: RwLock::new(record.qos),
            settings: RwLock::new(record.settings),
            name: record.name,
            changes: Mutex::default(),
            members: RwLock::new(members),
            live: Arc::default(),
            delayed: Arc::default(),
            counts: ChannelCounts::default(),
            batches: Batches::default(),
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("channel-{}", self.id)
    }

    /// The store, if the channel outlives the process.
    pub(crate) fn durable(&self) -> Option<&Arc<DurableStore>> {
        self.shared.store.as_ref().filter(|_| self.qos.read().is_persistent())
    }

    /// The store, for changes under the lock of changes. A channel that was destroyed has none.
    fn written_store(&self) -> Option<&Arc<DurableStore>> {
        self.durable().filter(|_| !self.members.read().is_destroyed)
    }

    /// The reliability that its members and events can have.
    pub(crate) fn reliability(&self) -> Reliability {
        match (&self.shared.store, self.durable()) {
            (None, _) => Reliability::BestEffort,
            (Some(_), None) => Reliability::OfChannel,
            (Some(_), Some(_)) => Reliability::Persistent,
        }
    }

    /// Receives events of a supplier, through the filters of its proxy, in their order. Persistent ones are in the store when
    /// this returns.
    ///
    /// # Errors
    /// That of the first event that is refused: IMP_LIMIT for one that is too large, or that the channel rejects; NO_RESOURCES
    /// if the memory is full of events of other channels; PERSIST_STORE if the store cannot be written.
    pub(crate) fn receive(self: &Arc<Self>, proxy: &Proxy, events: Vec<Content>) -> Result<(), SystemException> {
        let (accepted, outcome) = self.accept_all(proxy, events);
        self.count_refusal(self.publish(accepted).and(outcome))
    }

    /// As [`receive`](Self::receive), without a wait for the store: `report` is called with the outcome, by this thread or by that
    /// of the store.
    pub(crate) fn receive_then(
        self: &Arc<Self>,
        proxy: &Proxy,
        events: Vec<Content>,
        report: impl FnOnce(Result<(), SystemException>) + Send + 'static,
    ) {
        let (accepted, outcome) = self.accept_all(proxy, events);
        if accepted.iter().any(|event| event.starts.is_some()) {
            return report(self.count_refusal(self.publish(accepted).and(outcome)));
        }
        let mut distribution = match self.distribution(&accepted) {
            Ok(distribution) => distribution,
            Err(error) => return report(self.count_refusal(Err(error))),
        };
        let edits = std::mem::take(&mut distribution.edits);
        let Some(store) = self.shared.store.as_ref().filter(|_| !edits.is_empty()) else {
            distribution.enqueue(&self.shared);
            return report(self.count_refusal(outcome));
        };
        let channel = Arc::clone(self);
        store.write_then(edits, move |written| {
            if written.is_ok() {
                distribution.enqueue(&channel.shared);
            }
            report(channel.count_refusal(written.and(outcome)));
        });
    }

    fn count_refusal(&self, outcome: Result<(), SystemException>) -> Result<(), SystemException> {
        outcome.inspect_err(|_| _ = self.counts.refused.fetch_add(1, Ordering::Relaxed))
    }

    /// Gives the events that pass the filters of their supplier their shares of the bounds, up to the first that is refused.
    /// They are not yet published, unless they have to make room for those behind them.
    fn accept_all(
        self: &Arc<Self>,
        proxy: &Proxy,
        events: Vec<Content>,
    ) -> (Vec<ReceivedEvent>, Result<(), SystemException>) {
        let (is_filtered, received) = (proxy.is_filtered(), Instant::now());
        let supplier = proxy.own_qos().or(&self.qos.read().times());
        let mut accepted = Vec::with_capacity(events.len());
        let outcome = events.into_iter().try_for_each(|content| {
            self.counts.received.fetch_add(1, Ordering::Relaxed);
            let is_match = !is_filtered
                || proxy.is_match(
                    &FilteredEvent::new(&content, &self.shared.filter_bounds),
                    &mut self.shared.limits.filter_steps.clone(),
                );
            if !is_match {
                self.counts.filtered.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            let content = EncodedContent::new(content);
            let octets = content.octets()?;
            let shares = match self.shares(octets, accepted.is_empty()) {
                // The events before make room when they are in queues.
                Err(_) if !accepted.is_empty() => {
                    self.publish(std::mem::take(&mut accepted))?;
                    self.shares(octets, true)?
                }
                outcome => outcome?,
            };
            accepted.push(self.accept(content, shares, &supplier, received));
            Ok(())
        });
        (accepted, outcome)
    }

    /// Whether an event of this channel outlives the process.
    fn is_persistent(&self, content: &Content) -> bool {
        let is_persistent = |qos: &Qos| content.reliability().unwrap_or_else(|| qos.has_persistent_events());
        self.durable().is_some() && is_persistent(&self.qos.read())
    }

    /// The shares of an event in the bounds. `may_discard`: whether events in queues are discarded for it.
    fn shares(&self, octets: usize, may_discard: bool) -> Result<(LiveEvent, MemoryCharge), SystemException> {
        let shared = &self.shared;
        require_at_most(octets, shared.limits.event_octets, "octets in an event")?;
        let live = self.live_event(may_discard)?;
        loop {
            if let Some(charge) = shared.memory.charge(octets) {
                return Ok((live, charge));
            }
            if !(may_discard && self.shed()) {
                return Err(SystemException::no_resources(0, CompletionStatus::No)
                    .with_detail("the memory for events is full of events of other channels"));
            }
        }
    }

    /// An event that has its shares of the bounds.
    fn accept(
        &self,
        content: EncodedContent,
        (live, charge): (LiveEvent, MemoryCharge),
        supplier: &Qos,
        received: Instant,
    ) -> ReceivedEvent {
        let times = EventTimes::new(&content, supplier, received);
        let store = self.shared.store.as_ref().filter(|_| self.is_persistent(&content));
        let stored = store.map(|store| Arc::new(StoredEvent { number: store.next_event(), store: Arc::clone(store) }));
        ReceivedEvent {
            content: Arc::new(content.counted(live)),
            priority: times.priority,
            expires: times.expires,
            received,
            charge: Arc::new(charge),
            starts: times.starts,
            stored,
        }
    }

    /// Distributes events, or lets them wait for their start.
    fn publish(self: &Arc<Self>, events: Vec<ReceivedEvent>) -> Result<(), SystemException> {
        let now = Instant::now();
        let (delayed, ready): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| event.starts.is_some_and(|start| start > now));
        self.distribute(&ready)?;
        for event in delayed {
            if let Some(stored) = &event.stored {
                stored.store.write(vec![event.record(self.id, stored, event.starts)?])?;
            }
            self.delay(event)?;
        }
        Ok(())
    }

    /// A place for one more event in the channel: an older one is discarded for it, or it is rejected.
    fn live_event(&self, may_discard: bool) -> Result<LiveEvent, SystemException> {
        let settings = *self.settings.read();
        if let Some(bound) = settings.max_queue_length() {
            while self.live.load(Ordering::Relaxed) >= bound {
                if settings.rejects_new_events || !(may_discard && self.shed()) {
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
    pub(crate) fn delay(self: &Arc<Self>, event: ReceivedEvent) -> Result<(), SystemException> {
        let delayed = LiveEvent::new(&self.delayed);
        let waiting = self.delayed.load(Ordering::Relaxed);
        require_at_most(waiting, self.shared.limits.delayed_events, "events of a channel wait for their StartTime")?;
        let channel = Arc::downgrade(self);
        let shared = Arc::clone(&self.shared);
        self.shared.orb.spawn(async move {
            let start = event.starts.unwrap_or_else(Instant::now);
            shared.timer.pause(start.saturating_duration_since(Instant::now())).await;
            drop(delayed);
            let Some(store) = event.stored.as_ref().map(|stored| Arc::clone(&stored.store)) else {
                if let Some(channel) = channel.upgrade() {
                    _ = channel.distribute(&[event]); // it is not written
                }
                return;
            };
            let (event, is_distributed) = (Arc::new(event), Arc::new(AtomicBool::new(false)));
            while !is_distributed.load(Ordering::SeqCst) {
                let (channel, event, flag) = (channel.clone(), Arc::clone(&event), Arc::clone(&is_distributed));
                let job = move || {
                    let outcome = channel.upgrade().map(|channel| channel.distribute(std::slice::from_ref(&*event)));
                    flag.store(!matches!(outcome, Some(Err(_))), Ordering::SeqCst);
                };
                store.run_job(job).await;
                if store.has_ended() {
                    return;
                }
                if !is_distributed.load(Ordering::SeqCst) {
                    shared.timer.pause(RETRY_INTERVAL).await;
                }
            }
        })
    }

    /// Puts events into the queues of the consumers that they concern, after those of the store are written. No consumer is
    /// waited for.
    pub(crate) fn distribute(&self, events: &[ReceivedEvent]) -> Result<(), SystemException> {
        let mut distribution = self.distribution(events)?;
        let edits = std::mem::take(&mut distribution.edits);
        if let Some(store) = self.shared.store.as_ref().filter(|_| !edits.is_empty()) {
            store.write(edits)?;
        }
        distribution.enqueue(&self.shared);
        Ok(())
    }

    fn distribution(&self, events: &[ReceivedEvent]) -> Result<Distribution, SystemException> {
        let qos = *self.qos.read();
        Distribution::new(&self.shared, (self.id, &qos), self.connected_consumers(), events)
    }

    pub(crate) fn connected_consumers(&self) -> Vec<Arc<Proxy>> {
        self.proxies(|proxy| proxy.kind.side == Side::Consumers && proxy.connection.is_connected())
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

    fn deactivate_proxy(&self, proxy: &Proxy) {
        self.deactivate(&proxy.name());
        if proxy.interface.is_some() && proxy.kind.is_called() {
            self.deactivate(&proxy.typed_part());
        }
    }

    fn deactivate_admin(&self, admin: &Admin) {
        self.deactivate(&admin.name());
        self.deactivate(&admin.typed_part());
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
        let _changing = self.changes.lock();
        let admin = {
            let mut members = self.members.write();
            members.require_live()?;
            let count = members.suppliers.len() + members.consumers.len();
            require_at_most(count + 1, self.shared.limits.admins, "administrators of a channel")?;
            members.last_admin = next_id(members.last_admin)?;
            Arc::new(Admin::new(members.last_admin, side, operator))
        };
        if let Some(store) = self.written_store() {
            let mut edits = ChannelEdits::new(self.id);
            edits.channel(self.record(*self.qos.read(), *self.settings.read()))?;
            edits.admin(&admin, &admin.state.get())?;
            edits.write(store)?;
        }
        let mut members = self.members.write();
        members.require_live()?;
        members.admins(side).insert(admin.id, Arc::clone(&admin));
        Ok(admin)
    }

    /// The record of the channel with these properties.
    fn record(&self, qos: Qos, settings: AdminSettings) -> ChannelRecord {
        let members = self.members.read();
        ChannelRecord {
            qos,
            settings,
            name: self.name.clone(),
            last_admin: members.last_admin,
            last_proxy: members.reserved_proxy.max(members.last_proxy),
        }
    }

    /// Adds an object of the store.
    pub(crate) fn restore_admin(&self, admin: &Arc<Admin>) {
        self.members.write().admins(admin.side).insert(admin.id, Arc::clone(admin));
    }

    /// Adds an object of the store.
    pub(crate) fn restore_proxy(&self, proxy: &Arc<Proxy>) {
        self.members.write().proxies.insert(proxy.id, Arc::clone(proxy));
    }

    /// The proxy with this id, if its connection is in the store.
    pub(crate) fn stored_proxy(&self, id: i32) -> Option<Arc<Proxy>> {
        let proxy = self.members.read().proxies.get(&id).cloned();
        proxy.filter(|proxy| proxy.is_stored.load(Ordering::SeqCst))
    }

    /// The count of the events in its queues.
    pub(crate) fn live(&self) -> &Arc<AtomicUsize> {
        &self.live
    }

    /// The id of a new proxy. It is not used again, also after the end of the process.
    fn next_proxy(&self) -> Result<i32, SystemException> {
        let _changing = self.changes.lock();
        let is_reserved = {
            let mut members = self.members.write();
            members.last_proxy = next_id(members.last_proxy)?;
            members.last_proxy <= members.reserved_proxy
        };
        if let Some(store) = self.written_store().filter(|_| !is_reserved) {
            let last = {
                let mut members = self.members.write();
                members.reserved_proxy = members.last_proxy.saturating_add(RESERVED_PROXIES);
                members.last_proxy
            };
            let mut edits = ChannelEdits::new(self.id);
            edits.channel(self.record(*self.qos.read(), *self.settings.read()))?;
            edits.write(store).inspect_err(|_| self.members.write().reserved_proxy = last - 1)?;
        }
        Ok(self.members.read().last_proxy)
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
        interface: Option<Arc<EventInterface>>,
    ) -> Result<Arc<Proxy>, E> {
        let settings = *self.settings.read();
        let (name, bound) = match kind.side {
            Side::Suppliers => ("MaxSuppliers", settings.max_suppliers()),
            Side::Consumers => ("MaxConsumers", settings.max_consumers()),
        };
        let qos = *self.qos.read();
        let limits = &self.shared.limits;
        let id = self.next_proxy()?;
        let (evicted, proxy) = {
            let mut members = self.members.write();
            members.require_live()?;
            if !members.admins(kind.side).contains_key(&admin.id) {
                return Err(SystemException::object_not_exist(0, CompletionStatus::No).into());
            }
            let bound = bound.unwrap_or(limits.proxies);
            let Ok(evicted) = members.make_room(kind.side, bound, limits.proxies) else {
                let value = Any::new(i32::try_from(bound).unwrap_or(i32::MAX)).unwrap_or_default();
                return Err(
                    AdminLimitExceeded { admin_property_err: AdminLimit { name: name.to_owned(), value } }.into()
                );
            };
            let proxy = Proxy::new(id, kind, admin, MemberState::default(), &qos, limits, interface);
            members.proxies.insert(proxy.id, Arc::clone(&proxy));
            (evicted, proxy)
        };
        if let Some(evicted) = evicted {
            self.disconnect(&evicted, DisconnectCause::Destroyed);
            self.deactivate_proxy(&evicted);
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
        let is_wanted =
            |proxy: &&Arc<Proxy>| proxy.kind.is_push == is_push && proxy.kind.form != EventForm::EventService;
        self.proxies_of(admin).iter().filter(is_wanted).map(|proxy| proxy.id).collect()
    }

    fn proxies(&self, is_wanted: impl Fn(&Proxy) -> bool) -> Vec<Arc<Proxy>> {
        self.members.read().proxies.values().filter(|proxy| is_wanted(proxy)).cloned().collect()
    }

    /// Changes the properties of the channel, and applies them to all queues. With persistent connections the channel enters
    /// the store, without them it leaves it.
    pub(crate) fn change_qos<E: From<SystemException>>(
        &self,
        change: impl FnOnce(&Qos) -> Result<Qos, E>,
    ) -> Result<(), E> {
        let _changing = self.changes.lock();
        let before = *self.qos.read();
        let qos = change(&before)?;
        self.store_qos(&before, &qos)?;
        *self.qos.write() = qos;
        for proxy in self.proxies(|_| true) {
            proxy.apply_qos(&qos, &self.shared.limits);
        }
        Ok(())
    }

    fn store_qos(&self, before: &Qos, qos: &Qos) -> Result<(), SystemException> {
        let store = self.shared.store.as_ref().filter(|_| !self.members.read().is_destroyed);
        let Some(store) = store else { return Ok(()) };
        if !qos.is_persistent() {
            if before.is_persistent() {
                store.write(vec![Edit::NoChannel(self.id)])?;
                self.proxies(|_| true).iter().for_each(|proxy| proxy.is_stored.store(false, Ordering::SeqCst));
            }
            return Ok(());
        }
        let mut edits = ChannelEdits::new(self.id);
        edits.channel(self.record(*qos, *self.settings.read()))?;
        if !before.is_persistent() {
            let admins: Vec<_> = {
                let members = self.members.read();
                members.suppliers.values().chain(members.consumers.values()).cloned().collect()
            };
            for admin in admins {
                edits.admin(&admin, &admin.state.get())?;
            }
            for proxy in self.proxies(|_| true) {
                edits.proxy(&proxy, &proxy.state.get(), proxy.own_qos().or(qos).is_persistent())?;
            }
        }
        edits.write(store)
    }

    /// Enters a new channel with persistent connections into the store.
    pub(crate) fn store_new(&self) -> Result<(), SystemException> {
        let _changing = self.changes.lock();
        let qos = *self.qos.read();
        self.store_qos(&Qos::default(), &qos)
    }

    /// Changes the administrative properties.
    pub(crate) fn change_settings<E: From<SystemException>>(
        &self,
        change: impl FnOnce(&AdminSettings) -> Result<AdminSettings, E>,
    ) -> Result<(), E> {
        let _changing = self.changes.lock();
        let settings = change(&self.settings.read())?;
        if let Some(store) = self.written_store() {
            let mut edits = ChannelEdits::new(self.id);
            edits.channel(self.record(*self.qos.read(), settings))?;
            edits.write(store)?;
        }
        *self.settings.write() = settings;
        Ok(())
    }

    /// Changes an administrator or proxy: in the store, then in memory, then in the queues that it concerns.
    pub(crate) fn change<T, E: From<SystemException>>(
        &self,
        member: Member<'_>,
        change: impl FnOnce(&mut MemberState) -> Result<T, E>,
    ) -> Result<T, E> {
        let _changing = self.changes.lock();
        let mut state = MemberState::clone(&member.cell().get());
        let outcome = change(&mut state)?;
        let channel = *self.qos.read();
        self.store_member(member, &state, &channel)?;
        let is_suspended = state.is_suspended;
        member.cell().set(state);
        match member {
            Member::Admin(admin) => {
                for proxy in self.proxies_of(admin) {
                    proxy.apply_qos(&channel, &self.shared.limits);
                }
            }
            Member::Proxy(proxy) => {
                proxy.apply_qos(&channel, &self.shared.limits);
                proxy.queue.set_suspended(is_suspended);
            }
        }
        Ok(outcome)
    }

    fn store_member(&self, member: Member<'_>, state: &MemberState, channel: &Qos) -> Result<(), SystemException> {
        let Some(store) = self.written_store() else { return Ok(()) };
        let mut edits = ChannelEdits::new(self.id);
        match member {
            Member::Admin(admin) => {
                if self.admin(admin.side, admin.id).is_none() {
                    return Ok(()); // it was destroyed
                }
                edits.admin(admin, state)?;
                for proxy in self.proxies_of(admin) {
                    let own = proxy.state.get();
                    let is_persistent = own.qos.or(&state.qos).or(channel).is_persistent();
                    if is_persistent != proxy.is_stored.load(Ordering::SeqCst) {
                        edits.proxy(&proxy, &own, is_persistent)?;
                    }
                }
            }
            Member::Proxy(proxy) => {
                let is_persistent = state.qos.or(&proxy.admin.state.get().qos).or(channel).is_persistent();
                edits.proxy(proxy, state, is_persistent)?;
            }
        }
        edits.write(store)
    }

    fn proxies_of(&self, admin: &Admin) -> Vec<Arc<Proxy>> {
        self.proxies(|proxy| proxy.admin.side == admin.side && proxy.admin.id == admin.id)
    }

    /// Stores a connection that begins, if it is persistent.
    pub(crate) fn store_connection(&self, proxy: &Arc<Proxy>, peer: Option<&ObjectRef>) -> Result<(), SystemException> {
        let _changing = self.changes.lock();
        proxy.set_peer(&self.shared.peer_memory, peer_reference(peer))?;
        let Some(store) = self.written_store() else { return Ok(()) };
        let mut edits = ChannelEdits::new(self.id);
        edits.proxy(proxy, &proxy.state.get(), proxy.own_qos().or(&self.qos.read()).is_persistent())?;
        edits.write(store).inspect_err(|_| *proxy.peer.lock() = None)
    }

    /// Removes a connection from the store, which ends by a call of its peer.
    pub(crate) fn remove_connection(&self, proxy: &Arc<Proxy>) -> Result<(), SystemException> {
        let _changing = self.changes.lock();
        let Some(store) = self.shared.store.as_ref().filter(|_| proxy.is_stored.load(Ordering::SeqCst)) else {
            return Ok(());
        };
        let mut edits = ChannelEdits::new(self.id);
        edits.remove_proxy(proxy);
        edits.write(store)
    }

    /// Removes a connection from the store with its next write.
    pub(crate) fn forget_connection(&self, proxy: &Proxy) {
        if let Some(store) = &self.shared.store {
            forget_proxy(store, self.id, proxy);
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
        self.forget_connection(proxy);
        proxy.pulled.acknowledge();
        if self.members.write().proxies.remove(&proxy.id).is_some() {
            self.counts.add_departed(&proxy.queue.counts());
        }
        self.deactivate_proxy(proxy);
        let Connection::Connected(Some(peer)) = connection else { return };
        if cause != DisconnectCause::PeerFailed {
            let shared = &self.shared;
            notify_disconnection(&shared.orb, &peer, proxy.kind.disconnect_of_peer(), shared.peers.timeout);
        }
    }

    /// Ends an administrator with its proxies. The two of the channel's creation stay.
    ///
    /// # Errors
    /// NO_PERMISSION for a default administrator; PERSIST_STORE if the store cannot be written.
    pub(crate) fn destroy_admin(&self, admin: &Admin) -> Result<(), SystemException> {
        if admin.id == DEFAULT_ADMIN {
            return Err(SystemException::no_permission(0, CompletionStatus::No)
                .with_detail("the default administrators end with their channel"));
        }
        {
            let _changing = self.changes.lock();
            if let Some(store) = self.written_store() {
                let mut edits = ChannelEdits::new(self.id);
                edits.remove_admin(admin);
                let stored = |proxy: &&Arc<Proxy>| proxy.is_stored.load(Ordering::SeqCst);
                self.proxies_of(admin).iter().filter(stored).for_each(|proxy| edits.remove_proxy(proxy));
                edits.write(store)?;
            }
            self.members.write().admins(admin.side).remove(&admin.id);
        }
        for proxy in self.proxies_of(admin) {
            self.disconnect(&proxy, DisconnectCause::Destroyed);
        }
        self.deactivate_admin(admin);
        Ok(())
    }

    /// Ends all connections with notice to the peers, and all objects of the channel.
    ///
    /// # Errors
    /// PERSIST_STORE if the store cannot be written; the channel goes on.
    pub(crate) fn destroy(&self) -> Result<(), SystemException> {
        let (proxies, admins) = {
            let _changing = self.changes.lock();
            if let Some(store) = self.written_store() {
                store.write(vec![Edit::NoChannel(self.id)])?;
                self.proxies(|_| true).iter().for_each(|proxy| proxy.is_stored.store(false, Ordering::SeqCst));
            }
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
            self.deactivate_admin(&admin);
        }
        self.deactivate(TYPED);
        _ = self.shared.adapter.deactivate_object(&self.object_id(None)); // after this call
        Ok(())
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
            types.extend(&proxy.state.get().types);
        }
        types.list()
    }

    /// Answers `obtain_subscription_types` and `obtain_offered_types`.
    pub(crate) fn obtain_types(
        &self,
        proxy: &Arc<Proxy>,
        mode: ObtainInfoMode,
    ) -> Result<Vec<EventType>, SystemException> {
        let is_off = matches!(mode, ObtainInfoMode::AllNowUpdatesOff | ObtainInfoMode::NoneNowUpdatesOff);
        if proxy.state.get().gets_no_types != is_off {
            self.change(Member::Proxy(proxy), |state| {
                state.gets_no_types = is_off;
                Ok::<_, SystemException>(())
            })?;
        }
        let other = if proxy.kind.side == Side::Suppliers { Side::Consumers } else { Side::Suppliers };
        Ok(match mode {
            ObtainInfoMode::AllNowUpdatesOff | ObtainInfoMode::AllNowUpdatesOn => self.types(other),
            ObtainInfoMode::NoneNowUpdatesOff | ObtainInfoMode::NoneNowUpdatesOn => Vec::new(),
        })
    }

    /// Changes the types of an administrator or proxy, and tells the peers of the other side.
    ///
    /// # Errors
    /// IMP_LIMIT if they are too many.
    pub(crate) fn change_types(
        &self,
        member: Member<'_>,
        added: &[EventType],
        removed: &[EventType],
    ) -> Result<(), SystemException> {
        let limits = &self.shared.limits;
        require_at_most(added.len().max(removed.len()), limits.event_types, "event types of a change")?;
        self.change(member, |state| {
            let changed = state.types.changed(added, removed);
            require_at_most(changed.len(), limits.event_types, "event types of an object")?;
            require_at_most(changed.octets(), limits.constraint_octets, "octets in the event types of an object")?;
            state.types = changed;
            Ok::<_, SystemException>(())
        })?;
        let side = member.side();
        let peers = self.proxies(|proxy| proxy.kind.side != side && proxy.kind.form != EventForm::EventService);
        for proxy in peers {
            let Connection::Connected(Some(peer)) = proxy.connection.get() else { continue };
            if proxy.state.get().gets_no_types {
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
        self.counts.numbers(&self.proxies(|proxy| proxy.connection.is_connected()))
    }

    /// The connected consumers, those with the longest queues first.
    pub(crate) fn consumers(&self, how_many: usize) -> Vec<(Arc<Proxy>, QueueCounts)> {
        let consumers = self.connected_consumers();
        let mut consumers: Vec<_> =
            consumers.into_iter().map(|proxy| (Arc::clone(&proxy), proxy.queue.counts())).collect();
        consumers.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.queued, counts.dropped)));
        consumers.truncate(how_many);
        consumers
    }
}
