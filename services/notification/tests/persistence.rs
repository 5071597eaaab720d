//! Channels, connections and events in the store of a service that ends and starts again.

use std::time::{Duration, SystemTime};

use spandrel::policy::UtcT;
use spandrel::services::cos_notification::qo_s_admin::SetQosError;
use spandrel::services::cos_notification::{Property, QoSErrorCode};
use spandrel::services::cos_notify_channel_admin::{
    ClientType, ConsumerAdmin, InterFilterGroupOperator, StructuredProxyPullSupplier, StructuredProxyPushSupplier,
    UnsupportedAdminOrUnsupportedQoSError,
};
use spandrel::services::cos_notify_comm::{DisconnectedError, StructuredPushConsumerSkeleton};
use spandrel::services::cos_notify_filter::MappingConstraintPair;
use spandrel::types::{Any, Interface as _};
use spandrel::{Endpoint, Orb, Poa, SystemExceptionKind};
use spandrel_notification::{NotificationOptions, PeerOptions, STORE_FILE, check_store};
use spandrel_store::Storage;
use spandrel_test_support::disk::Disk;
use spandrel_test_support::{free_port, wait_until};

use crate::support::{
    Recorder, Served, codes, constraint, consumers, event, event_type, event_with, number, persistent, pulled, pulling,
    short, supplier, suppliers, time,
};

fn value(properties: &[Property], name: &str) -> i32 {
    let value = &properties.iter().find(|property| property.name == name).unwrap().value;
    value.extract::<i32>().unwrap_or_else(|_| value.extract::<i16>().unwrap().into())
}

fn pull_proxy(admin: &ConsumerAdmin) -> StructuredProxyPullSupplier {
    let proxy = admin.obtain_notification_pull_supplier(ClientType::StructuredEvent).unwrap().0.unwrap();
    let proxy: StructuredProxyPullSupplier = proxy.as_object().narrow().unwrap();
    proxy.connect_structured_pull_consumer(None).unwrap();
    proxy
}

