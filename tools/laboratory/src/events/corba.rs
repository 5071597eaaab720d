//! Clients of event and notification services, by the stubs of this ORB.
//!
//! Each consumer has an address of its own, so that a service connects to each as to a program of its own. All are objects of
//! one reactive ORB, whose thread reads all connections.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use spandrel::services::cos_event_channel_admin::{EventChannel, ProxyPushConsumer, ProxyPushSupplier};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PushConsumer, PushConsumerServant, PushConsumerSkeleton};
use spandrel::services::cos_life_cycle::{GenericFactory, Nvp};
use spandrel::services::cos_naming::NameComponent;
use spandrel::services::cos_notification::{EventHeader, EventType, FixedEventHeader, Property, StructuredEvent};
use spandrel::services::cos_notify_channel_admin::{
    ClientType, EventChannel as NotificationChannel, EventChannelFactory, SequenceProxyPushConsumer,
    SequenceProxyPushSupplier, StructuredProxyPushConsumer, StructuredProxyPushSupplier,
};
use spandrel::services::cos_notify_comm::{
    DisconnectedError, InvalidEventTypeError, NotifyPublishServant, SequencePushConsumer, SequencePushConsumerServant,
    SequencePushConsumerSkeleton, StructuredPushConsumer, StructuredPushConsumerServant,
    StructuredPushConsumerSkeleton,
};
use spandrel::types::{Any, Interface as _};
use spandrel::{Endpoint, ObjectRef, Orb, Poa, SystemException};
use spandrel_error::output;

use super::ledger::{Event, Ledger};
use super::target::{Form, Supplier, Target};

/// The events of a sequence.
pub(super) const BATCH: i32 = 100;
/// The time that a sequence waits for further events, in units of 100 ns: 1 ms.
const PACING: u64 = 10_000;
/// The cycle of omniEvents, which collects the events of this time: 1 ms in place of 100 ms.
const CYCLE_NANOS: u32 = 1_000_000;
/// The events in the queue of a consumer of an event service.
const QUEUE: u32 = 2_000;
/// The events in the queue of a consumer of a notification service, which may be behind many suppliers.
const MAX_EVENTS: i32 = 1_000_000;
/// The time within which a channel of an event service is destroyed.
const DESTRUCTION: Duration = Duration::from_secs(10);
/// The most suppliers of a channel.
const SUPPLIERS: usize = 64;

/// The channel of a service.
enum ServiceChannel {
    Event(EventChannel),
    Notification(NotificationChannel, Form),
}

/// A channel, and the ORB of its supplier.
pub(super) struct Channel {
    client: Orb,
    /// The ORB of the consumers, once they are connected.
    consumers: OnceLock<Orb>,
    channel: ServiceChannel,
    /// The proxies of consumers of a channel that lives as long as its server; they are disconnected in the end.
    proxies: Option<Mutex<Vec<ProxyPushSupplier>>>,
}

fn property(name: &str, value: Any) -> Property {
    Property { name: name.to_owned(), value }
}

/// Creates a channel of a service.
pub(super) fn create_channel(target: &Target) -> anyhow::Result<Channel> {
    // Each of several suppliers has a connection of its own.
    let client =
        Orb::builder().option("-ORBConnectionSharing", "exclusive")?.connections_per_peer(SUPPLIERS).build()?;
    let channel = match target {
        Target::Event(factory) => {
            let factory: GenericFactory = client.string_to_object(factory)?.narrow()?;
            let key = [NameComponent { id: "EventChannel".to_owned(), kind: "object interface".to_owned() }];
            let criterion = |name: &str, value: u32| -> anyhow::Result<Nvp> {
                Ok(Nvp { name: name.to_owned(), value: Any::new(value)? })
            };
            let criteria = [criterion("CyclePeriod_ns", CYCLE_NANOS)?, criterion("MaxQueueLength", QUEUE)?];
            let channel = factory.create_object(&key, &criteria)?.context("the factory returned no channel")?;
            ServiceChannel::Event(channel.narrow()?)
        }
        Target::Notification { factory, form, is_persistent } => {
            let factory: EventChannelFactory = client.string_to_object(factory)?.narrow()?;
            let mut qos = vec![
                property("OrderPolicy", Any::new(1_i16)?), // in the order of their arrival
                property("MaxEventsPerConsumer", Any::new(MAX_EVENTS)?),
            ];
            if *form == Form::Sequence {
                qos.push(property("MaximumBatchSize", Any::new(BATCH)?));
                qos.push(property("PacingInterval", Any::new(PACING)?));
            }
            if *is_persistent {
                qos.push(property("EventReliability", Any::new(1_i16)?));
                qos.push(property("ConnectionReliability", Any::new(1_i16)?));
            }
            let (channel, _) = factory.create_channel(&qos, &[])?;
            ServiceChannel::Notification(channel.context("the factory returned no channel")?, *form)
        }
        Target::EventChannel(channel) => ServiceChannel::Event(client.string_to_object(channel)?.narrow()?),
        _ => bail!("the server is no service of an ORB"),
    };
    let proxies = matches!(target, Target::EventChannel(_)).then(Mutex::default);
    Ok(Channel { client, consumers: OnceLock::new(), channel, proxies })
}

