//! A long run of mixed traffic between two processes: every octet is checked, and neither process may grow.
//!
//! Client threads call the server's object in ways drawn by chance ([`Kind`]): sizes, types, one-way and two-way, futures, exceptions, objects that come and
//! go, call-backs, connections that are opened for one call, and peers that vanish inside a message. After each of several cycles the traffic
//! rests, and it is looked what both processes have of memory, threads, descriptors and objects: looks at rest can be compared.

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

/// How often the traffic rests, and it is looked.
const CYCLES: u32 = 12;
/// Looks before the one that the later ones are compared with: buffers, caches and pools have their size then.
const WARM_UP_CYCLES: usize = 3;

/// What the run covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How long there is traffic, in seconds.
    pub seconds: f64,
    /// How many threads call at once. Two share an ORB.
    pub clients: u32,
    /// What the drawing by chance begins with.
    pub seed: u64,
    /// The longest data of a call, in octets.
    pub max_octets: u32,
    /// Options of both sides' ORBs, as command lines spell them.
    pub orb: Vec<String>,
}

impl Settings {
    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// If a number is out of range.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |why: &str| Err(LabError::Settings(why.to_owned()));
        if !(0.5..=1e7).contains(&self.seconds) {
            return refuse("a run lasts half a second at least, and ten million at most");
        }
        if !(1..=64).contains(&self.clients) {
            return refuse("there are between 1 and 64 clients");
        }
        if !(1..=16 << 20).contains(&self.max_octets) {
            return refuse("data have between 1 octet and 16 MiB");
        }
        Ok(())
    }

    fn cycle(&self) -> Duration {
        Duration::from_secs_f64(self.seconds) / CYCLES
    }
}

/// A seed that nobody has chosen.
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
        Some(option) => Err(LabError::Settings(format!("`{option}` is no option of an ORB"))),
        None => Ok(orb),
    }
}
