//! Consumers that are slow, dead or hostile, and the bounds of memory.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use spandrel::SystemExceptionKind;
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::types::Any;
use spandrel_event::{EventOptions, Limits, PeerOptions};
use spandrel_test_support::wait_until;

use crate::support::{Served, consumers, long, patient, supplier};

/// One of 100 consumers accepts connections, and never reads. The others get all events, and the memory stays bounded.
#[test]
fn a_consumer_that_never_reads_does_not_block_others() {
    let limits = Limits { queue_events: 50, ..Limits::default() };
    let served = Served::with(EventOptions { limits, peers: patient(), ..EventOptions::default() }, 0);
    let channel = served.channel("slow");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = format!("corbaloc::{}/mute", listener.local_addr().unwrap());
    let mute = served.client.string_to_object(&mute).unwrap();
    let proxy = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
    proxy.connect_push_consumer(Some(&mute.unchecked_narrow())).unwrap();
    let others: Vec<_> = (1..100).map(|_| served.connected(&channel)).collect();
    let supplier = supplier(&channel);
    let expected: Vec<i32> = (0..300).collect();
    for chunk in expected.chunks(25) {
        chunk.iter().for_each(|number| supplier.push(&long(*number)).unwrap());
        let last = *chunk.last().unwrap() as usize;
        wait_until("the events of the others", || {
            others.iter().all(|consumer| consumer.numbers.lock().unwrap().len() > last)
        });
    }
    for consumer in &others {
        assert_eq!(*consumer.numbers.lock().unwrap(), expected);
    }
    let monitor = served.monitor();
    wait_until("the counts of the deliveries", || monitor.channels("", 1).unwrap()[0].delivered == 99 * 300);
    let state = &monitor.consumers("slow", 1).unwrap()[0];
    assert_eq!((state.queued, state.delivered, state.dropped), (51, 0, 249), "50 queued, and one is being pushed");
    assert!(served.service().event_octets() < 51 * 64, "{}", served.service().event_octets());
    let metrics = served.service().metrics()();
    let series = format!("consumer=\"{:x}\"}} 51\n", state.number);
    assert!(metrics.contains(&series) && metrics.contains("spandrel_events_dropped_total{channel=\"slow\"} 249\n"));
    proxy.disconnect_push_supplier().unwrap();
    wait_until("free memory", || served.service().event_octets() == 0);
}

/// A thousand consumers get each event once, in order; the memory of an event is charged once.
#[test]
fn a_thousand_consumers_get_each_event_once() {
    let served = Served::transient();
    let channel = served.channel("thousand");
    let recorders: Vec<_> = (0..1_000).map(|_| served.connected(&channel)).collect();
    let supplier = supplier(&channel);
    let expected = [1, 2, 3];
    expected.iter().for_each(|number| supplier.push(&long(*number)).unwrap());
    assert!(served.service().event_octets() <= 3 * 64, "{}", served.service().event_octets());
    for recorder in &recorders {
        recorder.wait_for(&expected);
    }
    let monitor = served.monitor();
    wait_until("the counts of the deliveries", || monitor.channels("", 1).unwrap()[0].delivered == 3_000);
    wait_until("free memory", || served.service().event_octets() == 0);
    let states = monitor.consumers("thousand", 10_000).unwrap();
    assert!(states.len() == 1_000 && states.iter().all(|state| (state.delivered, state.dropped) == (3, 0)));
}

/// After its failures in a row, a consumer is disconnected. The events before count as dropped.
#[test]
fn a_dead_consumer_is_disconnected_after_its_failures() {
    let peers = PeerOptions {
        max_failures: 3,
        retry_pause: Duration::from_millis(20),
        timeout: Duration::from_secs(2),
        ..PeerOptions::default()
    };
    let served = Served::with(EventOptions { peers, ..EventOptions::default() }, 0);
    let channel = served.channel("dead");
    // One refuses connections, one ends each after some octets, and one never answers.
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let [ending, mute] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = [refusing, ending.local_addr().unwrap(), mute.local_addr().unwrap()];
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = ending.accept() {
            _ = stream.read(&mut [0; 16]);
        }
    });
    for address in addresses {
        let object = served.client.string_to_object(&format!("corbaloc::{address}/x")).unwrap();
        let proxy = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
        proxy.connect_push_consumer(Some(&object.unchecked_narrow())).unwrap();
    }
    let staying = served.connected(&channel);
    let supplier = supplier(&channel);
    let expected: Vec<i32> = (0..10).collect();
    expected.iter().for_each(|number| supplier.push(&long(*number)).unwrap());
    staying.wait_for(&expected);
    let monitor = served.monitor();
    wait_until("three disconnections", || monitor.consumers("dead", 10).unwrap().len() == 1);
    wait_until("all counts", || {
        let state = &monitor.channels("", 1).unwrap()[0];
        // An event that comes after the end of a connection is not one of its events. On a loaded machine, a reply of the
        // staying consumer may come after the time limit.
        let all = state.delivered + state.dropped;
        state.received == 10 && (13..=40).contains(&all) && state.dropped >= 3 && state.longest_queue == 0
    });
    wait_until("free memory", || served.service().event_octets() == 0);
    drop(mute);
}

