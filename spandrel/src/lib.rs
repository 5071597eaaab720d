//! Distribution middleware in safe Rust: a CORBA object request broker on a toolkit of network components.
//!
//! Applications depend on this crate. Its root has what nearly every program names. The modules have the rest: IDL's
//! [`types`], the [`policy`] values of calls, the [`options`] of an ORB, object adapters ([`poa`]), and the toolkit
//! under [`net`]. Each item has one path. Generated code names only [`generated`].
//!
//! # A server and a client
//! An interface is defined in IDL:
//!
//! ```text
//! // idl/bank.idl
//! module Bank {
//!   exception Overdrawn { long long balance; };
//!
//!   interface Account {
//!     readonly attribute string owner;
//!     long long deposit(in long long cents);
//!     long long withdraw(in long long cents) raises (Overdrawn);
//!   };
//! };
//! ```
//!
//! The build script compiles it: `spandrel_build::compile("idl/bank.idl")`. The server implements the trait
//! `AccountServant` and activates an object; the client calls the object by its reference. Here both are in one
//! program:
//!
//! ```
//! use std::sync::Mutex;
//!
//! use spandrel::{Endpoint, Orb, Poa, SystemException};
//!
//! // spandrel::include_idl!("bank"); includes the code that the build script has generated.
//! # use spandrel_examples::bank;
//! use bank::{Account, AccountServant, Overdrawn, account::WithdrawError};
//!
//! struct Savings {
//!     balance: Mutex<i64>,
//! }
//!
//! impl AccountServant for Savings {
//!     fn owner(&self) -> Result<String, SystemException> {
//!         Ok("Grace".to_owned())
//!     }
//!
//!     fn deposit(&self, cents: i64) -> Result<i64, SystemException> {
//!         let mut balance = self.balance.lock().unwrap();
//!         *balance += cents;
//!         Ok(*balance)
//!     }
//!
//!     fn withdraw(&self, cents: i64) -> Result<i64, WithdrawError> {
//!         let mut balance = self.balance.lock().unwrap();
//!         if cents > *balance {
//!             return Err(Overdrawn { balance: *balance }.into());
//!         }
//!         *balance -= cents;
//!         Ok(*balance)
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
//!     let savings = Savings { balance: Mutex::new(0) };
//!     let served: Account = Poa::root(&server)?.serve(savings)?;
//!     // A server of its own prints the reference, and waits: server.run().
//!
//!     let client = Orb::init(std::env::args())?;
//!     let account: Account = client.string_to_object(&served.to_string())?.narrow()?;
//!     assert_eq!(account.deposit(500)?, 500);
//!     match account.withdraw(800) {
//!         Err(WithdrawError::Overdrawn(no)) => assert_eq!(no.balance, 500),
//!         other => panic!("{other:?}"),
//!     }
//!     client.shutdown()?;
//!     server.shutdown()?;
//!     Ok(())
//! }
//! ```
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
//! | `log` | `diagnostics::log`: a log on standard error, configured by the variable `SPANDREL_LOG`; not a default feature |
//! | `services` | `services`: stubs of the naming service and the implementation repository, and servers that the latter starts; includes `server`; not a default feature |
//! | `event` | `services::cos_event_channel_admin` and its companions: stubs and skeletons of the event service and of factories of channels; includes `services`; not a default feature |
//! | `property` | `services::cos_property_service`: stubs and skeletons of the property service; includes `services`; not a default feature |
//! | `av-streams` | `services::av_streams` and `services::flow_protocol`: stubs and skeletons of audio and video streams; includes `property`; not a default feature |
//! | `trading` | `services::cos_trading` and its companions: stubs and skeletons of the trading service; includes `services`; not a default feature |
//! | `interface-repository` | the types of the interface repository (`services::repository::corba`), and `services::repository`; includes `parse` and `services`; not a default feature |
//! | `authorization` | `authorization`: a policy file decides which peers may call which operations; includes `server` and `tls`; not a default feature |
//! | `rt` | `rt`: Real-time CORBA: priorities and their policies, thread pools with lanes; includes `server`; not a default feature |
//! | `bulk` | `bulk`: operations hand over ends of streams, whose octets flow beside the ORB; includes `server` and `tls`; not a default feature |
//! | `tls` | `ssliop`: GIOP over TLS; not a default feature; programs choose the implementation of cryptography |
//! | `ring` | `ssliop::Ssliop::ring`: TLS with the cryptography of the crate `ring`; includes `tls`; not a default feature |
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