#[test]
fn a_persistent_channel_is_there_after_a_restart_with_all_its_parts() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let served = Served::at(port, NotificationOptions::new(folder.path()));
    let (channel, id) = served.factory().create_channel(&persistent(), &[number("MaxConsumers", 7)]).unwrap();
    let channel = channel.unwrap();
    channel.set_qos(&[short("Priority", 3)]).unwrap();
    let (admin, admin_id) = channel.new_for_consumers(InterFilterGroupOperator::OrOp).unwrap();
    let admin = admin.unwrap();
    admin.set_qos(&[number("MaximumBatchSize", 9)]).unwrap();
    let of_admin = served.filter(&channel, &["$level > 100"]);
    let filter_id = admin.add_filter(Some(&of_admin)).unwrap();
    let own = served.filter(&channel, &["$level == 5", "$place == nowhere"]);
    let proxy = pull_proxy(&admin);
    proxy.add_filter(Some(&own)).unwrap();
    // A filter that was destroyed goes on for the objects that use it; one that no object uses ends.
    own.destroy().unwrap();
    let unused = served.filter(&channel, &["TRUE"]);
    let factory = channel.default_filter_factory().unwrap().unwrap();
    let mapping = factory.create_mapping_filter("EXTENDED_TCL", &Any::new(0_i16).unwrap()).unwrap().unwrap();
    let urgent = MappingConstraintPair {
        constraint_expression: constraint("$event_name == last"),
        result_to_set: Any::new(90_i16).unwrap(),
    };
    mapping.add_mapping_constraints(&[urgent]).unwrap();
    proxy.set_priority_filter(Some(&mapping)).unwrap();
    let other = pulling(&channel);
    other.subscription_change(&[event_type("Plant", "Alarm")], &[]).unwrap();
    let ended = pulling(&channel);
    ended.disconnect_structured_pull_supplier().unwrap();
    let best_effort = pulling(&channel);
    best_effort.set_qos(&[short("ConnectionReliability", 0)]).unwrap();
    let pushes = supplier(&channel);
    for (name, level) in [("first", 5), ("no", 6), ("second", 101), ("last", 5)] {
        pushes.push_structured_event(&event(name, level)).unwrap();
    }
    let mut elsewhere = event("elsewhere", 5);
    elsewhere.header.fixed_header.event_type = event_type("Office", "Mail");
    pushes.push_structured_event(&elsewhere).unwrap();
    pushes.push_structured_event(&event_with("transient", "EventReliability", Any::new(0_i16).unwrap())).unwrap();
    let transient = served.channel();
    let before = served.factory().get_all_channels().unwrap();
    drop(served);

    let counts = check_store(&folder.path().join(STORE_FILE)).unwrap();
    assert_eq!((counts.channels, counts.connections, counts.filters, counts.events), (1, 3, 3, 5));
    let served = Served::at(port, NotificationOptions::new(folder.path()));
    assert_eq!(served.factory().get_all_channels().unwrap(), [id]);
    let channel = served.factory().get_event_channel(id).unwrap().unwrap();
    assert_eq!(value(&channel.get_qos().unwrap(), "Priority"), 3);
    assert_eq!(value(&channel.get_admin().unwrap(), "MaxConsumers"), 7);
    let admin = channel.get_consumeradmin(admin_id).unwrap().unwrap();
    assert_eq!(admin.my_operator().unwrap(), InterFilterGroupOperator::OrOp);
    assert_eq!(value(&admin.get_qos().unwrap(), "MaximumBatchSize"), 9);
    let constraints = admin.get_filter(filter_id).unwrap().unwrap().get_all_constraints().unwrap();
    assert_eq!(constraints[0].constraint_expression.constraint_expr, "$level > 100");
    // The mapping filter gave the last event the highest priority.
    assert_eq!(pulled(&served.again(&proxy)), ["last", "first", "second", "elsewhere"]);
    assert_eq!(pulled(&served.again(&other)), ["first", "no", "second", "last"]);
    let gone =
        |object: &spandrel::ObjectRef| served.client.string_to_object(&object.to_string()).unwrap().non_existent();
    for object in
        [ended.as_object(), best_effort.as_object(), unused.as_object(), own.as_object(), transient.as_object()]
    {
        assert!(gone(object).unwrap());
    }
    assert!(!gone(mapping.as_object()).unwrap() && !gone(of_admin.as_object()).unwrap());
    // Ids are not used again; the objects work as before.
    let (_, new) = served.factory().create_channel(&[], &[]).unwrap();
    assert!(!before.contains(&new));
    served.again(&of_admin).add_constraints(&[constraint("$level == 1")]).unwrap();
    let pushes = served.again(&pushes);
    pushes.push_structured_event(&event("again", 1)).unwrap();
    pushes.push_structured_event(&event("no", 2)).unwrap();
    assert_eq!(pulled(&served.again(&proxy)), ["again"]);
    channel.destroy().unwrap();
    drop(served);
    let counts = check_store(&folder.path().join(STORE_FILE)).unwrap();
    assert_eq!((counts.channels, counts.connections, counts.filters, counts.events), (0, 0, 2, 0));
    // Filters that were not destroyed end with the process if no object uses them.
    drop(Served::at(port, NotificationOptions::new(folder.path())));
    assert_eq!(check_store(&folder.path().join(STORE_FILE)).unwrap().filters, 0);
}

#[test]
fn a_pull_acknowledges_the_events_before() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut served = Served::at(port, NotificationOptions::new(folder.path()));
    let channel = served.channel_with(&persistent(), &[]);
    let (proxy, pushes) = (pulling(&channel), supplier(&channel));
    for name in ["1", "2", "3"] {
        pushes.push_structured_event(&event(name, 0)).unwrap();
    }
    let next = |served: &Served| crate::support::name(&served.again(&proxy).pull_structured_event().unwrap());
    assert_eq!(next(&served), "1");
    for expected in [&["1", "2"][..], &["2", "3"]] {
        drop(served);
        served = Served::at(port, NotificationOptions::new(folder.path()));
        for name in expected {
            assert_eq!(next(&served), *name);
        }
    }
    // One that waits for an event as well.
    let waiting = spandrel_test_support::in_background({
        let proxy = served.again(&proxy);
        move || proxy.pull_structured_event().map(|event| crate::support::name(&event))
    });
    served.again(&pushes).push_structured_event(&event("4", 0)).unwrap();
    assert_eq!(waiting.recv_timeout(spandrel_test_support::TEST_TIMEOUT).unwrap().unwrap(), "4");
    drop(served);
    served = Served::at(port, NotificationOptions::new(folder.path()));
    assert_eq!(pulled(&served.again(&proxy)), ["4"]);
}

