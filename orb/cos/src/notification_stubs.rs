// The stubs of the notification service, and of the factory with its monitor.
include!("cos_notification.rs");
include!("notification_monitor.rs");
