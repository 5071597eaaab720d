//! Proxies: the channel's side of one connection with a supplier or consumer.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use spandrel::net::sync::{Arc, Mutex};
use spandrel::types::Ior;
use spandrel::{CompletionStatus, SystemException};
use spandrel_delivery::{ConnectionCell, Event, EventMemory, EventQueue, Lifetime, MemoryCharge, QueueBounds, TaskEnd};

use crate::admin::Admin;
use crate::constraints::FilteredEvent;
use crate::encoding::encoded_octets;
use crate::event_interface::EventInterface;
use crate::kind::ProxyKind;
use crate::limits::Limits;
use crate::mapping_filter::MappingFilter;
use crate::member::{MemberCell, MemberState};
use crate::notification::Notification;
use crate::pulled::PulledEvents;
use crate::qos::{Qos, span};
use crate::received::ReceivedEvent;
use crate::shared::{PullReply, Shared};

/// The reference of a connected peer, and its share of the memory for references.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Nil for a peer without a reference.
    pub(crate) reference: Ior,
    _charge: MemoryCharge,
}

/// The properties of a consumer by which events are selected.
pub(crate) struct Selection {
    state: Arc<MemberState>,
    admin: Arc<MemberState>,
    qos: Qos,
}

impl Selection {
    /// The default priority and lifetime, if they alone decide: all events are for the consumer.
    pub(crate) fn unconditional(&self) -> Option<(Option<i16>, Option<Duration>)> {
        let has_all =
            |member: &MemberState| member.types.is_default() && member.filters.is_empty() && member.mappings.is_empty();
        (has_all(&self.state) && has_all(&self.admin)).then(|| (self.qos.priority, self.qos.lifetime()))
    }
}

/// The state of a proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) id: i32,
    pub(crate) kind: ProxyKind,
    /// The interface by whose operations a typed peer passes or gets events.
    pub(crate) interface: Option<Arc<EventInterface>>,
    pub(crate) admin: Arc<Admin>,
    pub(crate) created: Instant,
    pub(crate) state: MemberCell,
    pub(crate) connection: ConnectionCell,
    /// The peer from the beginning of the connection on.
    pub(crate) peer: Mutex<Option<Peer>>,
    /// Whether the connection is in the store.
    pub(crate) is_stored: AtomicBool,
    /// The events for its consumer; for a supplier, the counts of failures.
    pub(crate) queue: EventQueue<PullReply>,
    pub(crate) pulled: Arc<PulledEvents>,
    /// The end of the task that pushes or pulls.
    pub(crate) task: TaskEnd,
}

impl Proxy {
    pub(crate) fn new(
        id: i32,
        kind: ProxyKind,
        admin: &Arc<Admin>,
        state: MemberState,
        channel: &Qos,
        limits: &Limits,
        interface: Option<Arc<EventInterface>>,
    ) -> Arc<Self> {
        let effective = state.qos.or(&admin.state.get().qos).or(channel);
        let queue = EventQueue::new(queue_bounds(&effective, channel, limits));
        queue.set_suspended(state.is_suspended);
        Arc::new(Self {
            id,
            kind,
            interface,
            admin: Arc::clone(admin),
            created: Instant::now(),
            state: MemberCell::new(state),
            connection: ConnectionCell::default(),
            peer: Mutex::default(),
            is_stored: AtomicBool::new(false),
            queue,
            pulled: Arc::default(),
            task: TaskEnd::default(),
        })
    }

    /// The properties of the proxy, with those of its administrator where they are not set.
    pub(crate) fn own_qos(&self) -> Qos {
        self.state.get().qos.or(&self.admin.state.get().qos)
    }

    /// Applies changed properties to the queue.
    pub(crate) fn apply_qos(&self, channel: &Qos, limits: &Limits) {
        self.queue.set_bounds(queue_bounds(&self.own_qos().or(channel), channel, limits));
    }

