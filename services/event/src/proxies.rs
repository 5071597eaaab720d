//! The servants of the proxies of suppliers and consumers.

use std::time::Duration;

use spandrel::dynamic::DynamicObject;
use spandrel::net::sync::Arc;
use spandrel::server::{DeferredOperations, DeferringSkeleton, Servant, ServerCall, TakenRequest};
use spandrel::services::cos_event_channel_admin::proxy_pull_consumer::ConnectPullSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_pull_supplier::ConnectPullConsumerError;
use spandrel::services::cos_event_channel_admin::proxy_push_consumer::ConnectPushSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_push_supplier::ConnectPushConsumerError;
use spandrel::services::cos_event_channel_admin::{
    AlreadyConnected, ProxyPullConsumerServant, ProxyPullConsumerSkeleton, ProxyPullSupplierServant,
    ProxyPullSupplierSkeleton, ProxyPushConsumerServant, ProxyPushConsumerSkeleton, ProxyPushSupplierServant,
    ProxyPushSupplierSkeleton, TypeError,
};
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{
    Disconnected, PullConsumer, PullConsumerServant, PullSupplier, PullSupplierServant, PushConsumer,
    PushConsumerServant, PushSupplier, PushSupplierServant,
};
use spandrel::services::cos_typed_event_channel_admin::{
    TypedProxyPullSupplierServant, TypedProxyPullSupplierSkeleton, TypedProxyPushConsumerServant,
    TypedProxyPushConsumerSkeleton,
};
use spandrel::services::cos_typed_event_comm::{TypedPullSupplierServant, TypedPushConsumerServant};
use spandrel::types::{Any, Interface as _};
use spandrel::{CompletionStatus, ObjectRef, SystemException};
use spandrel_delivery::{TypedInterface, TypedSupplier, no_event};

use crate::channel::{Channel, DisconnectCause, Proxy};
use crate::content::EventContent;
use crate::delivery::DeliveryTask;
use crate::shared::PullReply;
use crate::store::{ConnectionRecord, ProxyKind};

/// A proxy and its channel, as the servant of all four interfaces.
#[derive(Clone, Debug)]
pub(crate) struct ProxyServant {
    channel: Arc<Channel>,
    proxy: Arc<Proxy>,
}

/// Creates and activates a proxy.
pub(crate) fn create_proxy(channel: &Arc<Channel>, kind: ProxyKind) -> Result<ObjectRef, SystemException> {
    let proxy = channel.add_proxy(kind, None, None)?;
    ProxyServant { channel: Arc::clone(channel), proxy }.activate()
}

/// Creates and activates a proxy of a peer that passes or gets events by the operations of an interface.
pub(crate) fn create_typed_proxy(
    channel: &Arc<Channel>,
    kind: ProxyKind,
    interface: Arc<TypedInterface>,
) -> Result<ObjectRef, SystemException> {
    let proxy = channel.add_proxy(kind, None, Some(Arc::clone(&interface)))?;
    let servant = ProxyServant { channel: Arc::clone(channel), proxy };
    let called = servant.clone();
    let object = match kind {
        ProxyKind::PushConsumer => {
            Some(interface.consumer_servant(move |operation, arguments| called.receive_call(operation, &arguments)))
        }
        ProxyKind::PullSupplier => {
            let waiting = WaitingCalls(servant.clone());
            Some(interface.supplier_servant(move |operation| called.take_call(operation), waiting))
        }
        ProxyKind::PullConsumer | ProxyKind::PushSupplier => None,
    };
    if let Some(object) = object {
        channel.serve(Some(&servant.proxy.typed_part()), object)?;
    }
    servant.activate()
}

/// Creates a proxy of the store, with its connection.
pub(crate) fn restore_proxy(
    channel: &Arc<Channel>,
    number: u64,
    record: ConnectionRecord,
) -> Result<(), SystemException> {
    let proxy = channel.add_proxy(record.kind, Some(number), None)?;
    let servant = ProxyServant { channel: Arc::clone(channel), proxy };
    let peer = record.peer.map(|peer| channel.shared.orb.reference(peer));
    servant
        .proxy
        .connection
        .connect::<ConnectPushConsumerError>(peer.as_ref(), || Ok(()), || {})
        .map_err(|error| SystemException::internal(0, CompletionStatus::No).with_detail(move || error.to_string()))?;
    servant.activate()?;
    servant.start_task(peer)
}

