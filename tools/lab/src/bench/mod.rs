//! Experiments with single components: the cost of a part by itself, compared with other projects.
//!
//! [`demux`] finds objects and operations; `reactor` (on Linux) drives echo servers, each in its own process,
//! over many connections, and `connections` (on Linux) servers of calls with busy connections; `inflight` (on Linux) keeps calls in flight on one connection; `rt` (on Linux) calls at a
//! high priority beside floods; [`timers`] fills and empties timer queues; [`marshal`] converts values to octets
//! and back; [`footprint`] (on Linux) builds stubs and skeletons and measures their size; [`growth`] (on
//! Linux) makes millions of calls and checks for growth; [`collocation`] calls objects of the same ORB by
//! every strategy; [`functions`] calls functions of every kind.

#[cfg(target_os = "linux")]
pub mod by_number;
pub mod collocation;
#[cfg(target_os = "linux")]
pub mod connections;
pub mod demux;
#[cfg(target_os = "linux")]
mod driver;
#[cfg(target_os = "linux")]
pub mod footprint;
pub mod functions;
#[cfg(target_os = "linux")]
pub mod growth;
#[cfg(target_os = "linux")]
pub mod inflight;
pub mod marshal;
#[cfg(target_os = "linux")]
pub mod reactor;
#[cfg(target_os = "linux")]
pub mod rt;
pub mod timers;

#[cfg(target_os = "linux")]
pub(crate) use driver::orb::serve as serve_calls;
#[cfg(target_os = "linux")]
pub(crate) use inflight::call as call_in_flight;
#[cfg(target_os = "linux")]
pub(crate) use rt::serve as serve_priorities;