#[doc(hidden)]
pub mod generated;

#[cfg(feature = "services")]
#[doc(inline)]
pub use spandrel_cos as services;
#[doc(inline)]
pub use spandrel_dynamic as dynamic;
#[doc(inline)]
pub use spandrel_orb::{
    CompletionStatus, Endpoint, InitError, ObjectRef, Orb, OrbBuilder, SystemException, SystemExceptionKind, minor,
};
#[cfg(feature = "server")]
#[doc(inline)]
pub use spandrel_poa::Poa;

/// The Rust types of IDL's types, and references as values.
///
/// ```
/// use spandrel::types::{Any, BoundedVec, TcKind};
///
/// let any = Any::new("text")?;
/// assert_eq!(any.type_code().kind(), TcKind::String);
/// assert_eq!(any.extract::<String>()?, "text");
///
/// let bounded = BoundedVec::<i32, 2>::try_from(vec![1, 2])?;
/// assert!(BoundedVec::<i32, 2>::try_from(vec![1, 2, 3]).is_err());
/// # assert_eq!(bounded.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod types {
    #[doc(inline)]
    pub use spandrel_cdr::{
        Any, BoundedString, BoundedVec, BoundedWString, Char, Decimal, ExtractError, Fixed, FixedError, Label,
        LongDouble, NotLatin1, OverBound, TcKind, TypeCode, TypeCodeError, Typed, ValueModifier, Visibility, WString,
    };
    #[doc(inline)]
    pub use spandrel_giop::{IiopProfile, ObjectUrl, ior_to_string};
    #[doc(inline)]
    pub use spandrel_orb::{
        Context, Interface, IntoError, InvalidName, Ior, Located, UserException, UserExceptions, values,
    };
}

/// Common Data Representation: values as octets outside of calls, such as in files and in events that another
/// protocol carries.
///
/// ```
/// use spandrel::cdr::{ByteOrder, CdrError, OctetForm, from_octets, to_octets};
///
/// // The types that IDL is compiled to are encoded alike.
/// let names = vec!["ada".to_owned(), "alan".to_owned()];
/// let form = OctetForm::bare(ByteOrder::Little);
/// let octets = to_octets(&names, &form)?;
/// assert_eq!(octets.len(), 4 + (4 + 4) + (4 + 5)); // the number of names, then each with its length and a NUL
/// assert_eq!(from_octets::<Vec<String>>(&octets, &form)?, names);
/// assert!(matches!(from_octets::<Vec<String>>(&octets[..9], &form), Err(CdrError::LengthBeyondInput { .. })));
/// # Ok::<(), CdrError>(())
/// ```
pub mod cdr {
    #[doc(inline)]
    pub use spandrel_cdr::{
        ByteOrder, CdrError, CharSet, GiopVersion, Limits, OctetForm, TrailingOctets, UnknownCodeSet, WcharSet,
        from_octets, switch_after, to_octets,
    };
}

