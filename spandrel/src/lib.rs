//! Distribution middleware in safe Rust: a CORBA object request broker on a toolkit of network components.
//!
//! Applications depend on this crate. It re-exports the ORB at its root and the toolkit under [`net`];
//! generated code names only [`generated`].
//!
//! # Features
//! Features stand for a dependency or a whole side of the ORB. `server` and `details` are default features.
//!
//! | feature | content |
//! | --- | --- |
//! | `details` | explanations in system exceptions, and the errors that caused them |
//! | `asynchronous` | calls that block no thread, one-ways that are written together (sync scope NONE), and `net::reactor` |
//! | `server` | serving objects: listening, object adapters, servants, datagrams; includes `asynchronous` |
//! | `parse` | descriptions of interfaces from IDL that is read at run time ([`dynamic`]); not a default feature |
//! | `log` | `log`: a log on standard error, configured by the variable `SPANDREL_LOG`; not a default feature |
//! | `services` | `services`: stubs of the naming service; includes `server`; not a default feature |
//! | `tls` | `ssliop`: GIOP over TLS; not a default feature; programs choose the implementation of cryptography |
//!
//! All other optional parts belong to an ORB if its builder plugs them in: [`Orb::builder`] and [`Orb::init`] plug in
//! all of them, [`OrbBuilder::bare`] none. The linker leaves out parts that a program never names.
//!
//! | plugged in by | part |
//! | --- | --- |
//! | [`OrbBuilder::code_sets`] | code sets besides ISO 8859-1, ASCII, UTF-8 and UTF-16 |
//! | [`OrbBuilder::urls`] | references as `corbaloc:` and `corbaname:` |
//! | [`OrbBuilder::local_transports`] | UNIX-domain sockets and shared memory |
//! | [`OrbBuilder::connection_limits`] | a limit of all connections, purging, closing of idle connections, policies of sharing |
//! | [`OrbBuilder::diagnostics`] | spans, trace contexts and metrics of calls |
//! | [`OrbBuilder::deadline_context`] | deadlines in requests |
//! | [`OrbBuilder::fragment_size`] | messages that are sent in fragments |
//! | [`OrbBuilder::client_transport_rule`], [`OrbBuilder::transports`] | rules for the addresses that may be called |
//! | [`OrbBuilder::client_request_interceptor`] | interceptors of calls |
//! | [`Orb::register_value_factory`] | factories of valuetypes |
//! | [`Orb::policy_manager`], [`Orb::policy_current`], [`ObjectRef::set_policy_overrides`] | policies besides a time-out |
//!
//! Without `server` and `asynchronous` the runtime lacks the names used by generated skeletons and asynchronous
//! methods: the build script leaves them out (`.sides(Sides::Client).asynchronous_client(false)`).
#![forbid(unsafe_code)]

pub mod dynamic;
#[doc(hidden)]
pub mod generated;
#[cfg(feature = "log")]
pub mod log;
#[cfg(feature = "services")]
pub mod services;

pub use spandrel_cdr::switch_after;
pub use spandrel_cdr::{
    Any, BoundedString, BoundedVec, BoundedWString, Char, CharSet, Decimal, ExtractError, Fixed, FixedError,
    LongDouble, NotLatin1, OverBound, TcKind, TypeCode, TypeCodeError, Typed, UnknownCodeSet, WString, WcharSet,
};
pub use spandrel_giop::{IiopProfile, ObjectUrl, ior_to_string};
pub use spandrel_orb::InvalidName;
pub use spandrel_orb::statistics::{self, Statistics};
pub use spandrel_orb::transport;
pub use spandrel_orb::values;
pub use spandrel_orb::{
    AddressingDisposition, ByteOrder, CompletionStatus, Context, GiopVersion, InitError, Interface, Ior, Located,
    ObjectRef, Orb, OrbBuilder, Policy, PolicyType, PolicyValue, SystemException, SystemExceptionKind, UserException,
    UserExceptions, minor,
};
#[cfg(feature = "asynchronous")]
pub use spandrel_orb::{AsyncReply, Spawn, Task, WaitStrategy, messaging};
#[cfg(feature = "server")]
pub use spandrel_orb::{
    BidirectionalPolicy, CancelReason, CancellationToken, Cancelled, Collocation, Concurrency, ConcurrencyError,
    Endpoint, EndpointError, QueueOverflow, remaining_time,
};
pub use spandrel_orb::{ConnectionSharing, Purging};
/// The contexts of distributed traces, which requests carry.
pub mod diagnostics {
    pub use spandrel_orb::diagnostics::{
        MAX_STATE, TraceContext, TraceContextError, TracePropagation, TraceScope, TraceSource,
    };
}

/// Portable Interceptors: code of services that is called for each request and reference (CORBA 3.3 Part 1,
/// clause 16).
///
/// An interceptor is registered with an ORB while that is made ([`OrbBuilder`]), or by an
/// [`OrbInitializer`](interception::OrbInitializer). The rules of flow are those of 16.3.2: each interceptor whose
/// starting point has completed has an ending point called, in reverse order. No lock of the ORB is held while an
/// interceptor runs, so that it may call objects. A panic becomes UNKNOWN.
pub mod interception {
    pub use spandrel_orb::interception::{
        AdapterState, ClientRequestInfo, ClientRequestInterceptor, Codec, CodecError, CodecFactory, DuplicateName,
        DynamicRequest, Encoding, Interceptor, Interruption, InvalidSlot, IorInfo, IorInterceptor,
        ObjectReferenceFactory, ObjectReferenceTemplate, OrbInitInfo, OrbInitializer, Parameter, ParameterMode,
        PiCurrent, RaisedException, ReplyStatus, ServerRequestInfo, ServerRequestInterceptor, ServiceContext, SlotId,
        TaggedComponent, TaggedProfile, UnknownEncoding,
    };
}

/// The client's policies, at the levels of the ORB, the thread and the reference (CORBA 3.3 Part 1, 8.9, and the
/// qualities of service of 17.2). A policy of a reference takes precedence over one of the calling thread, and
/// that over one of the ORB.
pub mod policies {
    pub use spandrel_orb::{
        policies::{
            BufferingConstraintPolicy, ConnectionTimeoutPolicy, DeadlineContext, OverrideError, PolicyError,
            PolicyFactory, RebindPolicy, RelativeRequestTimeoutPolicy, RelativeRoundtripTimeoutPolicy,
            ReplyEndTimePolicy, ReplyStartTimePolicy, RequestEndTimePolicy, RequestStartTimePolicy, SetOverrideType,
            SyncScopePolicy, UtcT,
        },
        policy_management::{PolicyCurrent, PolicyManager},
    };
}

/// The arguments and results of an [`ObjectAdapter`].
#[cfg(feature = "server")]
pub mod adapter {
    pub use spandrel_orb::{KeptUse, Target};
    pub use spandrel_server::{AdapterWait, Entry, LastTarget, Reservation, Resolution, ServantUse, Upcall};
}
/// Object adapters: they map the object key of a request to a servant.
#[cfg(feature = "server")]
pub use spandrel_poa::{self as poa, Poa};
#[cfg(feature = "server")]
pub use spandrel_server::{DeferredCall, ObjectAdapter, Replied, Servant, ServerCall};
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
