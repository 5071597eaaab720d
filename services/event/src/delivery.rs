//! The tasks that push events to consumers, and pull them from suppliers.

use std::time::Duration;

use spandrel::dynamic::DynamicObject;
use spandrel::net::sync::Arc;
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PullSupplier, PushConsumer};
use spandrel::types::Any;
use spandrel::{ObjectRef, SystemException};
use spandrel_delivery::{
    Delivery, DeliveryEnd, Event, PeerFailure, PullSupplierPeer, PushConsumerPeer, TypedSupplier, call_typed,
};

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
            let Some(operation) = event.value.operation() else { continue };
            let arguments = event.value.arguments().map_err(PeerFailure::System)?;
            call_typed(&self.0, operation, &arguments).await?;
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

/// The task that calls the peer of a proxy until the connection ends.
pub(crate) struct DeliveryTask {
    pub(crate) channel: Arc<Channel>,
    pub(crate) proxy: Arc<Proxy>,
}

impl DeliveryTask {
    /// Pushes the events of the queue to a consumer.
    pub(crate) async fn push_events(self, consumer: ObjectRef) {
        let timeout = self.channel.shared.peers.timeout;
        let consumer = Consumer(consumer.with_timeout(Some(timeout)).unchecked_narrow());
        self.disconnect_after(self.delivery(&self.proxy.part()).push_events(&consumer).await);
    }

    /// Calls a typed consumer for the events of the queue.
    pub(crate) async fn call_consumer(self, consumer: DynamicObject) {
        self.disconnect_after(self.delivery(&self.proxy.part()).push_events(&TypedConsumer(consumer)).await);
    }

    /// Pulls events from a supplier.
    pub(crate) async fn pull_events(self, supplier: ObjectRef) {
        let peers = self.channel.shared.peers;
        let timeout = (!peers.blocking_pull).then_some(peers.timeout);
        let supplier =
            Supplier { supplier: supplier.with_timeout(timeout).unchecked_narrow(), is_blocking: peers.blocking_pull };
        self.pull(&supplier, |event| Ok(event.into())).await;
    }

    /// Pulls events from a typed supplier.
    pub(crate) async fn call_supplier(self, supplier: TypedSupplier) {
        let event = |(operation, arguments): (String, Vec<Any>)| {
            EventContent::from_call(supplier.events(), &operation, &arguments)
        };
        self.pull(&supplier, event).await;
    }

    async fn pull<S: PullSupplierPeer>(
        &self,
        supplier: &S,
        event: impl Fn(S::Pulled) -> Result<EventContent, SystemException> + Send + Sync,
    ) {
        let interval = self.channel.settings.pull_interval.unwrap_or(PULL_INTERVAL);
        let publish = |pulled| {
            if let Err(error) = event(pulled).and_then(|event| self.channel.publish(event)) {
                tracing::debug!(%error, channel = %self.channel.name, "an event of a pull supplier was refused");
            }
            std::future::ready(())
        };
        self.disconnect_after(self.delivery(&self.proxy.part()).pull_events(supplier, || interval, publish).await);
    }

    fn delivery<'d>(&'d self, name: &'d str) -> Delivery<'d, PullReply> {
        let shared = &self.channel.shared;
        Delivery {
            queue: &self.proxy.queue,
            task: &self.proxy.task,
            timer: &shared.timer,
            peers: shared.peers,
            channel: &self.channel.name,
            proxy: name,
        }
    }

    fn disconnect_after(&self, end: DeliveryEnd) {
        if end == DeliveryEnd::PeerFailed {
            self.channel.disconnect(&self.proxy, DisconnectCause::PeerFailed);
        }
    }
}
