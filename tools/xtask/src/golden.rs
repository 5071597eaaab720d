//! `cargo xtask golden`: records once more the GIOP messages that orb/giop is tested with, and the anys that orb/cdr is.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{interop, packages, place};

/// Builds the peers and hands over to their recorder.
pub(crate) fn run() -> Result<()> {
    packages::require(packages::OMNIORB)?;
    packages::require(packages::RECORDING)?;
    interop::build_omniorb()?;
    let mut command = Command::new("python3");
    command.arg("-B").arg(place::root().join("peers/omniorb/record.py")).arg("--peers").arg(place::omniorb());
    place::run(&mut command)?;
    record_anys()
}

/// Replaces the vectors; the comment above them stays.
fn record_anys() -> Result<()> {
    let output = Command::new(place::omniorb().join("anys")).output().context("the peer `anys` does not start")?;
    ensure!(output.status.success(), "the peer `anys` failed");
    let path = place::root().join("orb/cdr/tests/golden/anys.txt");
    let before = std::fs::read_to_string(&path)?;
    let mut text: String = before.split_inclusive('\n').take_while(|line| line.starts_with('#')).collect();
    text += std::str::from_utf8(&output.stdout)?;
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}
