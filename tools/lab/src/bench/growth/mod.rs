//! Growth in a long run: millions of calls of each kind between two ORBs, with samples of the process's
//! memory, descriptors, threads and objects.
//!
//! Both ORBs are in this process, connected by a socket, so that the samples cover both sides. A fifth of the
//! calls precedes the first sample: buffers, caches and pools have reached their size then.

mod kinds;
pub mod report;
mod stage;

use serde::{Deserialize, Serialize};

pub use kinds::Kind;
use stage::Stage;

use crate::LabError;
use crate::machine::{Look, Machine};
use crate::progress::Progress;

/// The number of samples after the first.
const LOOKS: u64 = 8;
/// Octets by which the memory may be larger in the last sample than in the first: allocators keep some pages,
/// once.
const TOLERATED_OCTETS: u64 = 512 << 10;

/// The number and the kinds of calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Calls of all kinds together.
    pub calls: u64,
    /// The kinds that are called in turn, one after the other.
    pub kinds: Vec<Kind>,
}

/// The resources during many calls of one kind, and the time of these calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The kind that all these calls have.
    pub kind: Kind,
    /// The number of calls after the first sample.
    pub calls: u64,
    /// The seconds that these calls took.
    pub seconds: f64,
    /// Samples at regular intervals.
    pub looks: Vec<Look>,
}

impl Row {
    /// The growth as text; empty if nothing grew.
    #[must_use]
    pub fn grown(&self) -> Vec<String> {
        let (Some(first), Some(last)) = (self.looks.first(), self.looks.last()) else { return Vec::new() };
        let mut grown = Vec::new();
        let more = last.resident.saturating_sub(first.resident);
        if more > TOLERATED_OCTETS {
            grown.push(format!("{} KiB of memory", more / 1024));
        }
        for (quantity, before, after) in [
            ("descriptors", first.descriptors, last.descriptors),
            ("threads", first.threads, last.threads),
            ("active objects", first.objects, last.objects),
        ] {
            if after > before {
                grown.push(format!("{} {quantity}", after - before));
            }
        }
        grown
    }
}

/// The samples of all kinds of call, as the result file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name, for programs that read the file.
    pub experiment: String,
    /// The machine and program of the measurement.
    pub machine: Machine,
    /// The settings with which these figures were measured.
    pub settings: Settings,
    /// The samples and times, one row for each kind of call.
    pub rows: Vec<Row>,
}

impl Results {
    /// True if nothing grew.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.rows.iter().all(|row| row.grown().is_empty())
    }
}

/// Makes the calls.
///
/// # Errors
/// If there are none to make, or one fails.
pub fn run(settings: &Settings) -> Result<Results, LabError> {
    let share = settings.calls.checked_div(settings.kinds.len() as u64).unwrap_or(0);
    if share < LOOKS * 10 {
        return Err(LabError::Settings(format!("each kind needs at least {} calls", LOOKS * 10)));
    }
    let machine = Machine::here();
    let stage = Stage::build()?;
    let mut progress = Progress::begin(settings.kinds.len() as u64 * LOOKS);
    let rows = settings.kinds.iter().map(|kind| measure(*kind, share, &stage, &mut progress)).collect::<Result<_, _>>();
    progress.finish();
    stage.end()?;
    Ok(Results { experiment: "growth".to_owned(), machine, settings: settings.clone(), rows: rows? })
}

fn measure(kind: Kind, calls: u64, stage: &Stage, progress: &mut Progress) -> Result<Row, LabError> {
    let turn = |calls: u64| -> Result<(), LabError> {
        for _ in 0..calls.div_ceil(kind.calls()) {
            kind.make(stage).map_err(LabError::call(format!("make a call of the kind `{kind}`")))?;
        }
        stage.settle().map_err(LabError::call("wait for the server"))
    };
    progress.at(kind.name());
    turn(calls / 5)?;
    let mut looks = vec![Look::now(stage.objects())];
    let start = std::time::Instant::now();
    let part = (calls - calls / 5).div_ceil(LOOKS);
    for _ in 0..LOOKS {
        turn(part)?;
        let look = Look::now(stage.objects());
        progress.step(kind.name(), &format!("{} KiB", look.resident / 1024));
        looks.push(look);
    }
    Ok(Row { kind, calls: part * LOOKS, seconds: start.elapsed().as_secs_f64(), looks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(last: Look) -> Row {
        let first = Look { resident: 8 << 20, descriptors: 10, threads: 5, objects: 2 };
        Row { kind: Kind::TwoWay, calls: 1_000, seconds: 0.1, looks: vec![first, last] }
    }

    #[test]
    fn growth_is_named() {
        let same = Look { resident: (8 << 20) + 100_000, descriptors: 10, threads: 4, objects: 2 };
        assert!(row(same).grown().is_empty());
        let more = Look { resident: 9 << 20, descriptors: 12, threads: 6, objects: 3 };
        assert_eq!(row(more).grown(), ["1024 KiB of memory", "2 descriptors", "1 threads", "1 active objects"]);
    }

    #[test]
    fn every_kind_of_call_can_be_made() {
        let stage = Stage::build().unwrap();
        for kind in Kind::ALL {
            for _ in 0..3 {
                kind.make(&stage).unwrap_or_else(|error| panic!("{kind}: {error}"));
            }
        }
        stage.settle().unwrap();
        assert_eq!(stage.objects(), 2, "those that left are gone");
        stage.end().unwrap();
    }

    #[test]
    fn too_few_calls_are_refused() {
        assert!(run(&Settings { calls: 100, kinds: Kind::ALL.to_vec() }).is_err());
        assert!(run(&Settings { calls: 100, kinds: Vec::new() }).is_err());
    }
}