/// A consumer of any form.
struct Consumer {
    ledger: Arc<Ledger>,
    nth: usize,
}

impl Consumer {
    fn receive(&self, value: &Any) {
        // Another type is an event with other octets.
        self.ledger.receive(self.nth, &value.extract::<Vec<u8>>().unwrap_or_default());
    }
}

impl PushConsumerServant for Consumer {
    fn push(&self, data: &Any) -> Result<(), PushError> {
        self.ledger.count_call();
        self.receive(data);
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl NotifyPublishServant for Consumer {
    fn offer_change(&self, _added: &[EventType], _removed: &[EventType]) -> Result<(), InvalidEventTypeError> {
        Ok(())
    }
}

impl StructuredPushConsumerServant for Consumer {
    fn push_structured_event(&self, notification: &StructuredEvent) -> Result<(), DisconnectedError> {
        self.ledger.count_call();
        self.receive(&notification.remainder_of_body);
        Ok(())
    }

    fn disconnect_structured_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl SequencePushConsumerServant for Consumer {
    fn push_structured_events(&self, notifications: &[StructuredEvent]) -> Result<(), DisconnectedError> {
        self.ledger.count_call();
        notifications.iter().for_each(|event| self.receive(&event.remainder_of_body));
        Ok(())
    }

    fn disconnect_sequence_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Channel {
    /// The form of its events.
    fn form(&self) -> Form {
        match &self.channel {
            ServiceChannel::Event(_) => Form::Any,
            ServiceChannel::Notification(_, form) => *form,
        }
    }

    /// The channel by the interfaces of the event service.
    fn as_event_channel(&self) -> EventChannel {
        match &self.channel {
            ServiceChannel::Event(channel) => channel.clone(),
            ServiceChannel::Notification(channel, _) => channel.as_object().unchecked_narrow(),
        }
    }

    fn as_notification_channel(&self) -> anyhow::Result<&NotificationChannel> {
        match &self.channel {
            ServiceChannel::Notification(channel, _) => Ok(channel),
            ServiceChannel::Event(_) => bail!("an event channel has no structured events"),
        }
    }

    /// Connects the consumers of a ledger.
    pub(super) fn connect_consumers(&self, ledger: &Arc<Ledger>) -> anyhow::Result<()> {
        let mut builder = Orb::builder().option("-ORBConcurrency", "reactive")?;
        for _ in 0..ledger.consumers() {
            builder = builder.listen(Endpoint::new("127.0.0.1", 0));
        }
        let orb = builder.build()?;
        let root = Poa::root(&orb)?;
        let addresses = orb.listen()?;
        for nth in 0..ledger.consumers() {
            let consumer = Consumer { ledger: Arc::clone(ledger), nth };
            let object: ObjectRef = match self.form() {
                Form::Any => root.activate(PushConsumerSkeleton::new(consumer))?,
                Form::Structured => root.activate(StructuredPushConsumerSkeleton::new(consumer))?,
                Form::Sequence => root.activate(SequencePushConsumerSkeleton::new(consumer))?,
            };
            // The object's own reference has all addresses of the ORB, of which the first would be that of all consumers.
            let key = orb.own_object_key(object.ior()).context("the object has no key")?;
            let key: String = key.iter().map(|octet| format!("%{octet:02x}")).collect();
            let (host, port) = addresses.get(nth).context("the ORB does not listen at all addresses")?;
            let url = format!("corbaloc:iiop:1.2@{host}:{port}/{key}");
            self.connect_consumer(&self.client.string_to_object(&url)?)?;
        }
        self.consumers.set(orb).map_err(|_| anyhow!("the channel has consumers already"))
    }

    fn connect_consumer(&self, object: &ObjectRef) -> anyhow::Result<()> {
        if self.form() == Form::Any {
            let admin = self.as_event_channel().for_consumers()?.context("no administrator")?;
            let consumer: PushConsumer = object.unchecked_narrow();
            let proxy = admin.obtain_push_supplier()?.context("no proxy")?;
            proxy.connect_push_consumer(Some(&consumer))?;
            if let Some(proxies) = &self.proxies {
                proxies.lock().unwrap_or_else(PoisonError::into_inner).push(proxy);
            }
            return Ok(());
        }
        let admin = self.as_notification_channel()?.default_consumer_admin()?.context("no administrator")?;
        if self.form() == Form::Structured {
            let proxy = admin.obtain_notification_push_supplier(ClientType::StructuredEvent)?.0.context("no proxy")?;
            let proxy: StructuredProxyPushSupplier = proxy.as_object().narrow()?;
            let consumer: StructuredPushConsumer = object.unchecked_narrow();
            proxy.connect_structured_push_consumer(Some(&consumer))?;
        } else {
            let proxy = admin.obtain_notification_push_supplier(ClientType::SequenceEvent)?.0.context("no proxy")?;
            let proxy: SequenceProxyPushSupplier = proxy.as_object().narrow()?;
            let consumer: SequencePushConsumer = object.unchecked_narrow();
            proxy.connect_sequence_push_consumer(Some(&consumer))?;
        }
        Ok(())
    }

    /// Connects a supplier that gets no notice of its end.
    pub(super) fn connect_supplier(&self) -> anyhow::Result<Box<dyn Supplier>> {
        if self.form() == Form::Any {
            let admin = self.as_event_channel().for_suppliers()?.context("no administrator")?;
            let proxy = admin.obtain_push_consumer()?.context("no proxy")?;
            proxy.connect_push_supplier(None)?;
            return Ok(Box::new(AnySupplier(proxy)));
        }
        let admin = self.as_notification_channel()?.default_supplier_admin()?.context("no administrator")?;
        if self.form() == Form::Structured {
            let proxy = admin.obtain_notification_push_consumer(ClientType::StructuredEvent)?.0.context("no proxy")?;
            let proxy: StructuredProxyPushConsumer = proxy.as_object().narrow()?;
            proxy.connect_structured_push_supplier(None)?;
            return Ok(Box::new(StructuredSupplier(proxy)));
        }
        let proxy = admin.obtain_notification_push_consumer(ClientType::SequenceEvent)?.0.context("no proxy")?;
        let proxy: SequenceProxyPushConsumer = proxy.as_object().narrow()?;
        proxy.connect_sequence_push_supplier(None)?;
        Ok(Box::new(SequenceSupplier { proxy, events: Vec::new() }))
    }

    /// Destroys the channel unless it lives as long as its server, and ends its clients.
    pub(super) fn destroy(self) -> anyhow::Result<()> {
        let outcome = match (&self.channel, self.proxies) {
            (_, Some(proxies)) => {
                let proxies = proxies.into_inner().unwrap_or_else(PoisonError::into_inner);
                proxies.iter().try_for_each(|proxy| proxy.disconnect_push_supplier())
            }
            (ServiceChannel::Event(channel), None) => {
                let limited = channel.as_object().with_timeout(Some(DESTRUCTION));
                limited.unchecked_narrow::<EventChannel>().destroy()
            }
            (ServiceChannel::Notification(channel, _), None) => channel.destroy(),
        };
        // Seldom a channel of omniEvents ends before it has replied, or never replies.
        if let Err(error) = outcome {
            output::remark(&format!("destroy: {error}\n"));
        }
        if let Some(orb) = self.consumers.into_inner() {
            orb.shutdown()?;
        }
        self.client.shutdown()?;
        Ok(())
    }
}

struct AnySupplier(ProxyPushConsumer);

impl Supplier for AnySupplier {
    fn push(&mut self, event: &Event) -> anyhow::Result<()> {
        Ok(self.0.push(&Any::new(event.to_vec())?)?)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// An event of the type `Laboratory`, `Measured`, whose body are these octets.
fn structured(event: &Event) -> anyhow::Result<StructuredEvent> {
    let event_type = EventType { domain_name: "Laboratory".to_owned(), type_name: "Measured".to_owned() };
    let fixed_header = FixedEventHeader { event_type, event_name: String::new() };
    Ok(StructuredEvent {
        header: EventHeader { fixed_header, variable_header: Vec::new() },
        filterable_data: Vec::new(),
        remainder_of_body: Any::new(event.to_vec())?,
    })
}

struct StructuredSupplier(StructuredProxyPushConsumer);

impl Supplier for StructuredSupplier {
    fn push(&mut self, event: &Event) -> anyhow::Result<()> {
        Ok(self.0.push_structured_event(&structured(event)?)?)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

struct SequenceSupplier {
    proxy: SequenceProxyPushConsumer,
    events: Vec<StructuredEvent>,
}

impl Supplier for SequenceSupplier {
    fn push(&mut self, event: &Event) -> anyhow::Result<()> {
        self.events.push(structured(event)?);
        if self.events.len() >= BATCH as usize { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if !self.events.is_empty() {
            self.proxy.push_structured_events(&self.events)?;
            self.events.clear();
        }
        Ok(())
    }
}
