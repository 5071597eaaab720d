//! The tasks that push events to consumers, and pull them from suppliers, in the form of each proxy.

use std::time::Duration;

use spandrel::dynamic::DynamicObject;
use spandrel::net::sync::Arc;
use spandrel::services::cos_event_comm::pull_supplier::PullError;
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PullSupplier, PushConsumer};
use spandrel::services::cos_notify_comm::{
    DisconnectedError, SequencePullSupplier, SequencePushConsumer, StructuredPullSupplier, StructuredPushConsumer,
};
use spandrel::types::Interface as _;
use spandrel::{ObjectRef, SystemException};
use spandrel_cdr::{Decode as _, Encode as _};
use spandrel_delivery::{
    BatchBounds, Delivery, DeliveryEnd, Event, PeerFailure, PullSupplierPeer, PushConsumerPeer, TypedSupplier,
    call_typed,
};

use crate::channel::{Channel, DisconnectCause};
use crate::content::Content;
use crate::event_interface::{EventInterface, arguments};
use crate::kind::{EventForm, Side};
use crate::notification::Notification;
use crate::proxy::Proxy;
use crate::shared::PullReply;

/// The time between two calls of a pull supplier that had no event.
const PULL_INTERVAL: Duration = Duration::from_secs(1);

/// The most events of one reply of a pull supplier.
const PULL_BATCH: i32 = 100;

fn failure_of_any(error: PushError) -> PeerFailure {
    match error {
        PushError::Disconnected(_) => PeerFailure::Disconnected,
        PullError::System(exception) => PeerFailure::System(exception),
    }
}

fn failure(error: DisconnectedError) -> PeerFailure {
    match error {
        DisconnectedError::Disconnected(_) => PeerFailure::Disconnected,
        DisconnectedError::System(exception) => PeerFailure::System(exception),
    }
}

/// The object that the channel calls to pass or get events.
#[derive(Debug)]
pub(crate) enum CalledPeer {
    Own(ObjectRef),
    /// The object that a typed peer returned.
    Typed(DynamicObject),
}

/// A consumer in its form.
enum ConsumerForm {
    Any(PushConsumer),
    Structured(StructuredPushConsumer),
    Sequence(SequencePushConsumer),
    Typed(DynamicObject, Arc<EventInterface>),
}

struct Consumer<'c> {
    form: ConsumerForm,
    channel: &'c Channel,
    proxy: &'c Proxy,
}

impl PushConsumerPeer<Notification> for Consumer<'_> {
    fn batch(&self) -> BatchBounds {
        match self.form {
            ConsumerForm::Sequence(_) => {
                let channel = *self.channel.qos.read();
                self.proxy.own_qos().or(&channel).batch()
            }
            _ => BatchBounds::ONE,
        }
    }

    async fn push(&self, events: &[Arc<Event<Notification>>]) -> Result<(), PeerFailure> {
        match &self.form {
            ConsumerForm::Any(consumer) => {
                for event in events {
                    consumer.push_async(&event.value.content.as_any()).await.map_err(failure_of_any)?;
                }
            }
            ConsumerForm::Structured(consumer) => {
                for event in events {
                    let content = &*event.value.content;
                    let reply = consumer.as_object().invoke_async::<(), DisconnectedError>(
                        "push_structured_event",
                        |out| content.encode(out),
                        <()>::decode,
                    );
                    reply.await.map_err(failure)?;
                }
            }
            ConsumerForm::Typed(object, interface) => {
                for event in events {
                    let content = &event.value.content;
                    let Some(operation) = interface.operation_of(content) else { continue };
                    call_typed(object, operation, &arguments(content)).await?;
                }
            }
            ConsumerForm::Sequence(consumer) => {
                let batch = self.channel.batches.batch(events);
                let arguments = &batch.arguments;
                let reply = consumer.as_object().invoke_shared_async::<(), DisconnectedError>(
                    "push_structured_events",
                    arguments,
                    |out| batch.encode(out),
                    <()>::decode,
                );
                reply.await.map_err(failure)?;
            }
        }
        Ok(())
    }
}

/// A supplier in its form.
enum Supplier {
    Any(PullSupplier),
    Structured(StructuredPullSupplier),
    Sequence(SequencePullSupplier),
    Typed(TypedSupplier, Arc<EventInterface>),
}

impl PullSupplierPeer for Supplier {
    type Pulled = Vec<Content>;

    async fn pull(&self) -> Result<Option<Vec<Content>>, PeerFailure> {
        let structured = |event| Content::Structured(Box::new(event));
        let (events, has_event) = match self {
            Self::Any(supplier) => {
                let (event, has_event) = supplier.try_pull_async().await.map_err(failure_of_any)?;
                (vec![Content::from_any(&event)], has_event)
            }
            Self::Structured(supplier) => {
                let (event, has_event) = supplier.try_pull_structured_event_async().await.map_err(failure)?;
                (vec![structured(event)], has_event)
            }
            Self::Sequence(supplier) => {
                let (events, has_event) =
                    supplier.try_pull_structured_events_async(PULL_BATCH).await.map_err(failure)?;
                (events.into_iter().map(structured).collect(), has_event)
            }
            Self::Typed(supplier, interface) => {
                let call = supplier.pull().await?;
                return Ok(call.map(|(operation, arguments)| vec![interface.event(&operation, arguments)]));
            }
        };
        Ok((has_event && !events.is_empty()).then_some(events))
    }
}

