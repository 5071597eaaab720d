//! Clients that would exhaust memory, stack or processor, and consumers that never read.

use std::net::TcpListener;
use std::time::Duration;

use spandrel::services::cos_notify_channel_admin::{ClientType, StructuredProxyPushSupplier};
use spandrel::services::cos_notify_comm::DisconnectedError;
use spandrel::services::cos_notify_filter::filter::AddConstraintsError;
use spandrel::services::cos_notify_filter::filter_factory::CreateFilterError;
use spandrel::types::{Any, Interface as _};
use spandrel::{SystemException, SystemExceptionKind};
use spandrel_notification::{Limits, NotificationOptions};
use spandrel_test_support::wait_until;

use crate::support::{Served, constraint, consumers, event, event_type, patient, pulled, pulling, supplier};

fn require_imp_limit(exception: &SystemException, bound: &str) {
    assert_eq!(exception.kind(), SystemExceptionKind::ImpLimit, "{bound}: {exception}");
}

fn with(limits: Limits) -> Served {
    Served::with(NotificationOptions { limits, peers: patient(), ..NotificationOptions::default() })
}

#[test]
fn a_constraint_of_a_million_characters_or_deep_nesting_is_refused() {
    let served = Served::new();
    let channel = served.channel();
    let filter = served.filter(&channel, &[]);
    match filter.add_constraints(&[constraint(&"$a == 1 or ".repeat(100_000))]) {
        Err(AddConstraintsError::System(error)) => require_imp_limit(&error, "octets in a constraint"),
        other => panic!("{other:?}"),
    }
    for text in ["(".repeat(10_000), format!("exist ${}", ".a".repeat(5_000)), "not ".repeat(4_000)] {
        match filter.add_constraints(&[constraint(&text)]) {
            Err(AddConstraintsError::InvalidConstraint(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    let mut many_types = constraint("");
    many_types.event_types = vec![event_type("a", "b"); 101];
    match filter.add_constraints(&[many_types]) {
        Err(AddConstraintsError::System(error)) => require_imp_limit(&error, "event types"),
        other => panic!("{other:?}"),
    }
    assert!(filter.get_all_constraints().unwrap().is_empty());
}

#[test]
fn filters_and_constraints_are_bounded_and_freed() {
    let served =
        with(Limits { filters: 3, constraints: 5, filters_of_object: 2, filter_octets: 4_000, ..Limits::default() });
    let channel = served.channel();
    let factory = channel.default_filter_factory().unwrap().unwrap();
    let filters: Vec<_> = (0..3).map(|_| factory.create_filter("EXTENDED_TCL").unwrap().unwrap()).collect();
    match factory.create_filter("EXTENDED_TCL") {
        Err(CreateFilterError::System(error)) => require_imp_limit(&error, "filters"),
        other => panic!("{other:?}"),
    }
    match filters[0].add_constraints(&vec![constraint("$a == 1"); 6]) {
        Err(AddConstraintsError::System(error)) => require_imp_limit(&error, "constraints"),
        other => panic!("{other:?}"),
    }
    let long = constraint(&format!("$a == '{}'", "x".repeat(1_500)));
    filters[0].add_constraints(&[long.clone(), long.clone()]).unwrap();
    match filters[1].add_constraints(std::slice::from_ref(&long)) {
        Err(AddConstraintsError::System(error)) => require_imp_limit(&error, "octets of all filters"),
        other => panic!("{other:?}"),
    }
    filters[0].remove_all_constraints().unwrap();
    filters[1].add_constraints(&[long]).unwrap();
    let proxy = pulling(&channel);
    proxy.add_filter(Some(&filters[0])).unwrap();
    proxy.add_filter(Some(&filters[0])).unwrap();
    require_imp_limit(&proxy.add_filter(Some(&filters[0])).unwrap_err(), "filters of an object");
    let types: Vec<_> = (0..101).map(|number| event_type("a", &number.to_string())).collect();
    assert!(proxy.subscription_change(&types, &[]).is_err());
    assert!(proxy.subscription_change(&[event_type(&"x".repeat(20_000), "b")], &[]).is_err());
}

/// A filter that takes too many steps, or reads too much of an event, does not match; others go on.
#[test]
fn the_evaluation_of_filters_is_bounded() {
    let served = with(Limits { filter_steps: 1_000, filter_reads: 200_000, ..Limits::default() });
    let channel = served.channel();
    let (costly, reading, cheap) = (pulling(&channel), pulling(&channel), pulling(&channel));
    let sum = format!("{} >= 0", vec!["$level"; 1_500].join(" + "));
    costly.add_filter(Some(&served.filter(&channel, &[&sum]))).unwrap();
    reading.add_filter(Some(&served.filter(&channel, &["$.remainder_of_body[20000] == 1 or $level == 1"]))).unwrap();
    cheap.add_filter(Some(&served.filter(&channel, &["$level == 1"]))).unwrap();
    let nested = pulling(&channel);
    let names = vec!["exist $nested.a"; 200].join(" or ");
    nested.add_filter(Some(&served.filter(&channel, &[&format!("{names} or $level == 1")]))).unwrap();
    let mut large = event("large", 1);
    let inner = Any::new(Any::new(Any::new("x".repeat(1_000)).unwrap()).unwrap()).unwrap();
    large
        .filterable_data
        .push(spandrel::services::cos_notification::Property { name: "nested".to_owned(), value: inner });
    large.remainder_of_body = Any::new(vec![1_i32; 30_000]).unwrap();
    supplier(&channel).push_structured_event(&large).unwrap();
    assert!(pulled(&costly).is_empty());
    assert!(pulled(&reading).is_empty());
    assert!(pulled(&nested).is_empty(), "nested values are read at a charge");
    assert_eq!(pulled(&cheap), ["large"]);
}

#[test]
fn events_and_their_memory_are_bounded() {
    let served = with(Limits { event_octets: 2_000, octets: 6_000, delayed_events: 2, ..Limits::default() });
    let channel = served.channel();
    let pushes = supplier(&channel);
    let sized = |name: &str, octets: usize| {
        let mut event = event(name, 0);
        event.remainder_of_body = Any::new("x".repeat(octets)).unwrap();
        event
    };
    match pushes.push_structured_event(&sized("large", 2_000)) {
        Err(DisconnectedError::System(error)) => require_imp_limit(&error, "octets in an event"),
        other => panic!("{other:?}"),
    }
    let proxy = pulling(&channel);
    (0..20).for_each(|number| pushes.push_structured_event(&sized(&number.to_string(), 1_000)).unwrap());
    assert!(served.service().event_octets() <= 6_000);
    let names = pulled(&proxy);
    assert!(!names.is_empty() && names.last().unwrap() == "19", "{names:?}");
    assert_eq!(served.service().event_octets(), 0);
    // Events that wait for their start.
    let hour = std::time::SystemTime::now() + Duration::from_secs(3_600);
    let start = Any::new(spandrel::policy::UtcT::from_system_time(hour).unwrap()).unwrap();
    let late = crate::support::event_with("late", "StartTime", start);
    pushes.push_structured_event(&late).unwrap();
    pushes.push_structured_event(&late).unwrap();
    match pushes.push_structured_event(&late) {
        Err(DisconnectedError::System(error)) => require_imp_limit(&error, "delayed events"),
        other => panic!("{other:?}"),
    }
}

/// One of 20 consumers accepts connections, and never reads. The others get all events, and the memory stays bounded.
#[test]
fn a_consumer_that_never_reads_does_not_block_others() {
    let limits = Limits { queue_events: 50, ..Limits::default() };
    let served = with(limits);
    let channel = served.channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = format!("corbaloc::{}/mute", listener.local_addr().unwrap());
    let mute = served.client.string_to_object(&mute).unwrap();
    let proxy = consumers(&channel).obtain_notification_push_supplier(ClientType::StructuredEvent).unwrap().0.unwrap();
    let proxy: StructuredProxyPushSupplier = proxy.as_object().narrow().unwrap();
    proxy.connect_structured_push_consumer(Some(&mute.unchecked_narrow())).unwrap();
    let others: Vec<_> = (1..20).map(|_| served.connected(&consumers(&channel)).0).collect();
    let pushes = supplier(&channel);
    for number in 0..200 {
        pushes.push_structured_event(&event(&number.to_string(), number)).unwrap();
        if number % 25 == 24 {
            let count = usize::try_from(number).unwrap() + 1;
            wait_until("the events of the others", || {
                others.iter().all(|consumer| consumer.names.lock().unwrap().len() == count)
            });
        }
    }
    wait_until("50 queued events, and one that is being pushed", || {
        let metrics = served.service().metrics()();
        metrics.contains("dropped_total{channel=\"1\"} 149\n") && metrics.contains("queue_length{channel=\"1\"} 51\n")
    });
    assert!(served.service().event_octets() < 51 * 400, "{}", served.service().event_octets());
    proxy.disconnect_structured_push_supplier().unwrap();
    wait_until("free memory", || served.service().event_octets() == 0);
}

/// A thousand consumers get each event once; the memory of an event is charged once.
#[test]
fn a_thousand_consumers_get_each_event_once() {
    let served = Served::new();
    let channel = served.channel();
    let admin = consumers(&channel);
    let recorders: Vec<_> = (0..1_000).map(|_| served.connected(&admin).0).collect();
    let pushes = supplier(&channel);
    for name in ["a", "b", "c"] {
        pushes.push_structured_event(&event(name, 1)).unwrap();
    }
    assert!(served.service().event_octets() <= 3 * 400, "{}", served.service().event_octets());
    for recorder in &recorders {
        recorder.wait_for(&["a", "b", "c"]);
    }
    wait_until("the count of the deliveries", || {
        served.service().metrics()().contains("delivered_total{channel=\"1\"} 3000\n")
    });
    wait_until("free memory", || served.service().event_octets() == 0);
}
