//! Typed channels (CosTypedEventChannelAdmin): suppliers call the operations of an interface, which the channel calls on
//! its consumers.
//!
//! Each channel has this second face beside its own. The interface repository describes the interfaces: the channel has
//! neither stubs nor skeletons of them.

use spandrel::dynamic::{ArgMode, InterfaceDescription};
use spandrel::net::sync::Arc;
use spandrel::services::cos_event_channel_admin::{
    ConsumerAdminServant, ProxyPullConsumer, ProxyPushSupplier, SupplierAdminServant,
};
use spandrel::services::cos_typed_event_channel_admin::{
    InterfaceNotSupported, InterfaceNotSupportedError, NoSuchImplementation, NoSuchImplementationError,
    TypedConsumerAdmin, TypedConsumerAdminServant, TypedConsumerAdminSkeleton, TypedEventChannelServant,
    TypedEventChannelSkeleton, TypedProxyPullSupplier, TypedProxyPushConsumer, TypedSupplierAdmin,
    TypedSupplierAdminServant, TypedSupplierAdminSkeleton,
};
use spandrel::services::repository::{default_repository, interface_by_id};
use spandrel::types::TcKind;
use spandrel::{ObjectRef, SystemException, SystemExceptionKind};

use crate::admin::ChannelServant;
use crate::channel::Channel;
use crate::destruction::destroy;
use crate::keys::{TYPED, TYPED_CONSUMERS, TYPED_SUPPLIERS};
use crate::proxies::create_typed_proxy;
use crate::store::ProxyKind;

/// Activates the typed face of a channel with its administrators.
pub(crate) fn activate_typed(servant: &ChannelServant) -> Result<ObjectRef, SystemException> {
    let typed = || TypedFace(servant.clone());
    let channel = &servant.channel;
    channel.serve(Some(TYPED_CONSUMERS), Arc::new(TypedConsumerAdminSkeleton::new(typed())))?;
    channel.serve(Some(TYPED_SUPPLIERS), Arc::new(TypedSupplierAdminSkeleton::new(typed())))?;
    channel.serve(Some(TYPED), Arc::new(TypedEventChannelSkeleton::new(typed())))
}

/// The description of an interface whose operations can be events: parameters are `in` alone, and nothing is returned.
/// `None` if the repository does not know it, or it has other operations.
///
/// # Errors
/// INTF_REPOS if there is no repository; the exceptions of its calls.
fn event_interface(channel: &Channel, id: &str) -> Result<Option<Arc<InterfaceDescription>>, SystemException> {
    let shared = &channel.shared;
    let repository = default_repository(&shared.orb)?.with_timeout(Some(shared.peers.timeout));
    let interface = match interface_by_id(&repository, id) {
        Ok(interface) => interface,
        Err(error) if error.kind() == SystemExceptionKind::IntfRepos => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_event = interface.attributes().is_empty()
        && interface.undescribed().is_empty()
        && interface.operations().iter().all(|operation| {
            operation.result.kind() == TcKind::Void
                && operation.exceptions.is_empty()
                && operation.contexts.is_empty()
                && operation.parameters.iter().all(|parameter| parameter.mode == ArgMode::In)
        });
    Ok(is_event.then(|| Arc::new(interface)))
}

/// The typed face of a channel, as the servant of its interface and those of its administrators.
#[derive(Clone, Debug)]
struct TypedFace(ChannelServant);

impl TypedEventChannelServant for TypedFace {
    fn for_consumers(&self) -> Result<Option<TypedConsumerAdmin>, SystemException> {
        Ok(Some(self.0.part(TYPED_CONSUMERS)?.unchecked_narrow()))
    }

    fn for_suppliers(&self) -> Result<Option<TypedSupplierAdmin>, SystemException> {
        Ok(Some(self.0.part(TYPED_SUPPLIERS)?.unchecked_narrow()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        destroy(&self.0.registry, &self.0.channel)
    }
}

impl ConsumerAdminServant for TypedFace {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplier>, SystemException> {
        self.0.obtain_push_supplier()
    }

    fn obtain_pull_supplier(
        &self,
    ) -> Result<Option<spandrel::services::cos_event_channel_admin::ProxyPullSupplier>, SystemException> {
        self.0.obtain_pull_supplier()
    }
}

impl TypedConsumerAdminServant for TypedFace {
    /// No interface is supported: consumers that pull get untyped events.
    fn obtain_typed_pull_supplier(
        &self,
        _supported_interface: &str,
    ) -> Result<Option<TypedProxyPullSupplier>, InterfaceNotSupportedError> {
        Err(InterfaceNotSupported {}.into())
    }

    fn obtain_typed_push_supplier(
        &self,
        uses_interface: &str,
    ) -> Result<Option<ProxyPushSupplier>, NoSuchImplementationError> {
        let channel = &self.0.channel;
        let interface = event_interface(channel, uses_interface)?.ok_or(NoSuchImplementation {})?;
        Ok(Some(create_typed_proxy(channel, ProxyKind::PushSupplier, interface)?.unchecked_narrow()))
    }
}

impl SupplierAdminServant for TypedFace {
    fn obtain_push_consumer(
        &self,
    ) -> Result<Option<spandrel::services::cos_event_channel_admin::ProxyPushConsumer>, SystemException> {
        self.0.obtain_push_consumer()
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumer>, SystemException> {
        self.0.obtain_pull_consumer()
    }
}

impl TypedSupplierAdminServant for TypedFace {
    fn obtain_typed_push_consumer(
        &self,
        supported_interface: &str,
    ) -> Result<Option<TypedProxyPushConsumer>, InterfaceNotSupportedError> {
        let channel = &self.0.channel;
        let interface = event_interface(channel, supported_interface)?.ok_or(InterfaceNotSupported {})?;
        Ok(Some(create_typed_proxy(channel, ProxyKind::PushConsumer, interface)?.unchecked_narrow()))
    }

    /// No interface is used: suppliers that are pulled pass untyped events.
    fn obtain_typed_pull_consumer(
        &self,
        _uses_interface: &str,
    ) -> Result<Option<ProxyPullConsumer>, NoSuchImplementationError> {
        Err(NoSuchImplementation {}.into())
    }
}
