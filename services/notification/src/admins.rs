//! The servants of administrators.

use spandrel::net::sync::Arc;
use spandrel::server::Servant;
use spandrel::services::cos_event_channel_admin::{
    self as event_service, ProxyPullConsumer, ProxyPullSupplier, ProxyPushConsumer, ProxyPushSupplier,
};
use spandrel::services::cos_notification::qo_s_admin::{SetQosError, ValidateQosError};
use spandrel::services::cos_notification::{EventType, NamedPropertyRange, Property, QoSAdminServant};
use spandrel::services::cos_notify_channel_admin::{
    AdminLimitExceeded, AdminLimitExceededError, ClientType, ConsumerAdminServant, ConsumerAdminSkeleton, EventChannel,
    InterFilterGroupOperator, ProxyConsumer, ProxyNotFound, ProxyNotFoundError, ProxySupplier, SupplierAdminServant,
    SupplierAdminSkeleton,
};
use spandrel::services::cos_notify_comm::notify_publish::OfferChangeError;
use spandrel::services::cos_notify_comm::{NotifyPublishServant, NotifySubscribeServant};
use spandrel::services::cos_notify_filter::filter_admin::{GetFilterError, RemoveFilterError};
use spandrel::services::cos_notify_filter::{Filter, FilterAdminServant, MappingFilter};
use spandrel::services::cos_typed_notify_channel_admin::{TypedConsumerAdminSkeleton, TypedSupplierAdminSkeleton};
use spandrel::{CompletionStatus, ObjectRef, SystemException};

use crate::activation::activate;
use crate::admin::Admin;
use crate::changed_member::Member;
use crate::channel::Channel;
use crate::event_interface::EventInterface;
use crate::filters::mapping_reference;
use crate::kind::{EventForm, ProxyKind, Side};
use crate::qos::{Level, Qos};
use crate::servant::ProxyServant;

/// An administrator and its channel.
#[derive(Clone, Debug)]
pub(crate) struct AdminServant {
    pub(crate) channel: Arc<Channel>,
    pub(crate) admin: Arc<Admin>,
}

/// Both exceptions of the creation of a proxy, where the operation of the event service has none for bounds.
struct CreateError(SystemException);

impl From<AdminLimitExceeded> for CreateError {
    fn from(error: AdminLimitExceeded) -> Self {
        let detail = move || format!("the channel has reached its {}", error.admin_property_err.name);
        Self(SystemException::imp_limit(0, CompletionStatus::No).with_detail(detail))
    }
}

impl From<SystemException> for CreateError {
    fn from(exception: SystemException) -> Self {
        Self(exception)
    }
}

impl AdminServant {
    pub(crate) fn activate(&self) -> Result<ObjectRef, SystemException> {
        let (part, typed) = (self.admin.name(), self.admin.typed_part());
        let typed_servant: Arc<dyn Servant> = match self.admin.side {
            Side::Suppliers => Arc::new(TypedSupplierAdminSkeleton::new(self.clone())),
            Side::Consumers => Arc::new(TypedConsumerAdminSkeleton::new(self.clone())),
        };
        self.channel.serve(Some(&typed), typed_servant)?;
        match self.admin.side {
            Side::Suppliers => self.channel.serve(Some(&part), Arc::new(SupplierAdminSkeleton::new(self.clone()))),
            Side::Consumers => self.channel.serve(Some(&part), Arc::new(ConsumerAdminSkeleton::new(self.clone()))),
        }
    }

    pub(crate) fn create<E: From<AdminLimitExceeded> + From<SystemException>>(
        &self,
        is_push: bool,
        form: EventForm,
        interface: Option<Arc<EventInterface>>,
    ) -> Result<(ObjectRef, i32), E> {
        let kind = ProxyKind { side: self.admin.side, is_push, form };
        let proxy = self.channel.add_proxy::<E>(&self.admin, kind, interface)?;
        let id = proxy.id;
        Ok((activate(&ProxyServant { channel: Arc::clone(&self.channel), proxy })?, id))
    }

