//! The portable object adapter: from object key to servant.
//!
//! The root adapter gives each servant that is activated an object id of its own (CORBA 3.3 Part 1, 15.3.8, SYSTEM_ID and
//! UNIQUE_ID left aside), and finds it again by active demultiplexing: the id is a slot and a generation, so that finding a
//! servant is one index and one comparison however many there are. What a request is, and how it is answered, belongs to
//! `spandrel-orb`.
#![forbid(unsafe_code)]

mod active_map;
pub mod demux;
mod error;
mod key;
mod object_id;
mod policies;
mod root;

pub use error::PoaError;
pub use object_id::ObjectId;
pub use policies::{
    IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, LifespanPolicy, ObjectDemux,
    RequestProcessingPolicy, ServantRetentionPolicy, ThreadPolicy,
};
pub use root::Poa;
pub use spandrel_orb::{OperationDemux, Servant};
