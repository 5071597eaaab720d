//! The executable `spandrel-notification`, killed under load, and the commands for its store.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use spandrel::services::cos_notify_channel_admin::{
    ClientType, EventChannel, EventChannelFactory, StructuredProxyPullSupplier, StructuredProxyPushConsumer,
    StructuredProxyPushSupplier,
};
use spandrel::services::cos_notify_comm::StructuredPushConsumerSkeleton;
use spandrel::types::Interface as _;
use spandrel::{Endpoint, Orb, Poa};
use spandrel_test_support::{check_output_errors, free_port, wait_until};

use crate::executable::{command, start_at};
use crate::support::{Recorder, consumers, event, number, persistent, pulled, pulling, supplier};

fn factory(client: &Orb, address: &str) -> EventChannelFactory {
    let object = client.string_to_object(&format!("corbaloc::{address}/NotificationService")).unwrap();
    object.narrow().unwrap()
}

/// Pushes numbered events until a call fails. Returns those that were acknowledged.
fn push(proxy: &StructuredProxyPushConsumer, first: usize, acknowledged: &AtomicUsize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for number in first.. {
        if proxy.push_structured_event(&event(&number.to_string(), 1)).is_err() {
            break;
        }
        names.insert(number.to_string());
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    names
}

/// Each round ends the service at another instant: each event whose push returned reaches a push consumer and a pull consumer
/// at least once, by the connections of the first round. `SPANDREL_KILLS` is the number of rounds.
#[test]
fn acknowledged_events_survive_kill_9_under_load() {
    const SUPPLIERS: usize = 4;
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let rounds: usize = std::env::var("SPANDREL_KILLS").map_or(4, |rounds| rounds.parse().unwrap());
    let consumer_orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let recorder = Arc::new(Recorder::default());
    let skeleton = StructuredPushConsumerSkeleton::new(Arc::clone(&recorder));
    let consumer = Poa::root(&consumer_orb).unwrap().activate(skeleton).unwrap().to_string();
    let mut references: Vec<String> = Vec::new();
    let mut expected = BTreeSet::new();
    for round in 0..=rounds {
        let client = Orb::builder().build().unwrap();
        let (mut child, address) = start_at(folder.path(), port, &[]);
        if round == 0 {
            let mut qos = persistent().to_vec();
            qos.push(number("MaxEventsPerConsumer", 1_000_000));
            let channel: EventChannel = factory(&client, &address).create_channel(&qos, &[]).unwrap().0.unwrap();
            let admin = consumers(&channel);
            let proxy = admin.obtain_notification_push_supplier(ClientType::StructuredEvent).unwrap().0.unwrap();
            let proxy: StructuredProxyPushSupplier = proxy.as_object().narrow().unwrap();
            let consumer = client.string_to_object(&consumer).unwrap().unchecked_narrow();
            proxy.connect_structured_push_consumer(Some(&consumer)).unwrap();
            references.push(pulling(&channel).as_object().to_string());
            references.extend((0..SUPPLIERS).map(|_| supplier(&channel).as_object().to_string()));
        }
        let object = |nth: usize| client.string_to_object(&references[nth]).unwrap();
        let pull: StructuredProxyPullSupplier = object(0).narrow().unwrap();
        let pulled_names: BTreeSet<String> = pulled(&pull).into_iter().collect();
        let missing: Vec<_> = expected.difference(&pulled_names).collect();
        assert!(missing.is_empty(), "round {round}: the pull consumer misses {missing:?}");
        wait_until("the events of the push consumer", || {
            let got: BTreeSet<String> = recorder.names.lock().unwrap().iter().cloned().collect();
            expected.is_subset(&got)
        });
        recorder.names.lock().unwrap().clear();
        recorder.events.lock().unwrap().clear();
        expected.clear();
        if round < rounds {
            let acknowledged = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..SUPPLIERS)
                    .map(|nth| {
                        let proxy: StructuredProxyPushConsumer = object(nth + 1).narrow().unwrap();
                        let (acknowledged, first) = (&acknowledged, (round * SUPPLIERS + nth) * 1_000_000);
                        scope.spawn(move || push(&proxy, first, acknowledged))
                    })
                    .collect();
                let instant = fastrand::usize(1..200);
                wait_until("events", || acknowledged.load(Ordering::Relaxed) >= instant);
                child.kill().unwrap();
                for worker in workers {
                    expected.extend(worker.join().unwrap());
                }
            });
            child.wait().unwrap();
        }
        client.shutdown().unwrap();
    }
    consumer_orb.shutdown().unwrap();
}

#[test]
fn a_store_is_checked_and_copied_and_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (mut child, address) = start_at(&data, 0, &[]);
    let client = Orb::builder().build().unwrap();
    let channel = factory(&client, &address).create_channel(&persistent(), &[]).unwrap().0.unwrap();
    let _consumer = pulling(&channel);
    supplier(&channel).push_structured_event(&event("e", 1)).unwrap();
    let initial = format!("-ORBInitRef NotificationService=corbaloc::{address}/NotificationService");
    let output = command().args(["backup", "--orb", &initial, "--timeout", "60", "monday"]).output().unwrap();
    let copy = data.join("backups/notification/monday");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", copy.display()), "{output:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    client.shutdown().unwrap();

    let check = |data: &Path| command().arg("--data").arg(data).arg("check").output().unwrap();
    let sound = "the store is sound: 1 channels with 2 connections, 0 filters and 1 events\n";
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(&copy, other.join("notification.redb")).unwrap();
    for folder in [&data, &other] {
        let output = check(folder);
        assert_eq!(String::from_utf8_lossy(&output.stdout), sound, "{output:?}");
    }
    check_output_errors(|| {
        let mut command = command();
        command.arg("--data").arg(&data).arg("check");
        command
    });
    std::fs::write(data.join("notification.redb"), "no database").unwrap();
    let started = command().args(["--listen", "iiop://127.0.0.1:0", "--data"]).arg(&data).output().unwrap();
    for output in [check(&data), started] {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && errors.contains("notification.redb"), "{errors}");
    }
}

#[test]
fn a_damaged_redo_log_is_refused_until_it_is_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, address) = start_at(folder.path(), 0, &[]);
    let client = Orb::builder().build().unwrap();
    let channel = factory(&client, &address).create_channel(&persistent(), &[]).unwrap().0.unwrap();
    let _consumer = pulling(&channel);
    let pushes = supplier(&channel);
    ["1", "2", "3"].iter().for_each(|name| pushes.push_structured_event(&event(name, 1)).unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    client.shutdown().unwrap();

    let run = |command_name: &str| command().arg("--data").arg(folder.path()).arg(command_name).output().unwrap();
    let sound =
        |events: usize| format!("the store is sound: 1 channels with 2 connections, 0 filters and {events} events\n");
    let output = run("check");
    assert_eq!(String::from_utf8_lossy(&output.stdout), sound(3), "{output:?}");
    let log = folder.path().join("notification.redb.log");
    let mut octets = std::fs::read(&log).unwrap();
    octets[512 + 40] ^= 1; // in the payload of the first record
    std::fs::write(&log, octets).unwrap();
    let started = command().args(["--listen", "iiop://127.0.0.1:0", "--data"]).arg(folder.path()).output().unwrap();
    for output in [run("check"), started] {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && errors.contains("`recover`"), "{errors}");
    }
    for name in ["recover", "check"] {
        let output = run(name);
        assert_eq!(String::from_utf8_lossy(&output.stdout), sound(0), "{output:?}");
    }
    let (mut child, _) = start_at(folder.path(), 0, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
}
