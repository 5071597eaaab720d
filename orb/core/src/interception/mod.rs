//! Portable Interceptors: code that services put into the way of requests and references (CORBA 3.3 Part 1, clause 16).
//!
//! An interceptor is registered with an ORB while that is made ([`OrbBuilder`](crate::OrbBuilder)), and is called at points of every
//! request's way from then on: a [`ClientRequestInterceptor`] where it leaves and where its reply comes back, a
//! `ServerRequestInterceptor` where it arrives and where it is answered; an `IorInterceptor` when an adapter decides what its
//! references say. What one of them is told of is a [`ClientRequestInfo`] or `ServerRequestInfo`; what it may not know at a point
//! is refused with BAD_INV_ORDER.
//!
//! The rules of flow are in [`flow`](self): whose starting point has completed has an ending point called, in reverse. When the points come
//! is decided where calls are made (`invocation`, `asynchronous`, `server`). No lock of ours is held while an interceptor runs, so that
//! it may call objects itself; one that panics has raised UNKNOWN.
//!
//! A program that registers no client interceptor does not contain the calls among them: registering one sets the function that makes them.

mod client;
mod codec;
mod contexts;
mod current;
mod dynamic;
mod exception;
mod flow;
mod initializer;
#[cfg(feature = "server")]
mod ior;
mod registry;
#[cfg(feature = "server")]
mod server;
mod status;

pub use spandrel_cdr::{TaggedComponent, TaggedProfile};
pub use spandrel_giop::ServiceContext;
use spandrel_giop::{CompletionStatus, SystemException, minor};

pub(crate) use client::{ClientFlow, OutgoingContexts, ResponseRequest};
pub use client::{ClientRequestInfo, ClientRequestInterceptor};
pub use codec::{Codec, CodecError, CodecFactory, Encoding, UnknownEncoding};
pub(crate) use current::SlotTable;
pub use current::{InvalidSlot, PiCurrent, SlotId};
pub use dynamic::{DynamicRequest, Parameter, ParameterMode};
#[cfg(feature = "server")]
pub(crate) use exception::ExceptionOctets;
pub use exception::RaisedException;
pub(crate) use flow::RequestOutcome;
pub(crate) use initializer::initialize;
pub use initializer::{OrbInitInfo, OrbInitializer};
#[cfg(feature = "server")]
pub(crate) use ior::{Custom, establish, note_adapter_state, note_manager_state};
#[cfg(feature = "server")]
pub use ior::{IorInfo, IorInterceptor, ObjectReferenceFactory, ObjectReferenceTemplate};
pub use registry::DuplicateName;
pub(crate) use registry::{Interception, RegisteredInterceptors};
#[cfg(feature = "server")]
pub(crate) use server::{LentSlots, RequestView, ServerFlow};
#[cfg(feature = "server")]
pub use server::{ServerRequestInfo, ServerRequestInterceptor};
pub use status::ReplyStatus;
pub(crate) use status::sync_scope;

use crate::ObjectRef;
#[cfg(feature = "server")]
pub use crate::adapter::AdapterState;

/// What every interceptor is (16.2).
pub trait Interceptor: Send + Sync {
    /// Its name, which no other interceptor of its kind and ORB has. Any number may have none.
    fn name(&self) -> &str {
        ""
    }

    /// The ORB has been shut down: the interceptor is not called any more.
    fn destroy(&self) {}
}

/// What an interceptor raises instead of letting a request take its way.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Interruption {
    /// A system exception, which the request ends with.
    #[error(transparent)]
    System(#[from] SystemException),
    /// The request goes to another object (`PortableInterceptor::ForwardRequest`, 16.3.15).
    #[error("the request is forwarded to an object of type `{}`", .0.type_id())]
    ForwardRequest(ObjectRef),
}

/// BAD_INV_ORDER for what cannot be known at a point (16.3.13, 16.3.14).
fn not_here() -> SystemException {
    SystemException::bad_inv_order(minor::INVALID_PI_CALL, CompletionStatus::No)
        .with_detail("this is not available at this interception point")
}

/// NO_RESOURCES for what compiled stubs and skeletons do not keep (16.3.12.3 to 16.3.12.7).
fn not_kept() -> SystemException {
    SystemException::no_resources(minor::PORTABLE_INTERCEPTOR_UNSUPPORTED, CompletionStatus::No)
        .with_detail("compiled stubs and skeletons keep no list of values")
}
