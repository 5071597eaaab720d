//! Statistics of an ORB: counters that only grow, levels, and their text for Prometheus.
//!
//! Each event has a method that counts it, such as [`Statistics::connection_opened`]: one addition to an
//! atomic number, unordered with all else. A successful call counts nothing here. Durations of calls and
//! counts by operation belong to `diagnostics::metrics`, which are off by default.
//!
//! The events and levels are one table (`events`).

mod events;
mod render;

pub use events::{Event, Level, Statistics};
pub use spandrel_metrics::CONTENT_TYPE;
