//! `spandrel top`: modules of streams with their queues, services, and ORBs of a running process.
//!
//! It reads the metrics of the process at intervals, by HTTP or by the administration of `spandrel serve`, and shows them
//! with rates. So it shows what Prometheus reads, and nothing else.
#![forbid(unsafe_code)]

mod rates;
mod rows;
mod sample;
mod source;
mod tables;
mod view;

pub use rows::{ChannelRow, ConnectionRow, OrbRow, Rows, ServiceRow, TaskRow};
pub use sample::Sample;
pub use source::{InvalidSource, Source};
pub use view::{View, text};
