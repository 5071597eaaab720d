//! The death of servers and of nodes of the broker while events are pushed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use spandrel::Orb;
use spandrel_test_support::{TEST_TIMEOUT, holds_within, wait_until};

use crate::broker::{Cluster, Servers};
use crate::peers::{Consumer, Supplier};

/// The longest time without an acknowledged event in the long form, which is not run beside others.
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// The time between two events of a supplier: the load is not what is tested.
const PAUSE: Duration = Duration::from_millis(2);
/// The same while something dies every few seconds. A consumer gets its events one by one, each after the broker has
/// replicated the acknowledgement of the one before: some hundred in a second. A supplier that is faster only makes a queue.
const PAUSE_AMONG_DEATHS: Duration = Duration::from_millis(10);

fn client() -> Orb {
    Orb::builder().request_timeout(Some(Duration::from_secs(9))).build().unwrap()
}

/// Checks that a consumer gets all acknowledged events, and prints how long the last of them took. Deaths delay events, so
/// that only those count as lost which the consumer waits for in vain.
fn check_all(consumer: &Consumer, acknowledged: u64) {
    let count = usize::try_from(acknowledged).unwrap();
    let (begin, at_begin) = (Instant::now(), consumer.count());
    loop {
        let before = consumer.count();
        if before >= count || !holds_within(TEST_TIMEOUT, || consumer.count() > before) {
            break; // those that are lost are named below
        }
    }
    eprintln!("{} events were under way, for {:?}", count.saturating_sub(at_begin), begin.elapsed());
    let received = consumer.0.lock().unwrap();
    let events: HashSet<u64> = received.events.iter().copied().collect();
    let missing: Vec<u64> = (0..acknowledged).filter(|event| !events.contains(event)).collect();
    let first = &missing[..missing.len().min(10)];
    assert!(missing.is_empty(), "of {acknowledged} acknowledged events {} are lost, such as {first:?}", missing.len());
}

#[test]
fn events_acknowledged_before_the_death_of_a_server_are_delivered_by_the_other() {
    let cluster = Cluster::start(1);
    let mut servers = Servers::start(2, &cluster, &["--channel", "Alarms"]);
    let orb = client();
    let channel = servers.channel(&orb, 0, "Alarms");
    let consumers = [0; 2].map(|_| Consumer::connect(&channel));
    let supplier = Supplier::start(&orb, &channel, PAUSE);
    for dead in [0, 1] {
        let before = consumers[0].0.count();
        wait_until("events", || consumers[0].0.count() > before + 100);
        servers.kill(dead);
        let before = consumers[0].0.count();
        wait_until("events after the death of a server", || consumers[0].0.count() > before + 100);
        servers.restart(dead);
    }
    let (acknowledged, longest) = supplier.stop();
    for (consumer, ..) in &consumers {
        check_all(consumer, acknowledged);
        let received = consumer.0.lock().unwrap();
        assert!(received.events.is_sorted(), "events of one supplier have lost their order");
    }
    eprintln!("{acknowledged} events acknowledged, longest gap {longest:?}");
}

#[test]
fn events_acknowledged_before_the_death_of_a_node_of_three_are_delivered() {
    let mut cluster = Cluster::start(3);
    let servers = Servers::start(2, &cluster, &["--channel", "Alarms"]);
    let orb = client();
    let channel = servers.channel(&orb, 0, "Alarms");
    let (consumer, ..) = Consumer::connect(&channel);
    let supplier = Supplier::start(&orb, &channel, PAUSE);
    wait_until("events", || consumer.count() > 100);
    cluster.kill(0);
    let before = consumer.count();
    wait_until("events after the death of a node", || consumer.count() > before + 500);
    let (acknowledged, longest) = supplier.stop();
    check_all(&consumer, acknowledged);
    eprintln!("{acknowledged} events acknowledged, longest gap {longest:?}");
}

/// The seconds of random deaths: those of the variable, else a few.
fn seconds() -> u64 {
    std::env::var("SPANDREL_DEATHS_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(6)
}

/// The seed of random deaths, which a failure prints.
fn seed() -> u64 {
    std::env::var("SPANDREL_FAULTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..))
}

#[test]
fn three_servers_over_three_nodes_that_die_at_random_lose_nothing() {
    let seed = seed();
    eprintln!("SPANDREL_FAULTS_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cluster = Cluster::start(3);
    let mut servers = Servers::start(3, &cluster, &["--channel", "Alarms"]);
    let orb = client();
    let channel = servers.channel(&orb, 0, "Alarms");
    let consumers = [0; 3].map(|_| Consumer::connect(&channel));
    let supplier = Supplier::start(&orb, &channel, PAUSE_AMONG_DEATHS);
    let end = Instant::now() + Duration::from_secs(seconds());
    let (mut deaths_of_servers, mut deaths_of_nodes) = (0, 0);
    while Instant::now() < end {
        let counts = || consumers.iter().map(|(consumer, ..)| consumer.count()).min().unwrap_or(0);
        let before = counts();
        // One server or one node is down at once; the others must go on.
        if random.bool() {
            let nth = random.usize(..servers.count());
            servers.kill(nth);
            deaths_of_servers += 1;
            wait_until("events after the death of a server", || counts() > before + 50);
            servers.restart(nth);
        } else {
            let nth = random.usize(..cluster.size());
            cluster.kill(nth);
            deaths_of_nodes += 1;
            wait_until("events after the death of a node", || counts() > before + 50);
            cluster.restart(nth);
            cluster.wait_for_replicas();
        }
        let before = counts();
        wait_until("events after a return", || counts() > before + 50);
    }
    let (acknowledged, longest) = supplier.stop();
    for (consumer, ..) in &consumers {
        check_all(consumer, acknowledged);
        let received = consumer.0.lock().unwrap();
        eprintln!(
            "{} events, {} again, longest gap {:?}",
            received.events.len(),
            received.repeated,
            received.longest_gap
        );
    }
    eprintln!(
        "{acknowledged} events acknowledged, {deaths_of_servers} servers and {deaths_of_nodes} nodes killed, longest gap \
         {longest:?}"
    );
    assert!(seconds() < 60 || longest < LONGEST_GAP, "{longest:?}");
}
