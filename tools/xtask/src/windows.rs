//! `cargo xtask windows`: the tests of the crates that support Windows, built for it here and run by Wine.
//!
//! Cargo builds and calls them as always. This module chooses the crates and gives Cargo the target. Cargo's
//! runner is this program again ([`runner`]), which sets a deadline for each test program. The instance of
//! Wine that all of them share belongs to [`wine`]. Failures that Wine alone causes are listed in [`faults`]
//! and shown as such.

pub(crate) mod faults;
pub(crate) mod runner;
pub(crate) mod wine;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::windows::faults::FAULTS;
use crate::windows::wine::Wine;
use crate::{packages, workspace};

pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";

/// The most runs of a crate's tests.
const ATTEMPTS: u32 = 2;

/// The crates of the ORB that support Windows, beside everything in `net`, and the ORB's tests over sockets.
const ORB: [&str; 8] = [
    "spandrel-cdr",
    "spandrel-giop",
    "spandrel-connection",
    "spandrel-transport",
    "spandrel-orb",
    "spandrel-server",
    "spandrel-poa",
    "spandrel-orb-tests",
];

/// The crates to test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CrateSelection<'c> {
    /// All crates that support Windows.
    All,
    /// The crates in `net`, which call the system.
    Net,
    /// One crate, with or without the prefix `spandrel-`.
    Crate(&'c str),
}

/// Runs the tests of these crates.
pub(crate) fn run(selection: CrateSelection<'_>) -> Result<()> {
    packages::require(packages::WINDOWS)?;
    workspace::require_target(TARGET)?;
    let folder = std::path::absolute(workspace::target().join("windows"))?;
    fs::create_dir_all(&folder)?;
    let shim = build_shim(&folder)?;
    let wine = Wine::start(&folder)?;
    show_faults(&wine, &folder)?;
    let mut rows = Vec::new();
    for package in crates(selection)? {
        let report = folder.join(format!("{package}.report"));
        let started = Instant::now();
        // A busy machine delays Wine's server process for all programs at once, beyond the times that tests wait.
        let (mut attempts, mut has_passed) = (0, false);
        while attempts < ATTEMPTS && !has_passed {
            attempts += 1;
            fs::write(&report, "")?;
            let mut command = wine.command(&workspace::cargo_program());
            command
                .args(["test", "--no-fail-fast", "--target", TARGET, "--package", &package])
                .current_dir(workspace::root());
            // A debugger is not available, and the linker is twice as fast without debug information.
            command.env("CARGO_PROFILE_DEV_DEBUG", "none").env("WINEPATH", &shim);
            command.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", runner_words()?).env(runner::REPORT, &report);
            has_passed = command.status().context("cannot start Cargo")?.success();
        }
        rows.push(Row {
            package,
            has_passed,
            attempts,
            seconds: started.elapsed().as_secs_f64(),
            report: fs::read_to_string(&report)?,
        });
    }
    drop(wine);
    conclude(&rows)
}

/// The result of one crate.
#[derive(Debug)]
struct Row {
    package: String,
    has_passed: bool,
    attempts: u32,
    seconds: f64,
    report: String,
}

fn conclude(rows: &[Row]) -> Result<()> {
    println!("\nUnder Wine:");
    for Row { package, has_passed, attempts, seconds, report } in rows {
        let passed: u32 = report.lines().filter_map(|line| line.strip_prefix("passed ")?.parse::<u32>().ok()).sum();
        let word = if *has_passed { "good" } else { "FAILED" };
        let again = if *attempts > 1 { format!(", at attempt {attempts}") } else { String::new() };
        println!("{word:6}  {package}: {passed} tests passed in {seconds:.1} s{again}");
        for line in report.lines().filter(|line| !line.starts_with("passed ")) {
            println!("        {line}");
        }
    }
    let failed: Vec<_> = rows.iter().filter(|row| !row.has_passed).map(|row| row.package.as_str()).collect();
    if !failed.is_empty() {
        bail!("failed on Windows: {}", failed.join(", "));
    }
    Ok(())
}

/// The crates to test, lowest first.
fn crates(selection: CrateSelection<'_>) -> Result<Vec<String>> {
    let orb = match selection {
        CrateSelection::Crate(name) => return Ok(vec![format!("spandrel-{}", name.trim_start_matches("spandrel-"))]),
        CrateSelection::Net => &[][..],
        CrateSelection::All => &ORB,
    };
    let net = workspace::wing("net")?.into_iter().map(|member| member.name);
    Ok(net.chain(orb.iter().map(|&name| name.to_owned())).collect())
}

/// Builds the library that older releases of Wine lack, and returns its folder. Wine looks there last, so
/// that a library of its own comes first.
pub(crate) fn build_shim(folder: &Path) -> Result<PathBuf> {
    let shim = folder.join("shim");
    fs::create_dir_all(&shim)?;
    compile("bcryptprimitives.c", &["-shared", "-ladvapi32"], &shim.join("bcryptprimitives.dll"))?;
    Ok(shim)
}

/// Prints which of the listed faults this Wine has.
fn show_faults(wine: &Wine, folder: &Path) -> Result<()> {
    let program = folder.join("faults.exe");
    compile("faults.c", &["-lws2_32"], &program)?;
    let output = wine.output(&program)?;
    let lines: Vec<_> = output.iter().filter_map(|line| line.split_once(' ')).collect();
    for (name, state) in &lines {
        println!("Wine's fault {name} is {state}");
    }
    match FAULTS.iter().find(|fault| !lines.iter().any(|(name, _)| *name == fault.cause.name)) {
        Some(fault) => bail!("faults.c does not print {}", fault.cause.name),
        None => Ok(()),
    }
}

/// Compiles one of the programs in C.
fn compile(source: &str, options: &[&str], out: &Path) -> Result<()> {
    let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-s", "-o"]).arg(out);
    workspace::run(compiler.arg(workspace::root().join("peers/windows-shim").join(source)).args(options))
}

/// This program as Cargo's runner: words, which Cargo splits at white space.
fn runner_words() -> Result<String> {
    let program = env::current_exe()?;
    match program.to_str() {
        Some(text) if !text.contains(char::is_whitespace) => Ok(format!("{text} {}", runner::NAME)),
        _ => bail!("Cargo does not accept a runner with white space in its path: {}", program.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_selected_by_either_name_and_by_wing() {
        assert_eq!(crates(CrateSelection::Crate("ipc")).unwrap(), ["spandrel-ipc"]);
        assert_eq!(crates(CrateSelection::Crate("spandrel-ipc")).unwrap(), ["spandrel-ipc"]);
        let all = crates(CrateSelection::All).unwrap();
        assert!(["spandrel-ipc", "spandrel-sync", "spandrel-cdr"].iter().all(|name| all.iter().any(|n| n == name)));
    }
}
