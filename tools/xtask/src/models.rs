//! `cargo xtask models`: the models of how threads work together, under a model checker.
//!
//! They are built with `--cfg shuttle`, which makes `spandrel-sync` stand for the checker's locks and threads, in a target
//! folder of their own, so that an ordinary build is not thrown away for them.

use std::env;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::place;

/// The crates that have models.
const PACKAGES: [&str; 2] = ["spandrel-orb", "spandrel-poa"];

/// Runs each model `times` as often as it says.
pub(crate) fn run(times: u32) -> Result<()> {
    for package in PACKAGES {
        let output = tests(package, times).args(["--", "--list"]).output().context("cannot start Cargo")?;
        let listed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || !listed.contains(": test") {
            bail!("{package} has no models, or they do not build:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        place::run(&mut tests(package, times))?;
    }
    Ok(())
}

fn tests(package: &str, times: u32) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--package", package, "--lib", "models::"]).current_dir(place::root());
    command.env("RUSTFLAGS", "--cfg shuttle -D warnings");
    command.env("CARGO_TARGET_DIR", place::target().join("models"));
    // Some twenty times as fast, with overflow and debug assertions still checked.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "2");
    command.env("SPANDREL_MODELS_TIMES", times.to_string());
    command
}
