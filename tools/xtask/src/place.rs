//! Where things lie, and how Cargo is called.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("tools/xtask lies two below the root").to_owned()
}

/// The folder that Cargo builds into.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Where the omniORB peers are built.
pub(crate) fn omniorb() -> PathBuf {
    target().join("interop/omniorb")
}

/// Cargo, of the toolchain that runs this program.
pub(crate) fn cargo_program() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Runs Cargo at the root.
pub(crate) fn cargo(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(cargo_program());
    command.args(arguments).current_dir(root());
    run(&mut command)
}

/// Runs a command that speaks for itself; an error names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}
