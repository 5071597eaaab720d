//! Series: the values of one contender at one point.

use serde::{Deserialize, Serialize};
use spandrel_measure::stats::Summary;

/// The values of one contender at one point, one for each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The contender, and which of its figures: `orb static`.
    pub name: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The values in the order of rounds.
    pub values: Vec<f64>,
    /// Counts over all rounds: calls, octets, servants reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<(String, u64)>,
}

/// Units of measured values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Megabits of user data in a second.
    #[serde(rename = "Mbit/s")]
    MbitPerSecond,
    /// Mebioctets in a second.
    #[serde(rename = "MiB/s")]
    MibPerSecond,
    /// Seconds of elapsed or processor time.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds spent waiting for locks.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds of one call or step.
    #[serde(rename = "µs")]
    Microseconds,
    /// Nanoseconds of one look-up.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Octets of code or of data.
    #[serde(rename = "octets")]
    Octets,
    /// Things that were counted.
    #[serde(rename = "count")]
    Count,
    /// Instructions in user mode for one call.
    #[serde(rename = "instr")]
    Instructions,
    /// Percent of a whole that the name of the series tells.
    #[serde(rename = "%")]
    Percent,
}

impl Unit {
    /// The symbol that tables print.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::MbitPerSecond => "Mbit/s",
            Self::MibPerSecond => "MiB/s",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "µs",
            Self::Nanoseconds => "ns",
            Self::Octets => "octets",
            Self::Count => "count",
            Self::Instructions => "instr",
            Self::Percent => "%",
        }
    }

    /// Whether a greater value is better, as for rates.
    #[must_use]
    pub fn is_rate(self) -> bool {
        matches!(self, Self::MbitPerSecond | Self::MibPerSecond)
    }
}

impl Series {
    /// A series without counts.
    pub(crate) fn new(name: impl Into<String>, unit: Unit, values: Vec<f64>) -> Self {
        Self { name: name.into(), unit, values, counted: Vec::new() }
    }

    /// The same with something that was counted.
    pub(crate) fn counting(mut self, name: &str, count: u64) -> Self {
        self.counted.push((name.to_owned(), count));
        self
    }

    /// Median and range; none without values, or with one that is no number.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        Summary::from_values(self.values.iter().copied())
    }
}

/// The outcome of a measurement, besides its time.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// The values of each contender.
    pub(crate) series: Vec<Series>,
    /// Contenders that were not measured, each with the reason.
    pub(crate) absent: Vec<(String, String)>,
    /// How a bound of time cut the measurement.
    pub(crate) cut: Option<String>,
}
