//! Settings of a series, and their validation.

use serde::{Deserialize, Serialize};
use spandrel_measure::units::Octets;

use crate::LabError;
use crate::mechanism::{MechanismName, SocketOptions};
use crate::placement::Placement;
use crate::workload::{CallKind, DataType, MAX_BUFFER_OCTETS};

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Data types, in the order of the report.
    pub types: Vec<DataType>,
    /// Buffer sizes, in the order of the report.
    pub sizes: Vec<Octets>,
    /// Whether calls are answered: one-way, two-way, or both in turn.
    pub calls: Vec<CallKind>,
    /// Mechanisms, in the order of the report.
    pub mechanisms: Vec<MechanismName>,
    /// Octets of user data per run.
    pub bytes: Octets,
    /// The runs of each configuration; they take turns with those of the others.
    pub repetitions: u32,
    /// The data connections' sockets.
    pub sockets: SocketOptions,
    /// The cores of both processes.
    pub placement: Placement,
    /// The control address of a running receiver, instead of one of our own.
    pub remote: Option<String>,
    /// The longest that one run may take, in seconds.
    pub limit_seconds: u64,
    /// After this many seconds no further round is begun, and runs of the first become shorter.
    pub budget_seconds: Option<u64>,
}

impl Settings {
    /// Finds faults of the settings before anything is measured.
    ///
    /// # Errors
    /// If a list is empty or a size out of range.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |why: &str| Err(LabError::Settings(why.to_owned()));
        if self.types.is_empty() || self.sizes.is_empty() || self.calls.is_empty() || self.mechanisms.is_empty() {
            return refuse("nothing to run: there must be at least one type, size, kind of call and mechanism");
        }
        if self.repetitions == 0 || self.bytes.0 == 0 {
            return refuse("nothing to run: repetitions and bytes must be above zero");
        }
        if let Some(mechanism) = self.mechanisms.iter().find(|m| self.remote.is_some() && !m.leaves_the_machine()) {
            return Err(LabError::Settings(format!("mechanism `{mechanism}` cannot reach another machine")));
        }
        if let Some(size) = self.sizes.iter().find(|size| size.0 == 0 || size.0 > MAX_BUFFER_OCTETS as u64) {
            return Err(LabError::Settings(format!(
                "a buffer of {size} octets cannot be used; sizes go from 1 to {}",
                Octets(MAX_BUFFER_OCTETS as u64)
            )));
        }
        Ok(())
    }

    pub(super) fn cells(&self) -> Vec<(CallKind, DataType, usize)> {
        let by_type = |call| self.types.iter().map(move |data| (call, *data));
        let by_size = |(call, data)| self.sizes.iter().map(move |size| (call, data, size.0 as usize));
        self.calls.iter().copied().flat_map(by_type).flat_map(by_size).collect()
    }
}
