//! Proxies: the channel's side of one connection with a supplier or consumer.

use std::time::{Duration, Instant};

use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel::{CompletionStatus, SystemException};
use spandrel_delivery::{ConnectionCell, Event, EventQueue, Lifetime, QueueBounds, TaskEnd};

use crate::admin::Admin;
use crate::event_types::TypeSet;
use crate::filter::FilteredEvent;
use crate::filters::FilterSet;
use crate::kind::ProxyKind;
use crate::limits::Limits;
use crate::mapping_filter::{MappingFilter, Mappings};
use crate::notification::Notification;
use crate::qos::{Qos, span};
use crate::shared::{PullReply, Shared};

/// The event types that the other side of the channel has, as a peer knows them.
#[derive(Debug, Default)]
pub(crate) struct TypeNews {
    /// Whether the peer gets no changes.
    pub(crate) is_off: bool,
}

/// The state of a proxy.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) id: i32,
    pub(crate) kind: ProxyKind,
    pub(crate) admin: Arc<Admin>,
    pub(crate) created: Instant,
    pub(crate) qos: RwLock<Qos>,
    pub(crate) filters: FilterSet,
    pub(crate) mappings: RwLock<Mappings>,
    /// The types that the peer subscribes to or offers.
    pub(crate) types: RwLock<TypeSet>,
    pub(crate) news: Mutex<TypeNews>,
    pub(crate) connection: ConnectionCell,
    /// The events for its consumer; for a supplier, the counts of failures.
    pub(crate) queue: EventQueue<PullReply>,
    /// The end of the task that pushes or pulls.
    pub(crate) task: TaskEnd,
}

impl Proxy {
    pub(crate) fn new(id: i32, kind: ProxyKind, admin: &Arc<Admin>, channel: &Qos, limits: &Limits) -> Arc<Self> {
        let effective = admin.qos.read().or(channel);
        Arc::new(Self {
            id,
            kind,
            admin: Arc::clone(admin),
            created: Instant::now(),
            qos: RwLock::default(),
            filters: FilterSet::default(),
            mappings: RwLock::default(),
            types: RwLock::default(),
            news: Mutex::default(),
            connection: ConnectionCell::default(),
            queue: EventQueue::new(queue_bounds(&effective, limits)),
            task: TaskEnd::default(),
        })
    }

    /// The properties of the proxy, with those of its administrator where they are not set.
    pub(crate) fn own_qos(&self) -> Qos {
        self.qos.read().or(&self.admin.qos.read())
    }

    /// Applies changed properties to the queue.
    pub(crate) fn apply_qos(&self, channel: &Qos, limits: &Limits) {
        self.queue.set_bounds(queue_bounds(&self.own_qos().or(channel), limits));
    }

    /// Whether an event passes the filters and types of the proxy and its administrator.
    pub(crate) fn is_match(&self, event: &FilteredEvent<'_>, steps: &mut u64) -> bool {
        self.admin.is_match(&self.filters, event, steps)
    }

    /// Adds an event to the queue of a consumer if its subscription and filters match. Returns whether they do.
    pub(crate) fn offer(&self, shared: &Shared, channel: &Qos, event: &Arc<Event<Notification>>) -> bool {
        let notification = &event.value;
        let (domain, name) = notification.content.event_type();
        if !(self.types.read().contains(domain, name) && self.admin.types.read().contains(domain, name)) {
            return false;
        }
        let filtered = FilteredEvent::new(&notification.content, &shared.filter_bounds);
        let mut steps = shared.limits.filter_steps;
        if !self.is_match(&filtered, &mut steps) {
            return false;
        }
        let qos = self.own_qos().or(channel);
        let (own, admin) = (self.mappings.read().clone(), self.admin.mappings.read().clone());
        let mapped = |filter: Option<Arc<MappingFilter>>, steps: &mut u64| {
            let (is_match, value) = filter?.evaluate(&filtered, steps);
            // Without a match the event keeps its own property, if it has one.
            Some((is_match, value))
        };
        let mut priority = notification.priority.or(qos.priority).unwrap_or_default();
        if let Some((is_match, value)) = mapped(own.priority.or(admin.priority), &mut steps)
            && (is_match || notification.priority.is_none())
        {
            priority = value.extract().unwrap_or(priority);
        }
        let after = |time: Duration| if time.is_zero() { None } else { event.received.checked_add(time) };
        let mut expires = notification.expires.unwrap_or_else(|| qos.lifetime().and_then(after));
        if let Some((is_match, value)) = mapped(own.lifetime.or(admin.lifetime), &mut steps)
            && (is_match || notification.expires.is_none())
        {
            expires = value.extract().map_or(expires, |ticks| after(span(ticks)));
        }
        if let Some(pull) = self.queue.add(Arc::clone(event), Lifetime { priority, expires }) {
            shared.replies.send(pull);
        }
        true
    }

    /// Its part of the object id.
    pub(crate) fn name(&self) -> String {
        format!("proxy/{}", self.id)
    }
}

/// BAD_PARAM for a nil reference where the channel calls the peer.
pub(crate) fn required<T>(peer: Option<T>) -> Result<T, SystemException> {
    peer.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No).with_detail("the reference is nil"))
}

fn queue_bounds(qos: &Qos, limits: &Limits) -> QueueBounds {
    QueueBounds {
        events: qos.max_events().unwrap_or(limits.queue_events),
        octets: limits.queue_octets,
        waiting_pulls: limits.waiting_pulls,
        order: qos.queue_order(),
        discard: qos.discard_order(),
    }
}