/// The values of an ORB's options ([`OrbBuilder`]).
///
/// ```
/// use spandrel::options::{
///     Collocation, Concurrency, ConnectionSharing, OrbProfile, Purging, QueueOverflow, WaitStrategy,
/// };
/// use spandrel::{Endpoint, Orb};
///
/// // A small server: two threads, and a queue of 100 requests; further ones are refused.
/// let server = Orb::builder()
///     .profile(OrbProfile::Small)
///     .listen(Endpoint::new("127.0.0.1", 0))
///     .concurrency(Concurrency::ThreadPool { threads: 2, queue: 100 })
///     .queue_overflow(QueueOverflow::Refuse)
///     .collocation(Collocation::ThroughPoa)
///     .build()?;
///
/// // A client with many servers: at most one connection to each, and the least used ones are closed.
/// let client = Orb::builder()
///     .connection_sharing(ConnectionSharing::Multiplexed)
///     .purging(Purging::LeastFrequentlyUsed)
///     .wait_strategy(WaitStrategy::OnRead)
///     .build()?;
/// client.shutdown()?;
/// server.shutdown()?;
///
/// // The values of options have a text form, too.
/// let strategy: Concurrency = "thread-pool:2:100".parse()?;
/// assert_eq!(strategy, Concurrency::ThreadPool { threads: 2, queue: 100 });
/// assert!("often".parse::<OrbProfile>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod options {
    #[doc(inline)]
    pub use spandrel_orb::{
        AddressingDisposition, ConnectionSharing, GENERAL_OPTIONS, OrbOption, OrbProfile, Purging, SERVER_OPTIONS,
        Spawn, Task, UnknownProfile, WaitStrategy, poll_once,
    };
    #[cfg(feature = "server")]
    #[doc(inline)]
    pub use spandrel_orb::{Collocation, Concurrency, ConcurrencyError, EndpointError, QueueOverflow};
    #[cfg(feature = "clap")]
    #[doc(inline)]
    pub use spandrel_orb::{OrbArgs, OrbArgsError, OrbSetting, SettingSource};
    #[cfg(feature = "site")]
    #[doc(inline)]
    pub use spandrel_orb::{Site, SiteError, SiteSetting};
}

/// Asynchronous calls: their replies, and the messaging of the standard (reply handlers and pollers).
///
/// ```
/// use std::sync::{Arc, Mutex, mpsc};
///
/// use spandrel::messaging::{ExceptionHolder, Poller, send_to_handler};
/// use spandrel::{Orb, SystemException};
/// # use spandrel_examples::bank::Account;
///
/// let orb = Orb::builder().build()?;
/// let account = orb.string_to_object("corbaloc::127.0.0.1:1/Account")?; // No server listens there.
/// let account = Account::unchecked_narrow(&account);
///
/// // As `sendp_deposit` of a generated stub: the program polls for the reply.
/// let poller = Poller::new(account.as_object(), "deposit", account.deposit_async(500));
/// while !poller.is_ready(100)? {}
/// let polled: Result<i64, SystemException> = poller.take("deposit", 0);
/// assert!(polled.is_err());
///
/// // As `sendc_deposit`: a handler gets the reply, on the ORB's reactor thread.
/// let (send, replies) = mpsc::channel();
/// let handler = Arc::new(Mutex::new(send));
/// send_to_handler(account.as_object(), account.deposit_async(500), Some(handler), |handler, outcome| {
///     let outcome = outcome.map_err(ExceptionHolder::new);
///     handler.lock().unwrap().send(outcome).expect("the program waits for it");
/// })?;
/// assert!(replies.recv()?.is_err());
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "asynchronous")]
pub mod messaging {
    #[doc(inline)]
    pub use spandrel_orb::messaging::*;
    #[doc(inline)]
    pub use spandrel_orb::{AsyncReply, NarrowReply, SharedArguments};
}

/// Diagnostics of an ORB: its counters, and the contexts of distributed traces, which requests carry.
///
/// ```
/// use spandrel::Orb;
/// use spandrel::diagnostics::TracePropagation;
/// use spandrel::diagnostics::statistics::Event;
///
/// let orb = Orb::builder().metrics(true).trace_context(TracePropagation::Yes).build()?;
/// assert_eq!(orb.statistics().count(Event::ConnectionFailed), 0);
/// assert!(orb.render_metrics().contains("spandrel_connections_open")); // for Prometheus
/// orb.shutdown()?;
/// # Ok::<(), spandrel::SystemException>(())
/// ```
pub mod diagnostics {
    #[cfg(feature = "log")]
    pub mod log;

