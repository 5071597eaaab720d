//! An event service of several servers, whose channels are streams of a JetStream broker.
//!
//! | in the service | in the broker, with the prefix `events` |
//! | --- | --- |
//! | the channel `Alarms` | the stream `events-Alarms` with the subject `events.Alarms`, kept while a consumer needs it |
//! | a connection | a key `Alarms.PROXY` of the bucket `events`, whose value is the reference of the peer |
//! | a connected consumer | a durable consumer with the name of its proxy |
//!
//! Servers keep nothing but copies of these records. A proxy is served by each of them, from its object id and its
//! record. Each server asks the broker for the events of each push consumer; the broker gives an event to one of them, and
//! the next one after the acknowledgement. An event that a server did not acknowledge goes to another server after
//! [`ACK_WAIT`].
//!
//! `push` returns when the broker has stored the event on a majority of its replicas. An event is sent again under the
//! same id until then or until the time limit, which raises TRANSIENT.
#![forbid(unsafe_code)]

mod broker;
mod delivery;
mod monitor;
mod registry;
mod servants;
mod service;

pub use broker::{ACK_WAIT, BrokerError, BrokerOptions};
pub use service::{JetStreamEventService, ServiceError, ServiceOptions};
