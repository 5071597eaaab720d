//! `cargo xtask golden`: records the GIOP messages that orb/giop is tested with once more.

use std::process::Command;

use anyhow::Result;

use crate::{interop, packages, place};

/// Builds the peers and hands over to their recorder.
pub(crate) fn run() -> Result<()> {
    packages::require(packages::OMNIORB)?;
    packages::require(packages::RECORDING)?;
    interop::build_omniorb()?;
    let mut command = Command::new("python3");
    command.arg("-B").arg(place::root().join("peers/omniorb/record.py")).arg("--peers").arg(place::omniorb());
    place::run(&mut command)
}
