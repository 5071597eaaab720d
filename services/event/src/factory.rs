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

/// The servant of the factory.
#[derive(Clone, Debug)]
pub(crate) struct FactoryServant(pub(crate) Arc<Registry>);

/// Whether it is the key of event channels: `EventChannel` with the kind `object interface`.
fn is_of_channels(key: &[NameComponent]) -> bool {
    matches!(key, [component] if component.id == "EventChannel" && component.kind == "object interface")
}

impl GenericFactoryServant for FactoryServant {
    fn supports(&self, k: &[NameComponent]) -> Result<bool, SystemException> {
        Ok(is_of_channels(k))
    }

    fn create_object(&self, k: &[NameComponent], the_criteria: &[Nvp]) -> Result<Option<ObjectRef>, CreateObjectError> {
        if !is_of_channels(k) {
            return Err(NoFactory { search_key: k.to_vec() }.into());
        }
        let settings = ChannelSettings::from_criteria(the_criteria)?;
        match create(&self.0, settings) {
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

impl PullMonitorableServant for FactoryServant {
    fn is_alive(&self) -> Result<bool, SystemException> {
        Ok(true)
    }
}

impl EarlierFactoryServant for FactoryServant {}

impl NamedChannelsServant for FactoryServant {
    fn create_channel(&self, channel_name: &str) -> Result<Option<EventChannel>, CreateChannelError> {
        let settings = ChannelSettings { name: Some(channel_name.to_owned()), ..ChannelSettings::default() };
        match create(&self.0, settings) {
            Ok(object) => Ok(Some(object.unchecked_narrow())),
            Err(CreateError::Name) => Err(NameAlreadyUsed {}.into()),
            Err(CreateError::System(exception)) => Err(exception.into()),
        }
    }

    fn join_channel(&self, channel_name: &str) -> Result<Option<EventChannel>, JoinChannelError> {
        let channel = find(&self.0, channel_name).ok_or(EventChannelNotFound {})?;
        Ok(Some(reference(&channel)?.unchecked_narrow()))
    }
}

impl EventChannelFactoryServant for FactoryServant {}

impl MonitoredFactoryServant for FactoryServant {
    fn event_monitor(&self) -> Result<Option<Monitor>, SystemException> {
        let id = ObjectId::from(MONITOR_KEY);
        Ok(Some(self.0.shared.adapter.id_to_reference(&id)?.unchecked_narrow()))
    }
}
