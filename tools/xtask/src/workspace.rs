//! Paths of the repository, and calls of Cargo.

use std::env;
use std::fs;
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

/// A crate of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
}

/// The crates of a wing, sorted by folder name.
pub(crate) fn wing(name: &str) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    for entry in fs::read_dir(root().join(name))? {
        let folder = entry?.path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue }; // not a crate yet
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let name = name.with_context(|| format!("{}/Cargo.toml has no package name", folder.display()))?.to_owned();
        members.push(Member { name, folder });
    }
    members.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(members)
}

/// The build folder of the omniORB peers.
pub(crate) fn omniorb() -> PathBuf {
    target().join("interop/omniorb")
}

/// The build folder of the JacORB peers.
pub(crate) fn jacorb() -> PathBuf {
    target().join("interop/jacorb")
}

/// Cargo, of the toolchain that runs this program.
pub(crate) fn cargo_program() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Checks that the toolchain in use has the standard library for this target.
pub(crate) fn require_target(target: &str) -> Result<()> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(root())
        .output()
        .context("cannot start rustc")?;
    if Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir() {
        return Ok(());
    }
    run(Command::new("rustup").args(["target", "add", target]).current_dir(root()))
}

/// Runs Cargo at the root.
pub(crate) fn cargo(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(cargo_program());
    command.args(arguments).current_dir(root());
    run(&mut command)
}

/// Runs a command with its output shown; an error names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_the_name_in_its_manifest() {
        let orb = wing("orb").unwrap();
        let core = orb.iter().find(|member| member.folder.ends_with("core")).unwrap();
        assert_eq!(core.name, "spandrel-orb");
    }
}
