//! `cargo xtask golden`: records anew the GIOP messages in the tests of orb/giop, the anys in those of
//! orb/cdr, and the values in those of tests/interop.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::workspace;

use crate::builds;
use crate::interop;
use crate::packages;

/// Builds the peers and runs their recorders.
pub(crate) fn run() -> Result<()> {
    packages::require(packages::OMNIORB)?;
    packages::require(packages::RECORDING)?;
    interop::build_omniorb()?;
    let mut command = Command::new("python3");
    command.arg("-B").arg(workspace::root().join("peers/omniorb/record.py")).arg("--peers").arg(builds::omniorb());
    workspace::run(&mut command)?;
    packages::require(packages::JACORB)?;
    interop::build_jacorb()?;
    let mut command = Command::new("python3");
    command.arg("-B").arg(workspace::root().join("peers/jacorb/record.py")).arg("--peers").arg(builds::jacorb());
    workspace::run(&mut command)?;
    record("anys", "orb/cdr/tests/golden/anys.txt")?;
    record("valuetypes", "tests/interop/golden/values.txt")
}

/// Replaces the vectors; the comment above them stays.
fn record(peer: &str, file: &str) -> Result<()> {
    let output = Command::new(builds::omniorb().join(peer)).output();
    let output = output.with_context(|| format!("the peer `{peer}` does not start"))?;
    ensure!(output.status.success(), "the peer `{peer}` failed");
    let path = workspace::root().join(file);
    let before = std::fs::read_to_string(&path)?;
    let mut text: String = before.split_inclusive('\n').take_while(|line| line.starts_with('#')).collect();
    text += std::str::from_utf8(&output.stdout)?;
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}
