//! The OMG's event service (Event Service 1.2, formal/04-10-02): channels that pass events from suppliers to consumers
//! that do not know each other.
//!
//! [`EventService::start`] adds a factory and its channels to an ORB, and keeps channels and connections on disk or in
//! memory. The executable `spandrel-event` does so in a process of its own. Clients of omniEvents use it unchanged.
//!
//! # Delivery
//! An event is put into the queue of each connected consumer, and `push` returns: suppliers do not wait for consumers. Each
//! queue is bounded in events and octets ([`Limits`]) and drops its oldest events, which are counted. A consumer has one call
//! at a time, with a time limit, and no thread: one that does not answer holds up nobody else. It is disconnected after
//! [`PeerOptions::max_failures`] failures in a row, or at once by `Disconnected` and OBJECT_NOT_EXIST. Events of one
//! supplier keep their order.
//!
//! # Decisions
//! The specification leaves these to the implementation:
//!
//! - Events are in memory alone: those in queues are lost when the process ends. Channels and connections are not.
//! - A push that failed before the consumer got it is repeated; one that may have reached it counts as dropped.
//! - `push` at a proxy before its connection raises `Disconnected`, as `pull` and `try_pull` do.
//! - A disconnection by a peer calls the `disconnect` operation of that peer, too, if its reference is known (2.1.1 to 2.1.4).
//!   A peer that failed is not called.
//! - The interfaces of typed channels are those of an interface repository. By pull, the channel finds the
//!   interface `I` of `Pull<I>` by its name. Typed connections end with the process.
//! - A proxy that was never connected ends with the process. If a channel has too many proxies, the oldest one of these goes.
#![forbid(unsafe_code)]

mod admin;
mod channel;
mod channels;
mod content;
mod delivery;
mod destruction;
mod factory;
mod keys;
mod limits;
mod monitor;
mod proxies;
mod registry;
mod service;
mod settings;
mod shared;
mod store;
mod typed;

#[doc(hidden)]
pub use spandrel;

pub use channels::CreateError;
pub use factory::{EventChannels, FactoryServant};
pub use keys::{FACTORY_KEY, MONITOR_KEY};
pub use limits::Limits;
pub use service::{ADAPTER, EventError, EventOptions, EventService, STORE_FILE};
pub use settings::ChannelSettings;
pub use spandrel_delivery::PeerOptions;
pub use store::{StoreError, check_store};
