//! The scalability experiment (paper 001, chapter 4): the time of a call by the number of servants of its
//! server.
//!
//! A contender is a pair of programs, a server with that many servants and a client that holds a reference to
//! each: this program as its own child ([`ours`]), and the peers built from the source tree. All are driven
//! in the same way: a client reads a [`JobRun`] as one line of text, and prints one line with the times and
//! with the number of servants called, which it gets from the server. All contenders run at once with each
//! number of servants. In each round each of them makes the same calls, one after the other, so that ratios
//! are formed within a round.

mod contender;
mod job;
pub mod ours;
mod plot;
mod programs;
pub mod report;
mod results;
mod series;
mod settings;

pub use contender::Contender;
pub use job::{Algorithm, CallData, Job, JobRun, Style};
pub use programs::{PROGRAMS, program_folder};
pub use results::{Measurement, Results, Row};
pub use series::run;
pub use settings::Settings;
