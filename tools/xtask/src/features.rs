//! `cargo xtask features [--all]`: the facade with reduced features, in the sets that programs are likely to
//! choose.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

/// Sets of features of `spandrel` that must build without warnings. The first [`CHECKED`] are checked for
/// each change.
const SETS: [&str; 7] = ["", "server", "asynchronous,tls", "details,parse", "asynchronous", "log", "services,tls,log"];
/// The number of sets that are checked for each change.
const CHECKED: usize = 4;

/// Checks all sets, or the first [`CHECKED`].
pub(crate) fn run(is_all: bool) -> Result<()> {
    for set in &SETS[..if is_all { SETS.len() } else { CHECKED }] {
        println!("--no-default-features --features \"{set}\"");
        let mut clippy = Command::new(workspace::cargo_program());
        clippy.args(["clippy", "--quiet", "--package", "spandrel", "--no-default-features", "--locked"]);
        clippy.args(["--features", set, "--", "-D", "warnings"]);
        workspace::run(clippy.current_dir(workspace::root()))
            .with_context(|| format!("spandrel with the features `{set}`"))?;
    }
    Ok(())
}
