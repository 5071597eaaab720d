//! Portable Interceptors: code of services that is called for each request and reference (CORBA 3.3 Part 1,
//! clause 16).
//!
//! An interceptor is registered with an ORB while that is made ([`OrbBuilder`](crate::OrbBuilder)), and is called
//! at points of each request from then on:
//!
//! - a [`ClientRequestInterceptor`] where a request is sent and where its reply arrives,
//! - a `ServerRequestInterceptor` where a request arrives and where it is answered,
//! - an `IorInterceptor` when an adapter is made.
//!
//! A point is given a [`ClientRequestInfo`] or `ServerRequestInfo`; values that are not available at a point are
//! refused with BAD_INV_ORDER.
//!
//! The rules of flow are in [`flow`](self): each interceptor whose starting point has completed has an ending
//! point called, in reverse order. The points are called by `invocation`, `asynchronous` and the crate of the server side. No
//! lock of the ORB is held while an interceptor runs, so that it may call objects. A panic becomes UNKNOWN.
//!
//! A program without client interceptors does not contain the intercepted calls: registering one sets the
//! function that makes them.

pub(crate) mod adapter_references;
mod client;
mod codec;
mod contexts;
mod current;
mod dynamic;
pub(crate) mod exception;
pub(crate) mod flow;
mod initializer;
mod ior;
mod registry;
pub(crate) mod server;
mod slots;

pub use spandrel_cdr::{TaggedComponent, TaggedProfile};
pub use spandrel_giop::ServiceContext;
use spandrel_giop::{CompletionStatus, SystemException, minor};

pub use crate::orb::interception_state::SlotId;
pub use client::{ClientRequestInfo, ClientRequestInterceptor};
pub(crate) use client::{OutgoingContexts, ResponseRequest, flow::ClientFlow};
pub use codec::{Codec, CodecError, CodecFactory, Encoding, UnknownEncoding};
pub use contexts::IfPresent;
pub use current::PiCurrent;
pub(crate) use dynamic::describing;
pub use dynamic::{DynamicRequest, Parameter, ParameterMode};
pub use exception::RaisedException;
pub use flow::ReplyStatus;
pub(crate) use flow::RequestOutcome;
pub(crate) use flow::{catch_panic, sync_scope};
pub(crate) use initializer::{BindingInitializer, Initializers, initialize};
pub use initializer::{OrbInitInfo, OrbInitializer};
pub use ior::{IorInfo, IorInterceptor, ObjectReferenceFactory, ObjectReferenceTemplate};
pub use registry::DuplicateName;
pub(crate) use registry::RegisteredInterceptors;
pub(crate) use registry::{client_interceptors, invoke_fn, ior_interceptors};
pub use server::{LocateRequestInfo, ServerRequestInfo, ServerRequestInterceptor};
pub use slots::InvalidSlot;
pub(crate) use slots::SlotTable;

use crate::ObjectRef;
pub use crate::servant_side::adapter::AdapterState;

/// The base of all interceptors (16.2).
pub trait Interceptor: Send + Sync {
    /// Its name, unique among the interceptors of its kind and ORB. Any number may have an empty one.
    fn name(&self) -> &str {
        ""
    }

    /// Called when the ORB has been shut down: the interceptor is not called any more.
    fn destroy(&self) {}
}

/// The exception that an interceptor raises to end or forward a request.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum Interruption {
    /// A system exception, with which the request ends.
    #[error(transparent)]
    System(#[from] SystemException),
    /// The request is sent to another object (`PortableInterceptor::ForwardRequest`, 16.3.15).
    #[error("the request is forwarded to an object of type `{}`", spandrel_error::excerpt(.0.type_id()))]
    ForwardRequest(ObjectRef),
}
spandrel_error::debug_as_report!(Interruption);

/// BAD_INV_ORDER for a value that is not available at a point (16.3.13, 16.3.14).
fn not_available() -> SystemException {
    SystemException::bad_inv_order(minor::INVALID_PI_CALL, CompletionStatus::No)
        .with_detail("this is not available at this interception point")
}

/// NO_RESOURCES for values that compiled stubs and skeletons do not have (16.3.12.3 to 16.3.12.7).
fn no_description() -> SystemException {
    SystemException::no_resources(minor::PORTABLE_INTERCEPTOR_UNSUPPORTED, CompletionStatus::No)
        .with_detail("compiled stubs and skeletons have no list of values")
}
