//! The interfaces of proxies for consumers: the proxy is a supplier.

use spandrel::net::sync::Arc;
use spandrel::server::{DeferredOperations, ServerCall, TakenRequest};
use spandrel::services::cos_event_channel_admin::proxy_pull_supplier::ConnectPullConsumerError;
use spandrel::services::cos_event_channel_admin::proxy_push_supplier::ConnectPushConsumerError;
use spandrel::services::cos_event_channel_admin::{self as event_service};
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::{self, PullConsumer, PushConsumer};
use spandrel::services::cos_notification::{EventType, NamedPropertyRange, Property, StructuredEvent};
use spandrel::services::cos_notify_channel_admin::proxy_supplier::ValidateEventQosError;
use spandrel::services::cos_notify_channel_admin::{
    AlreadyConnectedError, AlreadyConnectedOrTypeErrorError, ConnectionAlreadyActiveOrNotConnectedError as ResumeError,
    ConnectionAlreadyInactiveOrNotConnectedError as SuspendError, ConsumerAdmin, ObtainInfoMode,
    ProxyPullSupplierServant, ProxyPushSupplierServant, ProxySupplierServant, ProxyType,
    SequenceProxyPullSupplierServant, SequenceProxyPushSupplierServant, StructuredProxyPullSupplierServant,
    StructuredProxyPushSupplierServant,
};
use spandrel::services::cos_notify_comm::notify_subscribe::SubscriptionChangeError;
use spandrel::services::cos_notify_comm::{
    self, DisconnectedError, NotifySubscribeServant, SequencePullConsumer, SequencePullSupplierServant,
    SequencePushConsumer, SequencePushSupplierServant, StructuredPullConsumer, StructuredPullSupplierServant,
    StructuredPushConsumer, StructuredPushSupplierServant,
};
use spandrel::services::cos_notify_filter::MappingFilter;
use spandrel::types::{Any, Interface as _};
use spandrel::{CompletionStatus, SystemException};
use spandrel_delivery::no_event;

use crate::changed_member::Member;
use crate::filters::mapping_reference;
use crate::proxy::required;
use crate::servant::ProxyServant;
use crate::shared::{PullReply, ReplyForm, structured};

/// The number of events that a client demands.
fn batch_size(max_number: i32) -> Result<usize, SystemException> {
    usize::try_from(max_number).ok().filter(|number| *number > 0).ok_or_else(|| {
        SystemException::bad_param(0, CompletionStatus::No).with_detail("the number of events is not positive")
    })
}

impl ProxySupplierServant for ProxyServant {
    fn my_type(&self) -> Result<ProxyType, SystemException> {
        Ok(self.proxy.kind.proxy_type())
    }

    fn my_admin(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        Ok(Some(self.channel.reference(Some(&self.proxy.admin.name()))?.unchecked_narrow()))
    }

    fn priority_filter(&self) -> Result<Option<MappingFilter>, SystemException> {
        Ok(mapping_reference(&self.channel.shared.adapter, self.proxy.state.get().mappings.priority.as_ref()))
    }

    fn set_priority_filter(&self, value: Option<&MappingFilter>) -> Result<(), SystemException> {
        let shared = &self.channel.shared;
        let filter = shared.filters.mapping(&shared.adapter, value)?;
        self.channel.change(Member::Proxy(&self.proxy), |state| {
            state.mappings.priority = filter;
            Ok(())
        })
    }

    fn lifetime_filter(&self) -> Result<Option<MappingFilter>, SystemException> {
        Ok(mapping_reference(&self.channel.shared.adapter, self.proxy.state.get().mappings.lifetime.as_ref()))
    }

    fn set_lifetime_filter(&self, value: Option<&MappingFilter>) -> Result<(), SystemException> {
        let shared = &self.channel.shared;
        let filter = shared.filters.mapping(&shared.adapter, value)?;
        self.channel.change(Member::Proxy(&self.proxy), |state| {
            state.mappings.lifetime = filter;
            Ok(())
        })
    }

    fn obtain_offered_types(&self, mode: ObtainInfoMode) -> Result<Vec<EventType>, SystemException> {
        self.channel.obtain_types(&self.proxy, mode)
    }

    fn validate_event_qos(&self, required_qos: &[Property]) -> Result<Vec<NamedPropertyRange>, ValidateEventQosError> {
        self.validate_event(required_qos)
    }
}

impl NotifySubscribeServant for ProxyServant {
    fn subscription_change(&self, added: &[EventType], removed: &[EventType]) -> Result<(), SubscriptionChangeError> {
        Ok(self.channel.change_types(Member::Proxy(&self.proxy), added, removed)?)
    }
}

impl cos_event_comm::PushSupplierServant for ProxyServant {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl cos_event_comm::PullSupplierServant for ProxyServant {
    fn pull(&self) -> Result<Any, PullError> {
        let (event, has_event) = self.try_pull()?;
        if has_event { Ok(event) } else { Err(no_event().into()) }
    }