    pub(crate) fn create_plain(
        &self,
        is_push: bool,
        interface: Option<Arc<EventInterface>>,
    ) -> Result<ObjectRef, SystemException> {
        let created = self.create::<CreateError>(is_push, EventForm::EventService, interface);
        created.map(|(object, _)| object).map_err(|CreateError(exception)| exception)
    }

    fn proxy(&self, id: i32) -> Result<ObjectRef, ProxyNotFoundError> {
        let proxy = self.channel.proxy(&self.admin, id).filter(|proxy| proxy.kind.form != EventForm::EventService);
        Ok(self.channel.reference(Some(&proxy.ok_or(ProxyNotFound {})?.name()))?)
    }
}

impl QoSAdminServant for AdminServant {
    fn get_qos(&self) -> Result<Vec<Property>, SystemException> {
        Ok(self.admin.state.get().qos.or(&self.channel.qos.read()).properties(Level::Administrator))
    }

    fn set_qos(&self, qos: &[Property]) -> Result<(), SetQosError> {
        self.channel.change(Member::Admin(&self.admin), |state| {
            state.qos = state.qos.with(qos, Level::Administrator, self.channel.reliability())?;
            Ok(())
        })
    }

    fn validate_qos(&self, required_qos: &[Property]) -> Result<Vec<NamedPropertyRange>, ValidateQosError> {
        let reliability = self.channel.reliability();
        self.admin.state.get().qos.with(required_qos, Level::Administrator, reliability)?;
        Ok(Qos::further_ranges(required_qos, Level::Administrator, reliability))
    }
}

impl FilterAdminServant for AdminServant {
    fn add_filter(&self, new_filter: Option<&Filter>) -> Result<i32, SystemException> {
        let shared = &self.channel.shared;
        let filter = shared.filters.plain(&shared.adapter, new_filter)?;
        self.channel.change(Member::Admin(&self.admin), |state| state.filters.add(&shared.filter_bounds, filter))
    }

    fn remove_filter(&self, filter: i32) -> Result<(), RemoveFilterError> {
        self.channel.change(Member::Admin(&self.admin), |state| Ok(state.filters.remove(filter)?))
    }

    fn get_filter(&self, filter: i32) -> Result<Option<Filter>, GetFilterError> {
        let filters = &self.admin.state.get().filters;
        Ok(filters.get(&self.channel.shared.adapter, filter)?.map(|object| object.unchecked_narrow()))
    }

    fn get_all_filters(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.admin.state.get().filters.ids())
    }

    fn remove_all_filters(&self) -> Result<(), SystemException> {
        self.channel.change(Member::Admin(&self.admin), |state| {
            state.filters.clear();
            Ok(())
        })
    }
}

impl NotifySubscribeServant for AdminServant {
    fn subscription_change(&self, added: &[EventType], removed: &[EventType]) -> Result<(), OfferChangeError> {
        Ok(self.channel.change_types(Member::Admin(&self.admin), added, removed)?)
    }
}

impl NotifyPublishServant for AdminServant {
    fn offer_change(&self, added: &[EventType], removed: &[EventType]) -> Result<(), OfferChangeError> {
        Ok(self.channel.change_types(Member::Admin(&self.admin), added, removed)?)
    }
}

impl event_service::ConsumerAdminServant for AdminServant {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplier>, SystemException> {
        Ok(Some(self.create_plain(true, None)?.unchecked_narrow()))
    }

    fn obtain_pull_supplier(&self) -> Result<Option<ProxyPullSupplier>, SystemException> {
        Ok(Some(self.create_plain(false, None)?.unchecked_narrow()))
    }
}

impl event_service::SupplierAdminServant for AdminServant {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumer>, SystemException> {
        Ok(Some(self.create_plain(true, None)?.unchecked_narrow()))
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumer>, SystemException> {
        Ok(Some(self.create_plain(false, None)?.unchecked_narrow()))
    }
}

impl ConsumerAdminServant for AdminServant {
    fn my_id(&self) -> Result<i32, SystemException> {
        Ok(self.admin.id)
    }

    fn my_channel(&self) -> Result<Option<EventChannel>, SystemException> {
        Ok(Some(self.channel.reference(None)?.unchecked_narrow()))
    }

