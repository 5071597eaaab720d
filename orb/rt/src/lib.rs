//! Real-time CORBA 1.2 (OMG formal/05-01-04): priorities of threads and requests, thread pools, and the client's side.
//!
//! | for | types |
//! | --- | --- |
//! | CORBA priorities and their native ones | [`Priority`], [`PriorityMapping`], [`PriorityTransform`], [`NetworkPriorityMapping`], [`Scheduling`] |
//! | the priority of the calling thread | [`RtCurrent`] |
//! | threads and request queues by priority | [`ThreadPool`], [`LaneSettings`], [`Job`] |
//! | declared times of requests | [`ExecutionTimes`], [`Overrun`] |
//! | mutual exclusion | [`RtMutex`] |
//! | the policies of clients, references and adapters | [`policies`], [`protocols`] |
//! | octets in requests and references | [`contexts`] |
//! | calls: policies in force, priorities in requests | [`RtClient`] |
//! | all of it for one ORB | [`RtOrb`] |
//! | adapters whose requests run in thread pools | [`RtServerOrb`], [`RtPoa`], [`RtPoaBuilder`] |
//!
//! The crates below know nothing of this one, so a program without it pays nothing.

#![forbid(unsafe_code)]

mod client;
pub mod contexts;
mod current;
mod mapping;
mod memory;
#[cfg(all(test, shuttle))]
mod models;
mod mutex;
mod octets;
pub mod policies;
mod policy_factory;
mod pool;
mod priority;
mod propagated;
pub mod protocols;
mod rt_orb;
mod scheduling;
mod server;

pub use client::RtClient;
pub use current::RtCurrent;
pub use mapping::{
    ContinuousMapping, DirectMapping, LinearMapping, NetworkPriorityMapping, PriorityMapping, PriorityTransform,
};
pub use memory::lock_memory;
pub use mutex::{MutexNotFound, RtMutex};
pub use policy_factory::{RtPolicyFactory, protocol_list};
pub use pool::{
    BoxedJob, Discarded, DynamicLifespan, ExecutionTimes, Job, LaneSettings, LaneStatistics, Overrun, OverrunAction,
    OverrunObserver, PoolSettings, PoolThread, RefusalReason, Refused, ReservationLimits, ThreadPool, WhenFull, Work,
};
pub use priority::{NativePriority, Priority};
pub use rt_orb::{InvalidThreadpool, RtOrb};
pub use scheduling::{Scheduling, SchedulingClass};
pub use server::{LaneRequest, ReplyPriorities, RtPoa, RtPoaBuilder, RtServerOrb};

#[cfg(all(test, not(shuttle)))]
mod tests;
