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
//! - `ConnectionReliability` of a channel decides whether the channel, its administrators, its filters and its connections
//!   outlive the process; connections of it may be `BestEffort`. `EventReliability` `Persistent` needs persistent connections.
//!   A proxy is in the store from its connection on.
//! - A push returns when a persistent event is on the disk. It is delivered at least once to each persistent connection that
//!   it concerned then, unless its life ends or the bound of the queue discards it. A pull acknowledges the events of the
//!   pull before at the same proxy. A consumer that fails is called again and again.
//! - Callbacks of filters end with the process.
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
//! - A call of a typed supplier is an event of the type `%TYPED`; for consumers of `any` it is the sequence of its properties.
//!   Any event with such properties is a call for typed consumers whose interface has the operation. Typed connections end
//!   with the process.
//! - If a channel has too many proxies, the oldest one that was never connected goes.
#![forbid(unsafe_code)]

mod activation;
mod admin;
mod admin_properties;
mod admins;
mod batches;
mod changed_member;
mod channel;
mod channel_counts;
mod channel_edits;
mod channel_servant;
mod components;
mod constraints;
mod content;
mod delivery;
mod distribution;
mod durable;
mod edit;
mod encoded_content;
mod encoding;
mod event_interface;
mod event_types;
mod filter;
mod filter_bounds;
mod filter_factory;
mod filter_object;
mod filter_record;
mod filters;
mod for_consumers;
mod for_suppliers;
mod keys;
mod kind;
mod limits;
mod live;
mod mapping_filter;
mod mapping_filter_object;
mod member;
mod members;
mod metrics;
mod monitor;
mod notification;
mod pending;
mod proxy;
mod pulled;
mod qos;
mod received;
mod records;
mod registry;
mod restore;
mod servant;
mod service;
mod shared;
mod store;
mod typed;

#[doc(hidden)]
pub use spandrel;

pub use keys::{FACTORY_KEY, TYPED_FACTORY_KEY};
pub use limits::Limits;
pub use service::{ADAPTER, NotificationError, NotificationOptions, NotificationService, STORE_FILE};
pub use spandrel_delivery::PeerOptions;
pub use store::{StoreCounts, StoreError, check_store, recover_store};
