//! The creation of ORBs: the builder with its options and profiles, and the command line.
//!
//! The builder plugs in the optional parts of the modules below, so that a program without a part does not contain
//! it. The operations of an ORB that need several modules are here too (`orb_operations`).

pub(crate) mod command_line;
#[cfg(feature = "asynchronous")]
mod metrics_endpoint;
pub(crate) mod options;
#[cfg(feature = "clap")]
pub(crate) mod orb_args;
mod orb_operations;
#[cfg(feature = "site")]
pub(crate) mod site;
