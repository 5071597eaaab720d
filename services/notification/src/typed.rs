//! Typed channels (CosTypedNotifyChannelAdmin): suppliers call the operations of an interface, which the channel calls on its
//! consumers. By pull, the channel calls suppliers, and consumers call the channel. Each channel has this second face
//! beside its own.

use spandrel::net::sync::Arc;
use spandrel::poa::ObjectId;
use spandrel::server::{DeferredOperations, ServerCall, TakenRequest};
use spandrel::services::cos_event_channel_admin::{self as event_service, TypeError};
use spandrel::services::cos_event_comm::{PullConsumer, PushSupplier};
use spandrel::services::cos_notification::Property;
use spandrel::services::cos_notify_channel_admin::{AdminNotFound, ChannelNotFound, InterFilterGroupOperator};
use spandrel::services::cos_notify_filter::FilterFactory;
use spandrel::services::cos_typed_event_channel_admin::{
    self as typed_events, InterfaceNotSupported, InterfaceNotSupportedError, NoSuchImplementation,
    NoSuchImplementationError,
};
use spandrel::services::cos_typed_event_comm::{self, TypedPullSupplier, TypedPushConsumer};
use spandrel::services::cos_typed_notify_channel_admin::typed_consumer_admin::{
    ObtainTypedNotificationPullSupplierError, ObtainTypedNotificationPushSupplierError,
};
use spandrel::services::cos_typed_notify_channel_admin::typed_event_channel_factory::{
    CreateTypedChannelError, GetTypedEventChannelError,
};
use spandrel::services::cos_typed_notify_channel_admin::typed_supplier_admin::{
    ObtainTypedNotificationPullConsumerError, ObtainTypedNotificationPushConsumerError,
};
use spandrel::services::cos_typed_notify_channel_admin::{
    AdminNotFoundError, AlreadyConnectedError, AlreadyConnectedOrTypeErrorError,
    ConnectionAlreadyActiveOrNotConnectedError as ResumeError,
    ConnectionAlreadyInactiveOrNotConnectedError as SuspendError, TypedConsumerAdmin, TypedConsumerAdminServant,
    TypedEventChannel, TypedEventChannelFactory, TypedEventChannelFactoryServant, TypedEventChannelServant,
    TypedProxyPullConsumer, TypedProxyPullConsumerServant, TypedProxyPullSupplier, TypedProxyPullSupplierServant,
    TypedProxyPushConsumer, TypedProxyPushConsumerServant, TypedProxyPushSupplier, TypedProxyPushSupplierServant,
    TypedSupplierAdmin, TypedSupplierAdminServant,
};
use spandrel::services::cos_typed_notify_comm;
use spandrel::types::{Any, Interface as _};
use spandrel::{CompletionStatus, ObjectRef, SystemException};

use crate::admins::AdminServant;
use crate::channel_servant::{ChannelServant, FactoryServant};
use crate::delivery::CalledPeer;
use crate::event_interface::{EventInterface, arguments};
use crate::keys::{TYPED, TYPED_FACTORY_KEY};
use crate::kind::{EventForm, Side};
use crate::members::DEFAULT_ADMIN;
use crate::proxy::required;
use crate::servant::ProxyServant;
use crate::shared::{PullReply, ReplyForm};

impl AdminServant {
    fn interface(&self, is_push: bool, id: &str) -> Result<Option<Arc<EventInterface>>, SystemException> {
        let shared = &self.channel.shared;
        EventInterface::find(&shared.orb, is_push, id, shared.peers.timeout)
    }
}

impl typed_events::TypedConsumerAdminServant for AdminServant {
    fn obtain_typed_pull_supplier(
        &self,
        supported_interface: &str,
    ) -> Result<Option<typed_events::TypedProxyPullSupplier>, InterfaceNotSupportedError> {
        let interface = self.interface(false, supported_interface)?.ok_or(InterfaceNotSupported {})?;
        Ok(Some(self.create_plain(false, Some(interface))?.unchecked_narrow()))
    }

    fn obtain_typed_push_supplier(
        &self,
        uses_interface: &str,
    ) -> Result<Option<event_service::ProxyPushSupplier>, NoSuchImplementationError> {
        let interface = self.interface(true, uses_interface)?.ok_or(NoSuchImplementation {})?;
        Ok(Some(self.create_plain(true, Some(interface))?.unchecked_narrow()))
    }
}

