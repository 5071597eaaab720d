//! The cost of the first command of a new user, `cargo run --release -- ttcp --quick`: the packages that it
//! builds.
//!
//! `.ci/run` compares the size of the executable with its bound, after it has built it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The greatest number of packages below the command line, ours and others, on Linux. The stubs of services are
/// a package of their own below the facade; files of sites are TOML (five packages), whose errors have line and column.
/// `bench rt` measures Real-time CORBA, a package of its own.
pub(crate) const MAX: usize = 109;
/// The package of the command line, and the line of the workspace that makes it the only one built without a
/// name.
const PACKAGE: &str = "spandrel-cli";
const DEFAULT_MEMBERS: &str = "default-members = [\"tools/cli\"]";

/// The packages below the command line with their versions, those of build scripts and macros included.
pub(crate) fn packages(root: &Path) -> Result<BTreeSet<String>> {
    let mut command = Command::new(workspace::cargo_program());
    command.args(["tree", "--package", PACKAGE, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    command.args(["--target", "x86_64-unknown-linux-gnu", "--offline"]).current_dir(root);
    let output = command.output().context("cannot start cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns a complaint for too many packages, and for other default members.
pub(crate) fn complaints(root: &Path, packages: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    if packages.len() > MAX {
        complaints.push(format!(
            "{} packages below {PACKAGE}, where {MAX} are allowed: move heavy parts into executables of their own \
             (`cargo tree -p {PACKAGE} -e normal,build`)",
            packages.len()
        ));
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
    if !manifest.lines().any(|line| line == DEFAULT_MEMBERS) {
        complaints.push(format!("Cargo.toml lacks `{DEFAULT_MEMBERS}`: the first command builds nothing else"));
    }
    Ok(complaints)
}

/// The packages of a list with `name vX.Y.Z` and remarks on each line, without the first one.
fn parse(tree: &str) -> BTreeSet<String> {
    let package = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    tree.lines().skip(1).filter_map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_once_for_each_version() {
        let tree = "spandrel-cli v0.1.0 (/w/tools/cli)\nsyn v2.0.1\n  \nsyn v3.0.9\nserde v1.0.1\nsyn v3.0.9 (*)\n\
                    serde_derive v1.0.1 (proc-macro)\nspandrel v0.1.0 (/w/spandrel)\n";
        let expected = ["serde v1.0.1", "serde_derive v1.0.1", "spandrel v0.1.0", "syn v2.0.1", "syn v3.0.9"];
        assert_eq!(Vec::from_iter(parse(tree)), expected);
    }
}
