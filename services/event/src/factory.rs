//! The factory of channels, with the interfaces of omniEvents.

use spandrel::net::sync::Arc;
use spandrel::poa::ObjectId;
use spandrel::services::cos_event_channel_admin::EventChannel;
use spandrel::services::cos_life_cycle::generic_factory::CreateObjectError;
use spandrel::services::cos_life_cycle::{GenericFactoryServant, InvalidCriteria, NoFactory, Nvp};
use spandrel::services::cos_naming::NameComponent;
use spandrel::services::event::event_channel_factory::{CreateChannelError, JoinChannelError};
use spandrel::services::event::{
    EventChannelFactoryServant as NamedChannelsServant, EventChannelNotFound, NameAlreadyUsed,
};
use spandrel::services::event_channel_admin::EventChannelFactoryServant as EarlierFactoryServant;
use spandrel::services::event_monitoring::{Monitor, MonitoredFactoryServant};
use spandrel::services::ft::PullMonitorableServant;
use spandrel::services::omni_events::EventChannelFactoryServant;
use spandrel::{ObjectRef, SystemException};

use crate::channels::{CreateError, create, find, reference};
use crate::keys::MONITOR_KEY;
use crate::registry::Registry;
use crate::settings::ChannelSettings;

/// The channels of a service, as its factory creates and finds them: in one process, or shared by several.
pub trait EventChannels: Send + Sync + 'static {
    /// Creates a channel; without a name in the settings it gets a number.
    ///
    /// # Errors
    /// A name that another channel has, or none can have; the exceptions of the service.
    fn create(&self, settings: ChannelSettings) -> Result<ObjectRef, CreateError>;

    /// Finds the channel with this name.
    ///
    /// # Errors
    /// The exceptions of the service.
    fn find(&self, name: &str) -> Result<Option<ObjectRef>, SystemException>;

    /// The object that lists the channels and their connections.
    ///
    /// # Errors
    /// The exceptions of the adapter.
    fn monitor(&self) -> Result<ObjectRef, SystemException>;
}

impl EventChannels for Arc<Registry> {
    fn create(&self, settings: ChannelSettings) -> Result<ObjectRef, CreateError> {
        create(self, settings)
    }

    fn find(&self, name: &str) -> Result<Option<ObjectRef>, SystemException> {
        find(self, name).map(|channel| reference(&channel)).transpose()
    }

    fn monitor(&self) -> Result<ObjectRef, SystemException> {
        Ok(self.shared.adapter.id_to_reference(&ObjectId::from(MONITOR_KEY))?)
    }
}

/// The servant of the generic factory (CosLifeCycle) by which clients create channels, as in omniEvents.
#[derive(Clone, Debug)]
pub struct FactoryServant<C>(pub C);

/// Whether it is the key of event channels: `EventChannel` with the kind `object interface`.
fn is_of_channels(key: &[NameComponent]) -> bool {
    matches!(key, [component] if component.id == "EventChannel" && component.kind == "object interface")
}

impl<C: EventChannels> GenericFactoryServant for FactoryServant<C> {
    fn supports(&self, k: &[NameComponent]) -> Result<bool, SystemException> {
        Ok(is_of_channels(k))
    }

    fn create_object(&self, k: &[NameComponent], the_criteria: &[Nvp]) -> Result<Option<ObjectRef>, CreateObjectError> {
        if !is_of_channels(k) {
            return Err(NoFactory { search_key: k.to_vec() }.into());
        }
        let settings = ChannelSettings::from_criteria(the_criteria)?;
        match self.0.create(settings) {
            Ok(object) => Ok(Some(object)),
            // As omniEvents does for a name that another channel has.
            Err(CreateError::Name) => {
                let name = the_criteria.iter().filter(|criterion| criterion.name == "InsName").cloned().collect();
                Err(InvalidCriteria { invalid_criteria: name }.into())
            }
            Err(CreateError::System(exception)) => Err(exception.into()),
        }
    }
}

impl<C: EventChannels> PullMonitorableServant for FactoryServant<C> {
    fn is_alive(&self) -> Result<bool, SystemException> {
        Ok(true)
    }
}

impl<C: EventChannels> EarlierFactoryServant for FactoryServant<C> {}

impl<C: EventChannels> NamedChannelsServant for FactoryServant<C> {
    fn create_channel(&self, channel_name: &str) -> Result<Option<EventChannel>, CreateChannelError> {
        let settings = ChannelSettings { name: Some(channel_name.to_owned()), ..ChannelSettings::default() };
        match self.0.create(settings) {
            Ok(object) => Ok(Some(object.unchecked_narrow())),
            Err(CreateError::Name) => Err(NameAlreadyUsed {}.into()),
            Err(CreateError::System(exception)) => Err(exception.into()),
        }
    }

    fn join_channel(&self, channel_name: &str) -> Result<Option<EventChannel>, JoinChannelError> {
        let channel = self.0.find(channel_name)?.ok_or(EventChannelNotFound {})?;
        Ok(Some(channel.unchecked_narrow()))
    }
}

impl<C: EventChannels> EventChannelFactoryServant for FactoryServant<C> {}

impl<C: EventChannels> MonitoredFactoryServant for FactoryServant<C> {
    fn event_monitor(&self) -> Result<Option<Monitor>, SystemException> {
        Ok(Some(self.0.monitor()?.unchecked_narrow()))
    }
}
