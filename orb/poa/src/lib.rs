//! The portable object adapter: from object key to servant (CORBA 3.3 Part 1, chapter 15).
//!
//! A [`Poa`] makes references and finds the servants of requests, as its policies say: in its active object map, by a default
//! servant, or by a servant manager of the application. A [`PoaManager`] lets requests pass, holds them, or refuses them.
//! Adapters have children, which an [`AdapterActivator`] may make when they are needed; [`Current`] tells a servant which
//! object it is asked to be.
//!
//! An object that was activated with an id of the adapter's making is found by active demultiplexing: its key says which adapter and
//! which slot, so that finding it is comparisons and one index however many there are. Other ids are found by one of the
//! strategies that [`ObjectDemux`] names. What a request is, and how it is answered, belongs to `spandrel-orb`.
#![forbid(unsafe_code)]

mod activation;
mod adapter;
mod control;
mod current;
mod deactivation;
mod demux;
mod directory;
mod dispatch;
mod entering;
mod error;
mod establishing;
mod etherealizer;
mod finding;
mod frames;
mod hierarchy;
mod in_use;
mod invocation;
mod key;
mod live_orb;
#[doc(hidden)]
pub mod lookup;
mod managed;
mod manager;
#[cfg(all(test, shuttle))]
mod models;
mod object_id;
mod objects;
mod poa;
mod policies;
mod signal;
mod slots;
mod turn;
mod usage;

pub use adapter::Poa;
pub use adapter::servants::{AdapterActivator, Cookie, Incarnation, ServantActivator, ServantLocator, ServantManager};
pub use control::{PoaManager, PoaManagerFactory};
pub use current::{Current, NoContext};
pub use error::PoaError;
pub use key::describe_key;
pub use manager::State;
pub use object_id::ObjectId;
pub use policies::{
    IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, LifespanPolicy, ObjectDemux,
    RequestProcessingPolicy, ServantRetentionPolicy, ThreadPolicy,
};
pub use spandrel_orb::{OperationDemux, Servant};
