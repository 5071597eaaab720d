//! The ORB core: references, connections to servers, and invocation.
//!
//! An [`Orb`] makes [`ObjectRef`]s from their string forms and invokes operations on them. The server side is
//! the crate `spandrel-server` above, which the core reaches as `ServerSide` (in `orb`) once
//! an object adapter is installed. Messages belong to `spandrel-giop`, the state of connections to
//! `spandrel-connection`, and transports to `spandrel-transport`.
//!
//! One two-way call is one write and one read on either side. The calling thread reads its own reply. Nothing
//! is allocated once buffers have grown (see `client`).
//!
//! Without the features `asynchronous` and `details`, a part of the ORB and its dependencies are left out.
//! Optional parts are plugged in as a function pointer or a trait object: by the builder, or by their first use
//! in the process. [`OrbBuilder::bare`] leaves them empty, so that the linker drops the part.
//!
//! # Modules
//! Each module uses those below it in this table, and none above it.
//!
//! | module | contents |
//! | --- | --- |
//! | `internal` | what the crates `spandrel-server`, `spandrel-poa` and others of this workspace use besides the public items |
//! | `generated` | what generated code uses |
//! | `configuration` | the builder of an ORB, its options and profiles, the command line |
//! | `call` | the decisions of one call, its two drivers, asynchronous calls, cancellation |
//! | [`interception`] | interceptors of requests and references |
//! | `reference` | object references, their string forms, and the policies in force for a call |
//! | `orb` | the state of an ORB, its listening and shutdown, initial references, factories of values |
//! | `servant_side` | settings of the server side, descriptions of adapters and upcalls |
//! | `client` | transports, connections to peers, and the destinations that lead from a reference to these |
//! | [`policy`] | the types of policies, and their values at one level |
//! | [`diagnostics`] | statistics, metrics, and traces |
//!
//! Methods of a type may stand in a module above it: those of an [`Orb`] in `reference`, `call` and
//! `configuration`. A lower module receives what it needs of a higher one as a trait object, a function or a
//! closure: the connection cache its `CachedConnections`, an adopted connection its `AdoptedReader`, an ORB its
//! `ServerSide`.
//!
//! Modules and methods that are hidden from the documentation are for the crates of this workspace.
#![forbid(unsafe_code)]

mod call;
mod client;
mod configuration;
pub mod diagnostics;
#[doc(hidden)]
pub mod generated;
pub mod interception;
#[doc(hidden)]
pub mod internal;
#[cfg(shuttle)]
#[doc(hidden)]
pub mod models;
mod orb;
pub mod policy;
mod reference;
mod servant_side;

pub use call::answer::Answer;
#[cfg(feature = "asynchronous")]
pub use call::{
    asynchronous::{AsyncRawReply, AsyncReply, NarrowReply, SharedArguments},
    cancellation::{CancelReason, CancellationToken, Cancelled},
    messaging,
};
pub use client::{
    ConnectionSharing, Purging,
    task::{Spawn, Task, poll_once},
    transport::{self, Endpoint, EndpointError},
};
#[cfg(feature = "clap")]
pub use configuration::orb_args::{OrbArgs, OrbArgsError, OrbSetting, SettingSource};
#[cfg(feature = "site")]
pub use configuration::site::{Site, SiteError, SiteSetting};
pub use configuration::{
    command_line::{GENERAL_OPTIONS, InitError, OrbOption, SERVER_OPTIONS},
    options::{OrbBuilder, OrbProfile, UnknownProfile},
};
pub use diagnostics::statistics::{self, Statistics};
pub use orb::{
    Orb,
    context::Context,
    initial_references::InvalidName,
    settings::{Collocation, WaitStrategy},
    values,
};
pub use policy::{
    bidirectional::BidirectionalPolicy,
    policy_value::{Policy, PolicyScope, PolicyType, PolicyValue},
    request_deadlines::remaining_time,
};
pub use reference::{
    exceptions::{IntoError, UserException, UserExceptions},
    object::{Interface, ObjectRef},
    own_connections::{ConnectionGroup, GroupProtocol},
    policy_management::{BindingPolicies, BoundCall, CallerState, PolicyCurrent, PolicyManager, ReferencePolicies},
};
pub use servant_side::adapter::{AdapterDescription, AdapterState, KeptUse, Located, SupportedInterfaces, Target};
pub use servant_side::concurrency::{Concurrency, ConcurrencyError, QueueOverflow};
pub use spandrel_cdr::{ByteOrder, GiopVersion, Ior};
pub use spandrel_demux::{ObjectDemux, OperationDemux, Operations};
pub use spandrel_giop::{AddressingDisposition, CompletionStatus, SystemException, SystemExceptionKind, minor};
