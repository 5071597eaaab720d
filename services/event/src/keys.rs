//! Plain object keys of the service, and the parts of its object ids.

/// The object key of the factory of channels, the same as in omniEvents, so that its clients find it.
pub const FACTORY_KEY: &str = "omniEvents";

/// The key of the monitor, which shows the state of channels and consumers.
pub const MONITOR_KEY: &str = "EventMonitor";

/// The parts of object ids of the administrators.
pub(crate) const CONSUMERS: &str = "consumers";
pub(crate) const SUPPLIERS: &str = "suppliers";
/// The parts of the typed face of a channel, and of its administrators.
pub(crate) const TYPED: &str = "typed";
pub(crate) const TYPED_CONSUMERS: &str = "typed-consumers";
pub(crate) const TYPED_SUPPLIERS: &str = "typed-suppliers";

/// The plain key of the typed face of a channel. Names of channels have no `/`.
pub(crate) fn typed_key(name: &str) -> String {
    format!("{name}/{TYPED}")
}
