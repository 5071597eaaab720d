//! Settings of a series, and their validation.

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use crate::LabError;
use crate::workload::{DataType, MAX_BUFFER_OCTETS};

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The engines, in the order of the report.
    pub contenders: Vec<Contender>,
    /// Element types, in the order of the report.
    pub types: Vec<DataType>,
    /// Octets of user data in a sequence, in the order of the report.
    pub sizes: Vec<usize>,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// The duration of a run in microseconds.
    pub run_micros: u64,
    /// The core to which the experiment is pinned; without one, the scheduler chooses.
    pub core: Option<usize>,
    /// After this many seconds no further round is begun.
    pub budget_seconds: Option<u64>,
}

/// Shorter sequences would measure the clock, and have no struct.
const MIN_OCTETS: usize = 64;

impl Settings {
    /// Finds faults of the settings before anything is measured.
    ///
    /// # Errors
    /// If a list is empty, or a number out of range.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |why: String| Err(LabError::Settings(why));
        if self.contenders.is_empty() || self.types.is_empty() || self.sizes.is_empty() {
            return refuse("nothing to run: there must be an engine, a type and a size".to_owned());
        }
        if self.rounds == 0 || self.run_micros == 0 {
            return refuse("nothing to run: rounds and the time of a run must be above zero".to_owned());
        }
        match self.sizes.iter().find(|size| !(MIN_OCTETS..=MAX_BUFFER_OCTETS).contains(*size)) {
            Some(size) => {
                refuse(format!("a sequence has between {MIN_OCTETS} octets and {MAX_BUFFER_OCTETS}, not {size}"))
            }
            None => Ok(()),
        }
    }
}
