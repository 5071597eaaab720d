//! The sentences of the specification (Event Service 1.2, formal/04-10-02) about channels and connections.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spandrel::services::cos_event_channel_admin::proxy_pull_consumer::ConnectPullSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_pull_supplier::ConnectPullConsumerError;
use spandrel::services::cos_event_channel_admin::proxy_push_consumer::ConnectPushSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_push_supplier::ConnectPushConsumerError;
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{
    PullConsumerServant, PullConsumerSkeleton, PullSupplierServant, PullSupplierSkeleton, PushSupplierServant,
    PushSupplierSkeleton,
};
use spandrel::services::event_monitoring::monitor::ConsumersError;
use spandrel::types::Any;
use spandrel::{Endpoint, Orb, Poa, SystemException, SystemExceptionKind};
use spandrel_event::{EventOptions, EventService, PeerOptions};
use spandrel_test_support::{free_port, wait_until};

use crate::support::{Served, consumers, long, supplier, suppliers};

/// A pull supplier, and a peer that counts the notices of its disconnection.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    events: Mutex<VecDeque<i32>>,
    disconnections: AtomicUsize,
}

impl Peer {
    /// A pull supplier with these events.
    pub(crate) fn with<const N: usize>(events: [i32; N]) -> Self {
        Self { events: Mutex::new(events.into()), ..Self::default() }
    }

    fn disconnect(&self) -> Result<(), SystemException> {
        self.disconnections.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    pub(crate) fn wait_for_disconnection(&self) {
        wait_until("a disconnection", || self.disconnections.load(Ordering::SeqCst) == 1);
    }
}

impl PullSupplierServant for Peer {
    fn pull(&self) -> Result<Any, PullError> {
        wait_until("an event", || !self.events.lock().unwrap().is_empty());
        Ok(self.try_pull()?.0)
    }

