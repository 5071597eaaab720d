//! Filters and mapping filters (Notification Service 1.1, 2.3, 2.4 and 3.2).

use std::sync::{Arc, Mutex};

use spandrel::services::cos_notification::{EventType, Property, StructuredEvent};
use spandrel::services::cos_notify_channel_admin::{InterFilterGroupOperator, StructuredProxyPullSupplier};
use spandrel::services::cos_notify_comm::{InvalidEventTypeError, NotifySubscribeServant, NotifySubscribeSkeleton};
use spandrel::services::cos_notify_filter::filter::{AddConstraintsError, ModifyConstraintsError};
use spandrel::services::cos_notify_filter::filter_admin::RemoveFilterError;
use spandrel::services::cos_notify_filter::filter_factory::CreateFilterError;
use spandrel::services::cos_notify_filter::{
    ConstraintExp, ConstraintInfo, ConstraintNotFoundError, Filter, MappingConstraintPair,
};
use spandrel::types::{Any, Interface as _};
use spandrel::{Poa, SystemExceptionKind};
use spandrel_test_support::wait_until;

use crate::support::{
    Served, constraint, consumers, event, event_type, event_with, pulled, pulling, short, supplier, suppliers,
};

/// The names of these events that pass a filter at a consumer's proxy.
fn passing(served: &Served, constraints: &[&str], events: &[StructuredEvent]) -> Vec<String> {
    let channel = served.channel();
    let proxy = pulling(&channel);
    proxy.set_qos(&[short("OrderPolicy", 1)]).unwrap();
    proxy.add_filter(Some(&served.filter(&channel, constraints))).unwrap();
    let pushes = supplier(&channel);
    events.iter().for_each(|event| pushes.push_structured_event(event).unwrap());
    pulled(&proxy)
}

#[test]
fn constraints_select_by_the_parts_of_structured_events() {
    let served = Served::new();
    let events = [event("low", 1), event("high", 9), event_with("urgent", "Priority", Any::new(5_i16).unwrap())];
    for (constraint, expected) in [
        ("", &["low", "high", "urgent"][..]),
        ("$level > 5", &["high"]),
        ("$.filterable_data(level) > 5", &["high"]),
        ("$.header.fixed_header.event_name == 'low'", &["low"]),
        ("$event_name ~ 'urgently'", &["urgent"]),
        ("$domain_name == 'Plant' and $type_name == Alarm and $place == 'boiler'", &["low", "high", "urgent"]),
        ("exist $.header.variable_header(Priority)", &["urgent"]),
        ("$Priority == 5", &["urgent"]),
        ("$.header.variable_header._length == 0 and $.filterable_data._length == 2", &["low", "high"]),
        ("$.remainder_of_body == 9", &["high"]),
        // By positions, indices and types: header, filterable_data, remainder_of_body.
        ("$.0.0.1 == 'high'", &["high"]),
        ("$.filterable_data[0].value < 5 and $.filterable_data[1].name == 'place'", &["low", "urgent"]),
        (
            "$._repos_id == 'IDL:omg.org/CosNotification/StructuredEvent:1.0' and $._type_id == 'StructuredEvent'",
            &["low", "high", "urgent"],
        ),
        ("$curtime > 0 and not exist $nothing", &["low", "high", "urgent"]),
        // No value, no match: also not of the negation.
        ("$nothing == 1", &[]),
        ("not ($nothing == 1)", &[]),
        ("$place > 1", &[]),
    ] {
        assert_eq!(passing(&served, &[constraint], &events), expected, "{constraint}");
    }
    assert_eq!(passing(&served, &["$level == 1", "$level == 9"], &events), ["low", "high"], "one constraint is enough");
    assert!(passing(&served, &[], &events).is_empty(), "a filter without constraints matches nothing");
}

