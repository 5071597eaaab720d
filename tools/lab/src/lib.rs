//! The laboratory: the papers' experiments, measured against raw sockets.
//!
//! [`ttcp`] measures throughput, [`latency`] the time of single calls, and [`scalability`] its growth with
//! the servants of a server. Each measures interchangeable [`mechanism`]s between two processes of this
//! program ([`peer`]), which are pinned to cores ([`placement`]). [`mod@bench`] measures single components,
//! and [`soak`] checks a long run of mixed traffic for errors and growth; [`bulk`] transfers files. The meaning of an experiment (workloads,
//! rounds, ratios) is decided here; `spandrel-measure` has the histograms, statistics, tables and charts, and
//! `spandrel-cli` parses the command line and prints errors.
//!
//! The plain socket calls, the base of all comparisons, are in `raw`, the one module with `unsafe`.

pub mod bench;
pub mod bulk;
pub mod call_times;
pub mod child;
#[cfg(feature = "clap")]
pub mod child_command;
mod child_process;
mod counter;
pub mod error;
mod future;
pub(crate) mod interop;
mod ladder;
pub mod latency;
pub mod machine;
pub mod mechanism;
pub mod output;
pub mod overview;
pub mod peer;
#[cfg(target_os = "linux")]
pub mod peer_programs;
pub mod placement;
#[cfg(target_os = "linux")]
pub mod plain_files;
pub mod progress;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the plain socket calls that the other mechanisms are measured against")]
mod raw;
pub mod reference;
pub mod scalability;
pub mod soak;
pub mod ttcp;
pub mod workload;

pub use error::LabError;
