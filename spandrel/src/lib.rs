//! Distribution middleware in safe Rust: a CORBA object request broker on a toolkit of network components.
//!
//! This crate is what applications depend on. It re-exports the ORB at its root and the toolkit under [`net`]; generated
//! code names [`generated`] and nothing else.
#![forbid(unsafe_code)]

pub use spandrel_cdr::switch_after;
pub use spandrel_cdr::{
    Any, BoundedString, BoundedVec, BoundedWString, Char, CharSet, Decimal, ExtractError, Fixed, FixedError,
    LongDouble, NotLatin1, OverBound, TcKind, TypeCode, TypeCodeError, Typed, WString,
};
/// Values whose types are known only at run time.
pub use spandrel_dynamic as dynamic;
pub use spandrel_giop::{IiopProfile, ObjectUrl, ior_to_string};
#[doc(hidden)]
pub use spandrel_orb::generated;
pub use spandrel_orb::{
    AsyncReply, ByteOrder, CompletionStatus, Context, DeferredCall, Endpoint, EndpointError, GiopVersion, InitError,
    Interface, Ior, Located, ObjectAdapter, ObjectRef, Orb, OrbBuilder, Replied, Servant, ServerCall, Spawn,
    SystemException, SystemExceptionKind, Task, UserException, UserExceptions, messaging, minor, values,
};
pub use spandrel_poa::Poa;

/// The toolkit of network components that the ORB is built on.
pub mod net {
    pub use spandrel_ipc as ipc;
    pub use spandrel_message as message;
    pub use spandrel_reactor as reactor;
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
