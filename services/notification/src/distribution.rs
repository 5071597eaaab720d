//! The way of events from a channel to the queues of consumers.

use std::sync::atomic::Ordering;

use spandrel::SystemException;
use spandrel::net::sync::Arc;
use spandrel_delivery::{Event, Lifetime};

use crate::durable::Target;
use crate::edit::Edit;
use crate::notification::Notification;
use crate::proxy::Proxy;
use crate::qos::Qos;
use crate::received::{Clock, ReceivedEvent};
use crate::shared::Shared;

/// Events for the queue of a consumer, with their lives for it.
type QueuedEvents = Vec<(Arc<Event<Notification>>, Lifetime)>;

/// Events that are put into queues once their edits are durable.
pub(crate) struct Distribution {
    pub(crate) edits: Vec<Edit>,
    /// Consumers with the same selection share the list of its events.
    selected: Vec<(Arc<Proxy>, Arc<QueuedEvents>)>,
}

impl Distribution {
    /// Selects those connected consumers of a channel that events concern.
    ///
    /// # Errors
    /// BAD_PARAM for a persistent event that has no encoding.
    pub(crate) fn new(
        shared: &Shared,
        (channel, qos): (i32, &Qos),
        consumers: Vec<Arc<Proxy>>,
        events: &[ReceivedEvent],
    ) -> Result<Self, SystemException> {
        let (mut edits, mut selected) = (Vec::new(), Vec::with_capacity(consumers.len()));
        // One for all consumers; persistent ones have a target of each.
        let mut for_all: Vec<Option<Arc<Event<Notification>>>> = vec![None; events.len()];
        let mut has_target = vec![false; events.len()];
        let has_stored = events.iter().any(|event| event.stored.is_some());
        // The events of consumers that get all, by their properties.
        let mut unconditional: Option<(_, Arc<QueuedEvents>)> = None;
        for proxy in consumers {
            let selection = proxy.selection(qos);
            let is_stored = has_stored && proxy.is_stored.load(Ordering::SeqCst);
            let properties = selection.unconditional().filter(|_| !is_stored && proxy.interface.is_none());
            if let (Some(properties), Some((of_others, queued))) = (&properties, &unconditional)
                && properties == of_others
            {
                selected.push((proxy, Arc::clone(queued)));
                continue;
            }
            let mut queued = QueuedEvents::new();
            for (nth, event) in events.iter().enumerate() {
                let Some(lifetime) = proxy.selects(&selection, shared, event) else { continue };
                let target = event.stored.as_ref().filter(|_| is_stored);
                let event = if let Some(stored) = target {
                    let target = Target::new(channel, proxy.id, stored);
                    edits.push(Edit::Target(target.key(), Some(Clock::now().target(lifetime))));
                    has_target[nth] = true;
                    event.event(Some(target))
                } else {
                    Arc::clone(for_all[nth].get_or_insert_with(|| event.event(None)))
                };
                queued.push((event, lifetime));
            }
            if queued.is_empty() {
                continue;
            }
            let queued = Arc::new(queued);
            if let Some(properties) = properties {
                unconditional = Some((properties, Arc::clone(&queued)));
            }
            selected.push((proxy, queued));
        }
        for (event, _) in events.iter().zip(has_target).filter(|(_, has_target)| *has_target) {
            if let Some(stored) = &event.stored {
                edits.push(event.record(channel, stored, None)?); // its targets have it from now on
            }
        }
        Ok(Self { edits, selected })
    }

    /// Puts the events into the queues. No consumer is waited for.
    pub(crate) fn enqueue(self, shared: &Shared) {
        for (proxy, events) in self.selected {
            match Arc::try_unwrap(events) {
                Ok(events) => proxy.enqueue(shared, events),
                Err(events) => proxy.enqueue(shared, events.iter().cloned()),
            }
        }
    }
}
