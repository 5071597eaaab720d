//! Channels, administrators and proxies, by the sentences of the specification (Notification Service 1.1, 3.4).

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use spandrel::services::cos_event_channel_admin as event_service;
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PushConsumerServant, PushConsumerSkeleton};
use spandrel::services::cos_notification::{EventType, StructuredEvent};
use spandrel::services::cos_notify_channel_admin::{
    AdminLimitExceededError, AdminNotFoundError, AlreadyConnectedError, ChannelNotFoundError, ClientType,
    ConnectionAlreadyActiveOrNotConnectedError, ConnectionAlreadyInactiveOrNotConnectedError, InterFilterGroupOperator,
    ObtainInfoMode, ProxyNotFoundError, ProxyPullSupplier, ProxyPushConsumer, ProxyType, SequenceProxyPullSupplier,
    SequenceProxyPushConsumer, StructuredProxyPullConsumer, StructuredProxyPushConsumer,
};
use spandrel::services::cos_notify_comm::{
    DisconnectedError, InvalidEventTypeError, NotifySubscribeServant, SequencePushConsumerSkeleton,
    StructuredPullSupplierServant, StructuredPullSupplierSkeleton,
};
use spandrel::types::{Any, Interface as _};
use spandrel::{Endpoint, Orb, Poa, SystemException, SystemExceptionKind};
use spandrel_test_support::{free_port, wait_until};

use crate::support::{
    Recorder, Served, consumers, event, event_type, name, number, pulled, pulling, short, supplier, suppliers, time,
};

/// A pull supplier, which records the event types that are subscribed to.
#[derive(Debug, Default)]
struct Source {
    events: Mutex<VecDeque<StructuredEvent>>,
    subscriptions: Mutex<Vec<Vec<EventType>>>,
}

impl NotifySubscribeServant for Source {
    fn subscription_change(&self, added: &[EventType], _: &[EventType]) -> Result<(), InvalidEventTypeError> {
        self.subscriptions.lock().unwrap().push(added.to_vec());
        Ok(())
    }
}

impl StructuredPullSupplierServant for Source {
    fn pull_structured_event(&self) -> Result<StructuredEvent, DisconnectedError> {
        panic!("the channel calls the operation that does not wait")
    }

    fn try_pull_structured_event(&self) -> Result<(StructuredEvent, bool), DisconnectedError> {
        let event = self.events.lock().unwrap().pop_front();
        let has_event = event.is_some();
        Ok((event.unwrap_or_default(), has_event))
    }

