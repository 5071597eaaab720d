//! The operations of channels, whose objects each server serves.

use std::time::{Duration, Instant};

use spandrel::services::cos_event_channel_admin::proxy_pull_supplier::ConnectPullConsumerError;
use spandrel::services::cos_event_comm::pull_supplier::PullError;
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::event::event_channel_factory::{CreateChannelError, JoinChannelError};
use spandrel::services::event_monitoring::MonitoredFactory;
use spandrel::types::Any;
use spandrel::{CompletionStatus, Orb, SystemExceptionKind};
use spandrel_test_support::wait_until;

use crate::broker::{Cluster, Servers};
use crate::peers::{Consumer, supplier};

fn client() -> Orb {
    Orb::builder().request_timeout(Some(Duration::from_secs(20))).build().unwrap()
}

/// The value of a call, which is made again after the death of the server that had it.
fn again<T, E: std::fmt::Display>(call: impl Fn() -> Result<T, E>) -> T {
    call().or_else(|_| call()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_proxy_that_one_server_has_created_is_connected_and_used_at_the_other() {
    let cluster = Cluster::start(1);
    let mut servers = Servers::start(2, &cluster, &["--channel", "Alarms"]);
    let orb = client();
    let [first, second] = [0, 1].map(|nth| servers.channel(&orb, nth, "Alarms"));
    // Each server hands out references with both addresses, the same ones.
    let admins = [&first, &second].map(|channel| channel.for_consumers().unwrap().unwrap().as_object().to_string());
    assert_eq!(admins[0], admins[1]);
    let pulled = first.for_consumers().unwrap().unwrap().obtain_pull_supplier().unwrap().unwrap();
    let pushed = first.for_suppliers().unwrap().unwrap().obtain_push_consumer().unwrap().unwrap();
    assert!(matches!(pulled.pull(), Err(PullError::Disconnected(_))));
    assert!(matches!(pushed.push(&Any::default()), Err(PushError::Disconnected(_))));
    servers.kill(0);
    again(|| pulled.connect_pull_consumer(None));
    again(|| pushed.connect_push_supplier(None));
    for event in 0..3_u64 {
        pushed.push(&Any::new(event).unwrap()).unwrap();
    }
    assert_eq!(pulled.pull().unwrap().extract::<u64>().unwrap(), 0);
    servers.restart(0);
    servers.kill(1);
    assert_eq!(again(|| pulled.pull()).extract::<u64>().unwrap(), 1);
    let (event, has_event) = pulled.try_pull().unwrap();
    assert!(has_event && event.extract::<u64>().unwrap() == 2);
    assert!(!pulled.try_pull().unwrap().1);
    let twice = pulled.connect_pull_consumer(None);
    assert!(matches!(twice, Err(ConnectPullConsumerError::AlreadyConnected(_))), "{twice:?}");
    pulled.disconnect_pull_supplier().unwrap();
    let is_gone = |error: &PullError| matches!(error, PullError::System(error) if error.kind() == SystemExceptionKind::ObjectNotExist);
    servers.restart(1);
    servers.kill(0);
    let ended = pulled.pull().or_else(|_| pulled.pull());
    assert!(ended.as_ref().is_err_and(is_gone), "{ended:?}");
}

#[test]
fn a_broker_that_is_away_is_transient_within_the_time_limit_and_loses_nothing() {
    let mut cluster = Cluster::start(1);
    let servers = Servers::start(1, &cluster, &["--channel", "Alarms", "--timeout", "3"]);
    let orb = client();
    let channel = servers.channel(&orb, 0, "Alarms");
    let pulled = channel.for_consumers().unwrap().unwrap().obtain_pull_supplier().unwrap().unwrap();
    pulled.connect_pull_consumer(None).unwrap();
    let pushed = supplier(&channel);
    pushed.push(&Any::new(1_u64).unwrap()).unwrap();
    cluster.kill(0);
    let start = Instant::now();
    let Err(PushError::System(error)) = pushed.push(&Any::new(2_u64).unwrap()) else { panic!("no exception") };
    assert_eq!(error.kind(), SystemExceptionKind::Transient, "{error}");
    // The answer of the broker is lost, or the event.
    assert_eq!(error.completed(), CompletionStatus::Maybe, "{error}");
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    let Err(PullError::System(error)) = pulled.pull() else { panic!("no exception") };
    assert_eq!(error.kind(), SystemExceptionKind::Transient, "{error}");
    cluster.restart(0);
    wait_until("the broker", || pushed.push(&Any::new(3_u64).unwrap()).is_ok());
    let mut events = Vec::new();
    while events.last() != Some(&3) {
        events.push(pulled.pull().unwrap().extract::<u64>().unwrap());
    }
    assert_eq!(events.first(), Some(&1), "{events:?}");
}

#[test]
fn channels_of_one_server_are_found_and_destroyed_by_the_other() {
    let cluster = Cluster::start(1);
    let servers = Servers::start_apart(2, &cluster, &[]);
    let orb = client();
    let factories = [0, 1].map(|nth| MonitoredFactory::unchecked_narrow(&servers.object(&orb, nth, "omniEvents")));
    let created = factories[0].create_channel("Alarms").unwrap().unwrap();
    let twice = factories[1].create_channel("Alarms");
    assert!(matches!(twice, Err(CreateChannelError::NameAlreadyUsed(_))), "{twice:?}");
    assert!(matches!(factories[0].create_channel("a.b"), Err(CreateChannelError::NameAlreadyUsed(_))));
    let joined = factories[1].join_channel("Alarms").unwrap().unwrap();
    let (consumer, ..) = Consumer::connect(&created);
    supplier(&joined).push(&Any::new(7_u64).unwrap()).unwrap();
    wait_until("the event", || consumer.count() == 1);
    let states = |nth: usize| factories[nth].event_monitor().unwrap().unwrap().channels("", 10).unwrap();
    wait_until("the numbers of consumers at both servers", || {
        (0..2).all(|nth| matches!(&*states(nth), [state] if (state.consumers, state.suppliers) == (1, 1)))
    });
    let delivered = || (0..2).map(|nth| states(nth)[0].delivered).sum::<u64>();
    wait_until("the count of the delivery", || delivered() == 1);
    joined.destroy().unwrap();
    wait_until("the end of the channel at both servers", || {
        (0..2)
            .all(|nth| matches!(factories[nth].join_channel("Alarms"), Err(JoinChannelError::EventChannelNotFound(_))))
    });
    // A channel with the same name is another one.
    let again = factories[1].create_channel("Alarms").unwrap().unwrap();
    supplier(&again).push(&Any::new(8_u64).unwrap()).unwrap();
    assert_eq!(consumer.count(), 1);
}

#[test]
fn a_consumer_that_is_away_holds_up_no_other_and_loses_the_oldest_events_beyond_its_bound() {
    let cluster = Cluster::start(1);
    let servers = Servers::start(2, &cluster, &["--channel", "Alarms", "--queue", "20"]);
    let orb = client();
    let channel = servers.channel(&orb, 0, "Alarms");
    let (away, away_orb, _) = Consumer::connect(&channel);
    let (present, ..) = Consumer::connect(&channel);
    let pulled = channel.for_consumers().unwrap().unwrap().obtain_pull_supplier().unwrap().unwrap();
    pulled.connect_pull_consumer(None).unwrap();
    let pushed = supplier(&channel);
    away_orb.shutdown().unwrap();
    for event in 0..90_u64 {
        // The bound of the channel, twice that of a consumer, refuses events until the oldest ones are discarded.
        wait_until("room in the channel", || pushed.push(&Any::new(event).unwrap()).is_ok());
    }
    wait_until("the events of the present consumer", || present.count() == 90);
    assert_eq!(away.count(), 0);
    let monitor = MonitoredFactory::unchecked_narrow(&servers.object(&orb, 0, "omniEvents")).event_monitor();
    let monitor = monitor.unwrap().unwrap();
    wait_until("queues within their bound", || {
        monitor.consumers("Alarms", 10).unwrap().iter().all(|state| state.queued <= 21)
    });
    // The last events are there.
    let mut events = Vec::new();
    while let (event, true) = pulled.try_pull().unwrap() {
        events.push(event.extract::<u64>().unwrap());
    }
    assert!(!events.is_empty() && events.len() <= 21 && events.is_sorted() && events.last() == Some(&89), "{events:?}");
}
