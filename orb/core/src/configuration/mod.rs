//! The creation of ORBs: the builder with its options and profiles, and the command line.

pub(crate) mod command_line;
#[cfg(feature = "asynchronous")]
mod metrics_endpoint;
pub(crate) mod options;
#[cfg(feature = "clap")]
pub(crate) mod orb_args;
mod orb_operations;
