//! Settings of a series, and their validation.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spandrel_measure::units::grouped;

use super::contender::Contender;
use crate::LabError;
use crate::placement::Placement;

/// The connections of a server, written `IDLE+ACTIVE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Load {
    /// Connections that are open and silent.
    pub idle: u32,
    /// Connections with a message in flight at any time.
    pub active: u32,
}

impl Load {
    /// The number of idle and active connections.
    #[must_use]
    pub fn connections(self) -> u64 {
        u64::from(self.idle) + u64::from(self.active)
    }

    /// The text for a table's heading.
    #[must_use]
    pub fn description(self) -> String {
        format!("{} active and {} idle connections", grouped(self.active.into()), grouped(self.idle.into()))
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.idle, self.active)
    }
}

impl FromStr for Load {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let read = || {
            let (idle, active) = text.trim().split_once('+')?;
            Some(Self { idle: idle.parse().ok()?, active: active.parse().ok()? })
        };
        let load = read().filter(|load| load.active > 0 && load.connections() <= MAX_CONNECTIONS);
        load.ok_or_else(|| {
            LabError::Settings(format!(
                "`{text}` is not a load; write IDLE+ACTIVE connections, such as 1000+64, at least one active and {} in all at most",
                grouped(MAX_CONNECTIONS as f64)
            ))
        })
    }
}

/// Roughly the number of ports for connections from one address to another.
const MAX_CONNECTIONS: u64 = 28_000;

/// Longer messages could fill the queues of both directions before either side reads.
const MAX_MESSAGE_OCTETS: u32 = 16 << 10;

/// The configurations to measure, and the number and length of their runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The placements, one series each: the load is the transmitter, the server the receiver.
    pub placements: Vec<Placement>,
    /// The connections, in the order of the report.
    pub loads: Vec<Load>,
    /// The servers, in the order of the report.
    pub contenders: Vec<Contender>,
    /// Octets of a message.
    pub octets: u32,
    /// The duration of a run, in milliseconds.
    pub run_millis: u64,
    /// The runs of each configuration; they take turns with those of the others.
    pub rounds: u32,
    /// The folder with the other servers' programs, if they are not built from the source tree.
    pub peers: Option<PathBuf>,
    /// The longest response time of a server, in seconds.
    pub limit_seconds: u32,
    /// After this many seconds no further round is begun.
    pub budget_seconds: Option<u64>,
}

impl Settings {
    /// Finds faults of the settings before anything is measured.
    ///
    /// # Errors
    /// If a list is empty, or a number out of range.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::Settings(reason));
        if self.placements.is_empty() || self.loads.is_empty() || self.contenders.is_empty() {
            return refuse("nothing to run: there must be a placement, a load and a server".to_owned());
        }
        if self.rounds == 0 || self.run_millis == 0 || self.limit_seconds == 0 {
            return refuse("nothing to run: rounds, milliseconds and the time limit must be above zero".to_owned());
        }
        if self.octets == 0 || self.octets > MAX_MESSAGE_OCTETS {
            return refuse(format!("a message has between 1 and {MAX_MESSAGE_OCTETS} octets, not {}", self.octets));
        }
        Ok(())
    }

    pub(super) fn run_time(&self) -> Duration {
        Duration::from_millis(self.run_millis)
    }

    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_parsed_from_its_display_form() {
        let load: Load = "1000+64".parse().unwrap();
        assert_eq!((load.idle, load.active), (1000, 64));
        assert_eq!(load.to_string(), "1000+64");
        assert_eq!(load.description(), "64 active and 1,000 idle connections");
        for text in ["", "64", "10+0", "-1+1", "30000+1", "1+2+3"] {
            assert!(text.parse::<Load>().unwrap_err().to_string().contains("IDLE+ACTIVE"), "{text}");
        }
    }
}
