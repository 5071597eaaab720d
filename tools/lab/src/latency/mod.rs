//! The latency experiment: the time of one call, from its start to its answer.
//!
//! Contenders are the mechanisms of this program and, where their peer programs have been built, omniORB and TAO. In
//! each round every contender makes the same number of calls, one after the other, and ratios to `c` are
//! formed within the round. The socket mechanisms transfer as many octets as the ORB does, which is measured,
//! not assumed. `series` runs the rounds; `call_times` measures each call.

mod contender;
mod foreign_orb;
pub mod overview;
pub mod report;
mod results;
mod series;
mod settings;

pub use contender::Contender;
pub use results::{Measurement, Results, Row};
pub use series::run;
pub use settings::Settings;
