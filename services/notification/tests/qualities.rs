//! Qualities of service and administrative properties (Notification Service 1.1, 2.5).

use std::time::{Duration, SystemTime};

use spandrel::SystemExceptionKind;
use spandrel::policy::UtcT;
use spandrel::services::cos_notification::admin_properties_admin::SetAdminError;
use spandrel::services::cos_notification::qo_s_admin::{SetQosError, ValidateQosError};
use spandrel::services::cos_notification::{Property, QoSErrorCode};
use spandrel::services::cos_notify_channel_admin::UnsupportedAdminOrUnsupportedQoSError;
use spandrel::services::cos_notify_comm::DisconnectedError;
use spandrel::types::Any;
use spandrel_test_support::wait_until;

use crate::support::{Served, codes, consumers, event, event_with, number, pulled, pulling, short, supplier, time};

fn flag(name: &str, value: bool) -> Property {
    Property { name: name.to_owned(), value: Any::new(value).unwrap() }
}

/// Each error has its code, name and range; nothing is changed.
#[test]
fn properties_that_are_not_supported_are_named_with_their_ranges() {
    let served = Served::new();
    let channel = served.channel();
    let errors = channel.set_qos(&[
        short("Priority", 4),
        short("Colour", 1),
        short("EventReliability", 1),
        number("Priority", 1),
        short("OrderPolicy", 4),
        number("StartTime", 1),
        number("MaximumBatchSize", 0),
    ]);
    let Err(SetQosError::UnsupportedQoS(errors)) = errors else { panic!("{errors:?}") };
    assert_eq!(
        codes(&errors),
        [
            (QoSErrorCode::BadProperty, "Colour"),
            (QoSErrorCode::UnsupportedValue, "EventReliability"),
            (QoSErrorCode::BadType, "Priority"),
            (QoSErrorCode::UnsupportedValue, "OrderPolicy"),
            (QoSErrorCode::UnsupportedProperty, "StartTime"),
            (QoSErrorCode::UnsupportedValue, "MaximumBatchSize"),
        ]
    );
    let range = &errors.qos_err[3].available_range;
    let bounds = [&range.low_val, &range.high_val].map(|value| value.extract::<i16>().unwrap());
    assert_eq!(bounds, [0, 3]);
    let priority = |properties: Vec<Property>| {
        let property = properties.into_iter().find(|property| property.name == "Priority").unwrap();
        property.value.extract::<i16>().unwrap()
    };
    assert_eq!(priority(channel.get_qos().unwrap()), 0);
    // Those of administrators and proxies are the channel's, unless they are set.
    channel.set_qos(&[short("Priority", 4)]).unwrap();
    let proxy = pulling(&channel);
    assert_eq!(priority(proxy.get_qos().unwrap()), 4);
    consumers(&channel).set_qos(&[short("Priority", 5)]).unwrap();
    assert_eq!(priority(proxy.get_qos().unwrap()), 5);
    proxy.set_qos(&[short("Priority", 6)]).unwrap();
    assert_eq!(priority(proxy.get_qos().unwrap()), 6);
    let refused = proxy.validate_qos(&[short("EventReliability", 0)]);
    let Err(ValidateQosError::UnsupportedQoS(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(codes(&refused), [(QoSErrorCode::UnsupportedProperty, "EventReliability")]);
    // The properties beside those that are asked for.
    let further = proxy.validate_qos(&[short("Priority", 1)]).unwrap();
    let names: Vec<&str> = further.iter().map(|range| &*range.name).collect();
    assert!(names.contains(&"MaxEventsPerConsumer") && !names.contains(&"Priority"), "{names:?}");
    assert_eq!(priority(proxy.get_qos().unwrap()), 6, "nothing was set");
    let further = proxy.validate_event_qos(&[time("Timeout", 1)]).unwrap();
    assert_eq!(further.iter().map(|range| &*range.name).collect::<Vec<_>>(), ["EventReliability", "Priority"]);
    assert!(proxy.validate_event_qos(&[short("OrderPolicy", 1)]).is_err());

    let errors = channel.set_admin(&[number("MaxQueueLength", -1), short("RejectNewEvents", 1), number("Size", 1)]);
    let Err(SetAdminError::UnsupportedAdmin(errors)) = errors else { panic!("{errors:?}") };
    let codes: Vec<_> = errors.admin_err.iter().map(|error| (error.code, &*error.name)).collect();
    assert_eq!(
        codes,
        [
            (QoSErrorCode::BadValue, "MaxQueueLength"),
            (QoSErrorCode::BadType, "RejectNewEvents"),
            (QoSErrorCode::BadProperty, "Size"),
        ]
    );
    channel.set_admin(&[number("MaxConsumers", 3)]).unwrap();
    assert!(channel.get_admin().unwrap().contains(&number("MaxConsumers", 3)));
    let created = served.factory().create_channel(&[short("Colour", 1)], &[]);
    assert!(matches!(created, Err(UnsupportedAdminOrUnsupportedQoSError::UnsupportedQoS(_))));
}

#[test]
fn events_are_delivered_by_the_order_policy() {
    let served = Served::new();
    let channel = served.channel();
    let (by_priority, fifo, deadline) = (pulling(&channel), pulling(&channel), pulling(&channel));
    fifo.set_qos(&[short("OrderPolicy", 1)]).unwrap();
    deadline.set_qos(&[short("OrderPolicy", 3)]).unwrap();
    let pushes = supplier(&channel);
    let minutes = |minutes: u64| Any::new(minutes * 600_000_000).unwrap();
    pushes.push_structured_event(&event_with("long", "Timeout", minutes(9))).unwrap();
    pushes.push_structured_event(&event("endless", 0)).unwrap();
    let mut urgent = event_with("short", "Timeout", minutes(1));
    urgent.header.variable_header.push(short("Priority", 5));
    pushes.push_structured_event(&urgent).unwrap();
    pushes.push_structured_event(&event_with("lazy", "Priority", Any::new(-5_i16).unwrap())).unwrap();
    assert_eq!(pulled(&by_priority), ["short", "long", "endless", "lazy"]);
    assert_eq!(pulled(&fifo), ["long", "endless", "short", "lazy"]);
    assert_eq!(pulled(&deadline), ["short", "long", "endless", "lazy"]);
}

#[test]
fn events_beyond_the_queue_are_discarded_by_the_policy() {
    let served = Served::new();
    let channel = served.channel_with(&[number("MaxEventsPerConsumer", 2), short("OrderPolicy", 1)], &[]);
    let policies: [(i16, &[&str]); 5] = [
        (0, &["c", "d"]),
        (1, &["c", "d"]),
        (4, &["a", "b"]), // the newest goes: of each event that comes, itself
        (2, &["a", "c"]),
        (3, &["b", "c"]),
    ];
    let proxies = policies.map(|(policy, _)| {
        let proxy = pulling(&channel);
        proxy.set_qos(&[short("DiscardPolicy", policy)]).unwrap();
        proxy
    });
    let pushes = supplier(&channel);
    for (name, priority, minutes) in [("a", 9, 1), ("b", 1, 8), ("c", 5, 9), ("d", 2, 2)] {
        let mut event = event_with(name, "Timeout", Any::new(minutes * 600_000_000_u64).unwrap());
        event.header.variable_header.push(short("Priority", priority));
        pushes.push_structured_event(&event).unwrap();
    }
    for ((policy, expected), proxy) in policies.iter().zip(&proxies) {
        let mut names = pulled(proxy);
        names.sort();
        assert_eq!(names, *expected, "{policy}");
    }
    let metrics = served.service().metrics()();
    assert!(metrics.contains("spandrel_notifications_dropped_total{channel=\"1\"} 10\n"), "{metrics}");
}

#[test]
fn events_live_until_their_timeout_or_stop_time_and_begin_at_their_start_time() {
    let served = Served::new();
    let channel = served.channel();
    let proxy = pulling(&channel);
    let (recorder, pushed) = served.connected(&consumers(&channel));
    pushed.suspend_connection().unwrap();
    let pushes = supplier(&channel);
    let at = |time: SystemTime| Any::new(UtcT::from_system_time(time).unwrap()).unwrap();
    let (now, hour) = (SystemTime::now(), Duration::from_secs(3_600));
    pushes.push_structured_event(&event_with("ended", "StopTime", at(now - hour))).unwrap();
    pushes.push_structured_event(&event_with("brief", "Timeout", Any::new(1_u64).unwrap())).unwrap();
    pushes.push_structured_event(&event_with("lasting", "StopTime", at(now + hour))).unwrap();
    pushes.push_structured_event(&event_with("late", "StartTime", at(now + hour))).unwrap();
    pushes.push_structured_event(&event_with("past", "StartTime", at(now - hour))).unwrap();
    assert_eq!(pulled(&proxy), ["lasting", "past"]);
    pushed.resume_connection().unwrap();
    recorder.wait_for(&["lasting", "past"]);
    let soon = SystemTime::now() + Duration::from_millis(300);
    pushes.push_structured_event(&event_with("soon", "StartTime", at(soon))).unwrap();
    recorder.wait_for(&["lasting", "past", "soon"]);
    assert!(SystemTime::now() >= soon);
    let metrics = served.service().metrics()();
    assert!(metrics.contains("spandrel_notifications_expired_total{channel=\"1\"} 4\n"), "{metrics}");
    // Without support, the times of headers do not count.
    channel.set_qos(&[flag("StartTimeSupported", false), flag("StopTimeSupported", false)]).unwrap();
    pulled(&proxy);
    pushes.push_structured_event(&event_with("a", "StartTime", at(now + hour))).unwrap();
    pushes.push_structured_event(&event_with("b", "StopTime", at(now - hour))).unwrap();
    assert_eq!(pulled(&proxy), ["a", "b"]);
    // A timeout of a proxy is for the events without one of their own.
    proxy.set_qos(&[Property { name: "Timeout".to_owned(), value: Any::new(1_u64).unwrap() }]).unwrap();
    pushes.push_structured_event(&event("brief", 0)).unwrap();
    pushes.push_structured_event(&event_with("own", "Timeout", Any::new(0_u64).unwrap())).unwrap();
    assert_eq!(pulled(&proxy), ["own"]);
}

/// A batch has at most `MaximumBatchSize` events, and waits for them for the `PacingInterval`.
#[test]
fn sequences_are_pushed_in_batches() {
    let served = Served::new();
    let channel = served.channel_with(&[number("MaximumBatchSize", 4), time("PacingInterval", 3_600_000)], &[]);
    let (recorder, consumer, proxy) = served.sequence_consumer(&consumers(&channel));
    proxy.connect_sequence_push_consumer(Some(&consumer)).unwrap();
    let pushes = supplier(&channel);
    for number in 0..10 {
        pushes.push_structured_event(&event(&number.to_string(), 0)).unwrap();
    }
    wait_until("two batches", || recorder.names.lock().unwrap().len() == 8);
    assert_eq!(*recorder.batches.lock().unwrap(), [4, 4]);
    // The rest waits for an hour; a shorter interval counts from the next batch on.
    let (recorder, consumer, proxy) = served.sequence_consumer(&consumers(&channel));
    proxy.set_qos(&[time("PacingInterval", 20)]).unwrap();
    proxy.connect_sequence_push_consumer(Some(&consumer)).unwrap();
    pushes.push_structured_event(&event("a", 0)).unwrap();
    pushes.push_structured_event(&event("b", 0)).unwrap();
    recorder.wait_for(&["a", "b"]);
    let batches = recorder.batches.lock().unwrap().clone();
    assert!(batches.iter().sum::<usize>() == 2, "{batches:?}");
}

/// "RejectNewEvents": IMP_LIMIT if the channel is full, else the discard policy counts (2.5.7).
#[test]
fn a_full_channel_rejects_or_discards() {
    let served = Served::new();
    let channel = served.channel_with(&[], &[number("MaxQueueLength", 3), flag("RejectNewEvents", true)]);
    let (first, second) = (pulling(&channel), pulling(&channel));
    let pushes = supplier(&channel);
    for name in ["a", "b", "c"] {
        pushes.push_structured_event(&event(name, 0)).unwrap();
    }
    match pushes.push_structured_event(&event("d", 0)) {
        Err(DisconnectedError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::ImpLimit),
        other => panic!("{other:?}"),
    }
    channel.set_admin(&[flag("RejectNewEvents", false)]).unwrap();
    pushes.push_structured_event(&event("e", 0)).unwrap();
    assert_eq!(
        (pulled(&first), pulled(&second)),
        (vec!["b".into(), "c".into(), "e".into()], vec!["b".into(), "c".into(), "e".into()])
    );
    pushes.push_structured_event(&event("f", 0)).unwrap();
    assert_eq!(pulled(&first), ["f"]);
}
