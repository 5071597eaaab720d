//! The servant of a proxy, as far as all interfaces of proxies agree.

use spandrel::net::sync::Arc;
use spandrel::services::cos_event_channel_admin::AlreadyConnected;
use spandrel::services::cos_event_comm::Disconnected;
use spandrel::services::cos_notification::qo_s_admin::{SetQosError, ValidateQosError};
use spandrel::services::cos_notification::{NamedPropertyRange, Property, QoSAdminServant, UnsupportedQoS};
use spandrel::services::cos_notify_channel_admin::{ConnectionAlreadyActive, ConnectionAlreadyInactive, NotConnected};
use spandrel::services::cos_notify_filter::filter_admin::{GetFilterError, RemoveFilterError};
use spandrel::services::cos_notify_filter::{Filter, FilterAdminServant};
use spandrel::{ObjectRef, SystemException};

use crate::channel::{Channel, DisconnectCause};
use crate::delivery::start_task;
use crate::kind::Side;
use crate::notification::Content;
use crate::proxy::Proxy;
use crate::qos::{Level, Qos};

/// A proxy and its channel, as the servant of all interfaces of proxies.
#[derive(Clone, Debug)]
pub(crate) struct ProxyServant {
    pub(crate) channel: Arc<Channel>,
    pub(crate) proxy: Arc<Proxy>,
}

impl ProxyServant {
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

    /// Passes an event of the supplier to the channel.
    pub(crate) fn receive<E: From<Disconnected> + From<SystemException>>(&self, content: Content) -> Result<(), E> {
        if !self.proxy.connection.is_connected() {
            return Err(Disconnected {}.into());
        }
        Ok(self.channel.receive(&self.proxy, content)?)
    }

    pub(crate) fn require_connected(&self) -> Result<(), Disconnected> {
        if self.proxy.connection.is_connected() { Ok(()) } else { Err(Disconnected {}) }
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
        let shared = &self.channel.shared;
        self.proxy.filters.add(&shared.filters, &shared.adapter, &shared.filter_bounds, new_filter)
    }

    fn remove_filter(&self, filter: i32) -> Result<(), RemoveFilterError> {
        Ok(self.proxy.filters.remove(filter)?)
    }

    fn get_filter(&self, filter: i32) -> Result<Option<Filter>, GetFilterError> {
        Ok(self.proxy.filters.get(&self.channel.shared.adapter, filter)?.map(|object| object.unchecked_narrow()))
    }

    fn get_all_filters(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.proxy.filters.ids())
    }

    fn remove_all_filters(&self) -> Result<(), SystemException> {
        self.proxy.filters.clear();
        Ok(())
    }
}
