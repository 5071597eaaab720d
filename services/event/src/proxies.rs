//! The servants of the proxies of suppliers and consumers.

use spandrel::dynamic::{
    DescribedCall, DescribedOperations, DescribedServant, DynamicObject, InterfaceDescription, NvList, RequestError,
};
use spandrel::net::sync::Arc;
use spandrel::server::{DeferredOperations, DeferringSkeleton, Servant, ServerCall, TakenRequest};
use spandrel::services::cos_event_channel_admin::proxy_pull_consumer::ConnectPullSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_pull_supplier::ConnectPullConsumerError;
use spandrel::services::cos_event_channel_admin::proxy_push_consumer::ConnectPushSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_push_supplier::ConnectPushConsumerError;
use spandrel::services::cos_event_channel_admin::{
    ProxyPullConsumerServant, ProxyPullConsumerSkeleton, ProxyPullSupplierServant, ProxyPullSupplierSkeleton,
    ProxyPushConsumerServant, ProxyPushConsumerSkeleton, ProxyPushSupplierServant, ProxyPushSupplierSkeleton,
    TypeError,
};
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{
    Disconnected, PullConsumer, PullConsumerServant, PullSupplier, PullSupplierServant, PushConsumer,
    PushConsumerServant, PushSupplier, PushSupplierServant,
};
use spandrel::services::cos_typed_event_channel_admin::{
    TypedProxyPushConsumerServant, TypedProxyPushConsumerSkeleton,
};
use spandrel::services::cos_typed_event_comm::{TypedPushConsumer, TypedPushConsumerServant};
use spandrel::types::{Any, Interface as _, TypeCode};
use spandrel::{CompletionStatus, ObjectRef, SystemException};

use crate::channel::{Channel, DisconnectCause, Proxy};
use crate::content::EventContent;
use crate::delivery::{call_consumer, pull_events, push_events};
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
    interface: Arc<InterfaceDescription>,
) -> Result<ObjectRef, SystemException> {
    let proxy = channel.add_proxy(kind, None, Some(Arc::clone(&interface)))?;
    let servant = ProxyServant { channel: Arc::clone(channel), proxy };
    if kind == ProxyKind::PushConsumer {
        let typed_part = servant.proxy.typed_part();
        channel.serve(Some(&typed_part), Arc::new(typed_servant(servant.clone(), interface)))?;
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
            ProxyKind::PullSupplier => Arc::new(DeferringSkeleton::new(
                ProxyPullSupplierSkeleton::new(self.clone()),
                WaitingPulls(self.clone()),
            )),
        };
        self.channel.serve(Some(&self.proxy.part()), servant)
    }

    /// Starts the task that pushes to the peer, or pulls from it.
    fn start_task(&self, peer: Option<ObjectRef>) -> Result<(), SystemException> {
        let (channel, proxy) = (Arc::clone(&self.channel), Arc::clone(&self.proxy));
        let orb = channel.shared.orb.clone();
        match (self.proxy.kind, peer) {
            (ProxyKind::PushSupplier, Some(consumer)) => orb.spawn(push_events(channel, proxy, consumer)),
            (ProxyKind::PullConsumer, Some(supplier)) => orb.spawn(pull_events(channel, proxy, supplier)),
            _ => Ok(()),
        }
    }

    /// Connects a peer, durably, and starts its task.
    fn connect<E>(&self, peer: Option<&ObjectRef>) -> Result<(), E>
    where
        E: From<SystemException> + From<spandrel::services::cos_event_channel_admin::AlreadyConnected>,
    {
        let (channel, proxy) = (&self.channel, &self.proxy);
        let store = || channel.store_connection(proxy, peer);
        proxy.connection.connect::<E>(peer, store, || channel.forget_connection(proxy))?;
        Ok(self.start_task(peer.cloned())?)
    }

    /// The object that a typed consumer returns for the calls of its interface.
    fn typed_consumer_of(&self, consumer: &ObjectRef) -> Result<ObjectRef, SystemException> {
        let timeout = Some(self.channel.shared.peers.timeout);
        let consumer: TypedPushConsumer = consumer.with_timeout(timeout).unchecked_narrow();
        let object = consumer.get_typed_consumer()?;
        let object = object.ok_or_else(|| {
            let detail = "`get_typed_consumer` returned nil";
            SystemException::bad_param(0, CompletionStatus::No).with_detail(detail)
        })?;
        Ok(object.with_timeout(timeout))
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

    /// Connects a typed consumer, whose object is called by a task.
    fn connect_typed(&self, consumer: &ObjectRef, object: DynamicObject) -> Result<(), ConnectPushConsumerError> {
        let (channel, proxy) = (Arc::clone(&self.channel), Arc::clone(&self.proxy));
        proxy.connection.connect::<ConnectPushConsumerError>(Some(consumer), || Ok(()), || {})?;
        let orb = channel.shared.orb.clone();
        Ok(orb.spawn(call_consumer(channel, proxy, object))?)
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
        self.connect(Some(required(pull_supplier.map(|supplier| supplier.as_object()))?))
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
            // A consumer without the operation `get_typed_consumer` is of another type as well.
            let typed = self.typed_consumer_of(consumer);
            let typed = typed.and_then(|object| Ok(object.is_a(interface.id())?.then_some(object)));
            let object = typed.ok().flatten().ok_or(TypeError {})?;
            return self.connect_typed(consumer, DynamicObject::new(object, Arc::clone(interface)));
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
        let detail = "there is no event, and a call in the same process cannot wait for one";
        Err(SystemException::transient(0, CompletionStatus::No).with_detail(detail).into())
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
        if let Some(ended) = proxy.queue.wait(PullReply(reply)) {
            self.0.channel.shared.replies.send(ended);
        }
        Ok(TakenRequest::Taken(replied))
    }
}

impl TypedProxyPushConsumerServant for ProxyServant {}

impl TypedPushConsumerServant for ProxyServant {
    fn get_typed_consumer(&self) -> Result<Option<ObjectRef>, SystemException> {
        let id = self.channel.object_id(Some(&self.proxy.typed_part()));
        Ok(Some(self.channel.shared.adapter.id_to_reference(&id)?))
    }
}

/// The object whose operations a typed supplier calls.
fn typed_servant(proxy: ProxyServant, interface: Arc<InterfaceDescription>) -> DescribedServant<TypedCalls> {
    DescribedServant::described(Arc::clone(&interface), TypedCalls { proxy, interface })
}

/// The operations of a typed proxy: each call is an event.
#[derive(Debug)]
struct TypedCalls {
    proxy: ProxyServant,
    interface: Arc<InterfaceDescription>,
}

impl DescribedOperations for TypedCalls {
    fn call(&self, call: &DescribedCall<'_>, arguments: &mut NvList) -> Result<Any, RequestError> {
        let arguments = arguments.iter().filter_map(|item| Some((&*item.name, item.value.as_ref()?)));
        let event = EventContent::from_call(&self.interface, &call.operation.name, arguments)?;
        self.proxy.publish(event).map_err(|error| {
            let unconnected = "the supplier is not connected";
            error.unwrap_or_else(|| SystemException::bad_inv_order(0, CompletionStatus::No).with_detail(unconnected))
        })?;
        Ok(Any::write(TypeCode::VOID, |_| Ok(())).unwrap_or_default())
    }
}
