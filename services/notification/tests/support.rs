//! A notification service on an ORB of its own, its references as another ORB has them, and consumers that record events.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spandrel::services::cos_event_comm::Disconnected;
use spandrel::services::cos_notification::{
    EventHeader, EventType, FixedEventHeader, Property, StructuredEvent, UnsupportedQoS,
};
use spandrel::services::cos_notify_channel_admin::{
    ClientType, ConsumerAdmin, EventChannel, EventChannelFactory, SequenceProxyPushSupplier,
    StructuredProxyPullSupplier, StructuredProxyPushConsumer, StructuredProxyPushSupplier, SupplierAdmin,
};
use spandrel::services::cos_notify_comm::{
    DisconnectedError, InvalidEventTypeError, NotifyPublishServant, SequencePushConsumer, SequencePushConsumerServant,
    SequencePushConsumerSkeleton, StructuredPushConsumer, StructuredPushConsumerServant,
    StructuredPushConsumerSkeleton,
};
use spandrel::services::cos_notify_filter::{ConstraintExp, Filter};
use spandrel::types::{Any, Interface};
use spandrel::{Endpoint, Orb, Poa, SystemException};
use spandrel_notification::{NotificationOptions, NotificationService, PeerOptions};
use spandrel_test_support::wait_until;

/// A running service, and the ORB of its clients.
pub(crate) struct Served {
    pub(crate) client: Orb,
    pub(crate) service: Option<NotificationService>,
    pub(crate) orb: Orb,
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::with(NotificationOptions { peers: patient(), ..NotificationOptions::default() })
    }

    pub(crate) fn with(options: NotificationOptions) -> Self {
        Self::at(0, options)
    }

    /// At a port, so that references are valid after a restart.
    pub(crate) fn at(port: u16, options: NotificationOptions) -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
        let client = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let service = NotificationService::start(&orb, options).unwrap();
        Self { client, service: Some(service), orb }
    }

    pub(crate) fn service(&self) -> &NotificationService {
        self.service.as_ref().unwrap()
    }

    pub(crate) fn factory(&self) -> EventChannelFactory {
        self.client.string_to_object(&self.service().factory().to_string()).unwrap().narrow().unwrap()
    }

    pub(crate) fn channel(&self) -> EventChannel {
        self.channel_with(&[], &[])
    }

    pub(crate) fn channel_with(&self, qos: &[Property], admin: &[Property]) -> EventChannel {
        self.factory().create_channel(qos, admin).unwrap().0.unwrap()
    }

    /// A consumer of structured events on the ORB of the clients, which is not connected.
    pub(crate) fn consumer(&self) -> (Arc<Recorder>, StructuredPushConsumer) {
        let recorder = Arc::new(Recorder::default());
        let root = Poa::root(&self.client).unwrap();
        let object = root.activate(StructuredPushConsumerSkeleton::new(Arc::clone(&recorder))).unwrap();
        (recorder, object.unchecked_narrow())
    }

    /// A consumer that is connected to an administrator.
    pub(crate) fn connected(&self, admin: &ConsumerAdmin) -> (Arc<Recorder>, StructuredProxyPushSupplier) {
        let (recorder, consumer) = self.consumer();
        let proxy = admin.obtain_notification_push_supplier(ClientType::StructuredEvent).unwrap().0.unwrap();
        let proxy: StructuredProxyPushSupplier = proxy.as_object().narrow().unwrap();
        proxy.connect_structured_push_consumer(Some(&consumer)).unwrap();
        (recorder, proxy)
    }

    /// A consumer of sequences that is not connected.
    pub(crate) fn sequence_consumer(
        &self,
        admin: &ConsumerAdmin,
    ) -> (Arc<Recorder>, SequencePushConsumer, SequenceProxyPushSupplier) {
        let recorder = Arc::new(Recorder::default());
        let root = Poa::root(&self.client).unwrap();
        let object = root.activate(SequencePushConsumerSkeleton::new(Arc::clone(&recorder))).unwrap();
        let proxy = admin.obtain_notification_push_supplier(ClientType::SequenceEvent).unwrap().0.unwrap();
        (recorder, object.unchecked_narrow(), proxy.as_object().narrow().unwrap())
    }

    /// The object of a service before, as the client of this one has it.
    pub(crate) fn again<T: Interface>(&self, object: &T) -> T {
        self.client.string_to_object(&object.as_object().to_string()).unwrap().narrow().unwrap()
    }

    /// A filter with these constraints, for all event types.
    pub(crate) fn filter(&self, channel: &EventChannel, constraints: &[&str]) -> Filter {
        let filter = channel.default_filter_factory().unwrap().unwrap().create_filter("EXTENDED_TCL").unwrap().unwrap();
        let constraints: Vec<_> = constraints.iter().map(|text| constraint(text)).collect();
        filter.add_constraints(&constraints).unwrap();
        filter
    }
}

/// The properties of a channel that outlives the process, with its events.
pub(crate) fn persistent() -> [Property; 2] {
    [short("EventReliability", 1), short("ConnectionReliability", 1)]
}

impl Drop for Served {
    fn drop(&mut self) {
        self.client.shutdown().unwrap();
        if let Some(service) = self.service.take() {
            service.stop().unwrap();
        }
        self.orb.shutdown().unwrap();
    }
}

pub(crate) fn constraint(text: &str) -> ConstraintExp {
    ConstraintExp { event_types: Vec::new(), constraint_expr: text.to_owned() }
}

/// No call of a peer fails by its time limit, on a loaded machine neither.
pub(crate) fn patient() -> PeerOptions {
    PeerOptions { timeout: Duration::from_secs(600), ..PeerOptions::default() }
}

