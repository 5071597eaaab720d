//! The ttcp experiment: throughput of typed data by buffer size and mechanism.
//!
//! A flood sends buffers of one type until enough octets are sent, and ends with an acknowledgement; the time
//! is the transmitter's. Rounds visit every cell (kind of call, data type, buffer size). Within a cell the
//! mechanisms follow each other directly, so that a noisy machine affects them alike and ratios can be formed
//! within the round. This module decides what is run; [`report`], [`overview`] and [`plot`] show the
//! results.

pub mod overview;
pub mod plot;
pub mod report;
mod results;
mod series;
mod settings;

pub use results::{Cell, Results, Run};
pub use series::run;
pub use settings::Settings;
