//! Experiments with single components: what a part costs by itself, beside other people's.
//!
//! [`demux`] finds objects and operations; `reactor` (on Linux) drives echo servers, each a process of its own, over many connections; [`timers`] fills and
//! empties timer queues; [`marshal`] turns values into octets and back;
//! [`footprint`] (on Linux) builds stubs and skeletons and looks how large they are; [`growth`] (on Linux) makes millions of calls
//! and looks whether anything grows; [`collocation`] calls objects of the same ORB by every strategy.

pub mod collocation;
pub mod demux;
#[cfg(target_os = "linux")]
pub mod footprint;
#[cfg(target_os = "linux")]
pub mod growth;
pub mod marshal;
#[cfg(target_os = "linux")]
pub mod reactor;
pub mod timers;
