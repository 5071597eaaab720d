//! What this process has at present.

use serde::{Deserialize, Serialize};

use crate::machine::resident_octets;

/// What there is at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Octets of resident memory.
    pub resident: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
    /// Active objects of the server.
    pub objects: u64,
}

impl Look {
    /// Looks now.
    #[must_use]
    pub(super) fn now(objects: u64) -> Self {
        let entries = |folder: &str| std::fs::read_dir(folder).map_or(0, |entries| entries.count() as u64);
        Self {
            resident: resident_octets(std::process::id()).unwrap_or(0),
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            objects,
        }
    }
}
