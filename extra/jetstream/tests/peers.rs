//! Consumers that count their events, and suppliers that push until each event is acknowledged.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use spandrel::services::cos_event_channel_admin::{EventChannel, ProxyPushConsumer, ProxyPushSupplier};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PushConsumer, PushConsumerServant, PushConsumerSkeleton};
use spandrel::types::Any;
use spandrel::{Endpoint, Orb, Poa, SystemException};

/// The events of a consumer in the order of their first receipt, and the longest time between two of them.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) events: Vec<u64>,
    /// The same events, for a search.
    known: HashSet<u64>,
    /// The events that came again.
    pub(crate) repeated: usize,
    pub(crate) longest_gap: Duration,
    last: Option<Instant>,
}

/// A servant that counts its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consumer(pub(crate) Arc<Mutex<Received>>);

impl PushConsumerServant for Consumer {
    fn push(&self, data: &Any) -> Result<(), PushError> {
        let event: u64 = data.extract().unwrap();
        let mut received = self.0.lock().unwrap();
        if received.known.insert(event) {
            received.events.push(event);
        } else {
            received.repeated += 1;
        }
        let gap = received.last.map_or(Duration::ZERO, |last| last.elapsed());
        received.longest_gap = received.longest_gap.max(gap);
        received.last = Some(Instant::now());
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl Consumer {
    /// Starts an ORB with a consumer, and connects it to a channel.
    pub(crate) fn connect(channel: &EventChannel) -> (Self, Orb, ProxyPushSupplier) {
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let consumer = Self::default();
        let root = Poa::root(&orb).unwrap();
        root.the_poa_manager().activate().unwrap();
        let object = root.activate(PushConsumerSkeleton::new(consumer.clone())).unwrap();
        let proxy = channel.for_consumers().unwrap().unwrap().obtain_push_supplier().unwrap().unwrap();
        proxy.connect_push_consumer(Some(&PushConsumer::unchecked_narrow(&object))).unwrap();
        (consumer, orb, proxy)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().events.len()
    }
}

/// A supplier that is connected to a channel.
pub(crate) fn supplier(channel: &EventChannel) -> ProxyPushConsumer {
    let proxy = channel.for_suppliers().unwrap().unwrap().obtain_push_consumer().unwrap().unwrap();
    proxy.connect_push_supplier(None).unwrap();
    proxy
}

/// A thread that pushes the numbers from zero, each until it is acknowledged.
pub(crate) struct Supplier {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(u64, Duration)>,
}

impl Supplier {
    /// `pause` is the time between two events.
    pub(crate) fn start(orb: &Orb, channel: &EventChannel, pause: Duration) -> Self {
        let orb = orb.clone();
        let proxy = supplier(channel);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let _orb = orb;
            let (mut event, mut longest, mut last) = (0_u64, Duration::ZERO, Instant::now());
            while !stopped.load(Ordering::Relaxed) {
                match proxy.push(&Any::new(event).unwrap()) {
                    Ok(()) => {
                        event += 1;
                        longest = longest.max(last.elapsed());
                        last = Instant::now();
                        std::thread::sleep(pause);
                    }
                    // It may have been stored: it is pushed again.
                    Err(PushError::System(_)) => std::thread::sleep(Duration::from_millis(5)),
                    Err(other) => panic!("{other}"),
                }
            }
            (event, longest.max(last.elapsed()))
        });
        Self { stop, thread }
    }

    /// The number of events that were acknowledged, and the longest time between two of them.
    pub(crate) fn stop(self) -> (u64, Duration) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
