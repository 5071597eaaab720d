//! `cargo xtask big-endian [--all]`: a machine whose numbers begin with their highest octet, which is s390x under QEMU.
//!
//! The tests of the crates that lay numbers out run there; if all is wanted those of the ORB over loopback, too, and then programs of ours on
//! that machine and on this one call each other, both ways. Emulation takes ten to thirty times as long, so that random tests draw fewer
//! cases, and tests that say nothing about the order of octets are left out ([`TESTS`] has those that run).

use std::time::Instant;

use anyhow::{Result, bail};

use crate::s390x::{TARGET, cargo};
use crate::{interop, packages, place};

/// Crates whose tests all run there.
const CRATES: [&str; 3] = ["spandrel-message", "spandrel-cdr", "spandrel-giop"];

/// Areas of `tests/orb`.
const AREAS: [&str; 4] = ["--test", "invocation", "--test", "servants"];
/// Tests of these areas that run there, by parts of their names: calls of every kind, and those that read or write octets themselves. The others
/// are about threads, time and ends of connections, which do not depend on the order of octets.
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

/// Runs all of it, or the tests of the crates alone, for which a check has the time.
pub(crate) fn run(is_all: bool) -> Result<()> {
    packages::require(packages::BIG_ENDIAN)?;
    place::require_target(TARGET)?;
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
    for package in CRATES {
        // Examples in documentation would be built one by one, for nothing that the tests do not show.
        tests(package, &["--package", package, "--lib", "--tests"])?;
    }
    if is_all {
        tests("tests/orb", &[&["--package", "spandrel-orb-tests"], &AREAS[..], &["--"], &TESTS[..]].concat())?;
        place::run(cargo("build").args(["--quiet", "--package", "spandrel-interop"]))?;
        if !interop::between_orders()? {
            failed.push("calls between machines".to_owned());
        }
    }
    if !failed.is_empty() {
        bail!("these do not work where numbers begin with their highest octet: {}", failed.join(", "));
    }
    Ok(())
}
