// The stubs of the notification service, of its typed channels, and of the factory with its monitor.
include!("cos_notification.rs");
include!("cos_typed_notification.rs");
include!("notification_monitor.rs");
