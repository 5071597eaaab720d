//! The channels, connections, filters and events of a store, as its service left them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use spandrel::net::sync::Arc;
use spandrel::services::cos_notify_channel_admin::AlreadyConnectedError;
use spandrel::types::{Any, Ior};
use spandrel::{CompletionStatus, SystemException};

use crate::activation::activate;
use crate::admin::Admin;
use crate::admins::AdminServant;
use crate::channel::Channel;
use crate::channel_servant::serve_channel;
use crate::constraints::{ChangeError, Constraints};
use crate::content::Content;
use crate::delivery::CalledPeer;
use crate::durable::{DurableStore, StoredEvent, Target};
use crate::edit::{Edit, TargetLifetime};
use crate::encoded_content::EncodedContent;
use crate::encoding::encoded_octets;
use crate::event_types::TypeSet;
use crate::filter::Filter;
use crate::filter_bounds::FilterBounds;
use crate::filter_factory::serve_filter;
use crate::filter_record::RecordCell;
use crate::filters::{AnyFilter, FilterSet};
use crate::live::LiveEvent;
use crate::mapping_filter::{MappingFilter, Mappings};
use crate::member::{MemberCell, MemberState};
use crate::proxy::Proxy;
use crate::received::{Clock, ReceivedEvent};
use crate::records::{EventRecord, FilterRecord, MemberRecord, ProxyRecord};
use crate::registry::Registry;
use crate::servant::ProxyServant;
use crate::shared::Shared;
use crate::store::{StoredChannel, StoredState};

/// The reason why the contents of a store cannot be served.
pub(crate) enum RestoreError {
    /// A record that does not belong to the others.
    Damaged(String),
    System(SystemException),
}

impl From<SystemException> for RestoreError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// Serves the contents of a store. Filters, connections and events to which nothing belongs any more are removed from it.
pub(crate) fn restore(
    registry: &Arc<Registry>,
    store: &Arc<DurableStore>,
    state: StoredState,
) -> Result<(), RestoreError> {
    let StoredState { channels, filters, events, targets, .. } = state;
    let mut restored = BTreeMap::new();
    for (number, record) in filters {
        let is_destroyed = record.3;
        let filter = restored_filter(&registry.shared.filter_bounds, store, number, record)?;
        restored.insert(number, (filter, is_destroyed));
    }
    let mut served = Vec::new();
    for (id, stored) in channels {
        served.push(restore_channel(registry, store, id, stored, &restored)?);
    }
    for (filter, is_destroyed) in restored.into_values() {
        let is_used = match &filter {
            AnyFilter::Plain(filter) => Arc::strong_count(filter) > 1,
            AnyFilter::Mapping(filter) => Arc::strong_count(filter) > 1,
        };
        if is_used && !is_destroyed {
            registry.shared.filters.restore(&filter);
            serve_filter(&registry.shared, filter)?;
        }
    }
    restore_events(registry, store, events, &targets)?;
    // The tasks of peers begin when all is in its place.
    for proxy in served.into_iter().flatten() {
        let peer = proxy.proxy.peer.lock().as_ref().map(|peer| peer.reference.clone());
        let peer = peer.filter(|peer| *peer != Ior::default()).map(|peer| registry.shared.orb.reference(peer));
        proxy.start_task(peer.map(CalledPeer::Own))?;
    }
    Ok(())
}

fn restored_filter(
    bounds: &FilterBounds,
    store: &Arc<DurableStore>,
    number: u64,
    (default, constraints, last, is_destroyed): FilterRecord,
) -> Result<AnyFilter, RestoreError> {
    let record = RecordCell::restored(number, Arc::clone(store), is_destroyed);
    let failed = |error| match error {
        ChangeError::System(exception) => RestoreError::System(exception),
        ChangeError::Invalid(constraint) => {
            RestoreError::Damaged(format!("filter {number}: the constraint {:?}", constraint.constraint_expr))
        }
        ChangeError::Unknown(id) => RestoreError::Damaged(format!("filter {number}: constraint {id}")),
    };
    match <[Any; 1]>::try_from(default) {
        Ok([default]) => {
            let constraints = Constraints::restored(bounds, constraints, last).map_err(failed)?;
            let charge = bounds.memory.charge_accepted(encoded_octets(&default)?);
            Ok(AnyFilter::Mapping(MappingFilter::new(number, default, constraints, record, charge)))
        }
        Err(_) => {
            let constraints = constraints.into_iter().map(|(id, expression, _)| (id, expression, ()));
            let constraints = Constraints::restored(bounds, constraints, last).map_err(failed)?;
            Ok(AnyFilter::Plain(Filter::new(number, constraints, record)))
        }
    }
}

/// The filters of a store by their numbers, and whether they were destroyed.
type RestoredFilters = BTreeMap<u64, (AnyFilter, bool)>;

fn member_state(record: MemberRecord, filters: &RestoredFilters) -> Option<MemberState> {
    let mut by_id = BTreeMap::new();
    for (id, number) in record.filters {
        let (AnyFilter::Plain(filter), _) = filters.get(&number)? else { return None };
        by_id.insert(id, Arc::clone(filter));
    }
    let mapping = |number: u64| match filters.get(&number) {
        None if number == 0 => Some(None),
        Some((AnyFilter::Mapping(filter), _)) => Some(Some(Arc::clone(filter))),
        _ => None,
    };
    Some(MemberState {
        qos: record.qos,
        filters: FilterSet::restored(by_id, record.last_filter),
        mappings: Mappings { priority: mapping(record.priority)?, lifetime: mapping(record.lifetime)? },
        types: TypeSet::from_list(record.types),
        is_suspended: record.is_suspended,
        gets_no_types: record.gets_no_types,
    })
}