pub(crate) fn consumers(channel: &EventChannel) -> ConsumerAdmin {
    channel.default_consumer_admin().unwrap().unwrap()
}

pub(crate) fn suppliers(channel: &EventChannel) -> SupplierAdmin {
    channel.default_supplier_admin().unwrap().unwrap()
}

/// A connected proxy for a supplier of structured events that gets no notice.
pub(crate) fn supplier(channel: &EventChannel) -> StructuredProxyPushConsumer {
    let proxy = suppliers(channel).obtain_notification_push_consumer(ClientType::StructuredEvent).unwrap().0.unwrap();
    let proxy: StructuredProxyPushConsumer = proxy.as_object().narrow().unwrap();
    proxy.connect_structured_push_supplier(None).unwrap();
    proxy
}

/// A connected proxy for a consumer that pulls structured events.
pub(crate) fn pulling(channel: &EventChannel) -> StructuredProxyPullSupplier {
    let proxy = consumers(channel).obtain_notification_pull_supplier(ClientType::StructuredEvent).unwrap().0.unwrap();
    let proxy: StructuredProxyPullSupplier = proxy.as_object().narrow().unwrap();
    proxy.connect_structured_pull_consumer(None).unwrap();
    proxy
}

/// The names of the events that a consumer can pull now.
pub(crate) fn pulled(proxy: &StructuredProxyPullSupplier) -> Vec<String> {
    let next = || proxy.try_pull_structured_event().unwrap();
    std::iter::from_fn(|| Some(next()).filter(|(_, has_event)| *has_event)).map(|(event, _)| name(&event)).collect()
}

pub(crate) fn event_type(domain: &str, name: &str) -> EventType {
    EventType { domain_name: domain.to_owned(), type_name: name.to_owned() }
}

/// An event of the type `Plant`, `Alarm`, with this name, a `long` and a `string`.
pub(crate) fn event(name: &str, level: i32) -> StructuredEvent {
    let fixed_header = FixedEventHeader { event_type: event_type("Plant", "Alarm"), event_name: name.to_owned() };
    StructuredEvent {
        header: EventHeader { fixed_header, variable_header: Vec::new() },
        filterable_data: vec![
            Property { name: "level".to_owned(), value: Any::new(level).unwrap() },
            Property { name: "place".to_owned(), value: Any::new("boiler").unwrap() },
        ],
        remainder_of_body: Any::new(level).unwrap(),
    }
}

/// An event with a property in its variable header.
pub(crate) fn event_with(name: &str, property: &str, value: Any) -> StructuredEvent {
    let mut event = event(name, 0);
    event.header.variable_header.push(Property { name: property.to_owned(), value });
    event
}

pub(crate) fn name(event: &StructuredEvent) -> String {
    event.header.fixed_header.event_name.clone()
}

/// The codes and names of the errors.
pub(crate) fn codes(unsupported: &UnsupportedQoS) -> Vec<(spandrel::services::cos_notification::QoSErrorCode, &str)> {
    unsupported.qos_err.iter().map(|error| (error.code, &*error.name)).collect()
}

/// A consumer that records the names of events, the sizes of batches, and changes of event types.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) names: Mutex<Vec<String>>,
    pub(crate) events: Mutex<Vec<StructuredEvent>>,
    pub(crate) batches: Mutex<Vec<usize>>,
    pub(crate) offers: Mutex<Vec<(Vec<EventType>, Vec<EventType>)>>,
    pub(crate) disconnections: AtomicUsize,
    /// Whether it answers `Disconnected`.
    pub(crate) refuses: AtomicBool,
}

impl Recorder {
    pub(crate) fn wait_for(&self, expected: &[&str]) {
        wait_until("the events", || self.names.lock().unwrap().len() >= expected.len());
        assert_eq!(*self.names.lock().unwrap(), expected);
    }

    fn record(&self, event: &StructuredEvent) -> Result<(), DisconnectedError> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(Disconnected {}.into());
        }
        self.events.lock().unwrap().push(event.clone());
        self.names.lock().unwrap().push(name(event));
        Ok(())
    }
}

impl NotifyPublishServant for Recorder {
    fn offer_change(&self, added: &[EventType], removed: &[EventType]) -> Result<(), InvalidEventTypeError> {
        self.offers.lock().unwrap().push((added.to_vec(), removed.to_vec()));
        Ok(())
    }
}

impl StructuredPushConsumerServant for Recorder {
    fn push_structured_event(&self, notification: &StructuredEvent) -> Result<(), DisconnectedError> {
        self.record(notification)
    }

    fn disconnect_structured_push_consumer(&self) -> Result<(), SystemException> {
        self.disconnections.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl SequencePushConsumerServant for Recorder {
    fn push_structured_events(&self, notifications: &[StructuredEvent]) -> Result<(), DisconnectedError> {
        self.batches.lock().unwrap().push(notifications.len());
        notifications.iter().try_for_each(|event| self.record(event))
    }

    fn disconnect_sequence_push_consumer(&self) -> Result<(), SystemException> {
        self.disconnections.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

pub(crate) fn short(name: &str, value: i16) -> Property {
    Property { name: name.to_owned(), value: Any::new(value).unwrap() }
}

pub(crate) fn number(name: &str, value: i32) -> Property {
    Property { name: name.to_owned(), value: Any::new(value).unwrap() }
}

/// A property of the type `TimeBase::TimeT`, in milliseconds.
pub(crate) fn time(name: &str, ms: u64) -> Property {
    Property { name: name.to_owned(), value: Any::new(ms * 10_000).unwrap() }
}
