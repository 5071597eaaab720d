//! Paths of the repository, and calls of Cargo.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root folder of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("tools/xtask lies two below the root").to_owned()
}

/// The folder that Cargo builds into.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, of the toolchain that runs this program.
pub fn cargo_program() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// The files below a folder, in the order of their paths.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() { files.extend(self::files(&path)?) } else { files.push(path) }
    }
    Ok(files)
}

/// Whether a file has sources in Rust.
pub fn is_rust(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "rs")
}

/// Runs Cargo at the root.
pub fn cargo(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(cargo_program());
    command.args(arguments).current_dir(root());
    run(&mut command)
}

/// A program that `cargo install` compiles with these options, once for each version, into the target folder.
pub fn cargo_tool(name: &str, version: &str, options: &[&str]) -> Result<PathBuf> {
    let root = target().join("tools");
    let program = root.join("bin").join(name);
    // Cargo's own list; not every program has an option that prints its version.
    let installed = fs::read_to_string(root.join(".crates.toml")).unwrap_or_default();
    if installed.contains(&format!("\"{name} {version} (")) && program.exists() {
        return Ok(program);
    }
    let mut command = Command::new(cargo_program());
    command.args(["install", name, "--locked", "--version", version]).args(options).arg("--root").arg(&root);
    command.env("CARGO_TARGET_DIR", root.join("build")).current_dir(self::root());
    run(&mut command)?;
    Ok(program)
}

/// A command that builds programs, and the example `bank-server`, as `cargo test --workspace` does.
///
/// Cargo compiles a package once for each set of features. Those of this build are of the whole workspace with the
/// dependencies of tests, which Cargo includes because of the example. If fewer packages were selected, it would compile
/// most dependencies once more.
pub fn build_as_for_tests(programs: &[&str]) -> Command {
    let mut command = Command::new(cargo_program());
    command.args(["build", "--quiet", "--workspace", "--example", "bank-server"]).current_dir(root());
    command.args(programs.iter().flat_map(|program| ["--bin", program]));
    command
}

/// Runs a command with its output shown; an error names it.
pub fn run(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}