    fn try_pull(&self) -> Result<(Any, bool), TryPullError> {
        let event = self.events.lock().unwrap().pop_front();
        Ok(event.map_or_else(|| (Any::default(), false), |number| (long(number), true)))
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl PushSupplierServant for Peer {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl PullConsumerServant for Peer {
    fn disconnect_pull_consumer(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

fn is_gone(exception: &SystemException) -> bool {
    exception.kind() == SystemExceptionKind::ObjectNotExist
}

/// "An event channel can communicate with ... both styles" (2.2): each event of both kinds of suppliers reaches both kinds
/// of consumers.
#[test]
fn all_four_models_mix_on_one_channel() {
    let served = Served::transient();
    let channel = served.channel("mixed");
    let pushed = [served.connected(&channel), served.connected(&channel)];
    let pulled = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    pulled.connect_pull_consumer(None).unwrap();
    supplier(&channel).push(&long(1)).unwrap();
    for consumer in &pushed {
        consumer.wait_for(&[1]);
    }
    let peer = Arc::new(Peer::with([2, 3]));
    let root = Poa::root(&served.client).unwrap();
    let object = root.activate(PullSupplierSkeleton::new(Arc::clone(&peer))).unwrap();
    let proxy = suppliers(&channel).obtain_pull_consumer().unwrap().unwrap();
    proxy.connect_pull_supplier(Some(&object.unchecked_narrow())).unwrap();
    for consumer in &pushed {
        consumer.wait_for(&[1, 2, 3]);
    }
    let numbers = [(); 3].map(|()| pulled.pull().unwrap().extract::<i32>().unwrap());
    assert_eq!(numbers, [1, 2, 3]);
    assert!(!pulled.try_pull().unwrap().1);
    // "disconnect_pull_consumer": the supplier gets notice, and the proxy is disposed of.
    proxy.disconnect_pull_consumer().unwrap();
    peer.wait_for_disconnection();
    wait_until("the end of the proxy", || proxy.disconnect_pull_consumer().is_err_and(|error| is_gone(&error)));
}

/// `pull` "blocks until the event data is available" (2.1.3), and ends in `Disconnected` when the connection ends.
#[test]
fn pull_waits_for_an_event_or_the_end() {
    let served = Served::transient();
    let channel = served.channel("waiting");
    let pulled = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    assert!(matches!(pulled.pull(), Err(PullError::Disconnected(_))));
    assert!(matches!(pulled.try_pull(), Err(TryPullError::Disconnected(_))));
    pulled.connect_pull_consumer(None).unwrap();
    assert!(!pulled.try_pull().unwrap().1);
    let supplier = supplier(&channel);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pulled.pull());
        while !waiting.is_finished() {
            supplier.push(&long(7)).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(waiting.join().unwrap().unwrap().extract::<i32>().unwrap(), 7);
        while pulled.try_pull().unwrap().1 {}
        let waiting = scope.spawn(|| pulled.pull());
        let begun = || !waiting.is_finished();
        assert!(begun());
        channel.destroy().unwrap();
        match waiting.join().unwrap() {
            Err(PullError::Disconnected(_)) => {}
            Err(PullError::System(error)) => assert!(is_gone(&error), "{error}"),
            Ok(event) => panic!("{event:?}"),
        }
    });
}

/// "If the ProxyPushConsumer is already connected to a PushSupplier, then the AlreadyConnected exception is raised"
/// (2.3.4), and so for the other three.
#[test]
fn a_proxy_connects_once() {
    let served = Served::transient();
    let channel = served.channel("once");
    let (_, consumer) = served.consumer();
    let push = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
    push.connect_push_consumer(Some(&consumer)).unwrap();
    let again = push.connect_push_consumer(Some(&consumer));
    assert!(matches!(again, Err(ConnectPushConsumerError::AlreadyConnected(_))));
    let pull = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    pull.connect_pull_consumer(None).unwrap();
    assert!(matches!(pull.connect_pull_consumer(None), Err(ConnectPullConsumerError::AlreadyConnected(_))));
    let pushes = supplier(&channel);
    assert!(matches!(pushes.connect_push_supplier(None), Err(ConnectPushSupplierError::AlreadyConnected(_))));
    let object = Poa::root(&served.client).unwrap().activate(PullSupplierSkeleton::new(Peer::default())).unwrap();
    let pulls = suppliers(&channel).obtain_pull_consumer().unwrap().unwrap();
    pulls.connect_pull_supplier(Some(&object.unchecked_narrow())).unwrap();
    let again = pulls.connect_pull_supplier(Some(&object.unchecked_narrow()));
    assert!(matches!(again, Err(ConnectPullSupplierError::AlreadyConnected(_))));
}

/// "Implementations shall raise the CORBA standard BAD_PARAM exception if a nil object reference is passed" to
/// `connect_push_consumer` (2.3.7) and `connect_pull_supplier` (2.3.6).
#[test]
fn a_nil_reference_is_refused_where_the_channel_calls() {
    let served = Served::transient();
    let channel = served.channel("nil");
    let push = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
    match push.connect_push_consumer(None) {
        Err(ConnectPushConsumerError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::BadParam),
        other => panic!("{other:?}"),
    }
    let pull = suppliers(&channel).obtain_pull_consumer().unwrap().unwrap();
    match pull.connect_pull_supplier(None) {
        Err(ConnectPullSupplierError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::BadParam),
        other => panic!("{other:?}"),
    }
    // The proxy can be used after it.
    let (_, consumer) = served.consumer();
    push.connect_push_consumer(Some(&consumer)).unwrap();
}

/// `push` raises `Disconnected` "if the event communication has already been disconnected" (2.1.1); notices reach the peers
/// (2.1.1 to 2.1.4).
#[test]
fn disconnections_reach_the_peers() {
    let served = Served::transient();
    let channel = served.channel("ends");
    let unconnected = suppliers(&channel).obtain_push_consumer().unwrap().unwrap();
    assert!(matches!(unconnected.push(&long(1)), Err(PushError::Disconnected(_))));
    let root = Poa::root(&served.client).unwrap();

    let pusher = Arc::new(Peer::default());
    let object = root.activate(PushSupplierSkeleton::new(Arc::clone(&pusher))).unwrap();
    let proxy = suppliers(&channel).obtain_push_consumer().unwrap().unwrap();
    proxy.connect_push_supplier(Some(&object.unchecked_narrow())).unwrap();
    proxy.disconnect_push_consumer().unwrap();
    pusher.wait_for_disconnection();
    match proxy.push(&long(1)) {
        Err(PushError::Disconnected(_)) => {}
        Err(PushError::System(error)) => assert!(is_gone(&error)),
        Ok(()) => panic!("the proxy is disconnected"),
    }

    let puller = Arc::new(Peer::default());
    let object = root.activate(PullConsumerSkeleton::new(Arc::clone(&puller))).unwrap();
    let proxy = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    proxy.connect_pull_consumer(Some(&object.unchecked_narrow())).unwrap();
    proxy.disconnect_pull_supplier().unwrap();
    puller.wait_for_disconnection();

    let (recorder, consumer) = served.consumer();
    let proxy = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
    proxy.connect_push_consumer(Some(&consumer)).unwrap();
    proxy.disconnect_push_supplier().unwrap();
    recorder.wait_for_disconnection();
    supplier(&channel).push(&long(1)).unwrap();
    assert!(recorder.numbers.lock().unwrap().is_empty());
}

/// A consumer that answers `Disconnected`, or does not exist, gets no further calls.
#[test]
fn a_consumer_that_has_left_is_removed() {
    let served = Served::transient();
    let channel = served.channel("left");
    let refusing = served.connected(&channel);
    refusing.refuses.store(true, Ordering::SeqCst);
    let (_, gone) = served.consumer();
    let proxy = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
    proxy.connect_push_consumer(Some(&gone)).unwrap();
    Poa::root(&served.client).unwrap().deactivate(&gone.into()).unwrap();
    let staying = served.connected(&channel);
    let supplier = supplier(&channel);
    supplier.push(&long(1)).unwrap();
    staying.wait_for(&[1]);
    let monitor = served.monitor();
    wait_until("two removals", || monitor.consumers("left", 10).unwrap().len() == 1);
    wait_until("the counts of the deliveries", || {
        let state = &monitor.channels("", 10).unwrap()[0];
        (state.received, state.delivered, state.dropped) == (1, 1, 2)
    });
    assert_eq!(refusing.disconnections.load(Ordering::SeqCst), 0);
}

/// "The destroy operation destroys the event channel" (2.3.1), with its administrators and proxies.
#[test]
fn destroy_ends_all_connections() {
    let served = Served::transient();
    let channel = served.channel("destroyed");
    let recorder = served.connected(&channel);
    let (admin, pushes) = (consumers(&channel), supplier(&channel));
    channel.destroy().unwrap();
    recorder.wait_for_disconnection();
    assert_eq!(served.service().channels(), 0);
    wait_until("the end of the objects", || {
        let ends = [channel.for_consumers().err(), admin.obtain_push_supplier().err()];
        ends.iter().all(|error| error.as_ref().is_some_and(is_gone)) && pushes.push(&long(1)).is_err()
    });
    // The name is free.
    assert_eq!(served.connected(&served.channel("destroyed")).numbers.lock().unwrap().len(), 0);
}

#[test]
fn the_consumers_of_an_unknown_channel_raise_unknown_channel() {
    let served = Served::transient();
    let channel = served.channel("present");
    let monitor = served.monitor();
    assert!(monitor.consumers("present", 10).unwrap().is_empty());
    assert!(matches!(monitor.consumers("absent", 10), Err(ConsumersError::UnknownChannel(_))));
    channel.destroy().unwrap();
    assert!(matches!(monitor.consumers("present", 10), Err(ConsumersError::UnknownChannel(_))));
}

/// With the option, the supplier is called by `pull`.
#[test]
fn a_pull_supplier_may_be_called_by_pull() {
    let peers = PeerOptions { blocking_pull: true, ..PeerOptions::default() };
    let served = Served::with(EventOptions { peers, ..EventOptions::default() }, 0);
    let channel = served.channel("blocking");
    let recorder = served.connected(&channel);
    let peer = Arc::new(Peer::default());
    let object = Poa::root(&served.client).unwrap().activate(PullSupplierSkeleton::new(Arc::clone(&peer))).unwrap();
    let proxy = suppliers(&channel).obtain_pull_consumer().unwrap().unwrap();
    proxy.connect_pull_supplier(Some(&object.unchecked_narrow())).unwrap();
    peer.events.lock().unwrap().extend([4, 5]);
    recorder.wait_for(&[4, 5]);
    peer.events.lock().unwrap().push_back(6); // so that the waiting call ends
    recorder.wait_for(&[4, 5, 6]);
    proxy.disconnect_pull_consumer().unwrap();
    peer.events.lock().unwrap().push_back(7);
}

#[test]
fn channels_and_connections_survive_a_restart() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut served = Served::with(EventOptions::new(folder.path()), port);
    let channel = served.channel("kept");
    let destroyed = served.channel("destroyed");
    destroyed.destroy().unwrap();
    let recorder = served.connected(&channel);
    let (left, consumer) = served.consumer();
    let leaving = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
    leaving.connect_push_consumer(Some(&consumer)).unwrap();
    leaving.disconnect_push_supplier().unwrap();
    left.wait_for_disconnection();
    let pushes = supplier(&channel);
    pushes.push(&long(1)).unwrap();
    recorder.wait_for(&[1]);

    served.service.take().unwrap().stop().unwrap();
    served.orb.shutdown().unwrap();
    let file = folder.path().join(spandrel_event::STORE_FILE);
    assert_eq!(spandrel_event::check_store(&file).unwrap(), (1, 2));
    served.orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
    served.service = Some(EventService::start(&served.orb, EventOptions::new(folder.path())).unwrap());
    // The references of before are served, and the consumer is connected.
    pushes.push(&long(2)).unwrap();
    recorder.wait_for(&[1, 2]);
    assert!(consumers(&channel).obtain_pull_supplier().unwrap().is_some());
    let names: Vec<_> = served.monitor().channels("", 10).unwrap().into_iter().map(|state| state.name).collect();
    assert_eq!(names, ["kept"]);
}
