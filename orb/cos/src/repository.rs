//! The interface repository (CORBA 3.3 Part 1, 14) as a client uses it: [`fill`] enters definitions of IDL, [`print()`] prints
//! them as IDL, and [`interface_of`] describes an object's interface for dynamic calls.
//!
//! All use the standard's operations, so that the repository may be that of any ORB. Spandrel's repository keeps
//! documentation comments, too (`InterfaceRepository::Documented` in `idl/InterfaceRepository.idl`).

// Their references have no operations of their own: they are 17,000 lines.
include!("interface_repository.rs");

mod client;
mod constants;
mod description;
mod fill;
mod identifier;
mod printing;

pub use description::{
    default_repository, documentation, inherits, interface_by_id, interface_of, repository_of, type_by_id,
};
pub use fill::{Changes, FillError, fill};
pub use printing::{PrintError, print};
