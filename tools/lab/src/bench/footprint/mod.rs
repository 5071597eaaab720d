//! The footprint experiment (paper 001, chapter 7): the size of stubs and skeletons by each engine, their
//! speed, and the cost of being a client at all.
//!
//! `crates` writes small crates, each with the stubs or the skeletons of one interface, and builds them for
//! speed and for size; `object` reads the sizes from their object files. `calls` measures latencies: two-way
//! calls between two ORBs of this process over the loopback interface. `minimum` compares the smallest client
//! with a plain socket. The experiment needs Cargo and the source tree, and takes some minutes. Only the sizes
//! need a library for object files, and with it the feature `object-files`.

mod calls;
mod crates;
mod fixtures;
#[cfg(feature = "object-files")]
mod functions;
mod minimum;
#[cfg(feature = "object-files")]
mod object;
pub mod report;
mod results;
mod settings;
mod sizes;

use std::path::Path;

pub use calls::{Operation, Step};
pub use fixtures::{Definitions, DefinitionsRow, definitions};
#[cfg(feature = "object-files")]
pub use functions::{Code, CodeSize, Libraries, code_sizes};
pub use minimum::{MAX_GROWTH, RECORDED};
pub use results::{Call, Footprint, Latency, Minimum, Results, Service};
pub use settings::{Engine, Optimisation, Part, Settings, Side};
pub use sizes::Sizes;

use crate::LabError;
use crate::machine::Machine;

/// Builds, analyses and measures the parts in the settings. `tree` is the source tree, and `out` a folder for
/// build output.
///
/// # Errors
/// If something cannot be built, analysed or called.
pub fn run(settings: &Settings, tree: &Path, out: &Path) -> Result<Results, LabError> {
    settings.check()?;
    let machine = Machine::here();
    let mut results = Results::new(machine, settings.clone());
    if settings.parts.contains(&Part::Sizes) {
        (results.footprints, results.services) = crates::sizes(settings, tree, out)?;
    }
    if settings.parts.contains(&Part::Minimum) {
        results.minimum = Some(minimum::sizes(tree, out)?);
    }
    if settings.parts.contains(&Part::Latency) {
        results.calls = calls::measure(settings)?;
    }
    Ok(results)
}