#[test]
fn events_and_proxies_are_bounded() {
    let limits = Limits {
        event_octets: 2_000,
        octets: 5_000,
        queue_octets: 3_000,
        proxies: 4,
        waiting_pulls: 1,
        ..Limits::default()
    };
    let served = Served::with(EventOptions { limits, ..EventOptions::default() }, 0);
    let channel = served.channel("bounded");
    let pushes = supplier(&channel);
    let sized = |octets: usize| Any::new("x".repeat(octets)).unwrap();
    match pushes.push(&sized(2_000)) {
        Err(PushError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::ImpLimit),
        other => panic!("{other:?}"),
    }
    let [first, second] = [(); 2].map(|()| {
        let proxy = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
        proxy.connect_pull_consumer(None).unwrap();
        proxy
    });
    (0..20).for_each(|_| pushes.push(&sized(900)).unwrap());
    assert!(served.service().event_octets() <= 3_000);
    let count = |proxy: &spandrel::services::cos_event_channel_admin::ProxyPullSupplier| {
        std::iter::from_fn(|| proxy.try_pull().unwrap().1.then_some(())).count()
    };
    assert_eq!((count(&first), count(&second)), (3, 3));
    assert_eq!(served.service().event_octets(), 0);
    // Memory that another channel holds is not taken away.
    let other = served.channel("other");
    let held = consumers(&other).obtain_pull_supplier().unwrap().unwrap();
    held.connect_pull_consumer(None).unwrap();
    let full = supplier(&other);
    (0..3).for_each(|_| full.push(&sized(900)).unwrap());
    (0..3).for_each(|_| pushes.push(&sized(900)).unwrap());
    assert!(served.service().event_octets() <= 5_000);
    assert_eq!((count(&held), count(&first)), (3, 2), "the queue of the pushing channel lost an event");
    // A proxy that was never connected goes first.
    let unconnected = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    let newer = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    assert!(unconnected.connect_pull_consumer(None).is_err());
    newer.connect_pull_consumer(None).unwrap();
    let more = consumers(&channel).obtain_pull_supplier();
    assert_eq!(more.unwrap_err().kind(), SystemExceptionKind::ImpLimit);
    // One pull waits at a proxy.
    std::thread::scope(|scope| {
        let pull = || newer.pull();
        let pulls = [scope.spawn(pull), scope.spawn(pull)];
        wait_until("a refusal", || pulls.iter().any(|pull| pull.is_finished()));
        pushes.push(&long(1)).unwrap();
        let outcomes = pulls.map(|pull| pull.join().unwrap());
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    });
}

/// Threads push at the same time, and each consumer gets the events of each supplier in their order.
#[test]
fn the_events_of_a_supplier_keep_their_order() {
    let served = Served::transient();
    let channel = served.channel("ordered");
    let recorders: Vec<_> = (0..3).map(|_| served.connected(&channel)).collect();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let pushes = supplier(&channel);
            scope.spawn(move || (0..50).for_each(|n| pushes.push(&long(worker * 1_000 + n)).unwrap()));
        }
    });
    for recorder in &recorders {
        let recorder = Arc::clone(recorder);
        wait_until("all events", || recorder.numbers.lock().unwrap().len() == 200);
        let numbers = recorder.numbers.lock().unwrap();
        for worker in 0..4 {
            let own: Vec<_> = numbers.iter().filter(|n| **n / 1_000 == worker).map(|n| n % 1_000).collect();
            assert_eq!(own, (0..50).collect::<Vec<_>>());
        }
    }
}
