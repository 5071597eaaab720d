//! Load, times, statistics, tables and charts of the programs that measure.
//!
//! [`load`] makes requests at scheduled times, [`histogram`] counts their times with bounded memory, [`Times`] are its
//! quantiles, [`stats`] forms medians, means and comparisons of repetitions, [`table`] prints figures as text, [`plot`] draws them, and [`units`]
//! has the notation of sizes and numbers. Nothing here knows CORBA, a socket or an experiment.
#![forbid(unsafe_code)]

pub mod histogram;
pub mod load;
pub mod plot;
pub mod stats;
pub mod table;
mod times;
pub mod units;

pub use times::Times;
