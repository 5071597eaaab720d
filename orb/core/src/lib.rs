//! The ORB core: transports, connections, references and invocation.
//!
//! An [`Orb`] makes [`ObjectRef`]s from their string forms, invokes operations on them, and listens for requests that it
//! hands to whatever [`ObjectAdapter`] is installed. It knows servants only through traits: which servant stands behind an
//! object key belongs to `spandrel-poa`. What messages look like belongs to `spandrel-giop`.
//!
//! One two-way call is one write and one read on either side: the calling thread reads its own reply, the connection's
//! thread runs the servant, and nothing is allocated once buffers have grown (see [`client`] and `server`).
//!
//! The features `server`, `asynchronous`, `policies`, `urls` and `values` are for clients that are to be small: without them there is neither their code nor
//! what only they depend on.
#![forbid(unsafe_code)]

mod adapter;
#[cfg(feature = "server")]
mod aliases;
mod answer;
#[cfg(feature = "asynchronous")]
mod asynchronous;
pub mod client;
#[cfg(feature = "server")]
mod collocation;
mod command_line;
mod context;
mod destination;
#[cfg(feature = "server")]
mod endpoint;
#[cfg(feature = "server")]
mod establishing;
mod exceptions;
#[doc(hidden)]
pub mod generated;
#[cfg(feature = "urls")]
mod initial;
#[cfg(feature = "interceptors")]
pub mod interception;
#[doc(hidden)]
pub mod interpreted;
mod invocation;
mod main_thread;
#[cfg(feature = "asynchronous")]
pub mod messaging;
#[cfg(all(test, shuttle))]
mod models;
#[cfg(feature = "urls")]
mod names;
mod object;
mod object_operations;
#[cfg(feature = "server")]
mod operation_index;
mod options;
mod orb;
pub mod policies;
mod policy;
mod reader;
mod references;
mod request_cache;
mod scratch;
mod servant;
#[cfg(feature = "server")]
pub mod server;
#[cfg(not(feature = "server"))]
#[path = "server/absent.rs"]
mod server;
mod settings;
mod transport;
mod upcalls;
#[cfg(feature = "values")]
pub mod values;

pub use adapter::Located;
#[cfg(feature = "server")]
pub use adapter::{ObjectAdapter, Target};
pub use answer::Answer;
#[cfg(feature = "asynchronous")]
pub use asynchronous::{AsyncAnswer, AsyncReply, Spawn, Task};
#[cfg(feature = "server")]
pub use collocation::Collocation;
pub use command_line::InitError;
pub use context::Context;
#[cfg(feature = "server")]
pub use endpoint::{Endpoint, EndpointError};
#[cfg(feature = "server")]
pub use establishing::{AdapterDescription, AdapterState, References};
pub use exceptions::{UserException, UserExceptions};
#[cfg(feature = "urls")]
pub use initial::InvalidName;
pub use object::{Interface, ObjectRef};
pub use options::OrbBuilder;
pub use orb::Orb;
pub use policy::{Policy, PolicyType, PolicyValue};
pub use servant::Replied;
#[cfg(feature = "server")]
pub use servant::Servant;
#[cfg(feature = "server")]
pub use server::DeferredCall;
pub use server::ServerCall;
#[cfg(feature = "asynchronous")]
pub use settings::WaitStrategy;
pub use spandrel_cdr::{ByteOrder, GiopVersion, Ior};
#[cfg(feature = "server")]
pub use spandrel_demux::{OperationDemux, Operations};
pub use spandrel_giop::{CompletionStatus, SystemException, SystemExceptionKind, minor};
