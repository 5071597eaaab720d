//! Object references: their string forms, typed interfaces, and policies.

pub(crate) mod corbaname;
pub(crate) mod exceptions;
#[doc(hidden)]
pub mod object;
mod object_operations;
#[doc(hidden)]
pub mod policy_management;
mod reference_file;
pub(crate) mod references;
