//! The server of a point as its clients see it, and the supplier that pushes to it.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ledger::Event;

/// The form of the events of a notification service.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Form {
    /// Values by the interfaces of the event service.
    Any,
    /// One structured event in each call.
    Structured,
    /// Sequences of structured events, to suppliers and to consumers.
    Sequence,
}

/// The server of a point, and how its clients reach it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Target {
    Plain(SocketAddr),
    Nats(SocketAddr),
    /// With the quality of service.
    Mqtt(SocketAddr, u8),
    /// The reference of a factory of event channels, that of omniEvents' interfaces.
    Event(String),
    /// The reference of an event channel, the only one of its server.
    EventChannel(String),
    /// The reference of a factory of the notification service.
    Notification {
        factory: String,
        form: Form,
        is_persistent: bool,
    },
    /// A file in this folder: no server.
    Disk(PathBuf),
}

/// A supplier that is connected to a channel.
pub(super) trait Supplier: Send {
    /// Pushes an event, or adds it to those that are pushed together.
    fn push(&mut self, event: &Event) -> anyhow::Result<()>;

    /// Pushes the events that were not pushed yet.
    fn flush(&mut self) -> anyhow::Result<()>;
}
