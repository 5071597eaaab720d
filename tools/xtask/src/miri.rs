//! `cargo xtask miri`: the tests of what handles octets, interpreted by Miri, which finds undefined behaviour.
//!
//! On this machine, and on one whose numbers begin with their highest octet. Interpreting takes a thousand times as long, so that random
//! tests draw few cases, and the tests themselves leave out what only repeats.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::place;
use crate::s390x::TARGET as BIG_ENDIAN;

/// Crates whose tests Miri runs, and what of each is run in a check: the module with `unsafe`, and who calls it. Nothing stands for all
/// tests within a crate.
const CRATES: [(&str, &str); 3] =
    [("spandrel-cdr", "engine"), ("spandrel-giop", ""), ("spandrel-message", "receive_buffer")];

/// Runs the tests: all of them, or those that a check has the time for.
pub(crate) fn run(is_all: bool) -> Result<()> {
    require()?;
    for (package, filter) in CRATES {
        test(package, (!is_all).then_some(filter), None)?;
    }
    test("spandrel-cdr", (!is_all).then_some("engine"), Some(BIG_ENDIAN))
}

/// The tests of a crate: all, or those within it that have this in their names.
fn test(package: &str, only: Option<&str>, target: Option<&str>) -> Result<()> {
    println!("{package} {} {}", only.unwrap_or("with all tests"), target.unwrap_or("on this machine"));
    let mut command = miri();
    command.args(["test", "--quiet", "--package", package, "--lib"]);
    if only.is_none() {
        command.arg("--tests");
    }
    if let Some(target) = target {
        command.args(["--target", target]);
    }
    command.arg("--").args(only);
    // The clock is read, and files of regressions are looked for.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", if only.is_none() { "8" } else { "4" });
    place::run(&mut command).with_context(|| format!("{package} does not pass under Miri"))
}

fn miri() -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "miri"]).current_dir(place::root());
    // Its own, or it would be this toolchain's.
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
