//! The interfaces of proxies for suppliers: the proxy is a consumer.

use spandrel::SystemException;
use spandrel::server::{DeferredOperations, ServerCall, TakenRequest};
use spandrel::services::cos_event_channel_admin::proxy_pull_consumer::ConnectPullSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_push_consumer::ConnectPushSupplierError;
use spandrel::services::cos_event_channel_admin::{self as event_service};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{self, PullSupplier, PushSupplier};
use spandrel::services::cos_notification::{EventType, NamedPropertyRange, Property, StructuredEvent};
use spandrel::services::cos_notify_channel_admin::proxy_consumer::ValidateEventQosError;
use spandrel::services::cos_notify_channel_admin::{
    AlreadyConnectedError, AlreadyConnectedOrTypeErrorError, ConnectionAlreadyActiveOrNotConnectedError as ResumeError,
    ConnectionAlreadyInactiveOrNotConnectedError as SuspendError, ObtainInfoMode, ProxyConsumerServant,
    ProxyPullConsumerServant, ProxyPushConsumerServant, ProxyType, SequenceProxyPullConsumerServant,
    SequenceProxyPushConsumerServant, StructuredProxyPullConsumerServant, StructuredProxyPushConsumerServant,
    SupplierAdmin,
};
use spandrel::services::cos_notify_comm::notify_publish::OfferChangeError;
use spandrel::services::cos_notify_comm::{
    self, DisconnectedError, NotifyPublishServant, SequencePullConsumerServant, SequencePullSupplier,
    SequencePushConsumerServant, SequencePushSupplier, StructuredPullConsumerServant, StructuredPullSupplier,
    StructuredPushConsumerServant, StructuredPushSupplier,
};
use spandrel::types::{Any, Interface as _};

use crate::changed_member::Member;
use crate::content::Content;
use crate::proxy::required;
use crate::servant::ProxyServant;

impl ProxyConsumerServant for ProxyServant {
    fn my_type(&self) -> Result<ProxyType, SystemException> {
        Ok(self.proxy.kind.proxy_type())
    }

    fn my_admin(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        Ok(Some(self.channel.reference(Some(&self.proxy.admin.name()))?.unchecked_narrow()))
    }

    fn obtain_subscription_types(&self, mode: ObtainInfoMode) -> Result<Vec<EventType>, SystemException> {
        self.channel.obtain_types(&self.proxy, mode)
    }

    fn validate_event_qos(&self, required_qos: &[Property]) -> Result<Vec<NamedPropertyRange>, ValidateEventQosError> {
        self.validate_event(required_qos)
    }
}

impl NotifyPublishServant for ProxyServant {
    fn offer_change(&self, added: &[EventType], removed: &[EventType]) -> Result<(), OfferChangeError> {
        Ok(self.channel.change_types(Member::Proxy(&self.proxy), added, removed)?)
    }
}

