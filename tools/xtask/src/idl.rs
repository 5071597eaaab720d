//! `cargo xtask idl`: what our IDL compiler and omniidl understand of the same files, line by line.
//!
//! The files are those that Debian packages ship, and ours, among them one for each production of the grammar. Both sides
//! see `__OMNIIDL__` defined: what omniidl departs from the standard in stands behind an `#ifndef` of it, with the reason.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use crate::compiler::{SHIPPED, compiler, shipped};
use crate::{compile, packages, place};

/// Folders, of packages and of ours, searched to any depth.
const CORPUS: &[&str] = &[
    "/usr/share/idl",
    "/usr/lib/omniorb/examples",
    "/usr/share/doc/tcl-combat/examples",
    "orb/idl/tests/idl/good",
    "tests/interop/idl",
    "tools/lab/idl",
    "examples",
];

/// What came of the comparison.
#[derive(Debug, Default)]
struct Report {
    /// Those that both understand alike.
    equal: Vec<PathBuf>,
    lines: usize,
    /// Not correct by either's account. Of the shipped files, some include what nobody ships (`IOP.idl`, `CORBA::Environment`),
    /// and `Security.idl`, which the other security files include, gives a member the name of its struct.
    refused: Vec<PathBuf>,
    wrong: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.refused {
            writeln!(f, "refused by both: {}", file.display())?;
        }
        for line in &self.wrong {
            writeln!(f, "FAIL {line}")?;
        }
        write!(
            f,
            "IDL: {} definitions in {} files are omniidl's; both refuse {} files; {} differ",
            self.lines,
            self.equal.len(),
            self.refused.len(),
            self.wrong.len()
        )
    }
}

/// Compares file by file, and with `compiles` has Rust of them compiled; an error if any differs, or does not compile.
pub(crate) fn run(compiles: bool) -> Result<()> {
    packages::require(packages::IDL)?;
    place::cargo(&["build", "--quiet", "--package", "spandrel-cli"])?;
    let mut report = Report::default();
    for folder in CORPUS {
        let files = idl_files(&place::root().join(folder))?;
        if files.is_empty() {
            bail!("there is no IDL in {folder}");
        }
        for file in files {
            compare_file(&file, &mut report).with_context(|| file.display().to_string())?;
        }
    }
    println!("{report}");
    if !report.wrong.is_empty() {
        bail!("the IDL compilers disagree: see above");
    }
    if compiles { compile::run(&report.equal) } else { Ok(()) }
}

fn idl_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.append(&mut idl_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "idl") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn compare_file(file: &Path, report: &mut Report) -> Result<()> {
    let (theirs, ours) = match (theirs(file)?, ours(file)?) {
        (Ok(theirs), Ok(ours)) => (theirs, ours),
        (Err(_), Err(_)) if !file.starts_with(place::root()) => {
            report.refused.push(file.to_owned());
            return Ok(());
        }
        (Err(why), Ok(_)) => {
            report.wrong.push(format!("{}: refused by omniidl: {why}", file.display()));
            return Ok(());
        }
        (_, Err(why)) => {
            report.wrong.push(format!("{}: refused by us: {why}", file.display()));
            return Ok(());
        }
    };
    let differences: Vec<String> = theirs
        .difference(&ours)
        .map(|line| format!("\n  omniidl has {line}"))
        .chain(ours.difference(&theirs).map(|line| format!("\n  we have     {line}")))
        .collect();
    if differences.is_empty() {
        report.equal.push(file.to_owned());
        report.lines += ours.len();
    } else {
        report.wrong.push(format!("{}:{}", file.display(), differences.concat()));
    }
    Ok(())
}

/// The lines of a model, or the first words of a refusal.
type Lines = std::result::Result<BTreeSet<String>, String>;

/// By omniidl and a back end of our own.
fn theirs(file: &Path) -> Result<Lines> {
    let mut command = Command::new("omniidl");
    command
        .arg(format!("-p{}", place::root().join("peers/omniorb").display()))
        .args(["-bmodel", &format!("-I{SHIPPED}"), &format!("-I{SHIPPED}/COS")])
        .arg(file)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let out = command.output().context("cannot start omniidl")?;
    if out.status.code().is_none() {
        return Ok(Err("it crashed".to_owned())); // as it does when some files are not found
    }
    lines(&out)
}

/// By our front end.
fn ours(file: &Path) -> Result<Lines> {
    lines(&compiler().args(["--dump", "text"]).args(shipped()).arg(file).output().context("cannot start spandrel")?)
}

fn lines(out: &Output) -> Result<Lines> {
    let complaint = String::from_utf8_lossy(&out.stderr);
    match out.status.code() {
        Some(0) => {
            let text = str::from_utf8(&out.stdout).context("not UTF-8")?;
            Ok(Ok(text.lines().map(str::to_owned).collect()))
        }
        // A back end that fails is no opinion.
        Some(1) if !complaint.contains("Traceback") => {
            let is_error =
                |line: &&str| !line.to_ascii_lowercase().starts_with("warning") && !line.contains(": Warning");
            Ok(Err(complaint.lines().find(is_error).unwrap_or("no reason given").to_owned()))
        }
        _ => bail!("ended with {}: {complaint}", out.status),
    }
}
