// The stubs of the event service, of factories of its channels, and of its monitor.
include!("cos_event.rs");
include!("event_factory.rs");
include!("event_monitor.rs");
