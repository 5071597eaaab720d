//! What needs no generated code: values of any type, requests and servants that are put together at run time.
//!
//! | | |
//! | --- | --- |
//! | [`Request`] | the dynamic invocation interface: an operation by its name, arguments one by one (CORBA 3.3 Part 1, clause 11) |
//! | [`DynamicServant`] | the dynamic skeleton interface: a servant that learns at run time what it is asked (clause 12) |
//! | [`InterfaceDescription`] | what an interface is made of, to call by ([`DynamicObject`]) and to serve by ([`DescribedServant`]) |
//! | [`DynAny`] | a value taken apart (clause 16) |
//!
//! What static stubs and these have in common is `spandrel-orb`'s, how values and type codes lie in octets
//! `spandrel-cdr`'s. Reading IDL is nobody's here: whoever has a parser makes descriptions of what it found.
//!
//! The features `asynchronous` and `server` are those of `spandrel-orb`.
#![forbid(unsafe_code)]

mod any;
mod description;
mod dii;
#[cfg(feature = "server")]
mod dsi;
mod fit;
mod named;
mod reference;
mod value_types;

pub use any::{
    DynAny, DynAnyError, DynArray, DynEnum, DynFixed, DynNamePair, DynSequence, DynStruct, DynUnion, DynValue,
    DynValueBox, NameValuePair, TextError,
};
pub use description::{
    AttributeDescription, DescriptionError, DynamicObject, InterfaceDescription, OperationDescription, Outcome,
    ParameterDescription, Undescribed,
};
#[cfg(feature = "server")]
pub use description::{Described, DescribedCall, DescribedOperations, DescribedServant};
pub use dii::{CreateRequest, Request, RequestError, Results, UnknownUserException};
#[cfg(feature = "asynchronous")]
pub use dii::{MultipleRequests, Responses};
#[cfg(feature = "server")]
pub use dsi::{DeferredRequest, DynamicImplementation, DynamicServant, ServerRequest};
pub use named::{ArgMode, NamedValue, NvList};
pub use reference::{any_to_object, object_to_any};
pub use value_types::ValueTypes;
