//! `cargo xtask features [--all]`: the facade with fewer features, in each set that programs are likely to choose.

use std::process::Command;

use anyhow::{Context, Result};

use crate::place;

/// Sets of features of `spandrel` that must build without warnings. The first [`CHOSEN`] are checked for each change.
const SETS: [&str; 7] = ["", "server", "asynchronous,tls", "details,parse", "asynchronous", "log", "server,tls,log"];
/// How many sets are checked for each change.
const CHOSEN: usize = 4;

/// Checks all sets, or the chosen ones.
pub(crate) fn run(is_all: bool) -> Result<()> {
    for set in &SETS[..if is_all { SETS.len() } else { CHOSEN }] {
        println!("--no-default-features --features \"{set}\"");
        let mut check = Command::new(place::cargo_program());
        check.args([
            "check",
            "--quiet",
            "--package",
            "spandrel",
            "--no-default-features",
            "--locked",
            "--features",
            set,
        ]);
        // A target folder of its own, since other flags would have everything built anew.
        check.env("RUSTFLAGS", "-D warnings").env("CARGO_TARGET_DIR", place::target().join("features"));
        place::run(check.current_dir(place::root())).with_context(|| format!("spandrel with the features `{set}`"))?;
    }
    Ok(())
}
