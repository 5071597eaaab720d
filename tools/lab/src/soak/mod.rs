//! A long run of mixed traffic between two processes: every octet is checked, and neither process may grow.
//!
//! Client threads call the server's object in random ways ([`Kind`]): sizes, types, one-way and two-way,
//! futures, exceptions, objects that are created and destroyed, call-backs, connections for one call, and
//! peers that close inside a message. After each of several cycles the traffic pauses, and the memory,
//! threads, descriptors and objects of both processes are sampled: samples at rest are comparable.
//!
//! The cycles are in `traffic`, the calls and the comparison of their replies in `kind`, and the verdict in
//! `results`.

mod data;
mod kind;
pub mod report;
mod results;
mod server;
mod traffic;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use kind::Kind;
pub use results::{Process, Results, Row};
pub use server::serve;
pub use traffic::run;

use crate::LabError;

/// The number of cycles, each with a sample at rest.
const CYCLES: u32 = 12;
/// Samples before the one that the later ones are compared with: buffers, caches and pools have reached their
/// size then.
const WARM_UP_CYCLES: usize = 3;

/// The duration, the clients and the data of a soak run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The duration of the traffic in seconds.
    pub seconds: f64,
    /// The number of threads that call concurrently. Two share an ORB.
    pub clients: u32,
    /// The seed of the random choices.
    pub seed: u64,
    /// The longest data of a call, in octets.
    pub max_octets: u32,
    /// Options of both sides' ORBs, as command lines spell them.
    pub orb: Vec<String>,
}

impl Settings {
    /// Finds faults of the settings before anything runs.
    ///
    /// # Errors
    /// If a number is out of range.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |text: String| Err(LabError::Settings(text));
        if !(0.5..=1e7).contains(&self.seconds) {
            return refuse(format!("a run lasts from 0.5 to 10,000,000 seconds, not {}", self.seconds));
        }
        if !(1..=64).contains(&self.clients) {
            return refuse(format!("a run has from 1 to 64 clients, not {}", self.clients));
        }
        if !(1..=16 << 20).contains(&self.max_octets) {
            return refuse(format!("data have from 1 octet to 16 MiB at most, not {} octets", self.max_octets));
        }
        Ok(())
    }

    fn cycle(&self) -> Duration {
        Duration::from_secs_f64(self.seconds) / CYCLES
    }
}

/// A seed from the system's randomness, below 2^32.
#[must_use]
pub fn any_seed() -> u64 {
    fastrand::u64(..1 << 32)
}

/// The ORB of one side.
fn orb(options: &[String]) -> Result<spandrel::Orb, LabError> {
    let refused = |error: spandrel::InitError| LabError::Settings(error.to_string());
    let mut options = options.to_vec();
    let orb = spandrel::Orb::builder()
        .take_args(&mut options)
        .map_err(refused)?
        .build()
        .map_err(LabError::call("make the ORB"))?;
    match options.first() {
        Some(option) => Err(LabError::Settings(format!(
            "invalid value `{option}` for --orb: expected an option of an ORB, such as `-ORBConcurrency reactive`"
        ))),
        None => Ok(orb),
    }
}
