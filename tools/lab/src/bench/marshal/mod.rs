//! The marshaling experiment (paper 001, chapter 5): the optimisation ladder of an interpreter, rung after
//! rung, compared with the engines of the ORB and a plain copy.
//!
//! Every contender writes a sequence into one block of octets and reads it back, in one thread and without a
//! network, so that only marshaling is measured. (The ORB's engines lend long sequences of primitives to the
//! transport instead of copying them; here they are copied into the block, as the transport would.)

mod contender;
mod data;
pub mod report;
mod results;
#[cfg(test)]
mod rungs;
mod series;
mod settings;

pub use contender::{Contender, DIRECTIONS, Direction};
pub use results::{Counted, Measurement, Results, Row};
pub use series::{repeat, run};
pub use settings::Settings;