/// Values of an `any`, also by the members of its type; an `any` with a structured event is that event.
#[test]
fn constraints_select_by_the_parts_of_anys() {
    let served = Served::new();
    let channel = served.channel();
    let property = Property { name: "level".to_owned(), value: Any::new(7_u8).unwrap() };
    let values = Any::new(vec![property.clone()]).unwrap();
    let kind = spandrel::services::cos_notify_channel_admin::ClientType::SequenceEvent;
    for (value, constraint, expected) in [
        (Any::new(7_i32).unwrap(), "$ == 7", true),
        (Any::new(7_i32).unwrap(), "$ == 8", false),
        (Any::new(property.clone()).unwrap(), "$.name == 'level' and $.value == 7 and $name == 'level'", true),
        (Any::new(property).unwrap(), "$.1 == 7 and $._type_id == 'Property'", true),
        (values.clone(), "$(level) == 7 and $level == 7 and $._length == 1 and $[0].name == 'level'", true),
        (values.clone(), "exist $[1]", false),
        (values, "exist $(other) or exist $.level", false),
        (Any::new(kind).unwrap(), "$ == SEQUENCE_EVENT", true),
        (Any::new(kind).unwrap(), "$ == ANY_EVENT", false),
        (Any::new(Any::new("nested").unwrap()).unwrap(), "$ == 'nested'", true),
        (Any::new(event("x", 3)).unwrap(), "$level == 3 and $event_name == 'x'", true),
        (Any::default(), "exist $.a", false),
    ] {
        let filter = served.filter(&channel, &[constraint]);
        assert_eq!(filter.r#match(&value).unwrap(), expected, "{constraint}");
    }
    let members = [Property { name: "rate".to_owned(), value: Any::new(2.5_f64).unwrap() }];
    assert!(served.filter(&channel, &["$rate > 2 and $.rate < 3"]).match_typed(&members).unwrap());
    assert!(served.filter(&channel, &["$level == 3"]).match_structured(&event("x", 3)).unwrap());
}

/// "*" and "%ALL" stand for all types (2.3.1).
#[test]
fn event_types_of_a_constraint_have_wildcards() {
    let served = Served::new();
    let channel = served.channel();
    let factory = channel.default_filter_factory().unwrap().unwrap();
    for (domain, name, expected) in [
        ("Plant", "Alarm", true),
        ("*", "Alarm", true),
        ("", "", true),
        ("Plant", "%ALL", true),
        ("Pl*t", "*la*m", true),
        ("Pl*x", "Alarm", false),
        ("Office", "*", false),
        ("Plant", "Alarms", false),
        ("*nt*", "A*r*m", true),
    ] {
        let filter = factory.create_filter("EXTENDED_TCL").unwrap().unwrap();
        let types = vec![event_type("No", "No"), event_type(domain, name)];
        filter.add_constraints(&[ConstraintExp { event_types: types, constraint_expr: String::new() }]).unwrap();
        assert_eq!(filter.match_structured(&event("x", 0)).unwrap(), expected, "{domain} {name}");
    }
    let filter = factory.create_filter("EXTENDED_TCL").unwrap().unwrap();
    filter.add_constraints(&[ConstraintExp { event_types: vec![event_type("", "%ANY")], ..constraint("") }]).unwrap();
    assert!(filter.r#match(&Any::new(1_i32).unwrap()).unwrap());
    assert!(!filter.match_structured(&event("x", 0)).unwrap());
}

#[test]
fn constraints_are_changed_whole_or_not_at_all() {
    let served = Served::new();
    let channel = served.channel();
    let filter = served.filter(&channel, &["$level == 1", "$level == 2"]);
    assert_eq!(filter.constraint_grammar().unwrap(), "EXTENDED_TCL");
    match filter.add_constraints(&[constraint("$level == 3"), constraint("$level ==")]) {
        Err(AddConstraintsError::InvalidConstraint(error)) => assert_eq!(error.constr.constraint_expr, "$level =="),
        other => panic!("{other:?}"),
    }
    let ids: Vec<i32> = filter.get_all_constraints().unwrap().iter().map(|info| info.constraint_id).collect();
    assert_eq!(ids, [1, 2]);
    let changed = ConstraintInfo { constraint_expression: constraint("$level == 9"), constraint_id: 2 };
    match filter.modify_constraints(&[7], std::slice::from_ref(&changed)) {
        Err(ModifyConstraintsError::ConstraintNotFound(error)) => assert_eq!(error.id, 7),
        other => panic!("{other:?}"),
    }
    assert!(filter.match_structured(&event("x", 2)).unwrap());
    filter.modify_constraints(&[1], &[changed]).unwrap();
    let matches = |level| filter.match_structured(&event("x", level)).unwrap();
    assert_eq!([1, 2, 9].map(matches), [false, false, true]);
    assert!(matches!(filter.get_constraints(&[1]), Err(ConstraintNotFoundError::ConstraintNotFound(_))));
    assert_eq!(filter.get_constraints(&[2]).unwrap()[0].constraint_expression.constraint_expr, "$level == 9");
    filter.remove_all_constraints().unwrap();
    assert!(!matches(9));
    let factory = channel.default_filter_factory().unwrap().unwrap();
    assert!(matches!(factory.create_filter("SQL"), Err(CreateFilterError::InvalidGrammar(_))));
}

/// "AND_OP" and "OR_OP" combine the filters of administrator and proxy (2.1.2).
#[test]
fn filters_of_administrators_and_proxies_are_combined() {
    let served = Served::new();
    for (operator, expected) in [
        (InterFilterGroupOperator::AndOp, &["both"][..]),
        (InterFilterGroupOperator::OrOp, &["admin", "proxy", "both"]),
    ] {
        let channel = served.channel();
        let (admin, _) = channel.new_for_consumers(operator).unwrap();
        let admin = admin.unwrap();
        admin.add_filter(Some(&served.filter(&channel, &["$level >= 10"]))).unwrap();
        let kind = spandrel::services::cos_notify_channel_admin::ClientType::StructuredEvent;
        let proxy = admin.obtain_notification_pull_supplier(kind).unwrap().0.unwrap();
        let proxy: StructuredProxyPullSupplier = proxy.as_object().narrow().unwrap();
        proxy.connect_structured_pull_consumer(None).unwrap();
        proxy.add_filter(Some(&served.filter(&channel, &["$level == 1 or $level == 11"]))).unwrap();
        let pushes = supplier(&channel);
        for (name, level) in [("none", 0), ("admin", 10), ("proxy", 1), ("both", 11)] {
            pushes.push_structured_event(&event(name, level)).unwrap();
        }
        assert_eq!(pulled(&proxy), expected, "{operator:?}");
    }
}

/// Filters of suppliers stop events before the channel; filters are added, obtained and removed by ids.
#[test]
fn filters_of_suppliers_stop_events() {
    let served = Served::new();
    let channel = served.channel();
    let all = pulling(&channel);
    let pushes = supplier(&channel);
    let admin = suppliers(&channel);
    let filter = served.filter(&channel, &["$level > 0"]);
    let by_admin = admin.add_filter(Some(&filter)).unwrap();
    let by_proxy = pushes.add_filter(Some(&served.filter(&channel, &["$level < 5"]))).unwrap();
    let second = pushes.add_filter(Some(&served.filter(&channel, &["$level == 7"]))).unwrap();
    assert_eq!(pushes.get_all_filters().unwrap(), [by_proxy, second]);
    for level in [0, 1, 6, 7] {
        pushes.push_structured_event(&event(&level.to_string(), level)).unwrap();
    }
    assert_eq!(pulled(&all), ["1", "7"]);
    let same: Filter = pushes.get_filter(second).unwrap().unwrap();
    assert!(same.match_structured(&event("x", 7)).unwrap());
    pushes.remove_filter(second).unwrap();
    assert!(matches!(pushes.remove_filter(second), Err(RemoveFilterError::FilterNotFound(_))));
    pushes.remove_all_filters().unwrap();
    admin.remove_filter(by_admin).unwrap();
    pushes.push_structured_event(&event("all", 0)).unwrap();
    assert_eq!(pulled(&all), ["all"]);
    let metrics = served.service().metrics()();
    assert!(metrics.contains("spandrel_notifications_filtered_total{channel=\"1\"} 2\n"), "{metrics}");
    // A filter that is destroyed goes on where it is used; a foreign one is refused.
    pushes.add_filter(Some(&filter)).unwrap();
    filter.destroy().unwrap();
    wait_until("the end of the filter", || filter.constraint_grammar().is_err());
    pushes.push_structured_event(&event("no", 0)).unwrap();
    assert!(pulled(&all).is_empty());
    assert_eq!(pushes.add_filter(Some(&filter)).unwrap_err().kind(), SystemExceptionKind::BadParam);
    assert_eq!(pushes.add_filter(None).unwrap_err().kind(), SystemExceptionKind::BadParam);
}

/// The callbacks of a filter.
#[derive(Debug, Default)]
struct Callback(Mutex<Vec<(Vec<EventType>, Vec<EventType>)>>);

impl NotifySubscribeServant for Callback {
    fn subscription_change(&self, added: &[EventType], removed: &[EventType]) -> Result<(), InvalidEventTypeError> {
        self.0.lock().unwrap().push((added.to_vec(), removed.to_vec()));
        Ok(())
    }
}

#[test]
fn callbacks_learn_of_the_event_types_of_a_filter() {
    let served = Served::new();
    let channel = served.channel();
    let filter = served.filter(&channel, &[]);
    let callback = Arc::new(Callback::default());
    let object =
        Poa::root(&served.client).unwrap().activate(NotifySubscribeSkeleton::new(Arc::clone(&callback))).unwrap();
    let id = filter.attach_callback(Some(&object.unchecked_narrow())).unwrap();
    assert_eq!(filter.get_callbacks().unwrap(), [id]);
    filter.add_constraints(&[ConstraintExp { event_types: vec![event_type("a", "b")], ..constraint("") }]).unwrap();
    wait_until("a change", || callback.0.lock().unwrap().len() == 1);
    filter.remove_all_constraints().unwrap();
    wait_until("a change", || callback.0.lock().unwrap().len() == 2);
    let types = vec![event_type("a", "b")];
    assert_eq!(*callback.0.lock().unwrap(), [(types.clone(), Vec::new()), (Vec::new(), types)]);
    filter.detach_callback(id).unwrap();
    assert!(filter.detach_callback(id).is_err());
}

/// A priority filter changes the order of one consumer, and a lifetime filter ends events (2.3.2).
#[test]
fn mapping_filters_change_priority_and_lifetime() {
    let served = Served::new();
    let channel = served.channel();
    let factory = channel.default_filter_factory().unwrap().unwrap();
    let mapping = factory.create_mapping_filter("EXTENDED_TCL", &Any::new(0_i16).unwrap()).unwrap().unwrap();
    let pair = |text: &str, value: Any| MappingConstraintPair {
        constraint_expression: constraint(text),
        result_to_set: value,
    };
    let infos = mapping.add_mapping_constraints(&[pair("$level == 9", Any::new(7_i16).unwrap())]).unwrap();
    assert_eq!(infos.len(), 1);
    let wrong = mapping.add_mapping_constraints(&[pair("$level == 8", Any::new(7_i32).unwrap())]);
    assert!(format!("{wrong:?}").contains("InvalidValue"), "{wrong:?}");
    assert_eq!(mapping.default_value().unwrap().extract::<i16>().unwrap(), 0);
    let (is_match, value) = mapping.match_structured(&event("x", 9)).unwrap();
    assert!(is_match && value.extract::<i16>().unwrap() == 7);
    assert!(!mapping.match_structured(&event("x", 1)).unwrap().0);

    let (mapped, plain) = (pulling(&channel), pulling(&channel));
    mapped.set_priority_filter(Some(&mapping)).unwrap();
    assert!(mapped.priority_filter().unwrap().is_some() && plain.priority_filter().unwrap().is_none());
    let short_lived = pulling(&channel);
    let lifetime = factory.create_mapping_filter("EXTENDED_TCL", &Any::new(0_u64).unwrap()).unwrap().unwrap();
    lifetime.add_mapping_constraints(&[pair("$level == 1", Any::new(1_u64).unwrap())]).unwrap();
    short_lived.set_lifetime_filter(Some(&lifetime)).unwrap();
    let pushes = supplier(&channel);
    for (name, level) in [("a", 1), ("b", 9), ("c", 2)] {
        pushes.push_structured_event(&event(name, level)).unwrap();
    }
    assert_eq!(pulled(&plain), ["a", "b", "c"]);
    assert_eq!(pulled(&mapped), ["b", "a", "c"]);
    assert_eq!(pulled(&short_lived), ["b", "c"], "an event that lives for 100 ns has ended");
    // The filter of the administrator is for the proxies without one of their own.
    consumers(&channel).set_priority_filter(Some(&mapping)).unwrap();
    pushes.push_structured_event(&event("low", 1)).unwrap();
    let mut urgent = event("urgent", 9);
    urgent.header.variable_header.push(short("Priority", -3));
    pushes.push_structured_event(&urgent).unwrap();
    assert_eq!(pulled(&plain), ["urgent", "low"], "a constraint that matches is stronger than the header");
}
