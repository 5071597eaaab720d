//! Object references (CORBA 3.3 Part 1, 8.3), their string forms, and the policies in force for a call.
//!
//! An [`ObjectRef`](object::ObjectRef) holds its ORB and the destinations of its profiles. `references` makes
//! references from strings and strings from references; `corbaname` asks naming services; `policy_management` has
//! the policies of the ORB, the thread and the reference (8.9).

pub(crate) mod corbaname;
pub(crate) mod exceptions;
pub(crate) mod object;
mod object_operations;
pub(crate) mod own_connections;
pub(crate) mod policy_management;
mod reference_file;
pub(crate) mod references;