    fn disconnect_structured_pull_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A consumer of the event service.
#[derive(Debug, Default)]
struct PlainConsumer(Mutex<Vec<Any>>);

impl PushConsumerServant for PlainConsumer {
    fn push(&self, data: &Any) -> Result<(), PushError> {
        self.0.lock().unwrap().push(data.clone());
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Consumers share the encoding of an event: at each alignment, in several versions of GIOP, and without named code sets.
#[test]
fn each_consumer_gets_the_events_of_a_sequence_as_they_were_pushed() {
    let served = Served::new();
    let batch = [short("OrderPolicy", 1), number("MaximumBatchSize", 100), time("PacingInterval", 1_000)];
    let channel = served.channel_with(&batch, &[]);
    let port = free_port();
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let mut recorders = Vec::new();
    for url in ["", "corbaloc:iiop:1.2@", "corbaloc:iiop:1.1@", "corbaloc:iiop:1.0@"] {
        let recorder = Arc::new(Recorder::default());
        let object = root.activate(SequencePushConsumerSkeleton::new(Arc::clone(&recorder))).unwrap();
        let alias = format!("consumer-{}", recorders.len());
        orb.set_object_key_alias(alias.as_str(), &object).unwrap();
        let reference = if url.is_empty() { object.to_string() } else { format!("{url}127.0.0.1:{port}/{alias}") };
        let consumer = served.client.string_to_object(&reference).unwrap().unchecked_narrow();
        let (_, _, proxy) = served.sequence_consumer(&consumers(&channel));
        proxy.connect_sequence_push_consumer(Some(&consumer)).unwrap();
        recorders.push(recorder);
    }
    let (pushed, _) = served.connected(&consumers(&channel));
    recorders.push(pushed);
    let events: Vec<StructuredEvent> = (0..20)
        .map(|nth| {
            let mut event = event(&"x".repeat(nth), 1);
            event.filterable_data[0].value = Any::new(f64::from(u32::try_from(nth).unwrap())).unwrap();
            event.remainder_of_body = Any::new(vec![1_i64, -2]).unwrap();
            event
        })
        .collect();
    let proxy = suppliers(&channel).obtain_notification_push_consumer(ClientType::SequenceEvent).unwrap().0.unwrap();
    let sequences: SequenceProxyPushConsumer = proxy.as_object().narrow().unwrap();
    sequences.connect_sequence_push_supplier(None).unwrap();
    sequences.push_structured_events(&events).unwrap();
    for recorder in recorders {
        wait_until("the events", || recorder.events.lock().unwrap().len() >= events.len());
        assert_eq!(*recorder.events.lock().unwrap(), events);
    }
    orb.shutdown().unwrap();
}

/// Events of each form reach consumers of each form, pushed and pulled, translated where the forms differ.
#[test]
fn all_forms_of_suppliers_and_consumers_mix_on_one_channel() {
    let served = Served::new();
    let channel = served.channel();
    let (pushed, _) = served.connected(&consumers(&channel));
    let (batches, consumer, proxy) = served.sequence_consumer(&consumers(&channel));
    proxy.connect_sequence_push_consumer(Some(&consumer)).unwrap();
    let admin = consumers(&channel);
    let any = admin.obtain_notification_pull_supplier(ClientType::AnyEvent).unwrap().0.unwrap();
    assert_eq!(any.my_type().unwrap(), ProxyType::PullAny);
    let any: ProxyPullSupplier = any.as_object().narrow().unwrap();
    any.connect_any_pull_consumer(None).unwrap();
    let structured = pulling(&channel);
    let sequence = admin.obtain_notification_pull_supplier(ClientType::SequenceEvent).unwrap().0.unwrap();
    let sequence: SequenceProxyPullSupplier = sequence.as_object().narrow().unwrap();
    sequence.connect_sequence_pull_consumer(None).unwrap();

    supplier(&channel).push_structured_event(&event("one", 1)).unwrap();
    let proxy = suppliers(&channel).obtain_notification_push_consumer(ClientType::SequenceEvent).unwrap().0.unwrap();
    let sequences: SequenceProxyPushConsumer = proxy.as_object().narrow().unwrap();
    sequences.connect_sequence_push_supplier(None).unwrap();
    sequences.push_structured_events(&[event("two", 2), event("three", 3)]).unwrap();
    let proxy = suppliers(&channel).obtain_notification_push_consumer(ClientType::AnyEvent).unwrap().0.unwrap();
    let anys: ProxyPushConsumer = proxy.as_object().narrow().unwrap();
    anys.connect_any_push_supplier(None).unwrap();
    anys.push(&Any::new(event("four", 4)).unwrap()).unwrap();
    anys.push(&Any::new(5_i32).unwrap()).unwrap();

    let names = ["one", "two", "three", "four", ""];
    pushed.wait_for(&names);
    batches.wait_for(&names);
    assert_eq!(pulled(&structured), names);
    let (events, has_event) = sequence.try_pull_structured_events(3).unwrap();
    assert!(has_event && events.len() == 3);
    assert_eq!(sequence.pull_structured_events(10).unwrap().iter().map(name).collect::<Vec<_>>(), ["four", ""]);
    assert_eq!(sequence.try_pull_structured_events(1).unwrap(), (Vec::new(), false));
    let first: StructuredEvent = any.pull().unwrap().extract().unwrap();
    assert_eq!(first, event("one", 1));
    for _ in 0..3 {
        any.pull().unwrap();
    }
    assert_eq!(any.pull().unwrap().extract::<i32>().unwrap(), 5);
    assert!(!any.try_pull().unwrap().1);
    // "%ANY" is the type of an event that was none.
    let last = pushed.events.lock().unwrap()[4].clone();
    assert_eq!(last.header.fixed_header.event_type.type_name, "%ANY");
    assert_eq!(last.remainder_of_body.extract::<i32>().unwrap(), 5);
}

/// The event service's clients get all events by their own interfaces.
#[test]
fn clients_of_the_event_service_use_the_channel() {
    let served = Served::new();
    let channel: event_service::EventChannel = served.channel().as_object().narrow().unwrap();
    let consumer = Arc::new(PlainConsumer::default());
    let object = Poa::root(&served.client).unwrap().activate(PushConsumerSkeleton::new(Arc::clone(&consumer))).unwrap();
    let proxy = channel.for_consumers().unwrap().unwrap().obtain_push_supplier().unwrap().unwrap();
    proxy.connect_push_consumer(Some(&object.unchecked_narrow())).unwrap();
    let pulls = channel.for_consumers().unwrap().unwrap().obtain_pull_supplier().unwrap().unwrap();
    pulls.connect_pull_consumer(None).unwrap();
    let pushes = channel.for_suppliers().unwrap().unwrap().obtain_push_consumer().unwrap().unwrap();
    assert!(matches!(pushes.push(&Any::new(1_i32).unwrap()), Err(PushError::Disconnected(_))));
    pushes.connect_push_supplier(None).unwrap();
    pushes.push(&Any::new(7_i32).unwrap()).unwrap();
    wait_until("an event", || consumer.0.lock().unwrap().len() == 1);
    assert_eq!(pulls.pull().unwrap().extract::<i32>().unwrap(), 7);
    // They have no ids.
    let admin = channel.for_consumers().unwrap().unwrap();
    let admin: spandrel::services::cos_notify_channel_admin::ConsumerAdmin = admin.as_object().narrow().unwrap();
    assert_eq!((admin.push_suppliers().unwrap(), admin.pull_suppliers().unwrap()), (Vec::new(), Vec::new()));
}

#[test]
fn pull_suppliers_are_pulled_and_suspended() {
    let served = Served::new();
    let channel = served.channel();
    let (recorder, _) = served.connected(&consumers(&channel));
    let source = Arc::new(Source::default());
    let skeleton = StructuredPullSupplierSkeleton::new(Arc::clone(&source));
    let object = Poa::root(&served.client).unwrap().activate(skeleton).unwrap();
    let proxy = suppliers(&channel).obtain_notification_pull_consumer(ClientType::StructuredEvent).unwrap().0.unwrap();
    let proxy: StructuredProxyPullConsumer = proxy.as_object().narrow().unwrap();
    assert!(matches!(proxy.suspend_connection(), Err(ConnectionAlreadyInactiveOrNotConnectedError::NotConnected(_))));
    proxy.connect_structured_pull_supplier(Some(&object.unchecked_narrow())).unwrap();
    source.events.lock().unwrap().extend([event("a", 1), event("b", 2)]);
    recorder.wait_for(&["a", "b"]);
    proxy.suspend_connection().unwrap();
    let again = proxy.suspend_connection();
    assert!(matches!(again, Err(ConnectionAlreadyInactiveOrNotConnectedError::ConnectionAlreadyInactive(_))));
    proxy.resume_connection().unwrap();
    let again = proxy.resume_connection();
    assert!(matches!(again, Err(ConnectionAlreadyActiveOrNotConnectedError::ConnectionAlreadyActive(_))));
    source.events.lock().unwrap().push_back(event("c", 3));
    recorder.wait_for(&["a", "b", "c"]);
    // The supplier learns of subscriptions.
    let watching = pulling(&channel);
    watching.subscription_change(&[event_type("Plant", "Alarm")], &[]).unwrap();
    wait_until("a subscription", || !source.subscriptions.lock().unwrap().is_empty());
    assert_eq!(*source.subscriptions.lock().unwrap(), [[event_type("Plant", "Alarm")]]);
}

/// "suspend_connection ... causes the channel to stop sending": events are queued, and sent after `resume_connection`.
#[test]
fn a_suspended_consumer_gets_its_events_later() {
    let served = Served::new();
    let channel = served.channel();
    let (suspended, proxy) = served.connected(&consumers(&channel));
    let (other, _) = served.connected(&consumers(&channel));
    proxy.suspend_connection().unwrap();
    let pushes = supplier(&channel);
    for name in ["a", "b"] {
        pushes.push_structured_event(&event(name, 0)).unwrap();
    }
    other.wait_for(&["a", "b"]);
    assert!(suspended.names.lock().unwrap().is_empty());
    proxy.resume_connection().unwrap();
    suspended.wait_for(&["a", "b"]);
}

#[test]
fn administrators_and_proxies_are_obtained_by_their_ids() {
    let served = Served::new();
    let factory = served.factory();
    let (channel, id) = factory.create_channel(&[], &[]).unwrap();
    let channel = channel.unwrap();
    assert_eq!(factory.get_all_channels().unwrap(), [id]);
    assert!(factory.get_event_channel(id).unwrap().is_some());
    assert!(matches!(factory.get_event_channel(id + 1), Err(ChannelNotFoundError::ChannelNotFound(_))));
    assert!(channel.my_factory().unwrap().unwrap().get_all_channels().is_ok());
    let (admin, admin_id) = channel.new_for_consumers(InterFilterGroupOperator::OrOp).unwrap();
    let admin = admin.unwrap();
    assert_eq!((admin.my_id().unwrap(), admin.my_operator().unwrap()), (admin_id, InterFilterGroupOperator::OrOp));
    assert_eq!(channel.get_all_consumeradmins().unwrap(), [0, admin_id]);
    assert_eq!(channel.get_all_supplieradmins().unwrap(), [0]);
    assert_eq!(channel.get_consumeradmin(admin_id).unwrap().unwrap().my_id().unwrap(), admin_id);
    assert!(matches!(channel.get_supplieradmin(admin_id), Err(AdminNotFoundError::AdminNotFound(_))));
    let (proxy, proxy_id) = admin.obtain_notification_push_supplier(ClientType::StructuredEvent).unwrap();
    assert_eq!(proxy.unwrap().my_type().unwrap(), ProxyType::PushStructured);
    assert_eq!(admin.push_suppliers().unwrap(), [proxy_id]);
    assert!(admin.pull_suppliers().unwrap().is_empty());
    let proxy = admin.get_proxy_supplier(proxy_id).unwrap().unwrap();
    assert_eq!(proxy.my_admin().unwrap().unwrap().my_id().unwrap(), admin_id);
    assert!(matches!(consumers(&channel).get_proxy_supplier(proxy_id), Err(ProxyNotFoundError::ProxyNotFound(_))));
    admin.destroy().unwrap();
    assert!(matches!(channel.get_consumeradmin(admin_id), Err(AdminNotFoundError::AdminNotFound(_))));
    wait_until("the end of the proxy", || {
        proxy.my_type().is_err_and(|error| error.kind() == SystemExceptionKind::ObjectNotExist)
    });
    let refused = consumers(&channel).destroy().unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::NoPermission);
    channel.destroy().unwrap();
    assert_eq!(served.service().channels(), 0);
}

#[test]
fn a_proxy_connects_once_and_its_end_reaches_the_peer() {
    let served = Served::new();
    let channel = served.channel();
    let pushes = supplier(&channel);
    let again = pushes.connect_structured_push_supplier(None);
    assert!(matches!(again, Err(AlreadyConnectedError::AlreadyConnected(_))));
    let (recorder, proxy) = served.connected(&consumers(&channel));
    proxy.disconnect_structured_push_supplier().unwrap();
    wait_until("a disconnection", || recorder.disconnections.load(Ordering::SeqCst) == 1);
    // One that answers `Disconnected` gets nothing more, and no notice.
    let (refusing, _) = served.connected(&consumers(&channel));
    refusing.refuses.store(true, Ordering::SeqCst);
    let staying = pulling(&channel);
    pushes.push_structured_event(&event("a", 1)).unwrap();
    wait_until("the end of the proxy", || consumers(&channel).push_suppliers().unwrap().is_empty());
    assert_eq!(refusing.disconnections.load(Ordering::SeqCst), 0);
    // `pull` ends with the channel.
    staying.pull_structured_event().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| staying.pull_structured_event());
        channel.destroy().unwrap();
        match waiting.join().unwrap() {
            Err(DisconnectedError::Disconnected(_)) => {}
            Err(DisconnectedError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist),
            Ok(event) => panic!("{event:?}"),
        }
    });
}

