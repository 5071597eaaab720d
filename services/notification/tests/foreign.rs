//! Our stubs with another notification service (`SPANDREL_NOTIFICATION_SERVICE`: the reference of its factory), or with ours.

use spandrel::services::cos_event_channel_admin::EventChannel as PlainChannel;
use spandrel::services::cos_notify_channel_admin::EventChannelFactory;
use spandrel::types::{Any, Interface as _};
use spandrel_test_support::wait_until;

use crate::support::{Served, consumers, event, name, pulling, short, supplier};

#[test]
fn a_service_of_any_orb_passes_structured_events_and_values() {
    let served = Served::new();
    let foreign = std::env::var("SPANDREL_NOTIFICATION_SERVICE").ok();
    let factory: EventChannelFactory = match &foreign {
        Some(reference) => served.client.string_to_object(reference).unwrap().narrow().unwrap(),
        None => served.factory(),
    };
    let (channel, id) = factory.create_channel(&[short("OrderPolicy", 1)], &[]).unwrap();
    let channel = channel.unwrap();
    assert!(factory.get_all_channels().unwrap().contains(&id));
    assert!(factory.get_event_channel(id).unwrap().is_some());
    assert!(factory.get_event_channel(id + 1_000).is_err());
    assert!(channel.set_qos(&[short("NoSuchProperty", 1)]).is_err());
    // A consumer is pushed to, another one pulls.
    let (recorder, proxy) = served.connected(&consumers(&channel));
    let (pulls, pushes) = (pulling(&channel), supplier(&channel));
    let names: Vec<String> = (0..10).map(|number| format!("event {number}")).collect();
    // Each event is delivered before the next one: not every service keeps the order.
    for (number, expected) in (1_i32..).zip(&names) {
        pushes.push_structured_event(&event(expected, number)).unwrap();
        assert_eq!(name(&pulls.pull_structured_event().unwrap()), *expected);
        wait_until("the event", || recorder.names.lock().unwrap().last() == Some(expected));
    }
    assert_eq!(*recorder.names.lock().unwrap(), names);
    assert_eq!(recorder.events.lock().unwrap()[4].filterable_data, event("", 5).filterable_data);
    proxy.suspend_connection().unwrap();
    assert!(proxy.suspend_connection().is_err());
    proxy.resume_connection().unwrap();
    // Suppliers and consumers of the event service's interfaces use the same channel.
    let plain: PlainChannel = channel.as_object().unchecked_narrow();
    let values = plain.for_consumers().unwrap().unwrap().obtain_pull_supplier().unwrap().unwrap();
    values.connect_pull_consumer(None).unwrap();
    let supplies = plain.for_suppliers().unwrap().unwrap().obtain_push_consumer().unwrap().unwrap();
    supplies.connect_push_supplier(None).unwrap();
    supplies.push(&Any::new(77_i32).unwrap()).unwrap();
    assert_eq!(values.pull().unwrap().extract::<i32>().unwrap(), 77);
    let event = pulls.pull_structured_event().unwrap();
    assert_eq!(event.header.fixed_header.event_type.type_name, "%ANY");
    assert_eq!(event.remainder_of_body.extract::<i32>().unwrap(), 77);
    channel.destroy().unwrap();
    wait_until("the end of the channel", || !factory.get_all_channels().is_ok_and(|ids| ids.contains(&id)));
}
