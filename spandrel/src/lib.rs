//! Distribution middleware in safe Rust: a CORBA object request broker on a toolkit of network components.
//!
//! Applications depend on this crate. It re-exports the ORB at its root and the toolkit under [`net`];
//! generated code names only [`generated`].
//!
//! # Features
//! All features except `log`, `parse` and `tls` are default features. With `default-features = false`, which
//! gives the smallest client, a program lists those that it needs.
//!
//! | feature | content |
//! | --- | --- |
//! | `details` | details of system exceptions besides kind and minor code: explanations, and the errors that caused them |
//! | `asynchronous` | calls that block no thread, and `net::reactor` |
//! | `fragments` | messages sent in fragments; fragmented messages are always accepted |
//! | `batching` | one-ways that are written together, with the sync scope NONE; includes `asynchronous`, `caching` and `policies` |
//! | `caching` | a limit of all connections to servers, purging, closing of idle connections, and policies of sharing |
//! | `diagnostics` | `diagnostics`: spans and traces of calls, and their durations; includes `statistics` |
//! | `datagrams` | one-ways by datagram, sent and received; includes `server` |
//! | `interceptors` | `interception`: portable interceptors, for the client and, with `server`, the server side |
//! | `server` | serving objects: listening, object adapters, servants; includes `asynchronous` |
//! | `code-sets` | code sets besides ISO 8859-1, ASCII, UTF-8 and UTF-16 (`CharSet`, `WcharSet`) |
//! | `policies` | call policies besides a time-out, at the levels of ORB, thread and reference |
//! | `statistics` | counters of an ORB's work, and their text for Prometheus |
//! | `values` | factories of valuetypes |
//! | `parse` | descriptions of interfaces from IDL that is read at run time ([`dynamic`]); not a default feature |
//! | `log` | `log`: a log on standard error, configured by the variable `SPANDREL_LOG`; not a default feature |
//! | `tls` | `ssliop`: GIOP over TLS; not a default feature; programs choose the implementation of cryptography |
//! | `urls` | references as URLs (`corbaloc:`), and initial references; without it only `IOR:` is accepted |
//!
//! Without `server` and `asynchronous` the runtime lacks the names used by generated skeletons and asynchronous
//! methods: the build script leaves them out (`.sides(Sides::Client).asynchronous_client(false)`).
#![forbid(unsafe_code)]

pub mod dynamic;
#[cfg(feature = "log")]
pub mod log;

pub use spandrel_cdr::switch_after;
pub use spandrel_cdr::{
    Any, BoundedString, BoundedVec, BoundedWString, Char, CharSet, Decimal, ExtractError, Fixed, FixedError,
    LongDouble, NotLatin1, OverBound, TcKind, TypeCode, TypeCodeError, Typed, UnknownCodeSet, WString, WcharSet,
};
pub use spandrel_giop::{IiopProfile, ObjectUrl, ior_to_string};
#[cfg(feature = "urls")]
pub use spandrel_orb::InvalidName;
#[cfg(feature = "diagnostics")]
pub use spandrel_orb::diagnostics;
#[doc(hidden)]
pub use spandrel_orb::generated;
#[cfg(feature = "interceptors")]
pub use spandrel_orb::interception;
#[cfg(feature = "policies")]
pub use spandrel_orb::policies;
#[cfg(feature = "statistics")]
pub use spandrel_orb::statistics::{self, Statistics};
pub use spandrel_orb::transport;
#[cfg(feature = "values")]
pub use spandrel_orb::values;
pub use spandrel_orb::{
    AddressingDisposition, ByteOrder, CompletionStatus, Context, GiopVersion, InitError, Interface, Ior, Located,
    ObjectRef, Orb, OrbBuilder, Policy, PolicyType, PolicyValue, Replied, ServerCall, SystemException,
    SystemExceptionKind, UserException, UserExceptions, minor,
};
#[cfg(feature = "asynchronous")]
pub use spandrel_orb::{AsyncReply, Spawn, Task, WaitStrategy, messaging};
#[cfg(feature = "server")]
pub use spandrel_orb::{
    BidirectionalPolicy, CancelReason, CancellationToken, Cancelled, Collocation, Concurrency, ConcurrencyError,
    DeferredCall, Endpoint, EndpointError, ObjectAdapter, QueueOverflow, Servant, remaining_time,
};
#[cfg(feature = "caching")]
pub use spandrel_orb::{ConnectionSharing, Purging};
/// Object adapters: they map the object key of a request to a servant.
#[cfg(feature = "server")]
pub use spandrel_poa as poa;
#[cfg(feature = "server")]
pub use spandrel_poa::Poa;
/// GIOP over TLS.
#[cfg(feature = "tls")]
pub use spandrel_ssliop as ssliop;

/// Runs the code of docs/adapters.md as a test.
#[cfg(all(doctest, feature = "server"))]
#[doc = include_str!("../../docs/adapters.md")]
mod adapters {}

/// The toolkit of network components that the ORB is built on.
pub mod net {
    pub use spandrel_ipc as ipc;
    pub use spandrel_message as message;
    #[cfg(feature = "asynchronous")]
    pub use spandrel_reactor as reactor;
    #[cfg(feature = "tls")]
    pub use spandrel_ssliop::tls;
    pub use spandrel_sync as sync;
}

/// Includes the code that `spandrel-build` generated from `idl/NAME.idl` in the build script.
///
/// ```text
/// mod bank {
///     spandrel::include_idl!("bank");
/// }
/// ```
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
