//! The common part of experiments that measure calls by a number, such as that of busy connections: settings,
//! interleaved rounds, summaries, and the report.

mod experiment;
mod plot;
pub mod report;
mod results;
pub(super) mod series;
mod servers;
mod settings;

pub use experiment::{Experiment, Subject};
pub use results::{Figures, Measurement, Results, Row};
pub use settings::Settings;
