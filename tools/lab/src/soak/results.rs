//! Results of a soak run.

use serde::{Deserialize, Serialize};
use spandrel_measure::units::grouped;

use super::{Kind, Settings, WARM_UP_CYCLES};
use crate::machine::{Look, Machine};

/// Octets by which the memory of a process may be larger at the end than after the warm-up, besides a
/// twentieth of it: allocators keep the memory of the busiest moment, which may come late.
const TOLERATED_OCTETS: u64 = 4 << 20;
/// Threads and descriptors that may be added after the warm-up, for the same reason.
const TOLERATED_COUNT: u64 = 8;

/// The counts of one kind of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The kind that these counts are of.
    pub kind: Kind,
    /// Calls with the expected answer; connections, where there are no calls.
    pub calls: u64,
    /// Octets of user data that were returned and compared.
    pub octets: u64,
}

/// The resources of one process, at rest after each cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// The process, as reports name it: client or server.
    pub name: String,
    /// The resources in the order in which they were sampled.
    pub looks: Vec<Look>,
}

impl Process {
    /// The growth after the warm-up as text; empty if nothing grew.
    #[must_use]
    pub fn grown(&self) -> Vec<String> {
        let (Some(first), Some(last)) = (self.looks.get(WARM_UP_CYCLES), self.looks.last()) else { return Vec::new() };
        let mut grown = Vec::new();
        let more = last.resident.saturating_sub(first.resident);
        if more > TOLERATED_OCTETS + first.resident / 20 {
            grown.push(format!("{} KiB of memory", grouped((more / 1024) as f64)));
        }
        for (quantity, before, after, tolerated) in [
            ("descriptors", first.descriptors, last.descriptors, TOLERATED_COUNT),
            ("threads", first.threads, last.threads, TOLERATED_COUNT),
            ("active objects", first.objects, last.objects, 0),
        ] {
            if after > before + tolerated {
                grown.push(format!("{} {quantity}", after - before));
            }
        }
        grown
    }
}

/// The results of a soak run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name, for programs that read the file.
    pub experiment: String,
    /// The machine and program of the run.
    pub machine: Machine,
    /// The settings with which these figures were measured.
    pub settings: Settings,
    /// The calls and failures, one row for each kind of traffic.
    pub rows: Vec<Row>,
    /// The resources of both processes.
    pub processes: Vec<Process>,
    /// The number of failed pieces of traffic.
    pub failures: u64,
    /// The first failures in words, enough to find a cause.
    pub first_failures: Vec<String>,
}

impl Results {
    /// The reasons why the run failed; empty if it did not.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let failed = (self.failures > 0).then(|| format!("{} calls went wrong", grouped(self.failures as f64)));
        let grew = self.processes.iter().flat_map(|process| {
            process.grown().into_iter().map(move |quantity| format!("the {} has grown by {quantity}", process.name))
        });
        failed.into_iter().chain(grew).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(last: Look) -> Process {
        let small = Look { resident: 1 << 20, descriptors: 5, threads: 3, objects: 1 };
        let warm = Look { resident: 20 << 20, descriptors: 30, threads: 9, objects: 2 };
        Process { name: "server".to_owned(), looks: vec![small, small, small, warm, warm, last] }
    }

    #[test]
    fn growth_after_the_warm_up_is_named() {
        let same = Look { resident: 22 << 20, descriptors: 33, threads: 9, objects: 2 };
        assert!(process(same).grown().is_empty());
        let more = Look { resident: 40 << 20, descriptors: 130, threads: 30, objects: 3 };
        assert_eq!(
            process(more).grown(),
            ["20,480 KiB of memory", "100 descriptors", "21 threads", "1 active objects"]
        );
    }
}