impl typed_events::TypedSupplierAdminServant for AdminServant {
    fn obtain_typed_push_consumer(
        &self,
        supported_interface: &str,
    ) -> Result<Option<typed_events::TypedProxyPushConsumer>, InterfaceNotSupportedError> {
        let interface = self.interface(true, supported_interface)?.ok_or(InterfaceNotSupported {})?;
        Ok(Some(self.create_plain(true, Some(interface))?.unchecked_narrow()))
    }

    fn obtain_typed_pull_consumer(
        &self,
        uses_interface: &str,
    ) -> Result<Option<event_service::ProxyPullConsumer>, NoSuchImplementationError> {
        let interface = self.interface(false, uses_interface)?.ok_or(NoSuchImplementation {})?;
        Ok(Some(self.create_plain(false, Some(interface))?.unchecked_narrow()))
    }
}

impl TypedConsumerAdminServant for AdminServant {
    fn obtain_typed_notification_pull_supplier(
        &self,
        supported_interface: &str,
    ) -> Result<(Option<TypedProxyPullSupplier>, i32), ObtainTypedNotificationPullSupplierError> {
        let interface = self.interface(false, supported_interface)?.ok_or(InterfaceNotSupported {})?;
        let created = self.create::<ObtainTypedNotificationPullSupplierError>(false, EventForm::Typed, Some(interface));
        created.map(|(object, id)| (Some(object.unchecked_narrow()), id))
    }

    fn obtain_typed_notification_push_supplier(
        &self,
        uses_interface: &str,
    ) -> Result<(Option<TypedProxyPushSupplier>, i32), ObtainTypedNotificationPushSupplierError> {
        let interface = self.interface(true, uses_interface)?.ok_or(NoSuchImplementation {})?;
        let created = self.create::<ObtainTypedNotificationPushSupplierError>(true, EventForm::Typed, Some(interface));
        created.map(|(object, id)| (Some(object.unchecked_narrow()), id))
    }
}

impl TypedSupplierAdminServant for AdminServant {
    fn obtain_typed_notification_push_consumer(
        &self,
        supported_interface: &str,
    ) -> Result<(Option<TypedProxyPushConsumer>, i32), ObtainTypedNotificationPushConsumerError> {
        let interface = self.interface(true, supported_interface)?.ok_or(InterfaceNotSupported {})?;
        let created = self.create::<ObtainTypedNotificationPushConsumerError>(true, EventForm::Typed, Some(interface));
        created.map(|(object, id)| (Some(object.unchecked_narrow()), id))
    }

    fn obtain_typed_notification_pull_consumer(
        &self,
        uses_interface: &str,
    ) -> Result<(Option<TypedProxyPullConsumer>, i32), ObtainTypedNotificationPullConsumerError> {
        let interface = self.interface(false, uses_interface)?.ok_or(NoSuchImplementation {})?;
        let created = self.create::<ObtainTypedNotificationPullConsumerError>(false, EventForm::Typed, Some(interface));
        created.map(|(object, id)| (Some(object.unchecked_narrow()), id))
    }
}

impl ChannelServant {
    fn typed_admin(&self, side: Side, id: i32) -> Result<ObjectRef, AdminNotFoundError> {
        let admin = self.channel.admin(side, id).ok_or(AdminNotFound {})?;
        Ok(self.channel.reference(Some(&admin.typed_part()))?)
    }

    fn default_typed_admin(&self, side: Side) -> Result<ObjectRef, SystemException> {
        self.typed_admin(side, DEFAULT_ADMIN).map_err(|error| match error {
            AdminNotFoundError::System(exception) => exception,
            AdminNotFoundError::AdminNotFound(_) => SystemException::object_not_exist(0, CompletionStatus::No),
        })
    }

    fn new_typed_admin(
        &self,
        side: Side,
        operator: InterFilterGroupOperator,
    ) -> Result<(ObjectRef, i32), SystemException> {
        let (_, admin) = self.create_admin(side, operator)?;
        Ok((self.channel.reference(Some(&admin.typed_part()))?, admin.id))
    }
}

impl typed_events::TypedEventChannelServant for ChannelServant {
    fn for_consumers(&self) -> Result<Option<typed_events::TypedConsumerAdmin>, SystemException> {
        Ok(Some(self.default_typed_admin(Side::Consumers)?.unchecked_narrow()))
    }

