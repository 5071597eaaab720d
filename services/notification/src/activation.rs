//! The choice of a proxy's interface.

use spandrel::net::sync::Arc;
use spandrel::server::{DeferringSkeleton, Servant};
use spandrel::services::cos_event_channel_admin as event_service;
use spandrel::services::cos_notify_channel_admin::{
    ProxyPullConsumerSkeleton, ProxyPullSupplierSkeleton, ProxyPushConsumerSkeleton, ProxyPushSupplierSkeleton,
    SequenceProxyPullConsumerSkeleton, SequenceProxyPullSupplierSkeleton, SequenceProxyPushConsumerSkeleton,
    SequenceProxyPushSupplierSkeleton, StructuredProxyPullConsumerSkeleton, StructuredProxyPullSupplierSkeleton,
    StructuredProxyPushConsumerSkeleton, StructuredProxyPushSupplierSkeleton,
};
use spandrel::services::cos_typed_event_channel_admin as typed_events;
use spandrel::services::cos_typed_notify_channel_admin::{
    TypedProxyPullConsumerSkeleton, TypedProxyPullSupplierSkeleton, TypedProxyPushConsumerSkeleton,
    TypedProxyPushSupplierSkeleton,
};
use spandrel::{ObjectRef, SystemException};

use crate::for_consumers::WaitingPulls;
use crate::for_suppliers::DeferredPushes;
use crate::kind::{EventForm, ProxyKind, Side};
use crate::servant::ProxyServant;

/// Activates a proxy with the interface of its kind.
pub(crate) fn activate(proxy: &ProxyServant) -> Result<ObjectRef, SystemException> {
    let ProxyKind { side, is_push, form } = proxy.proxy.kind;
    let own = || proxy.clone();
    proxy.activate_typed_object()?;
    let is_typed = proxy.proxy.interface.is_some();
    let servant: Arc<dyn Servant> = match (side, is_push, form) {
        (Side::Suppliers, true, EventForm::Typed) => Arc::new(TypedProxyPushConsumerSkeleton::new(own())),
        (Side::Suppliers, false, EventForm::Typed) => Arc::new(TypedProxyPullConsumerSkeleton::new(own())),
        (Side::Consumers, true, EventForm::Typed) => Arc::new(TypedProxyPushSupplierSkeleton::new(own())),
        (Side::Consumers, false, EventForm::Typed) => {
            Arc::new(DeferringSkeleton::new(TypedProxyPullSupplierSkeleton::new(own()), WaitingPulls(own())))
        }
        (Side::Suppliers, true, EventForm::EventService) if is_typed => {
            Arc::new(typed_events::TypedProxyPushConsumerSkeleton::new(own()))
        }
        (Side::Consumers, false, EventForm::EventService) if is_typed => {
            let skeleton = typed_events::TypedProxyPullSupplierSkeleton::new(own());
            Arc::new(DeferringSkeleton::new(skeleton, WaitingPulls(own())))
        }
        (Side::Suppliers, true, EventForm::EventService) => {
            let skeleton = event_service::ProxyPushConsumerSkeleton::new(own());
            Arc::new(DeferringSkeleton::new(skeleton, DeferredPushes(own())))
        }
        (Side::Suppliers, true, EventForm::Any) => {
            Arc::new(DeferringSkeleton::new(ProxyPushConsumerSkeleton::new(own()), DeferredPushes(own())))
        }
        (Side::Suppliers, true, EventForm::Structured) => {
            let skeleton = StructuredProxyPushConsumerSkeleton::new(own());
            Arc::new(DeferringSkeleton::new(skeleton, DeferredPushes(own())))
        }
        (Side::Suppliers, true, EventForm::Sequence) => {
            let skeleton = SequenceProxyPushConsumerSkeleton::new(own());
            Arc::new(DeferringSkeleton::new(skeleton, DeferredPushes(own())))
        }
        (Side::Suppliers, false, EventForm::EventService) => {
            Arc::new(event_service::ProxyPullConsumerSkeleton::new(own()))
        }
        (Side::Suppliers, false, EventForm::Any) => Arc::new(ProxyPullConsumerSkeleton::new(own())),
        (Side::Suppliers, false, EventForm::Structured) => Arc::new(StructuredProxyPullConsumerSkeleton::new(own())),
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
    proxy.channel.serve(Some(&proxy.proxy.name()), servant)
}
