//! Dynamic CORBA without generated code: values of any type, requests and servants assembled at run time.
//!
//! | | |
//! | --- | --- |
//! | [`Request`] | the dynamic invocation interface: an operation by its name, arguments one by one (CORBA 3.3 Part 1, clause 11) |
//! | [`DynamicServant`] | the dynamic skeleton interface: a servant that learns the operation at run time (clause 12) |
//! | [`InterfaceDescription`] | the description of an interface, for calls ([`DynamicObject`]) and for servants ([`DescribedServant`]) |
//! | [`DynAny`] | a value as a tree of components (clause 16) |
//!
//! Arguments are compared with the description before anything is sent:
//!
//! ```
//! # mod spandrel { pub use spandrel_orb::*; pub use spandrel_dynamic as dynamic; pub mod types { pub use spandrel_cdr::{Any, TypeCode}; } }
//! use std::sync::Arc;
//!
//! use spandrel::Orb;
//! use spandrel::dynamic::{ArgMode, DynamicObject, InterfaceDescription, OperationDescription};
//! use spandrel::types::{Any, TypeCode};
//!
//! let deposit = OperationDescription::new("deposit")
//!     .parameter(ArgMode::In, "cents", TypeCode::LONGLONG)
//!     .returns(TypeCode::LONGLONG);
//! let account = InterfaceDescription::new("IDL:Bank/Account:1.0", "Account").operation(deposit)?;
//!
//! let orb = Orb::builder().build()?;
//! let object = orb.string_to_object("corbaloc::127.0.0.1:1/Account")?; // No server listens there.
//! let object = DynamicObject::new(object, Arc::new(account));
//! assert!(object.call("deposit", &[Any::new("five")?]).is_err());
//! # orb.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The common parts of static and dynamic invocation belong to `spandrel-orb`, the encoding of values and
//! type codes to `spandrel-cdr`, and the parser of IDL to `spandrel-idl`.
//!
//! The feature `asynchronous` is that of `spandrel-orb`; `server` adds servants, on `spandrel-server`; `parse` adds
//! descriptions from IDL that is read at run time (`describe`, `describe_file`).
#![forbid(unsafe_code)]

mod any;
#[cfg(feature = "parse")]
mod describe;
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
#[cfg(feature = "parse")]
pub use describe::{DescribeError, Descriptions, describe, describe_file};
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