/// `MaxConsumers` and `MaxSuppliers` (2.5.7): `AdminLimitExceeded` has the property and its value.
#[test]
fn more_consumers_than_the_channel_allows_are_refused() {
    let served = Served::new();
    let channel = served.channel_with(&[], &[number("MaxConsumers", 2), number("MaxSuppliers", 1)]);
    pulling(&channel);
    let unconnected = consumers(&channel).obtain_notification_pull_supplier(ClientType::AnyEvent).unwrap().0.unwrap();
    // The one that was never connected goes.
    pulling(&channel);
    wait_until("the end of the proxy", || unconnected.my_type().is_err());
    match consumers(&channel).obtain_notification_pull_supplier(ClientType::AnyEvent) {
        Err(AdminLimitExceededError::AdminLimitExceeded(error)) => {
            assert_eq!(error.admin_property_err.name, "MaxConsumers");
            assert_eq!(error.admin_property_err.value.extract::<i32>().unwrap(), 2);
        }
        other => panic!("{other:?}"),
    }
    let plain: event_service::EventChannel = channel.as_object().unchecked_narrow();
    let error = plain.for_consumers().unwrap().unwrap().obtain_pull_supplier().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::ImpLimit);
    supplier(&channel);
    let refused = suppliers(&channel).obtain_notification_push_consumer(ClientType::AnyEvent);
    assert!(matches!(refused, Err(AdminLimitExceededError::AdminLimitExceeded(_))));
}

