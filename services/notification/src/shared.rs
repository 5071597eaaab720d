//! The parts that all channels of a service share.

use spandrel::net::sync::Arc;
use spandrel::poa::ObjectId;
use spandrel::server::{DeferredReply, Servant};
use spandrel::services::cos_event_comm::Disconnected;
use spandrel::services::cos_event_comm::pull_supplier::PullError;
use spandrel::services::cos_notification::{EventType, StructuredEvent};
use spandrel::services::cos_notify_comm::sequence_pull_supplier::PullStructuredEventsError;
use spandrel::services::cos_notify_comm::structured_pull_supplier::PullStructuredEventError;
use spandrel::services::cos_notify_comm::{NotifyPublish, NotifySubscribe};
use spandrel::types::Any;
use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException};
use spandrel_delivery::{CallArguments, Event, EventMemory, PeerOptions, PullEnd, PullReplies, Timer, WaitingPull};

use crate::durable::DurableStore;
use crate::event_interface::{EventInterface, arguments};
use crate::filter_bounds::FilterBounds;
use crate::filters::Filters;
use crate::limits::Limits;
use crate::notification::Notification;
use crate::pulled::PulledEvents;
use crate::qos::Reliability;

/// The ORB, bounds and memory of a service.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) orb: Orb,
    pub(crate) adapter: Poa,
    pub(crate) limits: Limits,
    pub(crate) peers: PeerOptions,
    pub(crate) memory: Arc<EventMemory>,
    pub(crate) filter_bounds: FilterBounds,
    /// The calls that tell peers of event types, and wait for their replies.
    pub(crate) notices: Arc<EventMemory>,
    pub(crate) timer: Timer,
    pub(crate) replies: PullReplies<PullReply>,
    pub(crate) filters: Filters,
    /// The references of connected peers.
    pub(crate) peer_memory: Arc<EventMemory>,
    pub(crate) store: Option<Arc<DurableStore>>,
}

impl Shared {
    /// Activates an object with its id.
    pub(crate) fn serve(&self, id: &ObjectId, servant: Arc<dyn Servant>) -> Result<ObjectRef, SystemException> {
        self.adapter.activate_object_with_id(id, servant)?;
        Ok(self.adapter.id_to_reference(id)?)
    }

    /// The reliability that channels can have.
    pub(crate) fn reliability(&self) -> Reliability {
        if self.store.is_some() { Reliability::Persistent } else { Reliability::BestEffort }
    }

    /// Tells an object of event types that are subscribed to, and waits for no reply.
    pub(crate) fn notify_subscription(&self, object: &ObjectRef, added: &[EventType], removed: &[EventType]) {
        let peer: NotifySubscribe = object.with_timeout(Some(self.peers.timeout)).unchecked_narrow();
        let reply = peer.subscription_change_async(added, removed);
        self.spawn(async move { reply.await.map_err(|error| error.to_string()) });
    }

    /// Tells an object of event types that are offered, and waits for no reply.
    pub(crate) fn notify_offer(&self, object: &ObjectRef, added: &[EventType], removed: &[EventType]) {
        let peer: NotifyPublish = object.with_timeout(Some(self.peers.timeout)).unchecked_narrow();
        let reply = peer.offer_change_async(added, removed);
        self.spawn(async move { reply.await.map_err(|error| error.to_string()) });
    }

    fn spawn(&self, task: impl Future<Output = Result<(), String>> + Send + 'static) {
        let Some(permit) = self.notices.charge(1) else {
            tracing::debug!("a peer does not get a change of event types: too many calls wait for their replies");
            return;
        };
        let task = async move {
            let _permit = permit;
            if let Err(error) = task.await {
                tracing::debug!(error, "a peer did not get a change of event types");
            }
        };
        if let Err(error) = self.orb.spawn(task) {
            tracing::debug!(%error, "a peer does not get a change of event types");
        }
    }
}

/// The reply to a pull that waits for events.
#[derive(Debug)]
pub(crate) struct PullReply {
    pub(crate) reply: ReplyForm,
    /// The persistent events that the consumer has pulled.
    pub(crate) pulled: Arc<PulledEvents>,
}

/// A deferred reply in the form of its proxy.
#[derive(Debug)]
pub(crate) enum ReplyForm {
    Any(DeferredReply<Any, PullError>),
    Structured(DeferredReply<StructuredEvent, PullStructuredEventError>),
    /// With the most events of the batch.
    Sequence(DeferredReply<Vec<StructuredEvent>, PullStructuredEventsError>, usize),
    /// To an operation of a pull interface: the arguments of a call.
    Call {
        reply: DeferredReply<CallArguments>,
        interface: Arc<EventInterface>,
        operation: String,
    },
}

/// The events of a pull, or its exception.
fn outcome<E: From<Disconnected> + From<SystemException>>(
    end: PullEnd<Notification>,
) -> Result<Vec<Arc<Event<Notification>>>, E> {
    match end {
        PullEnd::Events(events) => Ok(events),
        PullEnd::Disconnected => Err(Disconnected {}.into()),
        PullEnd::Refused => {
            let detail = "too many pulls wait at this proxy";
            Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail).into())
        }
    }
}

impl WaitingPull for PullReply {
    type Value = Notification;

    fn is_cancelled(&self) -> bool {
        match &self.reply {
            ReplyForm::Any(reply) => reply.cancellation().is_cancelled(),
            ReplyForm::Structured(reply) => reply.cancellation().is_cancelled(),
            ReplyForm::Sequence(reply, _) => reply.cancellation().is_cancelled(),
            ReplyForm::Call { reply, .. } => reply.cancellation().is_cancelled(),
        }
    }

    fn accepts(&self, event: &Notification) -> bool {
        match &self.reply {
            ReplyForm::Call { interface, operation, .. } => interface.operation_of(&event.content) == Some(operation),
            _ => true,
        }
    }

    fn how_many(&self) -> usize {
        match &self.reply {
            ReplyForm::Any(_) | ReplyForm::Structured(_) | ReplyForm::Call { .. } => 1,
            ReplyForm::Sequence(_, how_many) => *how_many,
        }
    }

    fn send(self, end: PullEnd<Notification>) {
        if let PullEnd::Events(events) = &end {
            self.pulled.keep(events);
        }
        match self.reply {
            ReplyForm::Any(reply) => {
                let events = outcome::<PullError>(end);
                reply.send(events.map(|events| {
                    events.first().map_or_else(Any::default, |event| event.value.content.as_any().into_owned())
                }));
            }
            ReplyForm::Structured(reply) => {
                let events = outcome::<PullStructuredEventError>(end);
                let first = |events: Vec<Arc<Event<Notification>>>| structured(&events).pop().unwrap_or_default();
                reply.send(events.map(first));
            }
            ReplyForm::Sequence(reply, _) => {
                reply.send(outcome::<PullStructuredEventsError>(end).map(|events| structured(&events)));
            }
            ReplyForm::Call { reply, .. } => {
                let events = outcome::<PullError>(end).map_err(|error| match error {
                    PullError::Disconnected(_) => SystemException::object_not_exist(0, CompletionStatus::No),
                    PullError::System(exception) => exception,
                });
                let first = |events: Vec<Arc<Event<Notification>>>| {
                    events.first().map(|event| arguments(&event.value.content)).unwrap_or_default()
                };
                reply.send(events.map(first).map(CallArguments));
            }
        }
    }
}

/// The structured form of events.
pub(crate) fn structured(events: &[Arc<Event<Notification>>]) -> Vec<StructuredEvent> {
    events.iter().map(|event| event.value.content.as_structured().into_owned()).collect()
}
