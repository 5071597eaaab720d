//! The tasks that push events to consumers, and pull them from suppliers.

use std::time::Duration;

use spandrel::dynamic::{DynamicObject, RequestError};
use spandrel::net::sync::Arc;
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PullSupplier, PushConsumer};
use spandrel::types::Any;
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_delivery::{Delivery, DeliveryEnd, Event, PeerFailure, PullSupplierPeer, PushConsumerPeer};

use crate::channel::{Channel, DisconnectCause, Proxy};
use crate::content::EventContent;
use crate::shared::PullReply;

/// The time between two calls of a pull supplier that had no event, unless the channel has another.
const PULL_INTERVAL: Duration = Duration::from_secs(1);

/// A consumer that is called by `push`.
struct Consumer(PushConsumer);

impl PushConsumerPeer<EventContent> for Consumer {
    async fn push(&self, events: &[Arc<Event<EventContent>>]) -> Result<(), PeerFailure> {
        for event in events {
            self.0.push_async(&event.value.value).await.map_err(|error| match error {
                PushError::Disconnected(_) => PeerFailure::Disconnected,
                PushError::System(exception) => PeerFailure::System(exception),
            })?;
        }
        Ok(())
    }
}

/// A consumer that is called by the operations of its interface.
struct TypedConsumer(DynamicObject);

impl PushConsumerPeer<EventContent> for TypedConsumer {
    async fn push(&self, events: &[Arc<Event<EventContent>>]) -> Result<(), PeerFailure> {
        for event in events {
            let Some((operation, arguments)) = event.value.call().map_err(PeerFailure::System)? else { continue };
            let mut request = self.0.prepare(operation, &arguments).map_err(PeerFailure::System)?;
            request.invoke_async().await.map_err(|error| match error {
                RequestError::System(exception) => PeerFailure::System(exception),
                // The operations of such an interface raise no exceptions.
                _ => PeerFailure::System(SystemException::unknown(0, CompletionStatus::Maybe)),
            })?;
        }
        Ok(())
    }
}

/// A supplier that is called by `pull`, which waits for an event, or by `try_pull`.
struct Supplier {
    supplier: PullSupplier,
    is_blocking: bool,
}

impl PullSupplierPeer for Supplier {
    type Pulled = Any;

    async fn pull(&self) -> Result<Option<Any>, PeerFailure> {
        // Both operations raise the same exceptions.
        let failure = |error: PullError| match error {
            PullError::Disconnected(_) => PeerFailure::Disconnected,
            TryPullError::System(exception) => PeerFailure::System(exception),
        };
        if self.is_blocking {
            return self.supplier.pull_async().await.map(Some).map_err(failure);
        }
        let (event, has_event) = self.supplier.try_pull_async().await.map_err(failure)?;
        Ok(has_event.then_some(event))
    }
}

/// Pushes the events of a queue to its consumer until the connection ends.
pub(crate) async fn push_events(channel: Arc<Channel>, proxy: Arc<Proxy>, consumer: ObjectRef) {
    let timeout = channel.shared.peers.timeout;
    let consumer = Consumer(consumer.with_timeout(Some(timeout)).unchecked_narrow());
    let end = delivery(&channel, &proxy, &proxy.part()).push_events(&consumer).await;
    disconnect_after(end, &channel, &proxy);
}

/// Calls a typed consumer for the events of a queue until the connection ends.
pub(crate) async fn call_consumer(channel: Arc<Channel>, proxy: Arc<Proxy>, consumer: DynamicObject) {
    let end = delivery(&channel, &proxy, &proxy.part()).push_events(&TypedConsumer(consumer)).await;
    disconnect_after(end, &channel, &proxy);
}

/// Pulls events from a supplier until the connection ends.
pub(crate) async fn pull_events(channel: Arc<Channel>, proxy: Arc<Proxy>, supplier: ObjectRef) {
    let peers = channel.shared.peers;
    let interval = channel.settings.pull_interval.unwrap_or(PULL_INTERVAL);
    let timeout = (!peers.blocking_pull).then_some(peers.timeout);
    let supplier =
        Supplier { supplier: supplier.with_timeout(timeout).unchecked_narrow(), is_blocking: peers.blocking_pull };
    let publish = |event: Any| {
        if let Err(error) = channel.publish(event.into()) {
            tracing::debug!(%error, channel = %channel.name, "an event of a pull supplier was refused");
        }
        std::future::ready(())
    };
    let end = delivery(&channel, &proxy, &proxy.part()).pull_events(&supplier, || interval, publish).await;
    disconnect_after(end, &channel, &proxy);
}

fn delivery<'d>(channel: &'d Channel, proxy: &'d Proxy, name: &'d str) -> Delivery<'d, PullReply> {
    let shared = &channel.shared;
    Delivery {
        queue: &proxy.queue,
        task: &proxy.task,
        timer: &shared.timer,
        peers: shared.peers,
        channel: &channel.name,
        proxy: name,
    }
}

fn disconnect_after(end: DeliveryEnd, channel: &Channel, proxy: &Proxy) {
    if end == DeliveryEnd::PeerFailed {
        channel.disconnect(proxy, DisconnectCause::PeerFailed);
    }
}