/// Serves a channel with its administrators and connections. Returns the connected proxies.
fn restore_channel(
    registry: &Arc<Registry>,
    store: &Arc<DurableStore>,
    id: i32,
    stored: StoredChannel,
    filters: &RestoredFilters,
) -> Result<Vec<ProxyServant>, RestoreError> {
    let channel = Channel::new(&registry.shared, id, stored.record);
    for ((side, admin), record) in stored.admins {
        let state = member_state(record.member, filters);
        let state = state.ok_or_else(|| RestoreError::Damaged(format!("channel {id}: filters of {admin}")))?;
        let admin = Arc::new(Admin { id: admin, side, operator: record.operator, state: MemberCell::new(state) });
        channel.restore_admin(&admin);
        if admin.id != crate::members::DEFAULT_ADMIN {
            AdminServant { channel: Arc::clone(&channel), admin }.activate()?;
        }
    }
    serve_channel(registry, &channel)?;
    registry.restore(&channel);
    let mut proxies = Vec::new();
    for (number, record) in stored.proxies {
        match channel.admin(record.kind.side, record.admin) {
            Some(admin) => proxies.push(restore_proxy(&channel, number, &admin, record, filters)?),
            // The administrator was destroyed when the service ended.
            None => store.write_later(Edit::Proxy((id, number), None)),
        }
    }
    Ok(proxies)
}

fn restore_proxy(
    channel: &Arc<Channel>,
    id: i32,
    admin: &Arc<Admin>,
    record: ProxyRecord,
    filters: &RestoredFilters,
) -> Result<ProxyServant, RestoreError> {
    let shared = &channel.shared;
    let state = member_state(record.member, filters);
    let state = state.ok_or_else(|| RestoreError::Damaged(format!("channel {}: filters of proxy {id}", channel.id)))?;
    let qos = *channel.qos.read();
    let proxy = Proxy::new(id, record.kind, admin, state, &qos, &shared.limits, None);
    let peer = Some(&record.peer).filter(|peer| **peer != Ior::default());
    let peer = peer.map(|peer| shared.orb.reference(peer.clone()));
    proxy.set_peer(&shared.peer_memory, record.peer)?;
    proxy.is_stored.store(true, Ordering::SeqCst);
    let connected = proxy.connection.connect::<AlreadyConnectedError>(peer.as_ref(), || Ok(()), || {});
    connected
        .map_err(|error| SystemException::internal(0, CompletionStatus::No).with_detail(move || error.to_string()))?;
    channel.restore_proxy(&proxy);
    let servant = ProxyServant { channel: Arc::clone(channel), proxy };
    activate(&servant)?;
    Ok(servant)
}

/// Puts the events of a store into the queues of the consumers that have not yet got them.
fn restore_events(
    registry: &Arc<Registry>,
    store: &Arc<DurableStore>,
    events: BTreeMap<u64, EventRecord>,
    targets: &[((i32, i32, u64), TargetLifetime)],
) -> Result<(), RestoreError> {
    let shared = &registry.shared;
    let clock = Clock::now();
    let mut restored = BTreeMap::new();
    for (number, record) in events {
        let stored = Arc::new(StoredEvent { number, store: Arc::clone(store) });
        if let Some(channel) = registry.get(record.1) {
            let event = restored_event(shared, &channel, stored, record, clock)?;
            restored.insert(number, (channel, event));
        }
    }
    let mut with_targets = std::collections::BTreeSet::new();
    for ((channel, proxy, number), lifetime) in targets {
        with_targets.insert(*number);
        let Some((owner, event)) = restored.get(number).filter(|(owner, _)| owner.id == *channel) else {
            store.write_later(Edit::Target((*channel, *proxy, *number), None));
            continue;
        };
        let Some(stored) = &event.stored else { continue };
        // Without its proxy, the target is removed when it is dropped.
        let target = Target::new(*channel, *proxy, stored);
        if let Some(proxy) = owner.stored_proxy(*proxy) {
            proxy.enqueue(shared, [(event.event(Some(target)), clock.lifetime(*lifetime))]);
        }
    }
    for (number, (channel, event)) in restored {
        if event.starts.is_some() && !with_targets.contains(&number) {
            channel.delay(event)?;
        }
    }
    Ok(())
}

fn restored_event(
    shared: &Shared,
    channel: &Channel,
    stored: Arc<StoredEvent>,
    ((value, structured), _, priority, expires, received, starts): EventRecord,
    clock: Clock,
) -> Result<ReceivedEvent, RestoreError> {
    let number = stored.number;
    let content = match (value.into_iter().next(), structured.into_iter().next()) {
        (Some(value), None) => Content::Any(value),
        (None, Some(event)) => Content::Structured(Box::new(event)),
        _ => return Err(RestoreError::Damaged(format!("event {number} has no contents"))),
    };
    let content = EncodedContent::new(content);
    let octets = content.octets()?;
    Ok(ReceivedEvent {
        content: Arc::new(content.counted(LiveEvent::new(channel.live()))),
        priority: priority.first().copied(),
        expires: expires.first().map(|end| clock.instant(*end)),
        received: clock.instant(received).unwrap_or_else(Instant::now),
        charge: Arc::new(shared.memory.charge_accepted(octets)),
        starts: clock.instant(starts),
        stored: Some(stored),
    })
}
