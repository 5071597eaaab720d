//! The servants of channels and of their factory.

use spandrel::net::sync::Arc;
use spandrel::poa::ObjectId;
use spandrel::services::cos_event_channel_admin as event_service;
use spandrel::services::cos_notification::admin_properties_admin::SetAdminError;
use spandrel::services::cos_notification::qo_s_admin::{SetQosError, ValidateQosError};
use spandrel::services::cos_notification::{
    AdminPropertiesAdminServant, NamedPropertyRange, Property, QoSAdminServant, UnsupportedAdmin, UnsupportedQoS,
};
use spandrel::services::cos_notify_channel_admin::event_channel_factory::{CreateChannelError, GetEventChannelError};
use spandrel::services::cos_notify_channel_admin::{
    AdminNotFound, AdminNotFoundError, ChannelNotFound, ConsumerAdmin, EventChannel, EventChannelFactory,
    EventChannelFactoryServant, EventChannelServant, EventChannelSkeleton, InterFilterGroupOperator, SupplierAdmin,
};
use spandrel::services::cos_notify_filter::FilterFactory;
use spandrel::services::cos_typed_notify_channel_admin::TypedEventChannelSkeleton;
use spandrel::services::event_monitoring::Monitor;
use spandrel::services::notification_monitoring::MonitoredFactoryServant;
use spandrel::{CompletionStatus, ObjectRef, SystemException};

use crate::admin::Admin;
use crate::admin_properties::AdminSettings;
use crate::admins::AdminServant;
use crate::channel::Channel;
use crate::keys::{FACTORY_KEY, FILTERS, MONITOR, TYPED};
use crate::kind::Side;
use crate::members::DEFAULT_ADMIN;
use crate::qos::{Level, Qos, Reliability};
use crate::records::ChannelRecord;
use crate::registry::Registry;

/// Creates and serves a channel with its default administrators.
pub(crate) fn create_channel(
    registry: &Arc<Registry>,
    record: ChannelRecord,
) -> Result<(ObjectRef, Arc<Channel>), SystemException> {
    let channel = registry.add(record)?;
    Ok((serve_channel(registry, &channel)?, channel))
}

/// Activates a channel with its default administrators.
pub(crate) fn serve_channel(registry: &Arc<Registry>, channel: &Arc<Channel>) -> Result<ObjectRef, SystemException> {
    for side in [Side::Suppliers, Side::Consumers] {
        if let Some(admin) = channel.admin(side, DEFAULT_ADMIN) {
            AdminServant { channel: Arc::clone(channel), admin }.activate()?;
        }
    }
    let servant = ChannelServant { channel: Arc::clone(channel), registry: Arc::clone(registry) };
    channel.serve(Some(TYPED), Arc::new(TypedEventChannelSkeleton::new(servant.clone())))?;
    channel.serve(None, Arc::new(EventChannelSkeleton::new(servant)))
}

/// A channel, as the servant of its interface.
#[derive(Clone, Debug)]
pub(crate) struct ChannelServant {
    pub(crate) channel: Arc<Channel>,
    pub(crate) registry: Arc<Registry>,
}

impl ChannelServant {
    fn admin(&self, side: Side, id: i32) -> Result<ObjectRef, AdminNotFoundError> {
        let admin = self.channel.admin(side, id).ok_or(AdminNotFound {})?;
        Ok(self.channel.reference(Some(&admin.name()))?)
    }

    /// The reliability that the channel can have.
    fn reliability(&self) -> Reliability {
        self.registry.shared.reliability()
    }

    fn default_admin(&self, side: Side) -> Result<ObjectRef, SystemException> {
        let is_gone = || SystemException::object_not_exist(0, CompletionStatus::No);
        let admin = self.channel.admin(side, DEFAULT_ADMIN).ok_or_else(is_gone)?;
        self.channel.reference(Some(&admin.name()))
    }

    pub(crate) fn create_admin(
        &self,
        side: Side,
        operator: InterFilterGroupOperator,
    ) -> Result<(ObjectRef, Arc<Admin>), SystemException> {
        let admin = self.channel.add_admin(side, operator)?;
        let servant = AdminServant { channel: Arc::clone(&self.channel), admin: Arc::clone(&admin) };
        Ok((servant.activate()?, admin))
    }

    pub(crate) fn filter_factory(&self) -> Result<Option<FilterFactory>, SystemException> {
        let id = ObjectId::from(FILTERS);
        Ok(Some(self.registry.shared.adapter.id_to_reference(&id)?.unchecked_narrow()))
    }
}

impl QoSAdminServant for ChannelServant {
    fn get_qos(&self) -> Result<Vec<Property>, SystemException> {
        Ok(self.channel.qos.read().properties(Level::Channel))
    }

    fn set_qos(&self, qos: &[Property]) -> Result<(), SetQosError> {
        self.channel.change_qos(|before| Ok(before.with(qos, Level::Channel, self.reliability())?))
    }

