//! `cargo xtask miri`: the tests of code that handles octets, interpreted by Miri, which finds undefined
//! behaviour.
//!
//! They run for this machine and for a big-endian one. Interpretation takes a thousand times as long. Random
//! tests therefore draw few cases, and the tests leave out repetitions themselves.

use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::workspace;

use crate::parallel::run_in_parallel;

/// The target of the big-endian machine.
const BIG_ENDIAN: &str = "s390x-unknown-linux-gnu";

/// Crates whose tests Miri runs, the machine if it is not this one, and the part of the tests that runs in a
/// check: the modules with `unsafe` and their callers, short ones, or all (none named). The longest come first.
const CRATES: [(&str, Option<&str>, &[&str]); 6] = [
    ("spandrel-cdr", Some(BIG_ENDIAN), &["engine"]),
    ("spandrel-cdr", None, &["engine"]),
    (
        "spandrel-giop",
        None,
        &["bidirectional::", "datagram::", "detail::", "local_address::", "osf_registry::", "reply::"],
    ),
    ("spandrel-connection", None, &[]),
    ("spandrel-message", None, &["receive_buffer"]),
    ("spandrel-configurator", None, &["plugin::"]),
];

/// Crates of which even `--all` runs that part alone: their other tests call the system and load libraries.
const IN_PART: [&str; 1] = ["spandrel-configurator"];

/// Runs all tests, or those of a check. The interpreter runs all threads of a program on one processor, so
/// that several crates are interpreted at once.
pub(crate) fn run(is_all: bool) -> Result<()> {
    require()?;
    for target in [&[][..], &["--target", BIG_ENDIAN]] {
        workspace::run(miri().arg("setup").args(target))?;
    }
    run_in_parallel(&CRATES, |(package, target, chosen)| {
        test(package, (!is_all || IN_PART.contains(package)).then_some(chosen), *target)
    })
}

/// Runs the tests of a crate: all, or those with one of `only` in their names.
fn test(package: &str, only: Option<&[&str]>, target: Option<&str>) -> Result<()> {
    println!(
        "{package} {} {}",
        only.map_or("with all tests".to_owned(), |words| words.join(" ")),
        target.unwrap_or("on this machine")
    );
    let mut command = miri();
    command.args(["test", "--quiet", "--package", package, "--lib"]);
    if only.is_none() {
        command.arg("--tests");
    }
    if let Some(target) = target {
        command.args(["--target", target]);
    }
    command.arg("--").args(only.unwrap_or_default());
    // The tests read the clock, and proptest looks for files of regressions.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", if only.is_none() { "8" } else { "4" });
    workspace::run(&mut command).with_context(|| format!("{package} does not pass under Miri"))
}

fn miri() -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri"]).current_dir(workspace::root());
    // Cargo of that toolchain; otherwise the present toolchain's would run.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    command
}

fn require() -> Result<()> {
    if miri().arg("--version").output().is_ok_and(|out| out.status.success()) {
        return Ok(());
    }
    let mut add = Command::new("rustup");
    add.args(["component", "add", "--toolchain", "nightly", "miri", "rust-src"]);
    if !add.status().is_ok_and(|status| status.success()) {
        bail!("Miri is missing: `rustup toolchain install nightly --component miri,rust-src`");
    }
    Ok(())
}
