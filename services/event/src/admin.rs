//! The servants of a channel and its administrators.

use spandrel::net::sync::Arc;
use spandrel::services::cos_event_channel_admin::{
    ConsumerAdmin, ConsumerAdminServant, ConsumerAdminSkeleton, EventChannelServant, ProxyPullConsumer,
    ProxyPullSupplier, ProxyPushConsumer, ProxyPushSupplier, SupplierAdmin, SupplierAdminServant,
    SupplierAdminSkeleton,
};
use spandrel::services::ft::PullMonitorableServant;
use spandrel::services::omni_events::{EventChannelServant as OmniEventChannelServant, EventChannelSkeleton};
use spandrel::{ObjectRef, SystemException};

use crate::channel::Channel;
use crate::destruction::destroy;
use crate::keys::{CONSUMERS, SUPPLIERS};
use crate::proxies::create_proxy;
use crate::registry::Registry;
use crate::store::ProxyKind;

/// A channel, as the servant of its own interface and those of its administrators.
#[derive(Clone, Debug)]
pub(crate) struct ChannelServant {
    pub(crate) channel: Arc<Channel>,
    pub(crate) registry: Arc<Registry>,
}

impl ChannelServant {
    /// Activates the channel and its administrators.
    pub(crate) fn activate(&self) -> Result<ObjectRef, SystemException> {
        self.channel.serve(Some(CONSUMERS), Arc::new(ConsumerAdminSkeleton::new(self.clone())))?;
        self.channel.serve(Some(SUPPLIERS), Arc::new(SupplierAdminSkeleton::new(self.clone())))?;
        self.channel.serve(None, Arc::new(EventChannelSkeleton::new(self.clone())))
    }

    pub(crate) fn part(&self, part: &str) -> Result<ObjectRef, SystemException> {
        Ok(self.channel.shared.adapter.id_to_reference(&self.channel.object_id(Some(part)))?)
    }
}

impl EventChannelServant for ChannelServant {
    fn for_consumers(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        Ok(Some(self.part(CONSUMERS)?.unchecked_narrow()))
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        Ok(Some(self.part(SUPPLIERS)?.unchecked_narrow()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        destroy(&self.registry, &self.channel)
    }
}

impl PullMonitorableServant for ChannelServant {
    fn is_alive(&self) -> Result<bool, SystemException> {
        Ok(true)
    }
}

impl OmniEventChannelServant for ChannelServant {}

impl ConsumerAdminServant for ChannelServant {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplier>, SystemException> {
        Ok(Some(create_proxy(&self.channel, ProxyKind::PushSupplier)?.unchecked_narrow()))
    }

    fn obtain_pull_supplier(&self) -> Result<Option<ProxyPullSupplier>, SystemException> {
        Ok(Some(create_proxy(&self.channel, ProxyKind::PullSupplier)?.unchecked_narrow()))
    }
}

impl SupplierAdminServant for ChannelServant {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumer>, SystemException> {
        Ok(Some(create_proxy(&self.channel, ProxyKind::PushConsumer)?.unchecked_narrow()))
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumer>, SystemException> {
        Ok(Some(create_proxy(&self.channel, ProxyKind::PullConsumer)?.unchecked_narrow()))
    }
}
