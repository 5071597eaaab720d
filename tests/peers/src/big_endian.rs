//! `cargo xtask big-endian [--all]`: tests on a big-endian machine, which is s390x under QEMU.
//!
//! The tests of the crates that encode numbers run there. With `--all` the tests of the ORB over loopback
//! run, too, and then our programs on that machine and on this one call each other, in both directions.
//! Emulation takes ten to thirty times as long. Random tests therefore draw fewer cases, and only tests that
//! depend on the byte order run ([`TESTS`] lists them).

use std::time::Instant;

use anyhow::{Result, bail};
use xtask::workspace;

use crate::builds;
use crate::s390x::{TARGET, cargo};
use crate::{interop, packages};

/// Crates whose tests all run there.
const CRATES: [&str; 5] = ["spandrel-message", "spandrel-xdr", "spandrel-cdr", "spandrel-giop", "spandrel-connection"];

/// Areas of `tests/orb`.
const AREAS: [&str; 4] = ["--test", "invocation", "--test", "servants"];
/// Tests of these areas that run there, by parts of their names: calls of every kind, and tests that read or
/// write octets themselves. The others are about threads, time and closed connections, which do not depend on
/// the byte order.
const TESTS: [&str; 9] = [
    "calls::",
    "code_sets::",
    "dispositions::",
    "dynamic::",
    "dynamic_servants::",
    "engines::",
    "forwarding::",
    "fragments::",
    "object_operations::",
];

/// Runs everything, or the tests of the crates alone, as a check does.
pub(crate) fn run(is_all: bool) -> Result<()> {
    packages::require(packages::BIG_ENDIAN)?;
    builds::require_target(TARGET)?;
    let mut failed = Vec::new();
    let mut tests = |what: &str, arguments: &[&str]| -> Result<()> {
        let started = Instant::now();
        let mut command = cargo("test");
        let done = command.args(["--quiet", "--no-fail-fast"]).args(arguments).status()?;
        println!(
            "{}  {what}: {:.1} s",
            if done.success() { "good" } else { "FAILED" },
            started.elapsed().as_secs_f64()
        );
        if !done.success() {
            failed.push(what.to_owned());
        }
        Ok(())
    };
    // Doc tests would be built one by one, and show nothing that the other tests do not show.
    let packages = CRATES.iter().flat_map(|package| ["--package", package]);
    tests(&CRATES.join(", "), &packages.chain(["--lib", "--tests"]).collect::<Vec<_>>())?;
    if is_all {
        tests("tests/orb", &[&["--package", "spandrel-orb-tests"], &AREAS[..], &["--"], &TESTS[..]].concat())?;
        workspace::run(cargo("build").args(["--quiet", "--package", "spandrel-interop"]))?;
        if !interop::between_orders()? {
            failed.push("calls between machines".to_owned());
        }
    }
    if !failed.is_empty() {
        bail!("failed on the big-endian machine: {}", failed.join(", "));
    }
    Ok(())
}
