//! The ORB core: references, connections to servers, and invocation.
//!
//! An [`Orb`] makes [`ObjectRef`]s from their string forms and invokes operations on them. The server side is
//! the crate `spandrel-server` above, which the core reaches as [`ServerSide`](orb::server_side::ServerSide) once
//! an object adapter is installed. Messages belong to `spandrel-giop`, the state of connections to
//! `spandrel-connection`, and transports to `spandrel-transport`.
//!
//! One two-way call is one write and one read on either side. The calling thread reads its own reply. Nothing
//! is allocated once buffers have grown (see [`client`]).
//!
//! Without the features `asynchronous` and `details`, a part of the ORB and its dependencies are left out.
//! Optional parts are plugged in as a function pointer or a trait object: by the builder, or by their first use
//! in the process. [`OrbBuilder::bare`] leaves them empty, so that the linker drops the part.
//!
//! # Modules
//! Uses of modules go one way. The lowest are `transport`, `statistics`, `diagnostics`, `policies` and `task`.
//! The module `client` has connections and peers, and `destination` leads from a reference to these. An [`Orb`]
//! holds the state of each, an [`ObjectRef`] its ORB. Above them are `references`, `policy_management`,
//! `interception` and `invocation`, which makes the calls; then `asynchronous`, and `options` and `command_line`,
//! which configure both sides. Operations of the ORB stand in `orb` (its state, listening, shutdown),
//! `references` and `orb_operations`. A lower part receives what it needs of a higher one as a trait object, a
//! function or a closure: the connection cache its `CachedConnections`, an adopted connection its
//! `AdoptedReader`.
//!
//! Modules and methods that are hidden from the documentation are for the crates of this workspace.
#![forbid(unsafe_code)]

mod call;
pub mod client;
mod configuration;
pub mod diagnostics;
#[doc(hidden)]
pub mod generated;
pub mod interception;
#[cfg(shuttle)]
#[doc(hidden)]
pub mod models;
#[doc(hidden)]
pub mod orb;
pub mod policy;
mod reference;
mod servant_side;

pub use call::answer::Answer;
#[cfg(feature = "asynchronous")]
pub use call::{
    asynchronous::{AsyncRawReply, AsyncReply},
    cancellation::{CancelReason, CancellationToken, Cancelled},
    messaging,
};
#[cfg(feature = "asynchronous")]
#[doc(hidden)]
pub use call::{cancellation, invocation::nesting, timer};
#[doc(hidden)]
pub use call::{invocation::encode_collocated, scratch};
pub use client::{
    ConnectionSharing, Purging,
    task::{Spawn, Task},
    transport::{self, Endpoint, EndpointError},
};
#[doc(hidden)]
pub use client::{call_kind, destination, task};
#[cfg(feature = "asynchronous")]
pub use configuration::command_line::ASYNCHRONOUS_OPTIONS;
#[cfg(feature = "clap")]
pub use configuration::orb_args::{OrbArgs, OrbArgsError};
pub use configuration::{
    command_line::{GENERAL_OPTIONS, InitError, OrbOption, SERVER_OPTIONS},
    options::{OrbBuilder, OrbProfile, UnknownProfile},
};
pub use diagnostics::statistics::{self, Statistics};
#[doc(hidden)]
pub use interception::adapter_references;
pub use orb::{
    Orb,
    context::Context,
    initial_references::InvalidName,
    settings::{Collocation, WaitStrategy},
    values,
};
#[doc(hidden)]
pub use policy::request_deadlines;
pub use policy::{
    bidirectional::BidirectionalPolicy,
    policy_value::{Policy, PolicyType, PolicyValue},
    request_deadlines::remaining_time,
};
pub use reference::{
    exceptions::{UserException, UserExceptions},
    object::{Interface, ObjectRef},
};
#[doc(hidden)]
pub use reference::{object, policy_management};
pub use servant_side::adapter::{
    AdapterDescription, AdapterState, FutureContext, KeptUse, Located, SupportedInterfaces, Target,
};
pub use servant_side::concurrency::{Concurrency, ConcurrencyError, QueueOverflow};
#[doc(hidden)]
pub use servant_side::{server_settings, upcall_scope};
pub use spandrel_cdr::{ByteOrder, GiopVersion, Ior};
pub use spandrel_demux::{OperationDemux, Operations};
pub use spandrel_giop::{AddressingDisposition, CompletionStatus, SystemException, SystemExceptionKind, minor};