    fn try_pull(&self) -> Result<(Any, bool), TryPullError> {
        self.require_connected()?;
        let event = self.take(1)?.pop();
        Ok(event.map_or_else(|| (Any::default(), false), |event| (event.value.content.as_any().into_owned(), true)))
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl cos_notify_comm::PushSupplierServant for ProxyServant {}

impl cos_notify_comm::PullSupplierServant for ProxyServant {}

impl StructuredPushSupplierServant for ProxyServant {
    fn disconnect_structured_push_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl StructuredPullSupplierServant for ProxyServant {
    fn pull_structured_event(&self) -> Result<StructuredEvent, DisconnectedError> {
        let (event, has_event) = self.try_pull_structured_event()?;
        if has_event { Ok(event) } else { Err(no_event().into()) }
    }

    fn try_pull_structured_event(&self) -> Result<(StructuredEvent, bool), DisconnectedError> {
        self.require_connected()?;
        let event = structured(&self.take(1)?).pop();
        let has_event = event.is_some();
        Ok((event.unwrap_or_default(), has_event))
    }

    fn disconnect_structured_pull_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl SequencePushSupplierServant for ProxyServant {
    fn disconnect_sequence_push_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl SequencePullSupplierServant for ProxyServant {
    fn pull_structured_events(&self, max_number: i32) -> Result<Vec<StructuredEvent>, DisconnectedError> {
        let (events, has_event) = self.try_pull_structured_events(max_number)?;
        if has_event { Ok(events) } else { Err(no_event().into()) }
    }

    fn try_pull_structured_events(&self, max_number: i32) -> Result<(Vec<StructuredEvent>, bool), DisconnectedError> {
        self.require_connected()?;
        let events = structured(&self.take(batch_size(max_number)?)?);
        let has_event = !events.is_empty();
        Ok((events, has_event))
    }

    fn disconnect_sequence_pull_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl event_service::ProxyPushSupplierServant for ProxyServant {
    fn connect_push_consumer(&self, push_consumer: Option<&PushConsumer>) -> Result<(), ConnectPushConsumerError> {
        self.connect_called(push_consumer.map(|consumer| consumer.as_object()))
    }
}

impl event_service::ProxyPullSupplierServant for ProxyServant {
    fn connect_pull_consumer(&self, pull_consumer: Option<&PullConsumer>) -> Result<(), ConnectPullConsumerError> {
        self.connect(pull_consumer.map(|consumer| consumer.as_object()))
    }
}

impl ProxyPushSupplierServant for ProxyServant {
    fn connect_any_push_consumer(
        &self,
        push_consumer: Option<&PushConsumer>,
    ) -> Result<(), AlreadyConnectedOrTypeErrorError> {
        self.connect(Some(required(push_consumer)?.as_object()))
    }

    fn suspend_connection(&self) -> Result<(), SuspendError> {
        self.suspend()
    }

    fn resume_connection(&self) -> Result<(), ResumeError> {
        self.resume()
    }
}

impl StructuredProxyPushSupplierServant for ProxyServant {
    fn connect_structured_push_consumer(
        &self,
        push_consumer: Option<&StructuredPushConsumer>,
    ) -> Result<(), AlreadyConnectedOrTypeErrorError> {
        self.connect(Some(required(push_consumer)?.as_object()))
    }

    fn suspend_connection(&self) -> Result<(), SuspendError> {
        self.suspend()
    }

    fn resume_connection(&self) -> Result<(), ResumeError> {
        self.resume()
    }
}

impl SequenceProxyPushSupplierServant for ProxyServant {
    fn connect_sequence_push_consumer(
        &self,
        push_consumer: Option<&SequencePushConsumer>,
    ) -> Result<(), AlreadyConnectedOrTypeErrorError> {
        self.connect(Some(required(push_consumer)?.as_object()))
    }

    fn suspend_connection(&self) -> Result<(), SuspendError> {
        self.suspend()
    }

    fn resume_connection(&self) -> Result<(), ResumeError> {
        self.resume()
    }
}

impl ProxyPullSupplierServant for ProxyServant {
    fn connect_any_pull_consumer(&self, pull_consumer: Option<&PullConsumer>) -> Result<(), AlreadyConnectedError> {
        self.connect(pull_consumer.map(|consumer| consumer.as_object()))
    }
}

impl StructuredProxyPullSupplierServant for ProxyServant {
    fn connect_structured_pull_consumer(
        &self,
        pull_consumer: Option<&StructuredPullConsumer>,
    ) -> Result<(), AlreadyConnectedError> {
        self.connect(pull_consumer.map(|consumer| consumer.as_object()))
    }
}

impl SequenceProxyPullSupplierServant for ProxyServant {
    fn connect_sequence_pull_consumer(
        &self,
        pull_consumer: Option<&SequencePullConsumer>,
    ) -> Result<(), AlreadyConnectedError> {
        self.connect(pull_consumer.map(|consumer| consumer.as_object()))
    }
}

/// The pulls that wait for an event without a thread.
pub(crate) struct WaitingPulls(pub(crate) ProxyServant);

impl DeferredOperations for WaitingPulls {
    fn take<'m>(&self, mut call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException> {
        let proxy = &self.0.proxy;
        // An unconnected proxy answers by its skeleton.
        if !call.is_response_expected() || !proxy.connection.is_connected() {
            return Ok(TakenRequest::LeftToSkeleton(call));
        }
        let (reply, replied) = match call.operation() {
            "pull" => {
                let (reply, replied) = call.defer_reply::<Any, PullError>()?;
                (ReplyForm::Any(reply), replied)
            }
            "pull_structured_event" => {
                let (reply, replied) = call.defer_reply::<StructuredEvent, DisconnectedError>()?;
                (ReplyForm::Structured(reply), replied)
            }
            "pull_structured_events" => {
                let how_many = batch_size(call.arguments()?.i32()?)?;
                let (reply, replied) = call.defer_reply::<Vec<StructuredEvent>, DisconnectedError>()?;
                (ReplyForm::Sequence(reply, how_many), replied)
            }
            _ => return Ok(TakenRequest::LeftToSkeleton(call)),
        };
        proxy.pulled.acknowledge();
        let reply = PullReply { reply, pulled: Arc::clone(&proxy.pulled) };
        if let Some(ended) = proxy.queue.wait(reply) {
            self.0.channel.shared.replies.send(ended);
        }
        Ok(TakenRequest::Taken(replied))
    }
}
