//! Dynamic CORBA without generated code: values of any type, requests and servants assembled at run time.
//!
//! | | |
//! | --- | --- |
//! | [`Request`] | the dynamic invocation interface: an operation by its name, arguments one by one (CORBA 3.3 Part 1, clause 11) |
//! | [`DynamicServant`] | the dynamic skeleton interface: a servant that learns the operation at run time (clause 12) |
//! | [`InterfaceDescription`] | the description of an interface, for calls ([`DynamicObject`]) and for servants ([`DescribedServant`]) |
//! | [`DynAny`] | a value as a tree of components (clause 16) |
//!
//! The common parts of static and dynamic invocation belong to `spandrel-orb`, the encoding of values and
//! type codes to `spandrel-cdr`. This crate does not parse IDL: programs with a parser convert its output to
//! descriptions.
//!
//! The feature `asynchronous` is that of `spandrel-orb`; `server` adds servants, on `spandrel-server`.
#![forbid(unsafe_code)]

mod any;
mod description;
mod dii;
#[cfg(feature = "server")]
mod dsi;
mod fit;
mod named;
mod reference;
#[cfg(test)]
mod tests;
mod value_types;

pub use any::{
    DynAny, DynAnyError, DynArray, DynEnum, DynFixed, DynNamePair, DynSequence, DynStruct, DynUnion, DynValue,
    DynValueBox, NameValuePair, TextContext, TextError,
};
#[cfg(feature = "server")]
pub use description::servant::{Described, DescribedCall, DescribedOperations, DescribedServant};
pub use description::{
    ArgumentError, AttributeDescription, CallableError, DescriptionError, Documentation, DynamicObject,
    InterfaceDescription, OperationDescription, Outcome, ParameterDescription, Undescribed, system_exception_json,
};
pub use dii::{CreateRequest, Request, RequestError, Results, UnknownUserException};
#[cfg(feature = "asynchronous")]
pub use dii::{MultipleRequests, Responses};
#[cfg(feature = "server")]
pub use dsi::{DeferredRequest, DynamicImplementation, DynamicServant, ServerRequest};
pub use named::{ArgMode, NamedValue, NvList};
pub use reference::{any_to_object, object_to_any};
pub use value_types::ValueTypes;