/// Reliability of a channel changes while it has connections.
#[test]
fn a_channel_enters_and_leaves_the_store_by_its_reliability() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut served = Served::at(port, NotificationOptions::new(folder.path()));
    let channel = served.channel();
    let proxy = pulling(&channel);
    proxy.add_filter(Some(&served.filter(&channel, &["$level == 1"]))).unwrap();
    let pushes = supplier(&channel);
    let refused = |outcome: Result<(), SetQosError>| {
        let Err(SetQosError::UnsupportedQoS(errors)) = outcome else { panic!("{outcome:?}") };
        codes(&errors).into_iter().map(|(code, name)| (code, name.to_owned())).collect::<Vec<_>>()
    };
    let unavailable = |name: &str| vec![(QoSErrorCode::UnavailableValue, name.to_owned())];
    assert_eq!(refused(proxy.set_qos(&[short("ConnectionReliability", 1)])), unavailable("ConnectionReliability"));
    assert_eq!(refused(channel.set_qos(&[short("EventReliability", 1)])), unavailable("EventReliability"));
    channel.set_qos(&persistent()).unwrap();
    pushes.push_structured_event(&event("event", 1)).unwrap();
    drop(served);
    served = Served::at(port, NotificationOptions::new(folder.path()));
    let channel = served.again(&channel);
    assert_eq!(pulled(&served.again(&proxy)), ["event"]);
    channel.set_qos(&[short("EventReliability", 0), short("ConnectionReliability", 0)]).unwrap();
    served.again(&pushes).push_structured_event(&event("lost", 1)).unwrap();
    drop(served);
    served = Served::at(port, NotificationOptions::new(folder.path()));
    assert_eq!(served.service().channels(), 0);
    // Without a store there is no such channel.
    let memory = Served::new();
    let outcome = memory.factory().create_channel(&persistent(), &[]);
    let Err(UnsupportedAdminOrUnsupportedQoSError::UnsupportedQoS(errors)) = outcome else { panic!("{outcome:?}") };
    let unsupported = QoSErrorCode::UnsupportedValue;
    assert_eq!(codes(&errors), [(unsupported, "EventReliability"), (unsupported, "ConnectionReliability")]);
}

/// Times of events count across a restart.
#[test]
fn events_start_and_end_across_a_restart() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut served = Served::at(port, NotificationOptions::new(folder.path()));
    let channel = served.channel_with(&persistent(), &[]);
    let (proxy, pushes) = (pulling(&channel), supplier(&channel));
    let start = UtcT::from_system_time(SystemTime::now() + Duration::from_secs(2)).unwrap();
    pushes.push_structured_event(&event_with("later", "StartTime", Any::new(start).unwrap())).unwrap();
    let short_life = time("Timeout", 1);
    pushes.push_structured_event(&event_with("ended", &short_life.name, short_life.value)).unwrap();
    drop(served);
    let counts = check_store(&folder.path().join(STORE_FILE)).unwrap();
    assert_eq!(counts.events, 2);
    served = Served::at(port, NotificationOptions::new(folder.path()));
    let name = crate::support::name(&served.again(&proxy).pull_structured_event().unwrap());
    assert!(name == "later" && SystemTime::now() >= start.to_system_time().unwrap(), "{name}");
    assert!(pulled(&served.again(&proxy)).is_empty());
    drop(served);
    // A task that holds the event when the service ends leaves its record, without a consumer, to the next start.
    served = Served::at(port, NotificationOptions::new(folder.path()));
    assert!(pulled(&served.again(&proxy)).is_empty());
    drop(served);
    assert_eq!(check_store(&folder.path().join(STORE_FILE)).unwrap().events, 0);
}

/// A consumer at a port, with a reference that is valid for the next one there.
fn consumer_at(port: u16) -> (Orb, std::sync::Arc<Recorder>) {
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", port)).build().unwrap();
    let recorder = std::sync::Arc::new(Recorder::default());
    let skeleton = StructuredPushConsumerSkeleton::new(std::sync::Arc::clone(&recorder));
    let object = Poa::root(&orb).unwrap().activate(skeleton).unwrap();
    orb.set_object_key_alias("consumer", &object).unwrap();
    (orb, recorder)
}

