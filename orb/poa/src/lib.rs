//! The portable object adapter: from object key to servant (CORBA 3.3 Part 1, chapter 15).
//!
//! A [`Poa`] creates references and finds the servants of requests, according to its policies: in its active
//! object map, as a default servant, or by a servant manager of the application. A [`PoaManager`] admits,
//! holds or rejects requests. Adapters have children, which an [`AdapterActivator`] may create on demand.
//! [`Current`] gives a servant access to the object of its request.
//!
//! An object with a system-assigned id is found by active demultiplexing: its key contains the adapter and
//! the slot. The lookup takes a few comparisons and one index, however many objects there are. Other ids are
//! found by one of the strategies that [`ObjectDemux`] names. Requests and replies themselves belong to
//! `spandrel-server`.
//!
//! # Modules
//! A module uses only those that are named before it. Keys, policies, events, serial locks and the active
//! object map (`objects`) are the lowest. The `manager` refers to adapters as `ManagedAdapter`, and to the
//! ORB as `OrbHandle`. The module `adapter` has the state of adapters. Above it are the stack of a thread's
//! upcalls (`frames`), `deactivation`, the lookup of servants and of adapters, creation and destruction
//! (`hierarchy`), the release of servants after requests (`servant_release`), and `resolution`, which a request
//! enters. The tables of object ids are in `demux`. Applications call
//! `poa`, `poa_builder`, `activation`, `poa_manager` and `current`.
#![forbid(unsafe_code)]

mod activation;
mod adapter;
mod adapter_description;
mod adapter_lookup;
mod adapter_name;
mod current;
mod deactivation;
mod demux;
mod directory;
mod error;
mod etherealization_queue;
mod frames;
mod hierarchy;
mod key;
mod managed_adapter;
mod manager;
#[doc(hidden)]
pub mod measured_lookup;
#[cfg(all(test, shuttle))]
mod models;
mod object_id;
mod objects;
mod orb_handle;
mod parameters;
mod poa;
mod poa_builder;
mod poa_manager;
mod policies;
mod resolution;
mod serial_lock;
mod servant_in_use;
mod servant_lookup;
mod servant_release;
mod shared_callbacks;
mod slots;
mod usage;
mod waiting;

pub use adapter::servants::{Cookie, Incarnation};
pub use adapter::{AdapterActivator, Poa, ServantActivator, ServantLocator, ServantManager};
pub use current::{Current, NoContext};
pub use error::PoaError;
pub use key::describe_key;
pub use manager::State;
pub use object_id::ObjectId;
pub use parameters::{EtherealizeObjects, WaitForCompletion};
pub use poa::IfMissing;
pub use poa_builder::PoaBuilder;
pub use poa_manager::{PoaManager, PoaManagerFactory};
pub use policies::{
    ExecutorPolicy, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, LifespanPolicy,
    RequestProcessingPolicy, ServantRetentionPolicy, ThreadPolicy,
};
/// ```
/// # use spandrel_orb::Orb;
/// # use spandrel_poa::{self as poa, Poa};
/// use poa::{IdAssignmentPolicy, ObjectDemux}; // of spandrel
/// # let orb = Orb::builder().build()?;
/// # let root = Poa::root(&orb)?;
/// // A thousand sensors with names, all of which are activated before the manager is.
/// let policies = [IdAssignmentPolicy::UserId.into(), ObjectDemux::PerfectHash.into()];
/// let sensors = root.create_poa("sensors", None, policies)?;
/// # orb.shutdown()?;
/// # Ok::<(), poa::PoaError>(())
/// ```
pub use spandrel_orb::ObjectDemux;
pub use spandrel_orb::OperationDemux;
pub use spandrel_server::Servant;
