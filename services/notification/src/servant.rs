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
use spandrel_delivery::Event;

use crate::changed_member::Member;
use crate::channel::{Channel, DisconnectCause};
use crate::content::Content;
use crate::delivery::{CalledPeer, start_task};
use crate::notification::Notification;
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
        self.connect_with(peer, peer.cloned().map(CalledPeer::Own))
    }

    /// Connects a peer with the object that is called.
    pub(crate) fn connect_with<E>(&self, peer: Option<&ObjectRef>, called: Option<CalledPeer>) -> Result<(), E>
    where
        E: From<SystemException> + From<AlreadyConnected>,
    {
        let store = || self.channel.store_connection(&self.proxy, peer);
        self.proxy.connection.connect::<E>(peer, store, || self.channel.forget_connection(&self.proxy))?;
        Ok(self.start_task(called)?)
    }

    /// Starts the task of a connected peer that is called.
    pub(crate) fn start_task(&self, called: Option<CalledPeer>) -> Result<(), SystemException> {
        match called.filter(|_| !self.proxy.kind.is_called()) {
            Some(called) => start_task(&self.channel, &self.proxy, called),
            None => Ok(()),
        }
    }

    /// Ends the connection, durably, by a call of the peer.
    pub(crate) fn disconnect(&self) -> Result<(), SystemException> {
        self.channel.remove_connection(&self.proxy)?;
        self.channel.disconnect(&self.proxy, DisconnectCause::ByPeer);
        Ok(())
    }

    /// The next events for a consumer that pulls; those before are acknowledged.
    pub(crate) fn take(&self, how_many: usize) -> Result<Vec<Arc<Event<Notification>>>, Disconnected> {
        self.proxy.pulled.acknowledge();
        let events = self.proxy.queue.take(how_many)?;
        self.proxy.pulled.keep(&events);
        Ok(events)
    }

    pub(crate) fn suspend<E>(&self) -> Result<(), E>
    where
        E: From<ConnectionAlreadyInactive> + From<NotConnected> + From<SystemException>,
    {
        self.set_suspended(true, || ConnectionAlreadyInactive {}.into())
    }

    pub(crate) fn resume<E>(&self) -> Result<(), E>
    where
        E: From<ConnectionAlreadyActive> + From<NotConnected> + From<SystemException>,
    {
        self.set_suspended(false, || ConnectionAlreadyActive {}.into())
    }

    fn set_suspended<E>(&self, is_suspended: bool, unchanged: impl FnOnce() -> E) -> Result<(), E>
    where
        E: From<NotConnected> + From<SystemException>,
    {
        if !self.proxy.connection.is_connected() {
            return Err(NotConnected {}.into());
        }
        self.channel.change(Member::Proxy(&self.proxy), |state| {
            if state.is_suspended == is_suspended {
                return Err(unchanged());
            }
            state.is_suspended = is_suspended;
            Ok(())
        })
    }

    /// The ranges of the further properties that an event may have in its header.
    pub(crate) fn validate_event<E: From<UnsupportedQoS>>(
        &self,
        properties: &[Property],
    ) -> Result<Vec<NamedPropertyRange>, E> {
        let reliability = self.channel.reliability();
        Qos::default().with(properties, Level::Event, reliability)?;
        Ok(Qos::further_ranges(properties, Level::Event, reliability))
    }

    /// Passes events of the supplier to the channel, in their order, up to the first that the channel refuses.
    pub(crate) fn receive<E: From<Disconnected> + From<SystemException>>(&self, events: Vec<Content>) -> Result<(), E> {
        self.require_connected()?;
        Ok(self.channel.receive(&self.proxy, events)?)
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
        self.channel.change(Member::Proxy(&self.proxy), |state| {
            state.qos = state.qos.with(qos, Level::Proxy, self.channel.reliability())?;
            Ok(())
        })
    }

    fn validate_qos(&self, required_qos: &[Property]) -> Result<Vec<NamedPropertyRange>, ValidateQosError> {
        let reliability = self.channel.reliability();
        self.proxy.state.get().qos.with(required_qos, Level::Proxy, reliability)?;
        Ok(Qos::further_ranges(required_qos, Level::Proxy, reliability))
    }
}

impl FilterAdminServant for ProxyServant {
    fn add_filter(&self, new_filter: Option<&Filter>) -> Result<i32, SystemException> {
        let shared = &self.channel.shared;
        let filter = shared.filters.plain(&shared.adapter, new_filter)?;
        self.channel.change(Member::Proxy(&self.proxy), |state| state.filters.add(&shared.filter_bounds, filter))
    }

    fn remove_filter(&self, filter: i32) -> Result<(), RemoveFilterError> {
        self.channel.change(Member::Proxy(&self.proxy), |state| Ok(state.filters.remove(filter)?))
    }

    fn get_filter(&self, filter: i32) -> Result<Option<Filter>, GetFilterError> {
        let filters = &self.proxy.state.get().filters;
        Ok(filters.get(&self.channel.shared.adapter, filter)?.map(|object| object.unchecked_narrow()))
    }

    fn get_all_filters(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.proxy.state.get().filters.ids())
    }

    fn remove_all_filters(&self) -> Result<(), SystemException> {
        self.channel.change(Member::Proxy(&self.proxy), |state| {
            state.filters.clear();
            Ok(())
        })
    }
}
