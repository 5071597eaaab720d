//! Placement of the two processes of an experiment on cores.
//!
//! Without pinning, the time of a ping varies from 6.5 to 19 µs, so ratios are quoted only from pinned runs.
//! Pinning uses `sched_setaffinity` and exists on Linux; elsewhere only [`Placement::Free`] is available.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::LabError;

/// The placement of the transmitter and the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Both on one core: the pure cost, without waiting for another core to wake.
    One,
    /// Each on a core of its own: the realistic case.
    Two,
    /// Not pinned: the scheduler chooses the cores.
    Free,
}

/// A side of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sends data, or makes calls.
    Transmitter,
    /// Receives data, or serves calls.
    Receiver,
}

impl Placement {
    /// The core for a side, if it is to be pinned. `cores` is the result of [`cores`].
    ///
    /// # Errors
    /// If there are not enough cores, or the platform does not support pinning.
    pub fn core(self, role: Role, cores: &[usize]) -> Result<Option<usize>, LabError> {
        let wanted = match (self, role) {
            (Self::Free, _) => return Ok(None),
            (Self::One, _) | (Self::Two, Role::Transmitter) => 0,
            (Self::Two, Role::Receiver) => 1,
        };
        cores.get(wanted).copied().map(Some).ok_or_else(|| {
            LabError::Settings(format!(
                "placement `{self}` needs {} core(s) to pin to, and {} can be had; try --placement free",
                wanted + 1,
                cores.len()
            ))
        })
    }

    /// The text for a table's heading.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::One => "both on one core",
            Self::Two => "each on its own core",
            Self::Free => "placed as the system likes",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one",
            Self::Two => "two",
            Self::Free => "free",
        })
    }
}

impl FromStr for Placement {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        match text {
            "one" => Ok(Self::One),
            "two" => Ok(Self::Two),
            "free" => Ok(Self::Free),
            other => Err(LabError::Settings(format!("`{other}` is not a placement; there are one, two and free"))),
        }
    }
}

/// Up to two cores that this process may run on, on different physical cores where there are such.
#[cfg(target_os = "linux")]
#[must_use]
pub fn cores() -> Vec<usize> {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    let allowed: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let Some(first) = allowed.first().copied() else { return Vec::new() };
    let siblings = siblings(first);
    let apart = allowed.iter().copied().skip(1).find(|cpu| !siblings.contains(cpu));
    [Some(first), apart.or(allowed.get(1).copied())].into_iter().flatten().collect()
}

/// None: the platform does not support pinning.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn cores() -> Vec<usize> {
    Vec::new()
}

/// Pins the calling thread, and those that it will start, to one core.
///
/// # Errors
/// If the system refuses, or the platform cannot pin.
#[cfg(target_os = "linux")]
pub fn pin(core: usize) -> Result<(), LabError> {
    let mut set = rustix::thread::CpuSet::new();
    if core >= rustix::thread::CpuSet::MAX_CPU {
        return Err(LabError::Settings(format!("there is no core {core}")));
    }
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|errno| LabError::io(format!("pin this process to core {core}"))(errno.into()))
}

/// Fails: the platform does not support pinning.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn pin(core: usize) -> Result<(), LabError> {
    Err(LabError::Settings(format!("cannot pin to core {core}: pinning needs Linux; use --placement free")))
}

/// Runs `work` in a thread pinned to `core`; threads and processes that it starts inherit the pinning.
/// Without a core, runs it in the calling thread.
///
/// # Errors
/// If the thread cannot be started or pinned.
pub fn on_core<T: Send>(core: Option<usize>, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
    let Some(core) = core else { return Ok(work()) };
    std::thread::scope(|scope| {
        let pinned = move || {
            pin(core)?;
            Ok(work())
        };
        let thread = std::thread::Builder::new().name("pinned".to_owned()).spawn_scoped(scope, pinned);
        match thread.map_err(LabError::io("start a thread"))?.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The hardware threads that share a core with `cpu`, as the kernel lists them: `0-1,4`.
#[cfg(target_os = "linux")]
fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    std::fs::read_to_string(path).map(|list| parse_cpu_list(&list)).unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn parse_cpu_list(list: &str) -> Vec<usize> {
    let range = |item: &str| {
        let (low, high) = item.split_once('-').unwrap_or((item, item));
        Some(low.parse::<usize>().ok()?..=high.parse::<usize>().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().take(4096).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_give_each_side_its_core() {
        let cores = [4, 6];
        assert_eq!(Placement::One.core(Role::Receiver, &cores).unwrap(), Some(4));
        assert_eq!(Placement::Two.core(Role::Transmitter, &cores).unwrap(), Some(4));
        assert_eq!(Placement::Two.core(Role::Receiver, &cores).unwrap(), Some(6));
        assert_eq!(Placement::Free.core(Role::Receiver, &[]).unwrap(), None);
    }

    #[test]
    fn a_placement_on_two_cores_needs_two() {
        let error = Placement::Two.core(Role::Receiver, &[0]).unwrap_err();
        assert!(error.to_string().contains("needs 2 core(s)"), "{error}");
    }

    #[test]
    fn a_placement_is_parsed_from_its_display_form() {
        for placement in [Placement::One, Placement::Two, Placement::Free] {
            assert_eq!(placement.to_string().parse::<Placement>().unwrap(), placement);
        }
        assert!("three".parse::<Placement>().is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernels_lists_of_processors_are_read() {
        assert_eq!(parse_cpu_list("0-1,4\n"), [0, 1, 4]);
        assert_eq!(parse_cpu_list(""), [0usize; 0]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_on_a_core_leaves_the_caller_where_it_was() {
        let before = cores();
        let last = *before.last().unwrap();
        assert_eq!(on_core(Some(last), cores).unwrap(), [last]);
        assert_eq!((cores(), on_core(None, cores).unwrap()), (before.clone(), before));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pinned_thread_may_run_on_that_core_only() {
        let core = cores()[0];
        std::thread::spawn(move || {
            pin(core).unwrap();
            assert_eq!(cores(), [core]);
        })
        .join()
        .unwrap();
    }
}
