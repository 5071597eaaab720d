//! The servant of a proxy, as far as all twelve interfaces of proxies agree.

use spandrel::net::sync::Arc;
use spandrel::server::{DeferringSkeleton, Servant};
use spandrel::services::cos_event_channel_admin::{self as event_service, AlreadyConnected};
use spandrel::services::cos_notification::qo_s_admin::{SetQosError, ValidateQosError};
use spandrel::services::cos_notification::{NamedPropertyRange, Property, QoSAdminServant, UnsupportedQoS};
use spandrel::services::cos_notify_channel_admin::{
    ConnectionAlreadyActive, ConnectionAlreadyInactive, NotConnected, ProxyPullConsumerSkeleton,
    ProxyPullSupplierSkeleton, ProxyPushConsumerSkeleton, ProxyPushSupplierSkeleton, SequenceProxyPullConsumerSkeleton,
    SequenceProxyPullSupplierSkeleton, SequenceProxyPushConsumerSkeleton, SequenceProxyPushSupplierSkeleton,
    StructuredProxyPullConsumerSkeleton, StructuredProxyPullSupplierSkeleton, StructuredProxyPushConsumerSkeleton,
    StructuredProxyPushSupplierSkeleton,
};
use spandrel::services::cos_notify_filter::filter_admin::{GetFilterError, RemoveFilterError};
use spandrel::services::cos_notify_filter::{Filter, FilterAdminServant};
use spandrel::{ObjectRef, SystemException};

use crate::channel::{Channel, DisconnectCause};
use crate::delivery::start_task;
use crate::for_consumers::WaitingPulls;
use crate::proxy::{EventForm, Proxy, ProxyKind, Side};
use crate::qos::{Level, Qos};

/// A proxy and its channel, as the servant of all interfaces of proxies.
#[derive(Clone, Debug)]
pub(crate) struct ProxyServant {
    pub(crate) channel: Arc<Channel>,
    pub(crate) proxy: Arc<Proxy>,
}

impl ProxyServant {
    /// Activates the proxy with its interface.
    pub(crate) fn activate(&self) -> Result<ObjectRef, SystemException> {
        let ProxyKind { side, is_push, form } = self.proxy.kind;
        let own = || self.clone();
        let servant: Arc<dyn Servant> = match (side, is_push, form) {
            (Side::Suppliers, true, EventForm::EventService) => {
                Arc::new(event_service::ProxyPushConsumerSkeleton::new(own()))
            }
            (Side::Suppliers, true, EventForm::Any) => Arc::new(ProxyPushConsumerSkeleton::new(own())),
            (Side::Suppliers, true, EventForm::Structured) => Arc::new(StructuredProxyPushConsumerSkeleton::new(own())),
            (Side::Suppliers, true, EventForm::Sequence) => Arc::new(SequenceProxyPushConsumerSkeleton::new(own())),
            (Side::Suppliers, false, EventForm::EventService) => {
                Arc::new(event_service::ProxyPullConsumerSkeleton::new(own()))
            }
            (Side::Suppliers, false, EventForm::Any) => Arc::new(ProxyPullConsumerSkeleton::new(own())),
            (Side::Suppliers, false, EventForm::Structured) => {
                Arc::new(StructuredProxyPullConsumerSkeleton::new(own()))
            }
            (Side::Suppliers, false, EventForm::Sequence) => Arc::new(SequenceProxyPullConsumerSkeleton::new(own())),
            (Side::Consumers, true, EventForm::EventService) => {
                Arc::new(event_service::ProxyPushSupplierSkeleton::new(own()))
            }
            (Side::Consumers, true, EventForm::Any) => Arc::new(ProxyPushSupplierSkeleton::new(own())),
            (Side::Consumers, true, EventForm::Structured) => Arc::new(StructuredProxyPushSupplierSkeleton::new(own())),
            (Side::Consumers, true, EventForm::Sequence) => Arc::new(SequenceProxyPushSupplierSkeleton::new(own())),
            (Side::Consumers, false, EventForm::EventService) => {
                let skeleton = event_service::ProxyPullSupplierSkeleton::new(own());
                Arc::new(DeferringSkeleton::new(skeleton, WaitingPulls(own())))
            }
            (Side::Consumers, false, EventForm::Any) => {
                Arc::new(DeferringSkeleton::new(ProxyPullSupplierSkeleton::new(own()), WaitingPulls(own())))
            }
            (Side::Consumers, false, EventForm::Structured) => {
                let skeleton = StructuredProxyPullSupplierSkeleton::new(own());
                Arc::new(DeferringSkeleton::new(skeleton, WaitingPulls(own())))
            }
            (Side::Consumers, false, EventForm::Sequence) => {
                let skeleton = SequenceProxyPullSupplierSkeleton::new(own());
                Arc::new(DeferringSkeleton::new(skeleton, WaitingPulls(own())))
            }
        };
        self.channel.serve(Some(&self.proxy.name()), servant)
    }