    fn validate_qos(&self, required_qos: &[Property]) -> Result<Vec<NamedPropertyRange>, ValidateQosError> {
        let reliability = self.reliability();
        self.channel.qos.read().with(required_qos, Level::Channel, reliability)?;
        Ok(Qos::further_ranges(required_qos, Level::Channel, reliability))
    }
}

impl AdminPropertiesAdminServant for ChannelServant {
    fn get_admin(&self) -> Result<Vec<Property>, SystemException> {
        Ok(self.channel.settings.read().properties())
    }

    fn set_admin(&self, admin: &[Property]) -> Result<(), SetAdminError> {
        self.channel.change_settings(|settings| Ok(settings.with(admin)?))
    }
}

impl event_service::EventChannelServant for ChannelServant {
    fn for_consumers(&self) -> Result<Option<event_service::ConsumerAdmin>, SystemException> {
        Ok(Some(self.default_admin(Side::Consumers)?.unchecked_narrow()))
    }

    fn for_suppliers(&self) -> Result<Option<event_service::SupplierAdmin>, SystemException> {
        Ok(Some(self.default_admin(Side::Suppliers)?.unchecked_narrow()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.registry.destroy(&self.channel)
    }
}

impl EventChannelServant for ChannelServant {
    fn my_factory(&self) -> Result<Option<EventChannelFactory>, SystemException> {
        let id = ObjectId::from(FACTORY_KEY);
        Ok(Some(self.registry.shared.adapter.id_to_reference(&id)?.unchecked_narrow()))
    }

    fn default_consumer_admin(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        Ok(Some(self.default_admin(Side::Consumers)?.unchecked_narrow()))
    }

    fn default_supplier_admin(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        Ok(Some(self.default_admin(Side::Suppliers)?.unchecked_narrow()))
    }

    fn default_filter_factory(&self) -> Result<Option<FilterFactory>, SystemException> {
        self.filter_factory()
    }

    fn new_for_consumers(&self, op: InterFilterGroupOperator) -> Result<(Option<ConsumerAdmin>, i32), SystemException> {
        let (object, admin) = self.create_admin(Side::Consumers, op)?;
        Ok((Some(object.unchecked_narrow()), admin.id))
    }

    fn new_for_suppliers(&self, op: InterFilterGroupOperator) -> Result<(Option<SupplierAdmin>, i32), SystemException> {
        let (object, admin) = self.create_admin(Side::Suppliers, op)?;
        Ok((Some(object.unchecked_narrow()), admin.id))
    }

    fn get_consumeradmin(&self, id: i32) -> Result<Option<ConsumerAdmin>, AdminNotFoundError> {
        Ok(Some(self.admin(Side::Consumers, id)?.unchecked_narrow()))
    }

    fn get_supplieradmin(&self, id: i32) -> Result<Option<SupplierAdmin>, AdminNotFoundError> {
        Ok(Some(self.admin(Side::Suppliers, id)?.unchecked_narrow()))
    }

    fn get_all_consumeradmins(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.channel.admin_ids(Side::Consumers))
    }

    fn get_all_supplieradmins(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.channel.admin_ids(Side::Suppliers))
    }
}

/// The servant of the factory of channels.
#[derive(Clone, Debug)]
pub(crate) struct FactoryServant(pub(crate) Arc<Registry>);

impl FactoryServant {
    /// Creates a channel with these properties.
    pub(crate) fn create<E: From<UnsupportedQoS> + From<UnsupportedAdmin> + From<SystemException>>(
        &self,
        initial_qos: &[Property],
        initial_admin: &[Property],
    ) -> Result<(ObjectRef, Arc<Channel>), E> {
        let qos = Qos::default().with(initial_qos, Level::Channel, self.0.shared.reliability())?;
        let settings = AdminSettings::default().with(initial_admin)?;
        Ok(create_channel(&self.0, ChannelRecord { qos, settings, ..ChannelRecord::default() })?)
    }
}

impl EventChannelFactoryServant for FactoryServant {
    fn create_channel(
        &self,
        initial_qos: &[Property],
        initial_admin: &[Property],
    ) -> Result<(Option<EventChannel>, i32), CreateChannelError> {
        let (object, channel) = self.create::<CreateChannelError>(initial_qos, initial_admin)?;
        Ok((Some(object.unchecked_narrow()), channel.id))
    }

    fn get_all_channels(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.0.all().iter().map(|channel| channel.id).collect())
    }

    fn get_event_channel(&self, id: i32) -> Result<Option<EventChannel>, GetEventChannelError> {
        let channel = self.0.get(id).ok_or(ChannelNotFound {})?;
        Ok(Some(channel.reference(None)?.unchecked_narrow()))
    }
}

impl MonitoredFactoryServant for FactoryServant {
    fn event_monitor(&self) -> Result<Option<Monitor>, SystemException> {
        let id = ObjectId::from(MONITOR);
        Ok(Some(self.0.shared.adapter.id_to_reference(&id)?.unchecked_narrow()))
    }
}