    fn for_suppliers(&self) -> Result<Option<typed_events::TypedSupplierAdmin>, SystemException> {
        Ok(Some(self.default_typed_admin(Side::Suppliers)?.unchecked_narrow()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.registry.destroy(&self.channel)
    }
}

impl TypedEventChannelServant for ChannelServant {
    fn my_factory(&self) -> Result<Option<TypedEventChannelFactory>, SystemException> {
        let id = ObjectId::from(TYPED_FACTORY_KEY);
        Ok(Some(self.registry.shared.adapter.id_to_reference(&id)?.unchecked_narrow()))
    }

    fn default_consumer_admin(&self) -> Result<Option<TypedConsumerAdmin>, SystemException> {
        Ok(Some(self.default_typed_admin(Side::Consumers)?.unchecked_narrow()))
    }

    fn default_supplier_admin(&self) -> Result<Option<TypedSupplierAdmin>, SystemException> {
        Ok(Some(self.default_typed_admin(Side::Suppliers)?.unchecked_narrow()))
    }

    fn default_filter_factory(&self) -> Result<Option<FilterFactory>, SystemException> {
        self.filter_factory()
    }

    fn new_for_typed_notification_consumers(
        &self,
        op: InterFilterGroupOperator,
    ) -> Result<(Option<TypedConsumerAdmin>, i32), SystemException> {
        let (object, id) = self.new_typed_admin(Side::Consumers, op)?;
        Ok((Some(object.unchecked_narrow()), id))
    }

    fn new_for_typed_notification_suppliers(
        &self,
        op: InterFilterGroupOperator,
    ) -> Result<(Option<TypedSupplierAdmin>, i32), SystemException> {
        let (object, id) = self.new_typed_admin(Side::Suppliers, op)?;
        Ok((Some(object.unchecked_narrow()), id))
    }

    fn get_consumeradmin(&self, id: i32) -> Result<Option<TypedConsumerAdmin>, AdminNotFoundError> {
        Ok(Some(self.typed_admin(Side::Consumers, id)?.unchecked_narrow()))
    }

    fn get_supplieradmin(&self, id: i32) -> Result<Option<TypedSupplierAdmin>, AdminNotFoundError> {
        Ok(Some(self.typed_admin(Side::Suppliers, id)?.unchecked_narrow()))
    }

    fn get_all_consumeradmins(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.channel.admin_ids(Side::Consumers))
    }

    fn get_all_supplieradmins(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.channel.admin_ids(Side::Suppliers))
    }
}

impl TypedEventChannelFactoryServant for FactoryServant {
    fn create_typed_channel(
        &self,
        initial_qos: &[Property],
        initial_admin: &[Property],
    ) -> Result<(Option<TypedEventChannel>, i32), CreateTypedChannelError> {
        let (_, channel) = self.create::<CreateTypedChannelError>(initial_qos, initial_admin)?;
        Ok((Some(channel.reference(Some(TYPED))?.unchecked_narrow()), channel.id))
    }

    fn get_all_typed_channels(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.0.all().iter().map(|channel| channel.id).collect())
    }

    fn get_typed_event_channel(&self, id: i32) -> Result<Option<TypedEventChannel>, GetTypedEventChannelError> {
        let channel = self.0.get(id).ok_or(ChannelNotFound {})?;
        Ok(Some(channel.reference(Some(TYPED))?.unchecked_narrow()))
    }
}

impl ProxyServant {
    /// Connects a peer that the channel calls: its own object, or that of a typed peer.
    pub(crate) fn connect_called<E>(&self, peer: Option<&ObjectRef>) -> Result<(), E>
    where
        E: From<SystemException> + From<event_service::AlreadyConnected> + From<TypeError>,
    {
        let peer = required(peer)?;
        let Some(interface) = &self.proxy.interface else { return self.connect(Some(peer)) };
        let timeout = self.channel.shared.peers.timeout;
        let object = match self.proxy.kind.side {
            Side::Consumers => interface.typed.object_of_consumer(peer, timeout),
            Side::Suppliers => interface.typed.object_of_supplier(peer, timeout),
        };
        // A peer without the operation that returns the object is of another type as well.
        let object = object.ok().flatten().ok_or(TypeError {})?;
        self.connect_with(Some(peer), Some(CalledPeer::Typed(object)))
    }

    /// A call of the supplier's object.
    fn receive_call(
        &self,
        interface: &EventInterface,
        operation: &str,
        arguments: Vec<Any>,
    ) -> Result<(), SystemException> {
        self.proxy.connection.require_connected()?;
        self.channel.receive(&self.proxy, vec![interface.event(operation, arguments)])
    }

    /// The arguments of the next call of an operation, for a consumer that pulls. Those before are acknowledged.
    fn take_call(&self, interface: &EventInterface, operation: &str) -> Result<Option<Vec<Any>>, SystemException> {
        self.proxy.connection.require_connected()?;
        self.proxy.pulled.acknowledge();
        let next = self.proxy.queue.take_if(|event| interface.operation_of(&event.content) == Some(operation));
        let event = next.map_err(|_| SystemException::object_not_exist(0, CompletionStatus::No))?;
        self.proxy.pulled.keep(event.as_slice());
        Ok(event.map(|event| arguments(&event.value.content)))
    }

