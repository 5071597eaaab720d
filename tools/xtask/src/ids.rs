//! Compares the repository ids that our IDL front end gives with omniidl's: for the interoperability IDL and for the
//! files that Debian ships.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::place;

const SHIPPED: &str = "/usr/share/idl/omniORB";

/// What came of the comparison.
#[derive(Debug, Default)]
pub(crate) struct Report {
    equal: usize,
    ids: usize,
    unsupported: Vec<String>,
    wrong: Vec<String>,
}

impl Report {
    /// True if at least one file was compared and none differs.
    pub(crate) fn is_good(&self) -> bool {
        self.wrong.is_empty() && self.equal > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.unsupported {
            writeln!(f, "not supported yet: {line}")?;
        }
        for line in &self.wrong {
            writeln!(f, "FAIL {line}")?;
        }
        write!(
            f,
            "repository ids: {} in {} files equal omniidl's; {} files use what is not supported yet; {} differ",
            self.ids,
            self.equal,
            self.unsupported.len(),
            self.wrong.len()
        )
    }
}

/// Compares file by file.
pub(crate) fn compare() -> Result<Report> {
    let mut report = Report::default();
    for file in files()? {
        compare_file(&file, &mut report).with_context(|| file.display().to_string())?;
    }
    Ok(report)
}

fn files() -> Result<Vec<PathBuf>> {
    let root = place::root();
    let mut files = vec![
        root.join("tests/interop/idl/interop.idl"),
        root.join("tools/lab/idl/ttcp.idl"),
        root.join("tools/lab/idl/latency.idl"),
    ];
    for folder in [Path::new(SHIPPED).to_owned(), Path::new(SHIPPED).join("COS")] {
        let mut found: Vec<PathBuf> = fs::read_dir(&folder)
            .with_context(|| folder.display().to_string())?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "idl"))
            .collect();
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

fn compare_file(file: &Path, report: &mut Report) -> Result<()> {
    let Some(theirs) = theirs(file)? else {
        return Ok(()); // not correct by omniidl's own account, as some of the shipped files are when read alone
    };
    let ours = match ours(file)? {
        Ours::Ids(ids) => ids,
        Ours::Unsupported(why) => {
            report.unsupported.push(format!("{}: {why}", file.display()));
            return Ok(());
        }
        Ours::Refused(why) => {
            report.wrong.push(format!("{}: refused: {why}", file.display()));
            return Ok(());
        }
    };
    let differences: Vec<String> = theirs
        .difference(&ours)
        .map(|line| format!("omniidl has {line}"))
        .chain(ours.difference(&theirs).map(|line| format!("we have {line}")))
        .collect();
    if differences.is_empty() {
        report.equal += 1;
        report.ids += ours.len();
    } else {
        report.wrong.push(format!("{}: {}", file.display(), differences.join("; ")));
    }
    Ok(())
}

/// Lines `scoped-name repository-id` by omniidl and a back end of our own; `None` if it refuses the file.
fn theirs(file: &Path) -> Result<Option<BTreeSet<String>>> {
    let out = Command::new("omniidl")
        .arg(format!("-p{}", place::root().join("peers/omniorb").display()))
        .args(["-bids", &format!("-I{SHIPPED}"), &format!("-I{SHIPPED}/COS")])
        .arg(file)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .context("cannot start omniidl")?;
    if !out.status.success() {
        println!("omniidl refuses {}", file.display());
        return Ok(None);
    }
    Ok(Some(lines(&out.stdout)))
}

enum Ours {
    Ids(BTreeSet<String>),
    Unsupported(String),
    Refused(String),
}

/// The same lines by our front end; exit code 3 stands for "not supported yet" and nothing worse.
fn ours(file: &Path) -> Result<Ours> {
    let program = place::target().join("debug").join(format!("interop-ids{}", env::consts::EXE_SUFFIX));
    let mut command = Command::new(program);
    // As omniidl does for itself; some of the files ask for it.
    command.args(["-D__OMNIIDL__=1", &format!("-I{SHIPPED}"), &format!("-I{SHIPPED}/COS")]).arg(file);
    let out = command.output().context("cannot start interop-ids")?;
    let first = || String::from_utf8_lossy(&out.stderr).lines().next().unwrap_or("no reason given").to_owned();
    Ok(match out.status.code() {
        Some(0) => Ours::Ids(lines(&out.stdout)),
        Some(3) => Ours::Unsupported(first()),
        Some(1) => Ours::Refused(first()),
        _ => bail!("interop-ids ended with {}: {}", out.status, first()),
    })
}

fn lines(octets: &[u8]) -> BTreeSet<String> {
    String::from_utf8_lossy(octets).lines().map(str::to_owned).collect()
}
