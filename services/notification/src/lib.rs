//! The OMG's notification service (Notification Service 1.1, formal/04-10-11): channels that pass structured events from
//! suppliers to consumers, by filters and with qualities of service.
//!
//! [`NotificationService::start`] adds a factory of channels to an ORB. The executable `spandrel-notification` does so in a
//! process of its own. Clients of the event service use its channels unchanged.
//!
//! # Delivery
//! An event is put into the queues of the consumers whose filters match, and the supplier's call returns: suppliers do not
//! wait for consumers. Each queue is bounded, in the order of `OrderPolicy`, and discards events in that of `DiscardPolicy`;
//! they are counted. A consumer has one call at a time, with a time limit, and no thread.
//!
//! # Decisions
//! The specification leaves these to the implementation:
//!
//! - Events, channels and connections are in memory alone: `EventReliability` and `ConnectionReliability` are `BestEffort`.
//! - `Priority` and `Timeout` of an event are those of its header, else of the supplier's proxy or administrator, else of the
//!   consumer's proxy or administrator, else of the channel. `StopTime` and `Timeout` both count: the earlier one ends the
//!   event's life. A mapping filter that matches is stronger than all of these, and its default value is weaker than the
//!   header and the supplier.
//! - The filters of an object are alternatives: an event passes if one matches, or if there is none. A filter without
//!   constraints matches no event. A constraint without a value for an event does not match.
//! - Filters are those of the service: a filter elsewhere would be a call for each event and consumer.
//! - `subscription_change` selects the events that a consumer gets, beside its filters. The first specific types take the place
//!   of all types.
//! - An `any` with a structured event is that event. Any other `any` is, for consumers of structured events, the remainder of
//!   the body of an event of the type `%ANY`.
//! - If a channel has too many proxies, the oldest one that was never connected goes.
#![forbid(unsafe_code)]

mod activation;
mod admin;
mod admin_properties;
mod admins;
mod channel;
mod channel_servant;
mod components;
mod delivery;
mod encoding;
mod event_types;
mod filter;
mod filter_bounds;
mod filter_factory;
mod filter_object;
mod filters;
mod for_consumers;
mod for_suppliers;
mod keys;
mod kind;
mod limits;
mod live;
mod mapping_filter;
mod mapping_filter_object;
mod metrics;
mod notification;
mod proxy;
mod qos;
mod registry;
mod servant;
mod service;
mod shared;

#[doc(hidden)]
pub use spandrel;

pub use keys::FACTORY_KEY;
pub use limits::Limits;
pub use service::{ADAPTER, NotificationError, NotificationOptions, NotificationService};
pub use spandrel_delivery::PeerOptions;
