//! `cargo xtask models`: models of concurrent algorithms, under model checkers.
//!
//! Models in modules called `models` are built with `--cfg shuttle`, which makes `spandrel-sync` provide the
//! checker's locks and threads. `shuttle` treats all atomics as sequentially consistent. Algorithms that rest
//! on weaker orders are modelled in modules called `weak`, with `--cfg loom`. A wrapper of the compiler adds the flag
//! for crates of the workspace alone. Cargo keeps what a wrapper has made beside an ordinary build, and both share
//! the packages of others, which a flag in `RUSTFLAGS` would build again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::{metadata, workspace};

/// The wings whose crates may have models.
const WINGS: [&str; 2] = ["net", "orb"];

/// A model checker, and the name of the modules with its models.
#[derive(Clone, Copy)]
struct Checker {
    name: &'static str,
    module: &'static str,
}

const SHUTTLE: Checker = Checker { name: "shuttle", module: "models" };
const LOOM: Checker = Checker { name: "loom", module: "weak" };

/// Runs each model `times` as often as it specifies. Cargo builds the crates together, each once.
pub(crate) fn run(times: u32) -> Result<()> {
    for checker in [SHUTTLE, LOOM] {
        let mut packages = Vec::new();
        for wing in WINGS {
            for member in metadata::wing(wing)? {
                if has_models(&member.path.join("src"), checker.module, false)? {
                    packages.push(member.name);
                }
            }
        }
        run_those_of(&packages, checker, times)?;
    }
    Ok(())
}

/// Whether a module of this name has a test. (`models` of `spandrel-sync` has none: it is the runner of the
/// others.)
fn has_models(folder: &Path, module: &str, below_models: bool) -> Result<bool> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let models = below_models || path.file_stem().is_some_and(|name| name == module);
        let is_present = match path.is_dir() {
            true => has_models(&path, module, models)?,
            false => models && fs::read_to_string(&path)?.contains("#[test]"),
        };
        if is_present {
            return Ok(true);
        }
    }
    Ok(false)
}

fn run_those_of(packages: &[String], checker: Checker, times: u32) -> Result<()> {
    let wrapper = compiler_wrapper(checker)?;
    let output =
        cargo_test(packages, checker, &wrapper, times).args(["--", "--list"]).output().context("cannot start Cargo")?;
    let listed = String::from_utf8_lossy(&output.stdout);
    // For each package, a line such as "27 tests, 0 benchmarks".
    let with_models =
        listed.lines().filter(|line| line.contains(" benchmarks") && !line.starts_with("0 tests")).count();
    if !output.status.success() || with_models != packages.len() {
        let messages = String::from_utf8_lossy(&output.stderr);
        bail!("one of {} has no {} models, or they do not build:\n{messages}", packages.join(", "), checker.name);
    }
    workspace::run(&mut cargo_test(packages, checker, &wrapper, times))
}

/// Writes the wrapper of the compiler for a checker. Its path tells Cargo which builds it has made, so that each
/// checker has one of its own.
fn compiler_wrapper(checker: Checker) -> Result<PathBuf> {
    let folder = std::path::absolute(workspace::target().join("models"))?;
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("rustc-{}", checker.name));
    let text = format!("#!/bin/sh\nexec \"$@\" --cfg {} --deny warnings\n", checker.name);
    if fs::read_to_string(&path).is_ok_and(|present| present == text) {
        return Ok(path);
    }
    fs::write(&path, text)?;
    workspace::run(Command::new("chmod").arg("755").arg(&path))?;
    Ok(path)
}

fn cargo_test(packages: &[String], checker: Checker, wrapper: &Path, times: u32) -> Command {
    let mut command = Command::new(workspace::cargo_program());
    command.args(["test", "--lib"]).args(packages.iter().flat_map(|package| ["--package", package]));
    command.current_dir(workspace::root()).env("RUSTC_WORKSPACE_WRAPPER", wrapper);
    // Some twenty times as fast, with overflow and debug assertions still checked. Packages of others stay as they were
    // built for the tests; the checkers are optimised there, too.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "2").args(["--config", "profile.dev.package.'*'.opt-level=0"]);
    command.env("SPANDREL_MODELS_TIMES", times.to_string()).arg(format!("{}::", checker.module));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_with_models_are_found() {
        let source = |name: &str| workspace::root().join(name).join("src");
        let has = |name: &str, checker: Checker| has_models(&source(name), checker.module, false).unwrap();
        for crate_with_models in ["net/ipc", "net/reactor", "orb/core", "orb/poa"] {
            assert!(has(crate_with_models, SHUTTLE), "{crate_with_models}");
        }
        assert!(has("net/ipc", LOOM));
        assert!(!has("orb/cdr", SHUTTLE) && !has("orb/core", LOOM));
    }
}
