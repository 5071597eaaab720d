//! The common part of experiments that measure calls by a number, such as that of busy connections: settings,
//! interleaved rounds, summaries, and the report.

mod plot;
pub mod report;
mod results;
pub(super) mod series;
mod settings;

pub use results::{Figures, Measurement, Results, Row};
pub use series::{Experiment, Subject};
pub use settings::Settings;
