//! Long runs of the suites with hostile peers and with faults. Attacks, faults and comparisons are defined in
//! those crates.

use anyhow::Result;
use xtask::workspace;

/// Runs `strength` times as many attacks on servers as a test does.
pub(crate) fn hostile(strength: u32) -> Result<()> {
    workspace::cargo(&["build", "--release", "--package", "spandrel-hostile"])?;
    let strength = strength.to_string();
    workspace::cargo(&["run", "--release", "--package", "spandrel-hostile", "--bin", "hostile", "--", &strength])
}

/// Ends connections and servers at every step of that many calls.
pub(crate) fn faults(rounds: u32) -> Result<()> {
    workspace::cargo(&["build", "--release", "--package", "spandrel-faults"])?;
    workspace::cargo(&[
        "run",
        "--release",
        "--package",
        "spandrel-faults",
        "--bin",
        "faults",
        "--",
        &rounds.to_string(),
    ])
}
