//! Distribution middleware in safe Rust: a CORBA object request broker on a toolkit of network components.
//!
//! This crate is what applications depend on. It re-exports the ORB at its root and the toolkit under [`net`]; generated
//! code names [`generated`] and nothing else.
//!
//! # Features
//! All but `log`, `parse` and `tls` are on unless a program says `default-features = false`, which makes the smallest client; then it names those that it needs.
//!
//! | feature | what is there with it |
//! | --- | --- |
//! | `details` | what system exceptions say besides their kind and number: explanations, and the errors that caused them |
//! | `asynchronous` | calls that no thread waits for, and `net::reactor` |
//! | `fragments` | messages that are sent in fragments; those that are received are always understood |
//! | `batching` | one-ways that are written together, with the sync scope NONE; includes `asynchronous`, `caching` and `policies` |
//! | `caching` | a limit of all connections to servers, purging, idle closing, and how connections are shared |
//! | `diagnostics` | `diagnostics`: spans and traces of calls, and how long they take; includes `statistics` |
//! | `datagrams` | one-ways by datagram, sent and received; includes `server` |
//! | `interceptors` | `interception`: portable interceptors, on whichever sides there are |
//! | `server` | serving objects: listening, object adapters, servants; includes `asynchronous` |
//! | `code-sets` | code sets besides ISO 8859-1, ASCII, UTF-8 and UTF-16 (`CharSet`, `WcharSet`) |
//! | `policies` | what calls go by besides a time-out, at the levels of ORB, thread and reference |
//! | `statistics` | counters of what an ORB does, and their text for Prometheus |
//! | `values` | factories of valuetypes |
//! | `parse` | descriptions of interfaces from IDL that is read when the program runs ([`dynamic`]); off unless named |
//! | `log` | `log`: a log on standard error, as the variable `SPANDREL_LOG` says; off unless named |
//! | `tls` | `ssliop`: GIOP over TLS; off unless named, and programs choose the implementation of cryptography |
//! | `urls` | references as people write them (`corbaloc:`), and initial references; without it there is `IOR:` |
//!
//! Without `server` and `asynchronous` there is nothing that generated skeletons and asynchronous methods could name: the build script
//! leaves them out (`.sides(Sides::Client).asynchronous_client(false)`).
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
/// Object adapters: what finds the servant of a request.
#[cfg(feature = "server")]
pub use spandrel_poa as poa;
#[cfg(feature = "server")]
pub use spandrel_poa::Poa;
/// GIOP over TLS.
#[cfg(feature = "tls")]
pub use spandrel_ssliop as ssliop;

/// The page on adapters runs as a test.
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

/// Includes what `spandrel-build` generated from `idl/NAME.idl` in the build script.
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
