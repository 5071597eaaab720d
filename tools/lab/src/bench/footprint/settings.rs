//! Settings of the footprint experiment.

use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::workload::named;

/// The code that encodes and decodes the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Straight-line code for each type.
    Compiled,
    /// A table for each type, and one interpreter.
    Interpretive,
    /// Both: begins with the table.
    Adaptive,
}

impl Engine {
    /// All engines, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Compiled, Self::Interpretive, Self::Adaptive];

    /// The name that options and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiled => "compiled",
            Self::Interpretive => "interpretive",
            Self::Adaptive => "adaptive",
        }
    }
}

/// The optimisation goal of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimisation {
    /// Speed: Cargo's `opt-level = 3`.
    Speed,
    /// Size: Cargo's `opt-level = "z"`.
    Size,
}

impl Optimisation {
    /// Both, in the order of the report.
    pub const ALL: [Self; 2] = [Self::Speed, Self::Size];

    /// The name that tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Size => "size",
        }
    }

    /// The value of Cargo's `opt-level` in TOML.
    pub(super) fn level(self) -> &'static str {
        match self {
            Self::Speed => "3",
            Self::Size => "\"z\"",
        }
    }
}

/// The half of the code that is generated for an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The caller's side: stubs.
    Stub,
    /// The servant's side: skeletons.
    Skeleton,
}

impl Side {
    /// Both, in the order of the report.
    pub const ALL: [Self; 2] = [Self::Stub, Self::Skeleton];

    /// The name that tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stub => "stub",
            Self::Skeleton => "skeleton",
        }
    }
}

/// The parts of the measurement, each of which can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The sizes of stubs and skeletons.
    Sizes,
    /// The latencies of two-way calls.
    Latency,
    /// The size that the smallest client adds to a program with a socket.
    Minimum,
}

impl Part {
    /// All parts in the order of reports.
    pub const ALL: [Self; 3] = [Self::Sizes, Self::Latency, Self::Minimum];

    fn name(self) -> &'static str {
        match self {
            Self::Sizes => "sizes",
            Self::Latency => "latency",
            Self::Minimum => "minimum",
        }
    }
}

named!(Part, "part");

/// The choice of parts, and the number of calls that are timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The parts to measure, at least one.
    pub parts: Vec<Part>,
    /// Interleaved rounds of calls.
    pub rounds: u32,
    /// Calls of an operation in a round.
    pub calls: u32,
    /// The core that client and server are pinned to.
    pub core: Option<usize>,
}

impl Settings {
    /// Finds faults of the settings before anything is measured.
    ///
    /// # Errors
    /// If there is nothing to do.
    pub fn check(&self) -> Result<(), LabError> {
        if self.parts.is_empty() || self.rounds == 0 || self.calls == 0 {
            return Err(LabError::Settings(
                "nothing to do: the settings need at least one part, round and call".to_owned(),
            ));
        }
        if cfg!(not(feature = "object-files")) && self.parts.contains(&Part::Sizes) {
            return Err(without_object_files());
        }
        Ok(())
    }
}

/// The error of the part `sizes` in a program that cannot read object files.
pub(super) fn without_object_files() -> LabError {
    LabError::Settings(
        "this executable reads no object files, from which the part `sizes` is measured: use \
         `cargo run --release --features object-files -- bench footprint`, or --parts latency,minimum"
            .to_owned(),
    )
}
