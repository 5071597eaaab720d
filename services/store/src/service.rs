//! The services that have stores.

use std::fmt;

/// The service that a store belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Service {
    /// The naming service, contexts and bindings.
    Naming,
    /// The interface repository, definitions of IDL.
    Repository,
    /// The implementation repository, registered servers.
    Activator,
    /// The property service, sets of properties.
    Property,
    /// The event service, channels and connections.
    Event,
    /// The trading service, service types and offers.
    Trading,
    /// The notification service, channels, connections, filters and events.
    Notification,
    /// The image store, records of images.
    Imaging,
}

impl Service {
    pub(crate) const ALL: [Self; 8] = [
        Self::Naming,
        Self::Repository,
        Self::Activator,
        Self::Property,
        Self::Event,
        Self::Trading,
        Self::Notification,
        Self::Imaging,
    ];

    /// Its name in headers and commands: `spandrel NAME`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naming => "naming",
            Self::Repository => "repository",
            Self::Activator => "activator",
            Self::Property => "property",
            Self::Event => "event",
            Self::Trading => "trading",
            Self::Notification => "notification",
            Self::Imaging => "imaging",
        }
    }

    /// The key of its [`Administration`](crate::Administration).
    #[must_use]
    pub const fn administration_key(self) -> &'static str {
        match self {
            Self::Naming => "NamingStore",
            Self::Repository => "RepositoryStore",
            Self::Activator => "ActivatorStore",
            Self::Property => "PropertyStore",
            Self::Event => "EventStore",
            Self::Trading => "TradingStore",
            Self::Notification => "NotificationStore",
            Self::Imaging => "ImagingStore",
        }
    }

    /// The name of the initial reference that leads to it, as in `-ORBInitRef`.
    #[must_use]
    pub const fn initial_reference(self) -> &'static str {
        match self {
            Self::Naming => "NameService",
            Self::Repository => "InterfaceRepository",
            Self::Activator => "ImplRepoService",
            Self::Property => "PropertySetFactory",
            Self::Event => "omniEvents",
            Self::Trading => "TradingService",
            Self::Notification => "NotificationService",
            Self::Imaging => "ImageStore",
        }
    }

    /// The tables of its stores before they had a header.
    pub(crate) const fn tables(self) -> &'static [&'static str] {
        match self {
            Self::Naming => &["bindings", "contexts", "meta"],
            Self::Repository => &["definitions", "settings"],
            Self::Activator => &["running", "servers"],
            Self::Property => &["properties", "sets", "settings"],
            Self::Event => &["channels", "connections", "settings"],
            Self::Trading => &["offers", "settings", "types"],
            Self::Notification => &["admins", "channels", "events", "filters", "proxies", "settings", "targets"],
            Self::Imaging => &["images", "settings"],
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Naming => "the naming service",
            Self::Repository => "the interface repository",
            Self::Activator => "the activator",
            Self::Property => "the property service",
            Self::Event => "the event service",
            Self::Trading => "the trading service",
            Self::Notification => "the notification service",
            Self::Imaging => "the image store",
        })
    }
}
