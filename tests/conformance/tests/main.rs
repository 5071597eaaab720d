//! Conformance of the object adapter and of messaging, clause by clause.

mod messaging;
mod poa;
