//! Long runs of the suites with hostile peers and with faults. Attacks, faults and comparisons are defined in those crates.

use anyhow::Result;

use crate::place;

/// Lets servers be attacked `strength` times as much as a test does.
pub(crate) fn hostile(strength: u32) -> Result<()> {
    place::cargo(&["build", "--release", "--package", "spandrel-hostile"])?;
    let strength = strength.to_string();
    place::cargo(&["run", "--release", "--package", "spandrel-hostile", "--bin", "hostile", "--", &strength])
}

/// Ends connections and servers at every step of so many calls.
pub(crate) fn faults(rounds: u32) -> Result<()> {
    place::cargo(&["build", "--release", "--package", "spandrel-faults"])?;
    place::cargo(&["run", "--release", "--package", "spandrel-faults", "--bin", "faults", "--", &rounds.to_string()])
}