    fn my_operator(&self) -> Result<InterFilterGroupOperator, SystemException> {
        Ok(self.admin.operator)
    }

    fn priority_filter(&self) -> Result<Option<MappingFilter>, SystemException> {
        Ok(mapping_reference(&self.channel.shared.adapter, self.admin.state.get().mappings.priority.as_ref()))
    }

    fn set_priority_filter(&self, value: Option<&MappingFilter>) -> Result<(), SystemException> {
        let shared = &self.channel.shared;
        let filter = shared.filters.mapping(&shared.adapter, value)?;
        self.channel.change(Member::Admin(&self.admin), |state| {
            state.mappings.priority = filter;
            Ok(())
        })
    }

    fn lifetime_filter(&self) -> Result<Option<MappingFilter>, SystemException> {
        Ok(mapping_reference(&self.channel.shared.adapter, self.admin.state.get().mappings.lifetime.as_ref()))
    }

    fn set_lifetime_filter(&self, value: Option<&MappingFilter>) -> Result<(), SystemException> {
        let shared = &self.channel.shared;
        let filter = shared.filters.mapping(&shared.adapter, value)?;
        self.channel.change(Member::Admin(&self.admin), |state| {
            state.mappings.lifetime = filter;
            Ok(())
        })
    }

    fn pull_suppliers(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.channel.proxy_ids(&self.admin, false))
    }

    fn push_suppliers(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.channel.proxy_ids(&self.admin, true))
    }

    fn get_proxy_supplier(&self, proxy_id: i32) -> Result<Option<ProxySupplier>, ProxyNotFoundError> {
        Ok(Some(self.proxy(proxy_id)?.unchecked_narrow()))
    }

    fn obtain_notification_pull_supplier(
        &self,
        ctype: ClientType,
    ) -> Result<(Option<ProxySupplier>, i32), AdminLimitExceededError> {
        let (object, id) = self.create::<AdminLimitExceededError>(false, ctype.into(), None)?;
        Ok((Some(object.unchecked_narrow()), id))
    }

    fn obtain_notification_push_supplier(
        &self,
        ctype: ClientType,
    ) -> Result<(Option<ProxySupplier>, i32), AdminLimitExceededError> {
        let (object, id) = self.create::<AdminLimitExceededError>(true, ctype.into(), None)?;
        Ok((Some(object.unchecked_narrow()), id))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.channel.destroy_admin(&self.admin)
    }
}

impl SupplierAdminServant for AdminServant {
    fn my_id(&self) -> Result<i32, SystemException> {
        Ok(self.admin.id)
    }

    fn my_channel(&self) -> Result<Option<EventChannel>, SystemException> {
        Ok(Some(self.channel.reference(None)?.unchecked_narrow()))
    }

    fn my_operator(&self) -> Result<InterFilterGroupOperator, SystemException> {
        Ok(self.admin.operator)
    }

    fn pull_consumers(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.channel.proxy_ids(&self.admin, false))
    }

    fn push_consumers(&self) -> Result<Vec<i32>, SystemException> {
        Ok(self.channel.proxy_ids(&self.admin, true))
    }

    fn get_proxy_consumer(&self, proxy_id: i32) -> Result<Option<ProxyConsumer>, ProxyNotFoundError> {
        Ok(Some(self.proxy(proxy_id)?.unchecked_narrow()))
    }

    fn obtain_notification_pull_consumer(
        &self,
        ctype: ClientType,
    ) -> Result<(Option<ProxyConsumer>, i32), AdminLimitExceededError> {
        let (object, id) = self.create::<AdminLimitExceededError>(false, ctype.into(), None)?;
        Ok((Some(object.unchecked_narrow()), id))
    }

    fn obtain_notification_push_consumer(
        &self,
        ctype: ClientType,
    ) -> Result<(Option<ProxyConsumer>, i32), AdminLimitExceededError> {
        let (object, id) = self.create::<AdminLimitExceededError>(true, ctype.into(), None)?;
        Ok((Some(object.unchecked_narrow()), id))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.channel.destroy_admin(&self.admin)
    }
}
