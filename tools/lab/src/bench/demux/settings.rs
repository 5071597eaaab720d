//! Settings of a series, and their validation.

use serde::{Deserialize, Serialize};
use spandrel::poa::{ObjectDemux, OperationDemux};

use super::requests::Algorithm;
use crate::LabError;
use crate::workload::named;

/// The data structures by which a server finds objects and operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The key has the index of the object, and the request that of the operation (de-layered).
    Active,
    /// A hash function without collisions for each.
    PerfectHash,
    /// Hash tables that grow.
    DynamicHash,
    /// Objects as by [`DynamicHash`](Self::DynamicHash), operations as by [`PerfectHash`](Self::PerfectHash),
    /// but the last result is checked first.
    Adaptive,
    /// Objects as by [`DynamicHash`](Self::DynamicHash), operations by binary search in their sorted names.
    BinarySearch,
    /// Linear search, for both.
    Linear,
}

impl Strategy {
    /// All strategies in the order of reports.
    pub const ALL: [Self; 6] =
        [Self::Active, Self::PerfectHash, Self::DynamicHash, Self::Adaptive, Self::BinarySearch, Self::Linear];

    /// The name that options and files use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::PerfectHash => "perfect-hash",
            Self::DynamicHash => "dynamic-hash",
            Self::Adaptive => "adaptive",
            Self::BinarySearch => "binary-search",
            Self::Linear => "linear",
        }
    }

    pub(super) fn objects(self) -> ObjectDemux {
        match self {
            Self::Active => ObjectDemux::Active,
            Self::PerfectHash => ObjectDemux::PerfectHash,
            Self::DynamicHash | Self::Adaptive | Self::BinarySearch => ObjectDemux::DynamicHash,
            Self::Linear => ObjectDemux::Linear,
        }
    }

    pub(super) fn operations(self) -> OperationDemux {
        match self {
            Self::Active => OperationDemux::Active,
            Self::PerfectHash | Self::Adaptive => OperationDemux::PerfectHash,
            Self::DynamicHash => OperationDemux::DynamicHash,
            Self::BinarySearch => OperationDemux::BinarySearch,
            Self::Linear => OperationDemux::Linear,
        }
    }

    /// The reason why it is not measured with that many objects, if so.
    pub(super) fn unsupported_reason(self, objects: u32) -> Option<String> {
        let too_many = self == Self::Linear && objects > MAX_LINEAR_ENTRIES;
        too_many.then(|| "one lookup would take milliseconds".to_owned())
    }
}

/// The largest number of objects for linear search.
const MAX_LINEAR_ENTRIES: u32 = 10_000;

named!(Strategy, "demultiplexing strategy");

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Strategies, in the order of the report.
    pub strategies: Vec<Strategy>,
    /// The numbers of objects to measure.
    pub objects: Vec<u32>,
    /// Numbers of operations of their interface.
    pub operations: Vec<u32>,
    /// The number of adapters that the objects are spread over.
    pub adapters: u32,
    /// The orders of requests to measure.
    pub algorithms: Vec<Algorithm>,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// The duration of a run, in microseconds.
    pub run_micros: u64,
    /// Fixed number of lookups in a run, instead of a duration: for instruments that slow the program down.
    pub lookups: Option<u64>,
    /// Whole calls in a run; none are made if it is zero.
    pub calls: u32,
    /// The core to which the experiment is pinned; without one, the scheduler chooses.
    pub core: Option<usize>,
    /// After this many seconds no further round is begun.
    pub budget_seconds: Option<u64>,
}

/// The most objects, which take some gigabytes.
const MAX_OBJECTS: u32 = 10_000_000;
/// Indexes of operations have sixteen bits.
const MAX_OPERATIONS: u32 = 10_000;
const MAX_ADAPTERS: u32 = 100_000;

impl Settings {
    /// Finds faults of the settings before anything is measured.
    ///
    /// # Errors
    /// If a list is empty, or a number out of range.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::Settings(reason));
        let is_empty = self.strategies.is_empty()
            || self.objects.is_empty()
            || self.operations.is_empty()
            || self.algorithms.is_empty();
        if is_empty {
            return refuse(
                "nothing to run: there must be a strategy, an algorithm, and numbers of objects and operations"
                    .to_owned(),
            );
        }
        if self.rounds == 0 || self.run_micros == 0 || self.lookups == Some(0) {
            return refuse("nothing to run: rounds, their length and lookups must be above zero".to_owned());
        }
        for (counts, most, what) in [
            (&self.objects[..], MAX_OBJECTS, "objects"),
            (&self.operations, MAX_OPERATIONS, "operations"),
            (&[self.adapters], MAX_ADAPTERS, "adapters"),
        ] {
            if let Some(count) = counts.iter().find(|count| **count == 0 || **count > most) {
                return refuse(format!("there can be between 1 and {most} {what}, not {count}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.name().parse::<Strategy>().unwrap(), strategy);
        }
        assert!("magic".parse::<Strategy>().unwrap_err().to_string().contains("perfect-hash"));
    }
}
