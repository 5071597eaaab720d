//! The timer experiment: the cost of scheduling, cancelling, rescheduling and expiring a timer, by strategy
//! and number of timers.
//!
//! Delays are random up to some minutes, and timers are touched in random order, so that with many of them
//! the cost is one of cache misses. A queue has been full and empty once before it is measured: its memory is
//! allocated, and its free entries are scattered, as in a server that has run for long. Everything runs in
//! one thread, without a reactor.

mod cost;
pub mod report;
mod results;
mod series;
mod settings;

pub use cost::{OPERATIONS, Operation};
pub use results::{Measurement, Results, Row};
pub use series::run;
pub use settings::{Settings, Strategy};
