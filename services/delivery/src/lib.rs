//! The parts by which channels of events deliver to peers that may be slow, dead or hostile.
//!
//! - [`EventQueue`] holds the events that a consumer has not yet got. It is bounded in events and octets, and has an order of
//!   delivery and an order of discarding ([`QueueOrder`], [`DiscardOrder`]). A supplier never waits for it.
//! - [`EventMemory`] bounds the octets of all events of a service; an event in several queues counts once.
//! - [`ConnectionCell`] is the state of a proxy, which connects once.
//! - [`Delivery`] is the state of the task that serves one peer: one call at a time, with a time limit, pauses after
//!   failures, and an end. [`Delivery::push_events`] pushes the events of a queue.
//! - [`Timer`] lets tasks pause without a thread, and [`PullReplies`] answers calls that have waited for an event.
//! - [`TypedInterface`] describes the interface of typed events, and serves the objects by whose operations they are passed.
//! - [`DeliveryArgs`] are the options of executables for these bounds.
//!
//! Events are of any type; the interfaces of channels, their names and their stores are left to the services.
#![forbid(unsafe_code)]

mod args;
mod connection;
mod event;
mod limits;
mod memory;
mod pulls;
mod queue;
mod schedule;
mod task;
mod timer;
mod typed;
mod worker;

pub use args::DeliveryArgs;
pub use connection::{Connection, ConnectionCell};
pub use event::Event;
pub use limits::PeerOptions;
pub use memory::{EventMemory, MemoryCharge};
pub use pulls::{EndedPull, PullEnd, PullReplies, WaitingPull};
pub use queue::{EventQueue, QueueBounds, QueueCounts};
pub use schedule::{DiscardOrder, Lifetime, QueueOrder};
pub use task::TaskEnd;
pub use timer::Timer;
pub use typed::{CallArguments, TypedInterface, TypedSupplier, call_typed, no_event};
pub use worker::{
    BatchBounds, Delivery, DeliveryEnd, PeerFailure, PullSupplierPeer, PushConsumerPeer, notify_disconnection,
};