    /// Sets the peer of a connection that begins.
    ///
    /// # Errors
    /// IMP_LIMIT if the references of all peers take too much.
    pub(crate) fn set_peer(&self, memory: &Arc<EventMemory>, reference: Ior) -> Result<(), SystemException> {
        let octets = encoded_octets(&reference)?;
        let charge = memory.charge(octets).ok_or_else(|| {
            let detail = "the references of all peers together are too long";
            SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail)
        })?;
        *self.peer.lock() = Some(Peer { reference, _charge: charge });
        Ok(())
    }

    /// Whether the proxy or its administrator has filters.
    pub(crate) fn is_filtered(&self) -> bool {
        !(self.state.get().filters.is_empty() && self.admin.state.get().filters.is_empty())
    }

    /// Whether an event passes the filters and types of the proxy and its administrator.
    pub(crate) fn is_match(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> bool {
        self.admin.is_match(&self.state.get().filters, event, steps)
    }

    /// The properties of the consumer at present, for the selection of events.
    pub(crate) fn selection(&self, channel: &Qos) -> Selection {
        let (state, admin) = (self.state.get(), self.admin.state.get());
        let qos = state.qos.or(&admin.qos).or(channel);
        Selection { state, admin, qos }
    }

    /// Whether an event is for the consumer by its subscription and filters, and its priority and life for this consumer.
    pub(crate) fn selects(
        &self,
        Selection { state, admin, qos }: &Selection,
        shared: &Shared,
        notification: &ReceivedEvent,
    ) -> Option<Lifetime> {
        if self.interface.as_ref().is_some_and(|interface| interface.operation_of(&notification.content).is_none()) {
            return None;
        }
        let (domain, name) = notification.content.event_type();
        if !(state.types.contains(domain, name) && admin.types.contains(domain, name)) {
            return None;
        }
        let filtered = FilteredEvent::new(&notification.content, &shared.filter_bounds);
        let mut steps = shared.limits.filter_steps;
        if !self.admin.is_match(&state.filters, &filtered, &mut steps) {
            return None;
        }
        let (own, admin) = (&state.mappings, &admin.mappings);
        let mapped = |filter: Option<&Arc<MappingFilter>>, steps: &mut u64| {
            let (is_match, value) = filter?.evaluate(&filtered, steps);
            // Without a match the event keeps its own property, if it has one.
            Some((is_match, value))
        };
        let mut priority = notification.priority.or(qos.priority).unwrap_or_default();
        if let Some((is_match, value)) = mapped(own.priority.as_ref().or(admin.priority.as_ref()), &mut steps)
            && (is_match || notification.priority.is_none())
        {
            priority = value.extract().unwrap_or(priority);
        }
        let after = |time: Duration| if time.is_zero() { None } else { notification.received.checked_add(time) };
        let mut expires = notification.expires.unwrap_or_else(|| qos.lifetime().and_then(after));
        if let Some((is_match, value)) = mapped(own.lifetime.as_ref().or(admin.lifetime.as_ref()), &mut steps)
            && (is_match || notification.expires.is_none())
        {
            expires = value.extract().map_or(expires, |ticks| after(span(ticks)));
        }
        Some(Lifetime { priority, expires })
    }

    /// Adds events to the queue of the consumer.
    pub(crate) fn enqueue(
        &self,
        shared: &Shared,
        events: impl IntoIterator<Item = (Arc<Event<Notification>>, Lifetime)>,
    ) {
        let mut ended = Vec::new();
        self.queue.add(events, &mut ended);
        ended.into_iter().for_each(|pull| shared.replies.send(pull));
    }

    /// Its part of the object id.
    pub(crate) fn name(&self) -> String {
        format!("proxy/{}", self.id)
    }

    /// The part of the object id of the object that a typed peer calls.
    pub(crate) fn typed_part(&self) -> String {
        format!("proxy/{}/typed", self.id)
    }
}

/// BAD_PARAM for a nil reference where the channel calls the peer.
pub(crate) fn required<T>(peer: Option<T>) -> Result<T, SystemException> {
    peer.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No).with_detail("the reference is nil"))
}

fn queue_bounds(qos: &Qos, channel: &Qos, limits: &Limits) -> QueueBounds {
    QueueBounds {
        events: qos.max_events().unwrap_or(limits.queue_events),
        octets: limits.queue_octets,
        waiting_pulls: limits.waiting_pulls,
        order: qos.queue_order(),
        discard: qos.discard_order(),
        keeps_failed: channel.is_persistent() && qos.is_persistent(),
    }
}
