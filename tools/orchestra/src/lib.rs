//! The Orchestrator: a distributed suite that measures servers under load (paper 004, appendix A).
//!
//! An *agent* runs on each machine. Its `Harness` starts, measures and ends the servers under test, its `WorkTeam`
//! applies load. A *supervisor* finds both in the naming service, and carries out a plan or a script.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
pub mod load;
pub mod names;
pub mod packets;
pub mod plan;
pub mod report;
pub mod results;
pub mod run;
pub mod script;

/// The types and interfaces of `idl/orchestra.idl`.
#[allow(clippy::all, missing_docs, unreachable_pub, missing_debug_implementations)]
pub mod idl {
    ::spandrel::include_idl!("orchestra");

    /// The text itself, for dynamic calls.
    pub const TEXT: &str = include_str!("../idl/orchestra.idl");
}
