//! Plain object keys of the service.

/// The key of the factory of channels, and the name by which ORBs resolve it as an initial reference.
pub const FACTORY_KEY: &str = "NotificationService";

/// The id of the monitor, which shows the state of channels and consumers.
pub(crate) const MONITOR: &str = "monitor";

/// The id of the factory of filters, which all channels share.
pub(crate) const FILTERS: &str = "filters";

/// The key of the factory of typed channels, and the name by which ORBs resolve it as an initial reference.
pub const TYPED_FACTORY_KEY: &str = "TypedNotificationService";

/// The part of the object id of the typed face of a channel.
pub(crate) const TYPED: &str = "typed";
