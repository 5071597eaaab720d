//! `cargo xtask models`: the models of how threads work together, under a model checker.
//!
//! They are built with `--cfg shuttle`, which makes `spandrel-sync` stand for the checker's locks and threads, in a target
//! folder of their own, so that an ordinary build is not thrown away for them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::place;

/// The wings whose crates may have models.
const WINGS: [&str; 2] = ["net", "orb"];

/// Runs each model `times` as often as it says.
pub(crate) fn run(times: u32) -> Result<()> {
    for wing in WINGS {
        for member in place::wing(wing)? {
            if has_models(&member.folder.join("src"), false)? {
                run_those_of(&member.name, times)?;
            }
        }
    }
    Ok(())
}

/// Whether a test stands in a module `models` of these sources. (That of `spandrel-sync` has none: it runs others'.)
fn has_models(folder: &Path, below_models: bool) -> Result<bool> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let models = below_models || path.file_stem().is_some_and(|name| name == "models");
        let found = match path.is_dir() {
            true => has_models(&path, models)?,
            false => models && fs::read_to_string(&path)?.contains("#[test]"),
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn run_those_of(package: &str, times: u32) -> Result<()> {
    let output = cargo_test(package, times).args(["--", "--list"]).output().context("cannot start Cargo")?;
    let listed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !listed.contains(": test") {
        bail!("{package} has no models, or they do not build:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    place::run(&mut cargo_test(package, times))
}

fn cargo_test(package: &str, times: u32) -> Command {
    let mut command = Command::new(place::cargo_program());
    command.args(["test", "--package", package, "--lib", "models::"]).current_dir(place::root());
    command.env("RUSTFLAGS", "--cfg shuttle -D warnings");
    command.env("CARGO_TARGET_DIR", place::target().join("models"));
    // Some twenty times as fast, with overflow and debug assertions still checked.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "2");
    command.env("SPANDREL_MODELS_TIMES", times.to_string());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_where_there_are_some() {
        let source = |name: &str| place::root().join(name).join("src");
        assert!(has_models(&source("orb/core"), false).unwrap());
        assert!(has_models(&source("orb/poa"), false).unwrap());
        assert!(!has_models(&source("orb/cdr"), false).unwrap());
    }
}