impl ProxyServant {
    fn activate(&self) -> Result<ObjectRef, SystemException> {
        let servant: Arc<dyn Servant> = match self.proxy.kind {
            ProxyKind::PushConsumer if self.proxy.interface.is_some() => {
                Arc::new(TypedProxyPushConsumerSkeleton::new(self.clone()))
            }
            ProxyKind::PushConsumer => Arc::new(ProxyPushConsumerSkeleton::new(self.clone())),
            ProxyKind::PullConsumer => Arc::new(ProxyPullConsumerSkeleton::new(self.clone())),
            ProxyKind::PushSupplier => Arc::new(ProxyPushSupplierSkeleton::new(self.clone())),
            ProxyKind::PullSupplier if self.proxy.interface.is_some() => Arc::new(DeferringSkeleton::new(
                TypedProxyPullSupplierSkeleton::new(self.clone()),
                WaitingPulls(self.clone()),
            )),
            ProxyKind::PullSupplier => Arc::new(DeferringSkeleton::new(
                ProxyPullSupplierSkeleton::new(self.clone()),
                WaitingPulls(self.clone()),
            )),
        };
        self.channel.serve(Some(&self.proxy.part()), servant)
    }

    /// Starts the task that pushes to the peer, or pulls from it.
    fn start_task(&self, peer: Option<ObjectRef>) -> Result<(), SystemException> {
        let task = DeliveryTask { channel: Arc::clone(&self.channel), proxy: Arc::clone(&self.proxy) };
        let orb = &self.channel.shared.orb;
        match (self.proxy.kind, peer) {
            (ProxyKind::PushSupplier, Some(consumer)) => orb.spawn(task.push_events(consumer)),
            (ProxyKind::PullConsumer, Some(supplier)) => orb.spawn(task.pull_events(supplier)),
            _ => Ok(()),
        }
    }

    /// Connects a peer, durably, and starts its task.
    fn connect<E>(&self, peer: Option<&ObjectRef>) -> Result<(), E>
    where
        E: From<SystemException> + From<AlreadyConnected>,
    {
        let (channel, proxy) = (&self.channel, &self.proxy);
        let store = || channel.store_connection(proxy, peer);
        proxy.connection.connect::<E>(peer, store, || channel.forget_connection(proxy))?;
        Ok(self.start_task(peer.cloned())?)
    }

    /// Passes an event of the supplier to the channel.
    ///
    /// # Errors
    /// `None` before the connection; the exceptions of the channel.
    fn publish(&self, content: EventContent) -> Result<(), Option<SystemException>> {
        if !self.proxy.connection.is_connected() {
            return Err(None);
        }
        self.channel.publish(content).map_err(Some)
    }

    /// Connects a typed peer, whose object a task calls.
    fn connect_typed<E>(
        &self,
        interface: &TypedInterface,
        peer: &ObjectRef,
        find_object: impl FnOnce(&TypedInterface, &ObjectRef, Duration) -> Result<Option<DynamicObject>, SystemException>,
    ) -> Result<(), E>
    where
        E: From<SystemException> + From<AlreadyConnected> + From<TypeError>,
    {
        // A peer without the operation that returns the object is of another type as well.
        let object =
            find_object(interface, peer, self.channel.shared.peers.timeout).ok().flatten().ok_or(TypeError {})?;
        self.proxy.connection.connect::<E>(Some(peer), || Ok(()), || {})?;
        let task = DeliveryTask { channel: Arc::clone(&self.channel), proxy: Arc::clone(&self.proxy) };
        let orb = &self.channel.shared.orb;
        let spawned = if self.proxy.kind.is_of_consumer() {
            orb.spawn(task.call_consumer(object))
        } else {
            orb.spawn(task.call_supplier(TypedSupplier::new(object, interface)))
        };
        Ok(spawned?)
    }

    /// A call of the supplier's object.
    fn receive_call(&self, operation: &str, arguments: &[Any]) -> Result<(), SystemException> {
        self.proxy.connection.require_connected()?;
        let Some(interface) = &self.proxy.interface else { return Ok(()) };
        self.channel.publish(EventContent::from_call(&interface.events, operation, arguments)?)
    }

    /// The arguments of the next call of an operation, for a consumer that pulls.
    fn take_call(&self, operation: &str) -> Result<Option<Vec<Any>>, SystemException> {
        self.proxy.connection.require_connected()?;
        let next = self.proxy.queue.take_if(|event| event.operation() == Some(operation));
        let event = next.map_err(|_| SystemException::object_not_exist(0, CompletionStatus::No))?;
        event.map(|event| event.value.arguments()).transpose()
    }

    fn typed_object(&self) -> Result<Option<ObjectRef>, SystemException> {
        let id = self.channel.object_id(Some(&self.proxy.typed_part()));
        Ok(Some(self.channel.shared.adapter.id_to_reference(&id)?))
    }

    fn disconnect(&self) {
        self.channel.disconnect(&self.proxy, DisconnectCause::ByPeer);
    }
}

/// BAD_PARAM for a nil reference where the standard requires one (Event Service 1.2, 2.3.5 and 2.3.7).
fn required(peer: Option<&ObjectRef>) -> Result<&ObjectRef, SystemException> {
    peer.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No).with_detail("the reference is nil"))
}

