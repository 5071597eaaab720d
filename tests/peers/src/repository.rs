//! `cargo xtask idl --repository`: IDL files of packages into an interface repository and out of it again.
//!
//! Each file is entered into an empty repository and printed. omniidl compiles the printed IDL; its lines are those of our
//! compiler for the file itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use xtask::workspace::{self, build_as_for_tests};

use crate::bounded::Bounded;
use crate::compiler::{compiler, shipped};
use crate::idl::{idl_files, omniidl_lines, spandrel_lines};
use crate::packages;

/// The folder with the files, searched recursively.
const FILES: &str = "/usr/share/idl";
/// The time in which a repository must be ready.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The result for one file.
enum Outcome {
    /// The number of definitions that agree.
    Equal(usize),
    /// Both compilers reject the file, for example because it includes a file that no package has.
    Rejected,
    Different(String),
}

/// Checks all files. An error if one of them cannot be entered, is printed otherwise, or does not compile again.
pub(crate) fn run() -> Result<()> {
    packages::require(packages::IDL)?;
    workspace::run(&mut build_as_for_tests(&["spandrel", "spandrel-repository"]))?;
    let (mut files, mut lines, mut rejected, mut different) = (0, 0, 0, 0);
    for file in idl_files(Path::new(FILES))? {
        match check(&file).with_context(|| file.display().to_string())? {
            Outcome::Equal(equal) => {
                files += 1;
                lines += equal;
            }
            Outcome::Rejected => {
                rejected += 1;
                println!("rejected by both: {}", file.display());
            }
            Outcome::Different(reason) => {
                different += 1;
                println!("FAIL {}: {reason}", file.display());
            }
        }
    }
    ensure!(files > 0, "no IDL file in {FILES} could be entered");
    let total = format!(
        "interface repository: {lines} definitions of {files} files are the same after printing; \
         both compilers reject {rejected} files; {different} differ"
    );
    if different > 0 {
        bail!("{total}");
    }
    println!("{total}");
    Ok(())
}

fn check(file: &Path) -> Result<Outcome> {
    let expected = match spandrel_lines(file)? {
        Ok(lines) => whole(lines),
        Err(_) if omniidl_lines(file)?.is_err() => return Ok(Outcome::Rejected),
        Err(reason) => return Ok(Outcome::Different(format!("rejected by spandrel: {reason}"))),
    };
    let printed = match print(file)? {
        Ok(printed) => printed,
        Err(reason) => return Ok(Outcome::Different(reason)),
    };
    let found = match omniidl_lines(&printed)? {
        Ok(lines) => whole(lines),
        Err(reason) => {
            return Ok(Outcome::Different(format!("omniidl rejects the printed {}: {reason}", printed.display())));
        }
    };
    if found == expected {
        return Ok(Outcome::Equal(found.len()));
    }
    let lost = expected.difference(&found).map(|line| format!("\n  entered {line}"));
    let other = found.difference(&expected).map(|line| format!("\n  printed {line}"));
    Ok(Outcome::Different(lost.chain(other).collect()))
}

/// Lines of definitions. A repository has no forward declarations: an interface that is not defined is an empty one in it.
fn whole(lines: BTreeSet<String>) -> BTreeSet<String> {
    lines.into_iter().map(|line| line.strip_suffix(" forward").unwrap_or(&line).to_owned()).collect()
}

/// Enters a file into an empty repository, and prints its contents into a file; or the reason why that fails.
fn print(file: &Path) -> Result<std::result::Result<PathBuf, String>> {
    let folder = workspace::target().join("idl-repository");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut command = Command::new(workspace::target().join("debug/spandrel-repository"));
    command.arg("--data").arg(folder.join("data")).args(["--listen", "iiop://127.0.0.1:0"]);
    let service = Bounded::start("spandrel-repository", &mut command)?;
    let ready = service.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
    let url = ready.strip_prefix("ready: InterfaceRepository ");
    let url = url.with_context(|| format!("not ready: {}", service.stderr()))?;
    let run = |command: &mut Command| {
        let output = command.output().context("cannot start spandrel")?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::Ok(if output.status.success() { Ok(output.stdout) } else { Err(errors) })
    };
    if let Err(errors) = run(compiler().arg(format!("--to-repository={url}")).args(shipped()).arg(file))? {
        return Ok(Err(format!("it cannot be entered: {errors}")));
    }
    let text = match run(compiler().arg(format!("--from-repository={url}")))? {
        Ok(text) => text,
        Err(errors) => return Ok(Err(format!("it cannot be printed: {errors}"))),
    };
    let printed = folder.join("printed.idl");
    fs::write(&printed, text).with_context(|| printed.display().to_string())?;
    Ok(Ok(printed))
}