impl cos_event_comm::PushConsumerServant for ProxyServant {
    fn push(&self, data: &Any) -> Result<(), PushError> {
        self.receive(vec![Content::from_any(data)])
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl cos_event_comm::PullConsumerServant for ProxyServant {
    fn disconnect_pull_consumer(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl cos_notify_comm::PushConsumerServant for ProxyServant {}

impl cos_notify_comm::PullConsumerServant for ProxyServant {}

impl StructuredPushConsumerServant for ProxyServant {
    fn push_structured_event(&self, notification: &StructuredEvent) -> Result<(), DisconnectedError> {
        self.receive(vec![Content::Structured(Box::new(notification.clone()))])
    }

    fn disconnect_structured_push_consumer(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl StructuredPullConsumerServant for ProxyServant {
    fn disconnect_structured_pull_consumer(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl SequencePushConsumerServant for ProxyServant {
    /// Publishes the events in their order, up to the first that the channel refuses.
    fn push_structured_events(&self, notifications: &[StructuredEvent]) -> Result<(), DisconnectedError> {
        let structured = |event: &StructuredEvent| Content::Structured(Box::new(event.clone()));
        self.receive(notifications.iter().map(structured).collect())
    }

    fn disconnect_sequence_push_consumer(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl SequencePullConsumerServant for ProxyServant {
    fn disconnect_sequence_pull_consumer(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl event_service::ProxyPushConsumerServant for ProxyServant {
    fn connect_push_supplier(&self, push_supplier: Option<&PushSupplier>) -> Result<(), ConnectPushSupplierError> {
        self.connect(push_supplier.map(|supplier| supplier.as_object()))
    }
}

impl event_service::ProxyPullConsumerServant for ProxyServant {
    fn connect_pull_supplier(&self, pull_supplier: Option<&PullSupplier>) -> Result<(), ConnectPullSupplierError> {
        self.connect_called(pull_supplier.map(|supplier| supplier.as_object()))
    }
}

impl ProxyPushConsumerServant for ProxyServant {
    fn connect_any_push_supplier(&self, push_supplier: Option<&PushSupplier>) -> Result<(), AlreadyConnectedError> {
        self.connect(push_supplier.map(|supplier| supplier.as_object()))
    }
}

impl StructuredProxyPushConsumerServant for ProxyServant {
    fn connect_structured_push_supplier(
        &self,
        push_supplier: Option<&StructuredPushSupplier>,
    ) -> Result<(), AlreadyConnectedError> {
        self.connect(push_supplier.map(|supplier| supplier.as_object()))
    }
}

impl SequenceProxyPushConsumerServant for ProxyServant {
    fn connect_sequence_push_supplier(
        &self,
        push_supplier: Option<&SequencePushSupplier>,
    ) -> Result<(), AlreadyConnectedError> {
        self.connect(push_supplier.map(|supplier| supplier.as_object()))
    }
}

impl ProxyPullConsumerServant for ProxyServant {
    fn connect_any_pull_supplier(
        &self,
        pull_supplier: Option<&PullSupplier>,
    ) -> Result<(), AlreadyConnectedOrTypeErrorError> {
        self.connect(Some(required(pull_supplier)?.as_object()))
    }

    fn suspend_connection(&self) -> Result<(), SuspendError> {
        self.suspend()
    }

    fn resume_connection(&self) -> Result<(), ResumeError> {
        self.resume()
    }
}

impl StructuredProxyPullConsumerServant for ProxyServant {
    fn connect_structured_pull_supplier(
        &self,
        pull_supplier: Option<&StructuredPullSupplier>,
    ) -> Result<(), AlreadyConnectedOrTypeErrorError> {
        self.connect(Some(required(pull_supplier)?.as_object()))
    }

    fn suspend_connection(&self) -> Result<(), SuspendError> {
        self.suspend()
    }

    fn resume_connection(&self) -> Result<(), ResumeError> {
        self.resume()
    }
}

impl SequenceProxyPullConsumerServant for ProxyServant {
    fn connect_sequence_pull_supplier(
        &self,
        pull_supplier: Option<&SequencePullSupplier>,
    ) -> Result<(), AlreadyConnectedOrTypeErrorError> {
        self.connect(Some(required(pull_supplier)?.as_object()))
    }

    fn suspend_connection(&self) -> Result<(), SuspendError> {
        self.suspend()
    }

    fn resume_connection(&self) -> Result<(), ResumeError> {
        self.resume()
    }
}

/// Pushes, whose events are decoded without copies. Those to a persistent channel have no thread that waits for the disk: that of
/// the store sends the replies.
pub(crate) struct DeferredPushes(pub(crate) ProxyServant);

impl DeferredOperations for DeferredPushes {
    fn take<'m>(&self, call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException> {
        let ProxyServant { channel, proxy } = &self.0;
        // A one-way is made in its order, and an unconnected proxy answers by its skeleton.
        if !call.is_response_expected() || !proxy.connection.is_connected() {
            return Ok(TakenRequest::LeftToSkeleton(call));
        }
        let structured = |event| Content::Structured(Box::new(event));
        let events = match call.operation() {
            "push" => {
                let (value,): (Any,) = call.decode_arguments()?;
                vec![Content::from_any(&value)]
            }
            "push_structured_event" => {
                let (event,): (StructuredEvent,) = call.decode_arguments()?;
                vec![structured(event)]
            }
            "push_structured_events" => {
                let (events,): (Vec<StructuredEvent>,) = call.decode_arguments()?;
                events.into_iter().map(structured).collect()
            }
            _ => return Ok(TakenRequest::LeftToSkeleton(call)),
        };
        if channel.durable().is_none() {
            channel.receive(proxy, events)?;
            return Ok(TakenRequest::Taken(call.reply(|_| Ok(()))?));
        }
        let (reply, replied) = call.defer_reply::<(), SystemException>()?;
        channel.receive_then(proxy, events, move |outcome| reply.send(outcome));
        Ok(TakenRequest::Taken(replied))
    }
}