    #[doc(inline)]
    pub use spandrel_orb::diagnostics::{
        MAX_STATE, TraceContext, TraceContextError, TracePropagation, TraceScope, TraceSource,
    };
    #[doc(inline)]
    pub use spandrel_orb::statistics::{self, Statistics};
}

/// Portable Interceptors: code of services that is called for each request and reference (CORBA 3.3 Part 1,
/// clause 16).
///
/// An interceptor is registered with an ORB while that is made ([`OrbBuilder`]), or by an
/// [`OrbInitializer`](interception::OrbInitializer). The rules of flow are those of 16.3.2: each interceptor whose
/// starting point has completed has an ending point called, in reverse order. No lock of the ORB is held while an
/// interceptor runs, so that it may call objects. A panic becomes UNKNOWN.
///
/// ```
/// use spandrel::interception::{
///     IfPresent, Interceptor, Interruption, ServerRequestInfo, ServerRequestInterceptor, ServiceContext,
/// };
/// use spandrel::{CompletionStatus, Endpoint, Orb, Poa, SystemException};
/// # use spandrel_examples::bank::{Account, AccountServant, account::WithdrawError};
/// # struct Savings;
/// # impl AccountServant for Savings {
/// #     fn owner(&self) -> Result<String, SystemException> { Ok("Grace".to_owned()) }
/// #     fn deposit(&self, cents: i64) -> Result<i64, SystemException> { Ok(cents) }
/// #     fn withdraw(&self, _: i64) -> Result<i64, WithdrawError> { Ok(0) }
/// # }
///
/// /// Rejects deposits, and tells clients the name of the server in a service context of each reply.
/// struct Audit;
///
/// impl Interceptor for Audit {}
///
/// impl ServerRequestInterceptor for Audit {
///     fn receive_request(&self, request: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
///         match request.operation() {
///             "deposit" => Err(SystemException::no_permission(0, CompletionStatus::No).into()),
///             _ => Ok(()),
///         }
///     }
///
///     fn send_reply(&self, request: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
///         let context = ServiceContext { id: 0x4d59_0001, data: b"oslo".to_vec() };
///         request.add_reply_service_context(context, IfPresent::Replace)
///     }
/// }
///
/// let server = Orb::builder()
///     .listen(Endpoint::new("127.0.0.1", 0))
///     .server_request_interceptor(Audit)?
///     .build()?;
/// let account: Account = Poa::root(&server)?.serve(Savings)?;
/// assert_eq!(account.owner()?, "Grace");
/// assert!(account.deposit(500).is_err());
/// server.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod interception {
    #[doc(inline)]
    pub use spandrel_orb::interception::{
        AdapterState, ClientRequestInfo, ClientRequestInterceptor, Codec, CodecError, CodecFactory, DuplicateName,
        DynamicRequest, Encoding, IfPresent, Interceptor, Interruption, InvalidSlot, IorInfo, IorInterceptor,
        LocateRequestInfo, ObjectReferenceFactory, ObjectReferenceTemplate, OrbInitInfo, OrbInitializer, Parameter,
        ParameterMode, PiCurrent, RaisedException, ReplyStatus, ServerRequestInfo, ServerRequestInterceptor,
        ServiceContext, SlotId, TaggedComponent, TaggedProfile, UnknownEncoding,
    };
}

