//! Each exception of each operation, as a client receives it. `sentences.md` has those that are never raised, with the reason;
//! `typed` those of typed channels.

use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::{PullSupplier, PullSupplierServant, PullSupplierSkeleton, PushConsumer};
use spandrel::services::cos_notification::{EventType, StructuredEvent, admin_properties_admin, qo_s_admin};
use spandrel::services::cos_notify_channel_admin::{
    ClientType, ProxyPullConsumer, ProxyPullSupplier, ProxyPushConsumer, ProxyPushSupplier, SequenceProxyPullConsumer,
    SequenceProxyPullSupplier, SequenceProxyPushConsumer, SequenceProxyPushSupplier, StructuredProxyPullConsumer,
    StructuredProxyPullSupplier, StructuredProxyPushConsumer, StructuredProxyPushSupplier, consumer_admin,
    event_channel, event_channel_factory, proxy_consumer, proxy_pull_consumer, proxy_pull_supplier,
    proxy_push_consumer, proxy_push_supplier, proxy_supplier, sequence_proxy_pull_consumer,
    sequence_proxy_pull_supplier, sequence_proxy_push_consumer, sequence_proxy_push_supplier,
    structured_proxy_pull_consumer, structured_proxy_pull_supplier, structured_proxy_push_consumer,
    structured_proxy_push_supplier, supplier_admin,
};
use spandrel::services::cos_notify_comm::{
    DisconnectedError, InvalidEventTypeError, NotifySubscribeServant, SequencePullSupplier,
    SequencePullSupplierServant, SequencePullSupplierSkeleton, SequencePushConsumer, StructuredPullSupplier,
    StructuredPullSupplierServant, StructuredPullSupplierSkeleton, sequence_pull_supplier, sequence_push_consumer,
    structured_pull_supplier, structured_push_consumer,
};
use spandrel::services::cos_notify_filter::{
    ConstraintInfo, MappingConstraintInfo, MappingConstraintPair, filter, filter_admin, filter_factory, mapping_filter,
};
use spandrel::types::{Any, Interface as _};
use spandrel::{Poa, SystemException};
use spandrel_test_support::raises;

use crate::support::{Served, constraint, consumers, event, number, pulling, short, supplier, suppliers};

/// A supplier of each form without events.
struct EmptySource;

impl PullSupplierServant for EmptySource {
    fn pull(&self) -> Result<Any, PullError> {
        panic!("the channel calls the operation that does not wait")
    }