    /// Connects a peer, and starts its task.
    pub(crate) fn connect<E>(&self, peer: Option<&ObjectRef>) -> Result<(), E>
    where
        E: From<SystemException> + From<AlreadyConnected>,
    {
        let kind = self.proxy.kind;
        self.proxy.connection.connect::<E>(peer, || Ok(()), || {})?;
        let is_called = kind.is_push == (kind.side == Side::Consumers);
        match peer.filter(|_| is_called) {
            Some(peer) => Ok(start_task(&self.channel, &self.proxy, peer.clone())?),
            None => Ok(()),
        }
    }

    pub(crate) fn disconnect(&self) {
        self.channel.disconnect(&self.proxy, DisconnectCause::ByPeer);
    }

    pub(crate) fn suspend<E: From<ConnectionAlreadyInactive> + From<NotConnected>>(&self) -> Result<(), E> {
        if !self.proxy.connection.is_connected() {
            return Err(NotConnected {}.into());
        }
        if self.proxy.queue.set_suspended(true) { Ok(()) } else { Err(ConnectionAlreadyInactive {}.into()) }
    }

    pub(crate) fn resume<E: From<ConnectionAlreadyActive> + From<NotConnected>>(&self) -> Result<(), E> {
        if !self.proxy.connection.is_connected() {
            return Err(NotConnected {}.into());
        }
        if self.proxy.queue.set_suspended(false) { Ok(()) } else { Err(ConnectionAlreadyActive {}.into()) }
    }

    /// The ranges of the further properties that an event may have in its header.
    pub(crate) fn validate_event<E: From<UnsupportedQoS>>(
        &self,
        properties: &[Property],
    ) -> Result<Vec<NamedPropertyRange>, E> {
        Qos::default().with(properties, Level::Event)?;
        Ok(Qos::further_ranges(properties, Level::Event))
    }
}

impl QoSAdminServant for ProxyServant {
    fn get_qos(&self) -> Result<Vec<Property>, SystemException> {
        Ok(self.proxy.own_qos().or(&self.channel.qos.read()).properties(Level::Proxy))
    }

    fn set_qos(&self, qos: &[Property]) -> Result<(), SetQosError> {
        {
            let mut own = self.proxy.qos.write();
            *own = own.with(qos, Level::Proxy)?;
        }
        let channel = *self.channel.qos.read();
        self.proxy.apply_qos(&channel, &self.channel.shared.limits);
        Ok(())
    }

    fn validate_qos(&self, required_qos: &[Property]) -> Result<Vec<NamedPropertyRange>, ValidateQosError> {
        self.proxy.qos.read().with(required_qos, Level::Proxy)?;
        Ok(Qos::further_ranges(required_qos, Level::Proxy))
    }
}

impl FilterAdminServant for ProxyServant {
    fn add_filter(&self, new_filter: Option<&Filter>) -> Result<i32, SystemException> {
        self.proxy.filters.add(&self.channel.shared, new_filter)
    }

    fn remove_filter(&self, filter: i32) -> Result<(), RemoveFilterError> {
        Ok(self.proxy.filters.remove(filter)?)
    }

    fn get_filter(&self, filter: i32) -> Result<Option<Filter>, GetFilterError> {
        Ok(self.proxy.filters.get(&self.channel.shared, filter)?.map(|object| object.unchecked_narrow()))
    }

    fn get_all_filters(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.proxy.filters.ids())
    }

    fn remove_all_filters(&self) -> Result<(), SystemException> {
        self.proxy.filters.clear();
        Ok(())
    }
}