impl PushConsumerServant for ProxyServant {
    fn push(&self, data: &Any) -> Result<(), PushError> {
        self.publish(data.clone().into()).map_err(|error| match error {
            None => Disconnected {}.into(),
            Some(exception) => exception.into(),
        })
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.disconnect();
        Ok(())
    }
}

impl ProxyPushConsumerServant for ProxyServant {
    fn connect_push_supplier(&self, push_supplier: Option<&PushSupplier>) -> Result<(), ConnectPushSupplierError> {
        self.connect(push_supplier.map(|supplier| supplier.as_object()))
    }
}

impl PullConsumerServant for ProxyServant {
    fn disconnect_pull_consumer(&self) -> Result<(), SystemException> {
        self.disconnect();
        Ok(())
    }
}

impl ProxyPullConsumerServant for ProxyServant {
    fn connect_pull_supplier(&self, pull_supplier: Option<&PullSupplier>) -> Result<(), ConnectPullSupplierError> {
        let supplier = required(pull_supplier.map(|supplier| supplier.as_object()))?;
        if let Some(interface) = &self.proxy.interface {
            return self.connect_typed(interface, supplier, TypedInterface::object_of_supplier);
        }
        self.connect(Some(supplier))
    }
}

impl PushSupplierServant for ProxyServant {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.disconnect();
        Ok(())
    }
}

impl ProxyPushSupplierServant for ProxyServant {
    fn connect_push_consumer(&self, push_consumer: Option<&PushConsumer>) -> Result<(), ConnectPushConsumerError> {
        let consumer = required(push_consumer.map(|consumer| consumer.as_object()))?;
        if let Some(interface) = &self.proxy.interface {
            return self.connect_typed(interface, consumer, TypedInterface::object_of_consumer);
        }
        self.connect(Some(consumer))
    }
}

impl PullSupplierServant for ProxyServant {
    /// For calls without a deferred reply, which have no thread that may wait: as `try_pull`, and TRANSIENT without an event.
    fn pull(&self) -> Result<Any, PullError> {
        let (event, has_event) = self.try_pull()?;
        if has_event {
            return Ok(event);
        }
        Err(no_event().into())
    }

    fn try_pull(&self) -> Result<(Any, bool), TryPullError> {
        if !self.proxy.connection.is_connected() {
            return Err(Disconnected {}.into());
        }
        let event = self.proxy.queue.take(1)?.pop();
        Ok(event.map_or_else(|| (Any::default(), false), |event| (event.value.value.clone(), true)))
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        self.disconnect();
        Ok(())
    }
}

impl ProxyPullSupplierServant for ProxyServant {
    fn connect_pull_consumer(&self, pull_consumer: Option<&PullConsumer>) -> Result<(), ConnectPullConsumerError> {
        self.connect(pull_consumer.map(|consumer| consumer.as_object()))
    }
}

/// The operation `pull`, which waits for an event without a thread.
struct WaitingPulls(ProxyServant);

impl DeferredOperations for WaitingPulls {
    fn take<'m>(&self, call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException> {
        let proxy = &self.0.proxy;
        // An unconnected proxy answers by its skeleton.
        if call.operation() != "pull" || !call.is_response_expected() || !proxy.connection.is_connected() {
            return Ok(TakenRequest::LeftToSkeleton(call));
        }
        let (reply, replied) = call.defer_reply::<Any, PullError>()?;
        if let Some(ended) = proxy.queue.wait(PullReply::Value(reply)) {
            self.0.channel.shared.replies.send(ended);
        }
        Ok(TakenRequest::Taken(replied))
    }
}

impl TypedProxyPushConsumerServant for ProxyServant {}

impl TypedPushConsumerServant for ProxyServant {
    fn get_typed_consumer(&self) -> Result<Option<ObjectRef>, SystemException> {
        self.typed_object()
    }
}

impl TypedProxyPullSupplierServant for ProxyServant {}

impl TypedPullSupplierServant for ProxyServant {
    fn get_typed_supplier(&self) -> Result<Option<ObjectRef>, SystemException> {
        self.typed_object()
    }
}

/// The operations of a pull interface that wait for an event without a thread.
struct WaitingCalls(ProxyServant);

impl DeferredOperations for WaitingCalls {
    fn take<'m>(&self, call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException> {
        let proxy = &self.0.proxy;
        let events = proxy.interface.as_ref().map(|interface| &interface.events);
        let is_waiting = events.is_some_and(|events| events.find(call.operation()).is_some());
        if !is_waiting || !call.is_response_expected() || !proxy.connection.is_connected() {
            return Ok(TakenRequest::LeftToSkeleton(call));
        }
        let operation = call.operation().to_owned();
        let (reply, replied) = call.defer_reply()?;
        if let Some(ended) = proxy.queue.wait(PullReply::Call { reply, operation }) {
            self.0.channel.shared.replies.send(ended);
        }
        Ok(TakenRequest::Taken(replied))
    }
}
