//! The object adapter and messaging, clause by clause.

mod messaging;
mod poa;