/// A persistent connection is not given up after failures, and an event whose fate is unknown is pushed again.
#[test]
fn an_absent_consumer_gets_its_events_when_it_returns() {
    let (folder, port, consumer_port) = (tempfile::tempdir().unwrap(), free_port(), free_port());
    let peers = PeerOptions { max_failures: 2, retry_pause: Duration::from_millis(1), ..PeerOptions::default() };
    let options = || NotificationOptions { peers, ..NotificationOptions::new(folder.path()) };
    let mut served = Served::at(port, options());
    let channel = served.channel_with(&persistent(), &[]);
    let (orb, recorder) = consumer_at(consumer_port);
    let reference = format!("corbaloc::127.0.0.1:{consumer_port}/consumer");
    let proxy = consumers(&channel).obtain_notification_push_supplier(ClientType::StructuredEvent).unwrap().0.unwrap();
    let proxy: StructuredProxyPushSupplier = proxy.as_object().narrow().unwrap();
    let consumer = served.client.string_to_object(&reference).unwrap().unchecked_narrow();
    proxy.connect_structured_push_consumer(Some(&consumer)).unwrap();
    let pushes = supplier(&channel);
    pushes.push_structured_event(&event("1", 0)).unwrap();
    recorder.wait_for(&["1"]);
    orb.shutdown().unwrap();
    for name in ["2", "3"] {
        pushes.push_structured_event(&event(name, 0)).unwrap();
    }
    let failures = |served: &Served| {
        let text = served.service().metrics()();
        text.contains("spandrel_notification_queue_length{channel=\"1\"} 2\n")
    };
    std::thread::sleep(Duration::from_millis(50)); // more failures than a best-effort connection survives
    assert!(failures(&served));
    drop(served);
    served = Served::at(port, options());
    assert!(failures(&served));
    served.again(&proxy).suspend_connection().unwrap();
    drop(served);
    let (orb, recorder) = consumer_at(consumer_port);
    served = Served::at(port, options());
    assert!(recorder.names.lock().unwrap().is_empty(), "the connection is suspended");
    served.again(&proxy).resume_connection().unwrap();
    recorder.wait_for(&["2", "3"]);
    served.again(&pushes).push_structured_event(&event("4", 0)).unwrap();
    recorder.wait_for(&["2", "3", "4"]);
    wait_until("the last acknowledgement", || served.service().event_octets() == 0);
    drop(served);
    orb.shutdown().unwrap();
    assert_eq!(check_store(&folder.path().join(STORE_FILE)).unwrap().events, 0);
}

fn on_disk(disk: &Disk) -> NotificationOptions {
    let disk = disk.clone();
    NotificationOptions { storage: Some(Storage::backend(move || disk.clone())), ..NotificationOptions::default() }
}

#[test]
fn a_full_disk_is_a_clean_exception() {
    let disk = Disk::default();
    let served = Served::with(on_disk(&disk));
    let channel = served.channel_with(&persistent(), &[]);
    let (proxy, pushes) = (pulling(&channel), supplier(&channel));
    let unconnected = suppliers(&channel).obtain_notification_push_consumer(ClientType::StructuredEvent).unwrap().0;
    let unconnected = unconnected
        .unwrap()
        .as_object()
        .narrow::<spandrel::services::cos_notify_channel_admin::StructuredProxyPushConsumer>()
        .unwrap();
    // Both have more octets than the file has free ones.
    let text = format!("$level == 1 or $place == '{}'", "x".repeat(16_000));
    let filter = served.filter(&channel, &[&*text; 30]);
    unconnected.add_filter(Some(&filter)).unwrap();
    let mut large = event("large", 1);
    large.remainder_of_body = Any::new("x".repeat(500_000)).unwrap();
    disk.set_space(Some(disk.used()));
    match pushes.push_structured_event(&large) {
        Err(DisconnectedError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::PersistStore),
        other => panic!("{other:?}"),
    }
    assert!(pulled(&proxy).is_empty());
    let refused = proxy.add_filter(Some(&filter)).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::PersistStore);
    assert!(proxy.get_all_filters().unwrap().is_empty());
    assert!(unconnected.connect_structured_push_supplier(None).is_err());
    disk.set_space(None);
    pushes.push_structured_event(&large).unwrap();
    unconnected.connect_structured_push_supplier(None).unwrap();
    proxy.add_filter(Some(&filter)).unwrap();
    assert_eq!(pulled(&proxy), ["large"]);
}

fn with_log(disk: &Disk) -> NotificationOptions {
    let (disk, log) = (disk.clone(), disk.log());
    let storage = Storage::backend(move || disk.clone()).with_log(move || log.clone());
    NotificationOptions { storage: Some(storage), ..NotificationOptions::default() }
}

/// The redo log is full, and the database has no room for its events.
#[test]
fn a_disk_that_is_full_at_a_checkpoint_loses_no_event() {
    let disk = Disk::default();
    let served = Served::with(with_log(&disk));
    let channel = served.channel_with(&persistent(), &[]);
    let (proxy, pushes) = (pulling(&channel), supplier(&channel));
    disk.set_space(Some(disk.used()));
    let mut expected = Vec::new();
    let refused = (0..20).find_map(|nth| {
        let mut large = event(&nth.to_string(), 1);
        large.remainder_of_body = Any::new("x".repeat(500_000)).unwrap();
        let outcome = pushes.push_structured_event(&large);
        if outcome.is_ok() {
            expected.push(nth.to_string());
        }
        outcome.err()
    });
    match refused {
        Some(DisconnectedError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::PersistStore),
        other => panic!("{other:?}"),
    }
    assert!(expected.len() > 1, "{expected:?}");
    disk.set_space(None);
    pushes.push_structured_event(&event("last", 1)).unwrap();
    expected.push("last".to_owned());
    assert_eq!(pulled(&proxy), expected);
}