/// The client's policies, at the levels of the ORB, the thread and the reference (CORBA 3.3 Part 1, 8.9, and the
/// qualities of service of 17.2). A policy of a reference takes precedence over one of the calling thread, and
/// that over one of the ORB.
///
/// ```
/// use std::time::Duration;
///
/// use spandrel::Orb;
/// use spandrel::policy::{RelativeRoundtripTimeoutPolicy, SetOverrideType, SyncScopePolicy};
///
/// let orb = Orb::builder().build()?;
/// let object = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
/// let quick = object.set_policy_overrides(
///     &[RelativeRoundtripTimeoutPolicy(Duration::from_millis(50)).into(), SyncScopePolicy::WithTarget.into()],
///     SetOverrideType::AddOverride,
/// )?;
/// assert_eq!(quick.timeout(), Some(Duration::from_millis(50)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod policy {
    #[cfg(feature = "server")]
    #[doc(inline)]
    pub use spandrel_orb::BidirectionalPolicy;
    #[doc(inline)]
    pub use spandrel_orb::{
        Policy, PolicyCurrent, PolicyManager, PolicyScope, PolicyType, PolicyValue, ReferencePolicies,
        policy::{
            BufferingConstraintPolicy, ConnectionTimeoutPolicy, DeadlineContext, OverrideError, PolicyError,
            PolicyErrorCode, PolicyFactory, RebindPolicy, RelativeRequestTimeoutPolicy, RelativeRoundtripTimeoutPolicy,
            ReplyEndTimePolicy, ReplyStartTimePolicy, RequestEndTimePolicy, RequestStartTimePolicy, SetOverrideType,
            SyncScopePolicy, UtcT,
        },
    };
}

/// The run of a request in a server: the servant and its call, cancellation, and the interface by which object
/// adapters find servants.
#[cfg(feature = "server")]
pub mod server {
    #[doc(inline)]
    pub use spandrel_orb::{CancelReason, CancellationToken, Cancelled, KeptUse, Target, remaining_time};
    #[doc(inline)]
    pub use spandrel_server::{
        AdapterWait, DeferredCall, DeferredOperations, DeferredReply, DeferringSkeleton, Entry, LastTarget,
        ObjectAdapter, Replied, Reservation, Resolution, Servant, ServantUse, ServedAsyncBy, ServedBy, ServerCall,
        Skeleton, TakenRequest, Upcall,
    };
}

/// Object adapters: they map the object key of a request to a servant. [`Poa`] is the adapter.
///
/// ```
/// use spandrel::{Orb, Poa};
/// # use spandrel_examples::bank::Account;
///
/// let orb = Orb::builder().build()?;
/// let accounts = Poa::root(&orb)?.child("accounts").persistent().user_ids().create()?;
/// let ada: Account = accounts.reference("ada")?; // accounts.serve_with_id("ada", servant)? activates it
/// assert_eq!(ada.type_id(), "IDL:Bank/Account:1.0");
/// orb.shutdown()?;
/// # Ok::<(), spandrel::poa::PoaError>(())
/// ```
#[cfg(feature = "server")]
pub mod poa {
    #[doc(hidden)]
    pub use spandrel_poa::measured_lookup;
    #[doc(inline)]
    pub use spandrel_poa::{
        AdapterActivator, Cookie, Current, EtherealizeObjects, IdAssignmentPolicy, IdUniquenessPolicy, IfMissing,
        ImplicitActivationPolicy, Incarnation, LifespanPolicy, NoContext, ObjectDemux, ObjectId, OperationDemux,
        PoaBuilder, PoaError, PoaManager, PoaManagerFactory, RequestProcessingPolicy, ServantActivator, ServantLocator,
        ServantManager, ServantRetentionPolicy, State, ThreadPolicy, WaitForCompletion, describe_key,
    };
}

/// GIOP over TLS, with certificates of servers and clients.
#[cfg(feature = "tls")]
pub use spandrel_ssliop as ssliop;

#[cfg(feature = "authorization")]
pub use spandrel_authorization as authorization;
#[cfg(feature = "rt")]
pub use spandrel_rt as rt;

#[cfg(feature = "bulk")]
pub use spandrel_bulk as bulk;

/// The toolkit of network components that the ORB is built on.
pub mod net {
    pub use spandrel_error as error;
    pub use spandrel_ipc as ipc;
    pub use spandrel_message as message;
    /// The transports of the ORB: their settings, and the interface of further protocols.
    pub use spandrel_orb::transport;
    #[cfg(feature = "asynchronous")]
    pub use spandrel_reactor as reactor;
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
        include!(concat!(
            env!("OUT_DIR", "the package has no build script: add a `build.rs` that calls `spandrel_build::compile`"),
            "/",
            $name,
            ".rs"
        ));
    };
}
