//! The timer experiment: what it costs to schedule, cancel, reschedule and expire a timer, by strategy and by how many
//! timers there are.
//!
//! Delays are random up to some minutes, and timers are touched in random order, so that with many of them the cost is
//! one of cache misses. A queue has been full and empty once before it is measured: its memory is there, and its free places
//! lie scattered, as in a server that has run for long. Everything happens in one thread, without a reactor around it.

mod cost;
pub mod report;
mod results;
mod series;
mod settings;

pub use cost::{OPERATIONS, Operation};
pub use results::{Measured, Results, Row};
pub use series::run;
pub use settings::{Settings, Strategy};
