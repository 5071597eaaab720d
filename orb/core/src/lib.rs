//! The ORB core: connections, references and invocation.
//!
//! An [`Orb`] makes [`ObjectRef`]s from their string forms, invokes operations on them, and listens for
//! requests, which it passes to the installed [`ObjectAdapter`]. It knows servants only through traits:
//! `spandrel-poa` maps object keys to servants. Messages belong to `spandrel-giop`, and transports to
//! `spandrel-transport`.
//!
//! One two-way call is one write and one read on either side. The calling thread reads its own reply, and the
//! connection's thread runs the servant. Nothing is allocated once buffers have grown (see [`client`] and
//! `server`).
//!
//! Without the features `server`, `asynchronous` and `details`, a side of the ORB and its dependencies are
//! left out. Other optional parts are plugged in by the builder as a function pointer or a trait object.
//! [`OrbBuilder::bare`] leaves them empty, so that the linker drops the part.
#![forbid(unsafe_code)]

mod adapter;
#[cfg(feature = "server")]
mod adapter_references;
#[cfg(feature = "server")]
mod aliases;
mod answer;
#[cfg(feature = "asynchronous")]
mod asynchronous;
#[cfg(feature = "server")]
mod bidirectional;
#[cfg(feature = "server")]
mod cancellation;
pub mod client;
mod code_sets;
#[cfg(feature = "server")]
mod collocation;
mod command_line;
mod connection_contexts;
mod context;
#[cfg(feature = "server")]
mod datagrams;
#[cfg(feature = "server")]
mod deadlines;
mod destination;
pub mod diagnostics;
mod exceptions;
#[cfg(feature = "asynchronous")]
mod flushing;
#[doc(hidden)]
pub mod generated;
mod initial;
pub mod interception;
#[doc(hidden)]
pub mod interpreted;
mod invocation;
mod main_thread;
#[cfg(feature = "asynchronous")]
pub mod messaging;
#[cfg(all(test, shuttle))]
mod models;
mod names;
mod object;
mod object_operations;
#[cfg(feature = "server")]
mod operation_index;
mod options;
mod orb;
pub mod policies;
mod policy;
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
pub mod statistics;
#[cfg(feature = "asynchronous")]
mod task;
mod thread_policy;
#[cfg(feature = "asynchronous")]
mod timer;
pub mod transport;
mod upcalls;
pub mod values;

pub use adapter::Located;
#[cfg(feature = "server")]
pub use adapter::{
    AdapterDescription, AdapterState, AdapterWait, Entry, KeptUse, LastTarget, ObjectAdapter, Reservation, Resolution,
    ServantUse, Target, Upcall,
};
#[cfg(feature = "server")]
pub use adapter_references::References;
pub use answer::Answer;
#[cfg(feature = "asynchronous")]
pub use asynchronous::{AsyncRawReply, AsyncReply};
#[cfg(feature = "server")]
pub use bidirectional::BidirectionalPolicy;
#[cfg(feature = "server")]
pub use cancellation::{CancelReason, CancellationToken, Cancelled};
pub use client::{ConnectionSharing, Purging};
pub use command_line::InitError;
pub use context::Context;
#[cfg(feature = "server")]
pub use deadlines::remaining_time;
pub use exceptions::{UserException, UserExceptions};
pub use initial::InvalidName;
pub use object::{Interface, ObjectRef};
pub use options::OrbBuilder;
pub use orb::Orb;
pub use policy::{Policy, PolicyType, PolicyValue};
pub use servant::Replied;
#[cfg(feature = "server")]
pub use servant::Servant;
pub use server::ServerCall;
#[cfg(feature = "server")]
pub use server::{Concurrency, ConcurrencyError, DeferredCall, QueueOverflow};
#[cfg(feature = "server")]
pub use settings::Collocation;
#[cfg(feature = "asynchronous")]
pub use settings::WaitStrategy;
pub use spandrel_cdr::{ByteOrder, GiopVersion, Ior};
#[cfg(feature = "server")]
pub use spandrel_demux::{OperationDemux, Operations};
pub use spandrel_giop::{AddressingDisposition, CompletionStatus, SystemException, SystemExceptionKind, minor};
pub use statistics::Statistics;
#[cfg(feature = "asynchronous")]
pub use task::{Spawn, Task};
#[cfg(feature = "server")]
pub use transport::{Endpoint, EndpointError};