/// `subscription_change` selects events, and both sides learn of the other's types (2.3.8, 2.4.4).
#[test]
fn subscriptions_select_events_and_offers_reach_consumers() {
    let served = Served::new();
    let channel = served.channel();
    let selecting = pulling(&channel);
    selecting.subscription_change(&[event_type("Plant", "Al*"), event_type("*", "Start")], &[]).unwrap();
    let none = pulling(&channel);
    none.subscription_change(&[], &[event_type("*", "%ALL")]).unwrap();
    let pushes = supplier(&channel);
    let mut other = event("other", 0);
    other.header.fixed_header.event_type = event_type("Office", "Alarm");
    let mut start = event("start", 0);
    start.header.fixed_header.event_type = event_type("Office", "Start");
    for event in [event("alarm", 1), other, start] {
        pushes.push_structured_event(&event).unwrap();
    }
    assert_eq!(pulled(&selecting), ["alarm", "start"]);
    assert!(pulled(&none).is_empty());
    let types = pushes.obtain_subscription_types(ObtainInfoMode::AllNowUpdatesOff).unwrap();
    assert_eq!(types, [event_type("*", "Start"), event_type("Plant", "Al*")]);
    assert!(pushes.obtain_subscription_types(ObtainInfoMode::NoneNowUpdatesOn).unwrap().is_empty());

    let (hearing, _) = served.connected(&consumers(&channel));
    let (deaf, proxy) = served.connected(&consumers(&channel));
    proxy.obtain_offered_types(ObtainInfoMode::NoneNowUpdatesOff).unwrap();
    pushes.offer_change(&[event_type("Plant", "Alarm")], &[]).unwrap();
    wait_until("an offer", || !hearing.offers.lock().unwrap().is_empty());
    assert_eq!(*hearing.offers.lock().unwrap(), [(vec![event_type("Plant", "Alarm")], Vec::new())]);
    assert!(deaf.offers.lock().unwrap().is_empty());
    assert_eq!(
        selecting.obtain_offered_types(ObtainInfoMode::AllNowUpdatesOn).unwrap(),
        [event_type("Plant", "Alarm")]
    );
    // The administrator's subscription counts as well.
    consumers(&channel).subscription_change(&[event_type("Office", "Start")], &[]).unwrap();
    pushes.push_structured_event(&event("alarm", 1)).unwrap();
    assert!(pulled(&selecting).is_empty());
}

#[test]
fn a_nil_reference_is_refused_where_the_channel_calls() {
    let served = Served::new();
    let channel = served.channel();
    let proxy = suppliers(&channel).obtain_notification_pull_consumer(ClientType::StructuredEvent).unwrap().0.unwrap();
    let proxy: StructuredProxyPullConsumer = proxy.as_object().narrow().unwrap();
    let error = proxy.connect_structured_pull_supplier(None).unwrap_err();
    assert!(error.to_string().contains("nil") || error.to_string().contains("BAD_PARAM"), "{error}");
    let wrong = proxy.as_object().narrow::<StructuredProxyPushConsumer>();
    assert!(wrong.is_err(), "a proxy for pulls is none for pushes");
}