    fn typed_object(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.channel.reference(Some(&self.proxy.typed_part()))?))
    }

    /// Activates the object that a typed peer calls, if there is one.
    pub(crate) fn activate_typed_object(&self) -> Result<(), SystemException> {
        let Some(interface) = self.proxy.interface.clone().filter(|_| self.proxy.kind.is_called()) else {
            return Ok(());
        };
        let (called, typed) = (self.clone(), interface.typed.clone());
        let servant = match self.proxy.kind.side {
            Side::Suppliers => typed
                .consumer_servant(move |operation, arguments| called.receive_call(&interface, operation, arguments)),
            Side::Consumers => {
                let waiting = WaitingCalls(self.clone(), Arc::clone(&interface));
                typed.supplier_servant(move |operation| called.take_call(&interface, operation), waiting)
            }
        };
        self.channel.serve(Some(&self.proxy.typed_part()), servant)?;
        Ok(())
    }
}

/// The operations of a pull interface that wait for an event without a thread.
struct WaitingCalls(ProxyServant, Arc<EventInterface>);

impl DeferredOperations for WaitingCalls {
    fn take<'m>(&self, call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException> {
        let (proxy, interface) = (&self.0.proxy, &self.1);
        let is_waiting = interface.typed.events.find(call.operation()).is_some();
        if !is_waiting || !call.is_response_expected() || !proxy.connection.is_connected() {
            return Ok(TakenRequest::LeftToSkeleton(call));
        }
        let operation = call.operation().to_owned();
        let (reply, replied) = call.defer_reply()?;
        proxy.pulled.acknowledge();
        let reply = ReplyForm::Call { reply, interface: Arc::clone(interface), operation };
        if let Some(ended) = proxy.queue.wait(PullReply { reply, pulled: Arc::clone(&proxy.pulled) }) {
            self.0.channel.shared.replies.send(ended);
        }
        Ok(TakenRequest::Taken(replied))
    }
}

impl cos_typed_event_comm::TypedPushConsumerServant for ProxyServant {
    fn get_typed_consumer(&self) -> Result<Option<ObjectRef>, SystemException> {
        self.typed_object()
    }
}

impl cos_typed_event_comm::TypedPullSupplierServant for ProxyServant {
    fn get_typed_supplier(&self) -> Result<Option<ObjectRef>, SystemException> {
        self.typed_object()
    }
}

impl cos_typed_notify_comm::TypedPushConsumerServant for ProxyServant {}

impl cos_typed_notify_comm::TypedPullSupplierServant for ProxyServant {}

impl typed_events::TypedProxyPushConsumerServant for ProxyServant {}

impl typed_events::TypedProxyPullSupplierServant for ProxyServant {}

impl TypedProxyPushConsumerServant for ProxyServant {
    fn connect_typed_push_supplier(&self, push_supplier: Option<&PushSupplier>) -> Result<(), AlreadyConnectedError> {
        self.connect(push_supplier.map(|supplier| supplier.as_object()))
    }
}

impl TypedProxyPullSupplierServant for ProxyServant {
    fn connect_typed_pull_consumer(&self, pull_consumer: Option<&PullConsumer>) -> Result<(), AlreadyConnectedError> {
        self.connect(pull_consumer.map(|consumer| consumer.as_object()))
    }
}

impl TypedProxyPullConsumerServant for ProxyServant {
    fn connect_typed_pull_supplier(
        &self,
        pull_supplier: Option<&TypedPullSupplier>,
    ) -> Result<(), AlreadyConnectedOrTypeErrorError> {
        self.connect_called(pull_supplier.map(|supplier| supplier.as_object()))
    }

    fn suspend_connection(&self) -> Result<(), SuspendError> {
        self.suspend()
    }

    fn resume_connection(&self) -> Result<(), ResumeError> {
        self.resume()
    }
}

impl TypedProxyPushSupplierServant for ProxyServant {
    fn connect_typed_push_consumer(
        &self,
        push_consumer: Option<&TypedPushConsumer>,
    ) -> Result<(), AlreadyConnectedOrTypeErrorError> {
        self.connect_called(push_consumer.map(|consumer| consumer.as_object()))
    }

    fn suspend_connection(&self) -> Result<(), SuspendError> {
        self.suspend()
    }

    fn resume_connection(&self) -> Result<(), ResumeError> {
        self.resume()
    }
}
