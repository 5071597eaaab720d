//! From a name to its place in a table: how requests find their operation, and objects of a fixed set their entry.
//!
//! [`perfect`] finds a hash function without collisions for a set of keys; the IDL compiler does so for the operations of an
//! interface, an object adapter for objects that are all known. [`Operations`] is what the compiler makes of it, beside other
//! strategies for the same question ([`OperationDemux`]), which exist to be compared (paper 001, chapter 6).
//!
//! It knows no request and no servant, and nothing of ours: whoever compiles IDL links no ORB by it. Names come from peers, so every
//! lookup ends in a comparison with the name that is expected.
#![forbid(unsafe_code)]

mod operations;
pub mod perfect;

pub use operations::{OperationDemux, Operations};