    fn try_pull(&self) -> Result<(Any, bool), TryPullError> {
        Ok((Any::default(), false))
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl NotifySubscribeServant for EmptySource {
    fn subscription_change(&self, _: &[EventType], _: &[EventType]) -> Result<(), InvalidEventTypeError> {
        Ok(())
    }
}

impl StructuredPullSupplierServant for EmptySource {
    fn pull_structured_event(&self) -> Result<StructuredEvent, DisconnectedError> {
        panic!("the channel calls the operation that does not wait")
    }

    fn try_pull_structured_event(&self) -> Result<(StructuredEvent, bool), DisconnectedError> {
        Ok((StructuredEvent::default(), false))
    }

    fn disconnect_structured_pull_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl SequencePullSupplierServant for EmptySource {
    fn pull_structured_events(&self, _: i32) -> Result<Vec<StructuredEvent>, DisconnectedError> {
        panic!("the channel calls the operation that does not wait")
    }

    fn try_pull_structured_events(&self, _: i32) -> Result<(Vec<StructuredEvent>, bool), DisconnectedError> {
        Ok((Vec::new(), false))
    }

    fn disconnect_sequence_pull_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn proxies_that_call_their_peers_raise_the_exceptions_of_the_connection() {
    let served = Served::new();
    let channel = served.channel();
    macro_rules! check {
        ($errors:ident, $connect_error:ident, $proxy:expr, $connect:ident, $peer:expr) => {{
            let (proxy, peer) = ($proxy, $peer);
            raises!($errors::SuspendConnectionError::NotConnected, proxy.suspend_connection());
            raises!($errors::ResumeConnectionError::NotConnected, proxy.resume_connection());
            proxy.$connect(Some(&peer)).unwrap();
            raises!($errors::$connect_error::AlreadyConnected, proxy.$connect(Some(&peer)));
            raises!($errors::ResumeConnectionError::ConnectionAlreadyActive, proxy.resume_connection());
            proxy.suspend_connection().unwrap();
            raises!($errors::SuspendConnectionError::ConnectionAlreadyInactive, proxy.suspend_connection());
            proxy.resume_connection().unwrap();
        }};
    }
    let (_recorder, consumer) = served.consumer();
    let admin = consumers(&channel);
    let obtain = |form| admin.obtain_notification_push_supplier(form).unwrap().0.unwrap();
    // Without events, no consumer is called.
    let proxy: ProxyPushSupplier = obtain(ClientType::AnyEvent).as_object().narrow().unwrap();
    let peer: PushConsumer = consumer.as_object().unchecked_narrow();
    check!(proxy_push_supplier, ConnectAnyPushConsumerError, proxy, connect_any_push_consumer, peer);
    let proxy: SequenceProxyPushSupplier = obtain(ClientType::SequenceEvent).as_object().narrow().unwrap();
    let peer: SequencePushConsumer = consumer.as_object().unchecked_narrow();
    check!(sequence_proxy_push_supplier, ConnectSequencePushConsumerError, proxy, connect_sequence_push_consumer, peer);
    let proxy: StructuredProxyPushSupplier = obtain(ClientType::StructuredEvent).as_object().narrow().unwrap();
    check!(
        structured_proxy_push_supplier,
        ConnectStructuredPushConsumerError,
        proxy,
        connect_structured_push_consumer,
        consumer
    );

    let root = Poa::root(&served.client).unwrap();
    let admin = suppliers(&channel);
    let obtain = |form| admin.obtain_notification_pull_consumer(form).unwrap().0.unwrap();
    let proxy: ProxyPullConsumer = obtain(ClientType::AnyEvent).as_object().narrow().unwrap();
    let peer: PullSupplier = root.activate(PullSupplierSkeleton::new(EmptySource)).unwrap().unchecked_narrow();
    check!(proxy_pull_consumer, ConnectAnyPullSupplierError, proxy, connect_any_pull_supplier, peer);
    let proxy: StructuredProxyPullConsumer = obtain(ClientType::StructuredEvent).as_object().narrow().unwrap();
    let peer = root.activate(StructuredPullSupplierSkeleton::new(EmptySource)).unwrap();
    let peer: StructuredPullSupplier = peer.unchecked_narrow();
    check!(
        structured_proxy_pull_consumer,
        ConnectStructuredPullSupplierError,
        proxy,
        connect_structured_pull_supplier,
        peer
    );
    let proxy: SequenceProxyPullConsumer = obtain(ClientType::SequenceEvent).as_object().narrow().unwrap();
    let peer = root.activate(SequencePullSupplierSkeleton::new(EmptySource)).unwrap();
    let peer: SequencePullSupplier = peer.unchecked_narrow();
    check!(sequence_proxy_pull_consumer, ConnectSequencePullSupplierError, proxy, connect_sequence_pull_supplier, peer);
}

#[test]
fn proxies_that_are_called_raise_the_exceptions_of_the_connection() {
    let served = Served::new();
    let channel = served.channel();
    let admin = suppliers(&channel);
    let obtain = |form| admin.obtain_notification_push_consumer(form).unwrap().0.unwrap();
    let any: ProxyPushConsumer = obtain(ClientType::AnyEvent).as_object().narrow().unwrap();
    let structured: StructuredProxyPushConsumer = obtain(ClientType::StructuredEvent).as_object().narrow().unwrap();
    let sequence: SequenceProxyPushConsumer = obtain(ClientType::SequenceEvent).as_object().narrow().unwrap();
    let pushed = structured.push_structured_event(&event("a", 1));
    raises!(structured_push_consumer::PushStructuredEventError::Disconnected, pushed);
    let pushed = sequence.push_structured_events(&[event("a", 1)]);
    raises!(sequence_push_consumer::PushStructuredEventsError::Disconnected, pushed);
    any.connect_any_push_supplier(None).unwrap();
    raises!(proxy_push_consumer::ConnectAnyPushSupplierError::AlreadyConnected, any.connect_any_push_supplier(None));
    structured.connect_structured_push_supplier(None).unwrap();
    let again = structured.connect_structured_push_supplier(None);
    raises!(structured_proxy_push_consumer::ConnectStructuredPushSupplierError::AlreadyConnected, again);
    sequence.connect_sequence_push_supplier(None).unwrap();
    let again = sequence.connect_sequence_push_supplier(None);
    raises!(sequence_proxy_push_consumer::ConnectSequencePushSupplierError::AlreadyConnected, again);

    let admin = consumers(&channel);
    let obtain = |form| admin.obtain_notification_pull_supplier(form).unwrap().0.unwrap();
    let any: ProxyPullSupplier = obtain(ClientType::AnyEvent).as_object().narrow().unwrap();
    let structured: StructuredProxyPullSupplier = obtain(ClientType::StructuredEvent).as_object().narrow().unwrap();
    let sequence: SequenceProxyPullSupplier = obtain(ClientType::SequenceEvent).as_object().narrow().unwrap();
    let pulled = structured.pull_structured_event();
    raises!(structured_pull_supplier::PullStructuredEventError::Disconnected, pulled);
    let pulled = structured.try_pull_structured_event();
    raises!(structured_pull_supplier::TryPullStructuredEventError::Disconnected, pulled);
    let pulled = sequence.pull_structured_events(1);
    raises!(sequence_pull_supplier::PullStructuredEventsError::Disconnected, pulled);
    let pulled = sequence.try_pull_structured_events(1);
    raises!(sequence_pull_supplier::TryPullStructuredEventsError::Disconnected, pulled);
    any.connect_any_pull_consumer(None).unwrap();
    raises!(proxy_pull_supplier::ConnectAnyPullConsumerError::AlreadyConnected, any.connect_any_pull_consumer(None));
    structured.connect_structured_pull_consumer(None).unwrap();
    let again = structured.connect_structured_pull_consumer(None);
    raises!(structured_proxy_pull_supplier::ConnectStructuredPullConsumerError::AlreadyConnected, again);
    sequence.connect_sequence_pull_consumer(None).unwrap();
    let again = sequence.connect_sequence_pull_consumer(None);
    raises!(sequence_proxy_pull_supplier::ConnectSequencePullConsumerError::AlreadyConnected, again);
}

#[test]
fn properties_raise_the_exceptions_of_their_names() {
    let served = Served::new();
    let (factory, channel) = (served.factory(), served.channel());
    let unknown = [short("Colour", 1)];
    raises!(qo_s_admin::SetQosError::UnsupportedQoS, channel.set_qos(&unknown));
    raises!(qo_s_admin::ValidateQosError::UnsupportedQoS, channel.validate_qos(&unknown));
    raises!(qo_s_admin::SetQosError::UnsupportedQoS, consumers(&channel).set_qos(&unknown));
    raises!(qo_s_admin::ValidateQosError::UnsupportedQoS, suppliers(&channel).validate_qos(&unknown));
    raises!(qo_s_admin::SetQosError::UnsupportedQoS, pulling(&channel).set_qos(&unknown));
    raises!(admin_properties_admin::SetAdminError::UnsupportedAdmin, channel.set_admin(&unknown));
    let validated = supplier(&channel).validate_event_qos(&unknown);
    raises!(proxy_consumer::ValidateEventQosError::UnsupportedQoS, validated);
    let validated = pulling(&channel).validate_event_qos(&unknown);
    raises!(proxy_supplier::ValidateEventQosError::UnsupportedQoS, validated);
    let created = factory.create_channel(&unknown, &[]);
    raises!(event_channel_factory::CreateChannelError::UnsupportedQoS, created);
    let created = factory.create_channel(&[], &unknown);
    raises!(event_channel_factory::CreateChannelError::UnsupportedAdmin, created);
    assert_eq!(factory.get_all_channels().unwrap().len(), 1, "a channel that is refused is not created");
}

#[test]
fn channels_raise_the_exceptions_of_ids_and_limits() {
    let served = Served::new();
    let (factory, channel) = (served.factory(), served.channel());
    raises!(event_channel_factory::GetEventChannelError::ChannelNotFound, factory.get_event_channel(77));
    raises!(event_channel::GetConsumeradminError::AdminNotFound, channel.get_consumeradmin(77));
    raises!(event_channel::GetSupplieradminError::AdminNotFound, channel.get_supplieradmin(77));
    let (for_consumers, for_suppliers) = (consumers(&channel), suppliers(&channel));
    raises!(consumer_admin::GetProxySupplierError::ProxyNotFound, for_consumers.get_proxy_supplier(77));
    raises!(supplier_admin::GetProxyConsumerError::ProxyNotFound, for_suppliers.get_proxy_consumer(77));
    let _connected = (pulling(&channel), supplier(&channel));
    channel.set_admin(&[number("MaxConsumers", 1), number("MaxSuppliers", 1)]).unwrap();
    for form in [ClientType::AnyEvent, ClientType::StructuredEvent, ClientType::SequenceEvent] {
        let refused = for_consumers.obtain_notification_pull_supplier(form);
        raises!(consumer_admin::ObtainNotificationPullSupplierError::AdminLimitExceeded, refused);
        let refused = for_consumers.obtain_notification_push_supplier(form);
        raises!(consumer_admin::ObtainNotificationPushSupplierError::AdminLimitExceeded, refused);
        let refused = for_suppliers.obtain_notification_pull_consumer(form);
        raises!(supplier_admin::ObtainNotificationPullConsumerError::AdminLimitExceeded, refused);
        let refused = for_suppliers.obtain_notification_push_consumer(form);
        raises!(supplier_admin::ObtainNotificationPushConsumerError::AdminLimitExceeded, refused);
    }
}

#[test]
fn filters_raise_the_exceptions_of_their_constraints() {
    let served = Served::new();
    let channel = served.channel();
    let plain = served.filter(&channel, &["$level == 1"]);
    let wrong = || constraint("$level ==");
    let info = |constraint_id| ConstraintInfo { constraint_expression: wrong(), constraint_id };
    raises!(filter::AddConstraintsError::InvalidConstraint, plain.add_constraints(&[wrong()]));
    raises!(filter::ModifyConstraintsError::InvalidConstraint, plain.modify_constraints(&[], &[info(1)]));
    raises!(filter::ModifyConstraintsError::ConstraintNotFound, plain.modify_constraints(&[], &[info(7)]));
    raises!(filter::GetConstraintsError::ConstraintNotFound, plain.get_constraints(&[7]));
    raises!(filter::DetachCallbackError::CallbackNotFound, plain.detach_callback(7));

    let factory = channel.default_filter_factory().unwrap().unwrap();
    let short_value = || Any::new(1_i16).unwrap();
    let mapping = factory.create_mapping_filter("EXTENDED_TCL", &short_value()).unwrap().unwrap();
    let pair = |constraint_expression, result_to_set| MappingConstraintPair { constraint_expression, result_to_set };
    mapping.add_mapping_constraints(&[pair(constraint("$level == 1"), short_value())]).unwrap();
    let added = mapping.add_mapping_constraints(&[pair(wrong(), short_value())]);
    raises!(mapping_filter::AddMappingConstraintsError::InvalidConstraint, added);
    let added = mapping.add_mapping_constraints(&[pair(constraint("$level == 1"), Any::new(1_i32).unwrap())]);
    raises!(mapping_filter::AddMappingConstraintsError::InvalidValue, added);
    let modify_mapping_constraints = |constraint_id, constraint_expression, value| {
        mapping
            .modify_mapping_constraints(&[], &[MappingConstraintInfo { constraint_expression, constraint_id, value }])
    };
    let modified = modify_mapping_constraints(1, wrong(), short_value());
    raises!(mapping_filter::ModifyMappingConstraintsError::InvalidConstraint, modified);
    let modified = modify_mapping_constraints(1, constraint(""), Any::new(1_i32).unwrap());
    raises!(mapping_filter::ModifyMappingConstraintsError::InvalidValue, modified);
    let modified = modify_mapping_constraints(7, constraint(""), short_value());
    raises!(mapping_filter::ModifyMappingConstraintsError::ConstraintNotFound, modified);
    raises!(mapping_filter::GetMappingConstraintsError::ConstraintNotFound, mapping.get_mapping_constraints(&[7]));
    assert!(mapping.match_structured(&event("x", 1)).unwrap().0, "nothing has changed");

    raises!(filter_factory::CreateFilterError::InvalidGrammar, factory.create_filter("SQL"));
    let created = factory.create_mapping_filter("SQL", &short_value());
    raises!(filter_factory::CreateMappingFilterError::InvalidGrammar, created);
    let proxy = pulling(&channel);
    raises!(filter_admin::RemoveFilterError::FilterNotFound, proxy.remove_filter(7));
    raises!(filter_admin::GetFilterError::FilterNotFound, proxy.get_filter(7));
    raises!(filter_admin::RemoveFilterError::FilterNotFound, consumers(&channel).remove_filter(7));
    raises!(filter_admin::GetFilterError::FilterNotFound, suppliers(&channel).get_filter(7));
}
