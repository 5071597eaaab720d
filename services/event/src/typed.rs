//! Typed channels (CosTypedEventChannelAdmin): suppliers call the operations of an interface, which the channel calls on
//! its consumers. By pull, the channel calls suppliers, and consumers call the channel.
//!
//! Each channel has this second face beside its own. The interface repository describes the interfaces: the channel has
//! neither stubs nor skeletons of them.

use std::time::Duration;

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
use spandrel::{ObjectRef, Orb, SystemException};
use spandrel_delivery::TypedInterface;

use crate::admin::ChannelServant;
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

/// The typed face of a channel, as the servant of its interface and those of its administrators.
#[derive(Clone, Debug)]
struct TypedFace(ChannelServant);

/// The search for an interface of peers by push or by pull.
type FindInterface = fn(&Orb, &str, Duration) -> Result<Option<TypedInterface>, SystemException>;

impl TypedFace {
    fn interface(&self, find: FindInterface, id: &str) -> Result<Option<Arc<TypedInterface>>, SystemException> {
        let shared = &self.0.channel.shared;
        Ok(find(&shared.orb, id, shared.peers.timeout)?.map(Arc::new))
    }
}

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
    fn obtain_typed_pull_supplier(
        &self,
        supported_interface: &str,
    ) -> Result<Option<TypedProxyPullSupplier>, InterfaceNotSupportedError> {
        let interface =
            self.interface(TypedInterface::of_pull, supported_interface)?.ok_or(InterfaceNotSupported {})?;
        Ok(Some(create_typed_proxy(&self.0.channel, ProxyKind::PullSupplier, interface)?.unchecked_narrow()))
    }

    fn obtain_typed_push_supplier(
        &self,
        uses_interface: &str,
    ) -> Result<Option<ProxyPushSupplier>, NoSuchImplementationError> {
        let interface = self.interface(TypedInterface::of_push, uses_interface)?.ok_or(NoSuchImplementation {})?;
        Ok(Some(create_typed_proxy(&self.0.channel, ProxyKind::PushSupplier, interface)?.unchecked_narrow()))
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
        let interface =
            self.interface(TypedInterface::of_push, supported_interface)?.ok_or(InterfaceNotSupported {})?;
        Ok(Some(create_typed_proxy(&self.0.channel, ProxyKind::PushConsumer, interface)?.unchecked_narrow()))
    }

    fn obtain_typed_pull_consumer(
        &self,
        uses_interface: &str,
    ) -> Result<Option<ProxyPullConsumer>, NoSuchImplementationError> {
        let interface = self.interface(TypedInterface::of_pull, uses_interface)?.ok_or(NoSuchImplementation {})?;
        Ok(Some(create_typed_proxy(&self.0.channel, ProxyKind::PullConsumer, interface)?.unchecked_narrow()))
    }
}
