//! Lookup by name in fixed tables: the operations of an interface, and the objects of a fixed set. [`ObjectDemux`] names
//! the strategies of objects.
//!
//! [`perfect`] finds a hash function without collisions for a set of keys. The IDL compiler does so for the
//! operations of an interface, an object adapter for a complete set of objects. [`Operations`] is the
//! resulting table, beside other strategies ([`OperationDemux`]) for comparison (paper 001, chapter 6).
//!
//! This crate knows no request and no servant, and depends on nothing of Spandrel's: the IDL compiler links
//! no ORB through it. Names come from peers, so every lookup ends in a comparison with the expected name.
#![forbid(unsafe_code)]

mod objects;
mod operations;
pub mod perfect;

pub use objects::ObjectDemux;
pub use operations::{OperationDemux, Operations};
