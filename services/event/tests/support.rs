//! An event service on an ORB of its own, its references as another ORB has them, and consumers that record events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spandrel::services::cos_event_channel_admin::{ConsumerAdmin, EventChannel, ProxyPushConsumer, SupplierAdmin};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PushConsumer, PushConsumerServant, PushConsumerSkeleton};
use spandrel::services::event_monitoring::Monitor;
use spandrel::types::Any;
use spandrel::{Endpoint, Orb, Poa, SystemException};
use spandrel_event::{EventOptions, EventService, PeerOptions};
use spandrel_test_support::wait_until;

/// A running service, and the ORB of its clients.
pub(crate) struct Served {
    pub(crate) client: Orb,
    pub(crate) service: Option<EventService>,
    pub(crate) orb: Orb,
}

impl Served {
    pub(crate) fn transient() -> Self {
        Self::with(EventOptions { peers: patient(), ..EventOptions::default() }, 0)
    }

    pub(crate) fn with(options: EventOptions, port: u16) -> Self {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
        let client = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let service = EventService::start(&orb, options).unwrap();
        Self { client, service: Some(service), orb }
    }

    pub(crate) fn service(&self) -> &EventService {
        self.service.as_ref().unwrap()
    }

    /// A channel as a client has it.
    pub(crate) fn channel(&self, name: &str) -> EventChannel {
        let object = self.service().channel(name).unwrap().to_string();
        self.client.string_to_object(&object).unwrap().narrow().unwrap()
    }

    pub(crate) fn monitor(&self) -> Monitor {
        let (host, port) = self.orb.listen().unwrap()[0].clone();
        self.client.string_to_object(&format!("corbaloc::{host}:{port}/EventMonitor")).unwrap().narrow().unwrap()
    }

    /// A consumer on the ORB of the clients, which is not connected.
    pub(crate) fn consumer(&self) -> (Arc<Recorder>, PushConsumer) {
        let recorder = Arc::new(Recorder::default());
        let root = Poa::root(&self.client).unwrap();
        let object = root.activate(PushConsumerSkeleton::new(Arc::clone(&recorder))).unwrap();
        (recorder, object.unchecked_narrow())
    }

    /// A consumer that is connected to a channel.
    pub(crate) fn connected(&self, channel: &EventChannel) -> Arc<Recorder> {
        let (recorder, consumer) = self.consumer();
        let proxy = consumers(channel).obtain_push_supplier().unwrap().unwrap();
        proxy.connect_push_consumer(Some(&consumer)).unwrap();
        recorder
    }
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

/// No call of a peer fails by its time limit, on a loaded machine neither.
pub(crate) fn patient() -> PeerOptions {
    PeerOptions { timeout: Duration::from_secs(600), ..PeerOptions::default() }
}

pub(crate) fn consumers(channel: &EventChannel) -> ConsumerAdmin {
    channel.for_consumers().unwrap().unwrap()
}

pub(crate) fn suppliers(channel: &EventChannel) -> SupplierAdmin {
    channel.for_suppliers().unwrap().unwrap()
}

/// A connected proxy for a supplier that gets no notice.
pub(crate) fn supplier(channel: &EventChannel) -> ProxyPushConsumer {
    let proxy = suppliers(channel).obtain_push_consumer().unwrap().unwrap();
    proxy.connect_push_supplier(None).unwrap();
    proxy
}

pub(crate) fn long(number: i32) -> Any {
    Any::new(number).unwrap()
}

/// A consumer that records numbers.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) numbers: Mutex<Vec<i32>>,
    pub(crate) disconnections: AtomicUsize,
    /// Whether it answers `Disconnected`.
    pub(crate) refuses: std::sync::atomic::AtomicBool,
}

impl Recorder {
    pub(crate) fn wait_for(&self, expected: &[i32]) {
        wait_until("the events", || self.numbers.lock().unwrap().len() >= expected.len());
        assert_eq!(*self.numbers.lock().unwrap(), expected);
    }

    pub(crate) fn wait_for_disconnection(&self) {
        wait_until("a disconnection", || self.disconnections.load(Ordering::SeqCst) == 1);
    }
}

impl PushConsumerServant for Recorder {
    fn push(&self, data: &Any) -> Result<(), PushError> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(spandrel::services::cos_event_comm::Disconnected {}.into());
        }
        self.numbers.lock().unwrap().push(data.extract().unwrap());
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.disconnections.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}