/// Starts the task that pushes to a peer, or pulls from it.
pub(crate) fn start_task(channel: &Arc<Channel>, proxy: &Arc<Proxy>, peer: CalledPeer) -> Result<(), SystemException> {
    let (channel, proxy) = (Arc::clone(channel), Arc::clone(proxy));
    let orb = channel.shared.orb.clone();
    match proxy.kind.side {
        Side::Consumers => orb.spawn(push_events(channel, proxy, peer)),
        Side::Suppliers => orb.spawn(pull_events(channel, proxy, peer)),
    }
}

/// The consumer in the form of its proxy; `None` for a typed object of a proxy that is not typed.
fn consumer_form(channel: &Channel, proxy: &Proxy, peer: CalledPeer) -> Option<ConsumerForm> {
    let peer = match peer {
        CalledPeer::Typed(object) => return Some(ConsumerForm::Typed(object, proxy.interface.clone()?)),
        CalledPeer::Own(peer) => peer.with_timeout(Some(channel.shared.peers.timeout)),
    };
    Some(match proxy.kind.form {
        EventForm::EventService | EventForm::Any => ConsumerForm::Any(peer.unchecked_narrow()),
        EventForm::Structured => ConsumerForm::Structured(peer.unchecked_narrow()),
        EventForm::Sequence => ConsumerForm::Sequence(peer.unchecked_narrow()),
        EventForm::Typed => return None,
    })
}

/// The supplier in the form of its proxy, as for consumers.
fn supplier_form(channel: &Channel, proxy: &Proxy, peer: CalledPeer) -> Option<Supplier> {
    let peer = match peer {
        CalledPeer::Typed(object) => {
            let interface = proxy.interface.clone()?;
            return Some(Supplier::Typed(TypedSupplier::new(object, &interface.typed), interface));
        }
        CalledPeer::Own(peer) => peer.with_timeout(Some(channel.shared.peers.timeout)),
    };
    Some(match proxy.kind.form {
        EventForm::EventService | EventForm::Any => Supplier::Any(peer.unchecked_narrow()),
        EventForm::Structured => Supplier::Structured(peer.unchecked_narrow()),
        EventForm::Sequence => Supplier::Sequence(peer.unchecked_narrow()),
        EventForm::Typed => return None,
    })
}

async fn push_events(channel: Arc<Channel>, proxy: Arc<Proxy>, peer: CalledPeer) {
    let Some(form) = consumer_form(&channel, &proxy, peer) else { return };
    let (name, label) = (channel.name(), proxy.name());
    let consumer = Consumer { form, channel: &channel, proxy: &proxy };
    let end = delivery(&channel, &proxy, &name, &label).push_events(&consumer).await;
    disconnect_after(end, &channel, &proxy);
}

async fn pull_events(channel: Arc<Channel>, proxy: Arc<Proxy>, peer: CalledPeer) {
    let Some(supplier) = supplier_form(&channel, &proxy, peer) else { return };
    let (name, label) = (channel.name(), proxy.name());
    let publish = |events: Vec<Content>| publish_pulled(&channel, &proxy, events);
    let end = delivery(&channel, &proxy, &name, &label).pull_events(&supplier, || PULL_INTERVAL, publish).await;
    disconnect_after(end, &channel, &proxy);
}

/// Publishes the events of a pull supplier. The store is written by its own thread.
async fn publish_pulled(channel: &Arc<Channel>, proxy: &Arc<Proxy>, events: Vec<Content>) {
    let (channel, proxy) = (Arc::clone(channel), Arc::clone(proxy));
    let store = channel.durable().cloned();
    let publish = move || {
        for event in events {
            if let Err(error) = channel.receive(&proxy, vec![event]) {
                tracing::debug!(%error, channel = channel.name(), "an event of a pull supplier was refused");
            }
        }
    };
    match store {
        Some(store) => store.run_job(publish).await,
        None => publish(),
    }
}

fn delivery<'d>(channel: &'d Channel, proxy: &'d Proxy, name: &'d str, label: &'d str) -> Delivery<'d, PullReply> {
    let shared = &channel.shared;
    Delivery {
        queue: &proxy.queue,
        task: &proxy.task,
        timer: &shared.timer,
        peers: shared.peers,
        channel: name,
        proxy: label,
    }
}

fn disconnect_after(end: DeliveryEnd, channel: &Channel, proxy: &Proxy) {
    if end == DeliveryEnd::PeerFailed {
        channel.disconnect(proxy, DisconnectCause::PeerFailed);
    }
}