/// The state of a disk after a loss of power, as a new service has it: the length of the only queue.
fn queue_length(disk: &Disk) -> String {
    let text = Served::with(with_log(disk)).service().metrics()();
    let length = text.lines().find_map(|line| line.strip_prefix("spandrel_notification_queue_length{channel=\"1\"} "));
    length.unwrap_or_default().to_owned()
}

/// Events in the database, in the log, and with a removal in the log.
#[test]
fn events_that_were_pulled_are_removed_from_the_database_and_the_log() {
    let disk = Disk::default();
    let served = Served::with(with_log(&disk));
    let channel = served.channel_with(&persistent(), &[]);
    let (proxy, pushes) = (pulling(&channel), supplier(&channel));
    pushes.push_structured_event(&event("1", 1)).unwrap();
    channel.set_qos(&[number("MaximumBatchSize", 3)]).unwrap(); // a checkpoint
    pushes.push_structured_event(&event("2", 1)).unwrap();
    let mut random = fastrand::Rng::with_seed(39);
    assert_eq!(queue_length(&disk.after_power_loss(&mut random)), "2");
    assert_eq!(pulled(&proxy), ["1", "2"]);
    wait_until("the removals", || queue_length(&disk.after_power_loss(&mut random)) == "0");
    pushes.push_structured_event(&event("3", 1)).unwrap();
    assert_eq!(queue_length(&disk.after_power_loss(&mut random)), "1");
    channel.set_qos(&[number("MaximumBatchSize", 4)]).unwrap(); // writes no event that has ended
    assert_eq!(queue_length(&disk.after_power_loss(&mut random)), "1");
}

/// An event whose push has returned is in the redo log, or in the database after a checkpoint.
#[test]
fn acknowledged_events_survive_a_loss_of_power() {
    const EVENTS: usize = 30;
    let disk = Disk::default();
    let served = Served::with(with_log(&disk));
    let channel = served.channel_with(&persistent(), &[]);
    let (_proxy, pushes) = (pulling(&channel), supplier(&channel));
    let mut random = fastrand::Rng::with_seed(39);
    let mut copies = Vec::new();
    for nth in 1..=EVENTS {
        pushes.push_structured_event(&event(&nth.to_string(), 1)).unwrap();
        if nth == EVENTS / 2 {
            channel.set_qos(&[short("Priority", 3)]).unwrap(); // a checkpoint
        }
        copies.push((nth, disk.after_power_loss(&mut random)));
    }
    drop(served);
    copies.push((EVENTS, disk));
    for (events, disk) in copies {
        assert_eq!(queue_length(&disk), events.to_string());
    }
}

/// Suppliers at the same time share synchronizations of the disk, and the events of a sequence are one change.
#[test]
fn persistent_events_share_synchronizations() {
    const SUPPLIERS: usize = 8;
    let disk = Disk::default();
    let served = Served::with(with_log(&disk));
    let channel = served.channel_with(&persistent(), &[]);
    let proxy = pulling(&channel);
    let pushes: Vec<_> = (0..SUPPLIERS).map(|_| supplier(&channel)).collect();
    let during = |work: &dyn Fn()| {
        let before = disk.synchronizations();
        work();
        disk.synchronizations() - before
    };
    let each = during(&|| pushes[0].push_structured_event(&event("1", 0)).unwrap());
    assert_eq!(each, 1, "a record of the redo log");
    let sequence = suppliers(&channel).obtain_notification_push_consumer(ClientType::SequenceEvent).unwrap().0.unwrap();
    let sequence: spandrel::services::cos_notify_channel_admin::SequenceProxyPushConsumer =
        sequence.as_object().narrow().unwrap();
    sequence.connect_sequence_push_supplier(None).unwrap();
    let events: Vec<_> = (0..100).map(|nth| event(&nth.to_string(), 0)).collect();
    assert_eq!(during(&|| sequence.push_structured_events(&events).unwrap()), 1);
    assert_eq!(pulled(&proxy).len(), 101);
    wait_until("pushes that share a synchronization", || {
        let count = during(&|| {
            std::thread::scope(|scope| {
                for push in &pushes {
                    scope.spawn(|| (0..20).for_each(|_| push.push_structured_event(&event("e", 0)).unwrap()));
                }
            });
        });
        pulled(&proxy).len() == SUPPLIERS * 20 && count < SUPPLIERS * 20 * each
    });
}
