//! `cargo xtask idl`: a comparison of our IDL compiler and omniidl on the same files, line by line.
//!
//! The files are those of Debian packages, and ours, among them one for each production of the grammar.
//! `__OMNIIDL__` is defined on both sides: deviations of omniidl from the standard stand behind an `#ifndef`
//! of it, with the reason.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use xtask::workspace::{self, build_as_for_tests};

use crate::compile;
use crate::compiler::{SHIPPED, compiler, shipped};
use crate::packages;

/// Folders, of packages and of ours, searched recursively.
const CORPUS: &[&str] = &[
    "/usr/share/idl",
    "/usr/lib/omniorb/examples",
    "/usr/share/doc/tcl-combat/examples",
    "orb/idl/tests/idl/good",
    "tests/interop/idl",
    "tools/lab/idl",
    "orb/bulk/idl",
    "examples",
];

/// The folders of files that the examples include from elsewhere.
const INCLUDED: &[&str] = &["examples/bank", "orb/bulk/idl"];

fn included() -> impl Iterator<Item = String> {
    INCLUDED.iter().map(|folder| format!("-I{}", workspace::root().join(folder).display()))
}

/// The result of the comparison.
#[derive(Debug, Default)]
struct Report {
    /// Files that both compilers read alike.
    equal: Vec<PathBuf>,
    lines: usize,
    /// Files that both compilers reject. Some files of packages include files that no package has (`IOP.idl`,
    /// `CORBA::Environment`). `Security.idl`, which the other security files include, gives a member the name
    /// of its struct.
    rejected: Vec<PathBuf>,
    differences: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.rejected {
            writeln!(f, "rejected by both: {}", file.display())?;
        }
        for line in &self.differences {
            writeln!(f, "FAIL {line}")?;
        }
        write!(
            f,
            "IDL: {} definitions in {} files agree with omniidl; both reject {} files; {} differ",
            self.lines,
            self.equal.len(),
            self.rejected.len(),
            self.differences.len()
        )
    }
}

/// Compares file by file. With `compiles`, the generated Rust of the files is compiled, too. An error if a
/// file differs or does not compile.
pub(crate) fn run(compiles: bool) -> Result<()> {
    packages::require(packages::IDL)?;
    workspace::run(&mut build_as_for_tests(&["spandrel"]))?;
    let mut report = Report::default();
    for folder in CORPUS {
        let files = idl_files(&workspace::root().join(folder))?;
        if files.is_empty() {
            bail!("no IDL files in {folder}");
        }
        for file in files {
            compare_file(&file, &mut report).with_context(|| file.display().to_string())?;
        }
    }
    println!("{report}");
    if !report.differences.is_empty() {
        bail!("the IDL compilers disagree: see above");
    }
    if compiles { compile::run(&report.equal) } else { Ok(()) }
}

/// The IDL files of a folder and the folders in it, in the order of their names.
pub(crate) fn idl_files(folder: &Path) -> Result<Vec<PathBuf>> {
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
    let (omniidl_lines, spandrel_lines) = match (omniidl_lines(file)?, spandrel_lines(file)?) {
        (Ok(omniidl_lines), Ok(spandrel_lines)) => (omniidl_lines, spandrel_lines),
        (Err(_), Err(_)) if !file.starts_with(workspace::root()) => {
            report.rejected.push(file.to_owned());
            return Ok(());
        }
        (Err(reason), Ok(_)) => {
            report.differences.push(format!("{}: rejected by omniidl: {reason}", file.display()));
            return Ok(());
        }
        (_, Err(reason)) => {
            report.differences.push(format!("{}: rejected by spandrel: {reason}", file.display()));
            return Ok(());
        }
    };
    let differences: Vec<String> = omniidl_lines
        .difference(&spandrel_lines)
        .map(|line| format!("\n  omniidl has  {line}"))
        .chain(spandrel_lines.difference(&omniidl_lines).map(|line| format!("\n  spandrel has {line}")))
        .collect();
    if differences.is_empty() {
        report.equal.push(file.to_owned());
        report.lines += spandrel_lines.len();
    } else {
        report.differences.push(format!("{}:{}", file.display(), differences.concat()));
    }
    Ok(())
}

/// The lines of a model, or the first line of an error.
pub(crate) type Lines = std::result::Result<BTreeSet<String>, String>;

/// The lines of omniidl with a back end of our own.
pub(crate) fn omniidl_lines(file: &Path) -> Result<Lines> {
    let mut command = Command::new("omniidl");
    command
        .arg(format!("-p{}", workspace::root().join("peers/omniorb").display()))
        .args(["-bmodel", &format!("-I{SHIPPED}"), &format!("-I{SHIPPED}/COS")])
        .args(included())
        .arg(file)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let out = command.output().context("cannot start omniidl")?;
    if out.status.code().is_none() {
        return Ok(Err("it crashed".to_owned())); // it crashes when some files are not found
    }
    lines(&out)
}

/// The lines of our front end.
pub(crate) fn spandrel_lines(file: &Path) -> Result<Lines> {
    lines(
        &compiler()
            .args(["--dump", "text"])
            .args(shipped())
            .args(included())
            .arg(file)
            .output()
            .context("cannot start spandrel")?,
    )
}

fn lines(out: &Output) -> Result<Lines> {
    let errors = String::from_utf8_lossy(&out.stderr);
    match out.status.code() {
        Some(0) => {
            let text = str::from_utf8(&out.stdout).context("not UTF-8")?;
            Ok(Ok(text.lines().map(str::to_owned).collect()))
        }
        // A failure of the back end is no verdict on the file.
        Some(1) if !errors.contains("Traceback") => {
            let is_error =
                |line: &&str| !line.to_ascii_lowercase().starts_with("warning") && !line.contains(": Warning");
            Ok(Err(errors.lines().find(is_error).unwrap_or("no reason given").to_owned()))
        }
        _ => bail!("ended with {}: {errors}", out.status),
    }
}
