//! `cargo xtask windows`: the tests of the crates that support Windows, built for it here and run by Wine.
//!
//! Cargo builds and calls them as always. This module chooses the crates and gives Cargo the target. Cargo's
//! runner is this program again ([`runner`]), which sets a deadline for each test program. The instance of
//! Wine that all of them share belongs to [`wine`]. Failures that Wine alone causes are listed in [`faults`]
//! and shown as such.

pub(crate) mod faults;
mod report;
pub(crate) mod runner;
pub(crate) mod wine;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::{metadata, workspace};

use crate::builds;
use crate::packages;
use crate::windows::faults::FAULTS;
use crate::windows::report::{Entry, EntryKind, Report};
use crate::windows::wine::Wine;

/// The target of the compiler.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";

/// The most runs of a crate's tests; crates that have passed do not run again.
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
    builds::require_target(TARGET)?;
    let folder = std::path::absolute(workspace::target().join("windows"))?;
    fs::create_dir_all(&folder)?;
    let shim = build_shim(&folder)?;
    let wine = Wine::start(&folder)?;
    show_faults(&wine, &folder)?;
    let packages = crates(selection)?;
    let report = Report::new(&folder);
    let mut rows: Vec<_> = packages.iter().map(|package| Row::new(package)).collect();
    // Tests these packages in one call, so that Cargo builds each dependency once, with the features of all.
    let test = |targets: &[&str], packages: &[String]| -> Result<bool> {
        let mut command = wine.command(&workspace::cargo_program());
        command.args(["test", "--no-fail-fast", "--target", TARGET]).args(targets).current_dir(workspace::root());
        command.args(packages.iter().flat_map(|package| ["--package", package]));
        // A debugger is not available, and the linker is twice as fast without debug information.
        command.env("CARGO_PROFILE_DEV_DEBUG", "none").env("WINEPATH", &shim);
        command.env_remove("RUSTC_WORKSPACE_WRAPPER"); // the crates were linted for this machine
        command.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", runner_words()?).env(Report::VARIABLE, report.path());
        Ok(command.status().context("cannot start Cargo")?.success())
    };
    // A busy machine delays Wine's server process for all programs at once, beyond the times that tests wait.
    let mut has_good_documentation = false;
    for attempt in 1..=ATTEMPTS {
        let pending: Vec<_> = rows.iter_mut().filter(|row| !row.has_passed).collect();
        if pending.is_empty() {
            break;
        }
        report.clear()?;
        let names: Vec<_> = pending.iter().map(|row| row.package.clone()).collect();
        let has_passed = test(&[], &names)?;
        let entries = report.entries()?;
        if !has_passed && !entries.iter().any(|entry| entry.kind == EntryKind::Failed) {
            bail!("the tests for {TARGET}, or those of the documentation, do not build");
        }
        has_good_documentation |= has_passed && attempt == 1;
        for row in pending {
            row.record(attempt, &entries);
        }
    }
    // A test of the documentation that does not compile has no entry, and may have been hidden by another failure.
    has_good_documentation = has_good_documentation || test(&["--doc"], &packages)?;
    drop(wine);
    conclude(&rows)?;
    if !has_good_documentation {
        bail!("tests of the documentation failed on Windows");
    }
    Ok(())
}

/// The result of one crate.
#[derive(Debug)]
struct Row {
    package: String,
    has_passed: bool,
    attempts: u32,
    /// The number of tests that passed in the last attempt.
    passed: u32,
    /// Known faults, and listed faults that did not occur.
    notes: Vec<String>,
}

impl Row {
    fn new(package: &str) -> Self {
        Self { package: package.to_owned(), has_passed: false, attempts: 0, passed: 0, notes: Vec::new() }
    }

    /// Takes over the entries of an attempt that belong to this crate. A crate without any has not been tested.
    fn record(&mut self, attempt: u32, entries: &[Entry]) {
        self.attempts = attempt;
        self.passed = 0;
        self.notes.clear();
        let own: Vec<_> = entries.iter().filter(|entry| entry.package == self.package).collect();
        self.has_passed = !own.is_empty() && own.iter().all(|entry| entry.kind != EntryKind::Failed);
        for entry in own {
            match entry.kind {
                EntryKind::Passed => self.passed += entry.text.parse::<u32>().unwrap_or_default(),
                EntryKind::Note => self.notes.push(entry.text.clone()),
                EntryKind::Failed => {}
            }
        }
    }
}

fn conclude(rows: &[Row]) -> Result<()> {
    println!("\nUnder Wine:");
    for Row { package, has_passed, attempts, passed, notes } in rows {
        let word = if *has_passed { "good" } else { "FAILED" };
        let again = if *attempts > 1 { format!(", at attempt {attempts}") } else { String::new() };
        println!("{word:6}  {package}: {passed} tests passed{again}");
        for line in notes {
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
    let net = metadata::wing("net")?.into_iter().map(|member| member.name);
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
    fn a_crate_has_passed_if_it_was_tested_and_no_program_of_it_failed() {
        let entry =
            |package: &str, kind, text: &str| Entry { package: package.to_owned(), kind, text: text.to_owned() };
        let entries = [
            entry("one", EntryKind::Passed, "3"),
            entry("one", EntryKind::Passed, "4"),
            entry("one", EntryKind::Note, "known"),
            entry("two", EntryKind::Passed, "5"),
            entry("two", EntryKind::Failed, "program"),
        ];
        let record = |package| {
            let mut row = Row::new(package);
            row.record(1, &entries);
            (row.has_passed, row.passed, row.notes.len())
        };
        assert_eq!(record("one"), (true, 7, 1));
        assert_eq!(record("two"), (false, 5, 0));
        assert_eq!(record("three"), (false, 0, 0));
    }

    #[test]
    fn crates_are_selected_by_either_name_and_by_wing() {
        assert_eq!(crates(CrateSelection::Crate("ipc")).unwrap(), ["spandrel-ipc"]);
        assert_eq!(crates(CrateSelection::Crate("spandrel-ipc")).unwrap(), ["spandrel-ipc"]);
        let all = crates(CrateSelection::All).unwrap();
        assert!(["spandrel-ipc", "spandrel-sync", "spandrel-cdr"].iter().all(|name| all.iter().any(|n| n == name)));
    }
}
