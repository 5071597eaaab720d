//! Interfaces as values: the content of stubs and skeletons, for programs without generated code.
//!
//! A description comes from parsed IDL (the crate `spandrel` converts it), or from a program that lists types
//! ([`InterfaceDescription::operation`]). A client calls with it ([`DynamicObject`]); a server validates and
//! decodes requests with it (`DescribedServant`).

mod documentation;
mod interface;
mod json;
mod object;
#[cfg(feature = "server")]
pub(crate) mod servant;

pub use documentation::Documentation;
pub use interface::{
    AttributeDescription, DescriptionError, InterfaceDescription, OperationDescription, ParameterDescription,
    Undescribed,
};
pub use json::{ArgumentError, CallableError, system_exception_json};
pub use object::{DynamicObject, Outcome};
