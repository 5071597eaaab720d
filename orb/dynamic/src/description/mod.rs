//! Interfaces as values: what stubs and skeletons know, for programs without them.
//!
//! A description comes from IDL that was parsed (the crate `spandrel` makes one of that), or from a program that lists types
//! ([`InterfaceDescription::operation`]). A client calls by it ([`DynamicObject`]); a server checks and reads requests by it
//! (`DescribedServant`).

mod interface;
mod object;
#[cfg(feature = "server")]
mod servant;

pub use interface::{
    AttributeDescription, DescriptionError, InterfaceDescription, OperationDescription, ParameterDescription,
    Undescribed,
};
pub use object::{DynamicObject, Outcome};
#[cfg(feature = "server")]
pub use servant::{Described, DescribedCall, DescribedOperations, DescribedServant};
