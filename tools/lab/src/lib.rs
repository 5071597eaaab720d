//! The laboratory: the papers' experiments, measured against raw sockets.
//!
//! [`ttcp`] measures throughput, [`latency`] the time of single calls, and [`scalability`] its growth with
//! the servants of a server. Each measures interchangeable [`mechanism`]s between two processes of this
//! program ([`peer`]), which are pinned to cores ([`placement`]). [`mod@bench`] measures single components,
//! [`soak`] checks a long run of mixed traffic for errors and growth, and [`load`] is an open loop of any
//! requests. The meaning of an experiment (workloads, rounds, ratios) is decided here; `spandrel-cli` parses
//! the command line and prints errors.
//!
//! The plain socket calls, the base of all comparisons, are in `raw`, the one module with `unsafe`.

pub mod bench;
pub mod call_times;
pub mod child;
mod counter;
pub mod error;
mod future;
pub mod histogram;
pub mod latency;
pub mod load;
pub mod machine;
pub mod mechanism;
pub mod output;
pub mod overview;
pub mod peer;
pub mod placement;
pub mod plot;
pub mod progress;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the plain socket calls that the other mechanisms are measured against")]
mod raw;
pub mod reference;
pub mod scalability;
pub mod soak;
pub mod stats;
pub mod table;
pub mod ttcp;
pub mod units;
pub mod workload;

pub use error::LabError;
