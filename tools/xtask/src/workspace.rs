//! Paths of the repository, and calls of Cargo.

use std::env;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

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

/// A crate of the workspace.
#[derive(Debug)]
pub struct Member {
    /// The name of its package.
    pub name: String,
    /// Its folder on this machine.
    pub folder: PathBuf,
}

/// The crates of a wing, sorted by folder name.
pub fn wing(name: &str) -> Result<Vec<Member>> {
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
pub fn omniorb() -> PathBuf {
    target().join("interop/omniorb")
}

/// The build folder of the JacORB peers.
pub fn jacorb() -> PathBuf {
    target().join("interop/jacorb")
}

/// Cargo, of the toolchain that runs this program.
pub fn cargo_program() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Checks that the toolchain in use has the standard library for this target.
pub fn require_target(target: &str) -> Result<()> {
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

/// Runs a command with its output shown; an error names it.
pub fn run(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(())
}

/// Runs as many items at once as there are processors. After a failure no further item is started.
pub fn run_in_parallel<T: Sync>(items: &[T], run: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let remaining = Mutex::new(items.iter());
    let run_remaining = || -> Result<()> {
        loop {
            let Some(item) = remaining.lock().expect("no holder panics").next() else { return Ok(()) };
            if let Err(error) = run(item) {
                *remaining.lock().expect("no holder panics") = [].iter();
                return Err(error);
            }
        }
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(run_remaining)).collect();
        let results: Vec<_> =
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect();
        results.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn each_item_runs_once_and_after_a_failure_none_is_started() {
        let runs = AtomicU32::new(0);
        let count = |item: &u32| {
            let nth = runs.fetch_add(1, Relaxed);
            if *item == 0 { bail!("item {nth} failed") } else { Ok(()) }
        };
        run_in_parallel(&[1; 100], count).unwrap();
        assert_eq!(runs.swap(0, Relaxed), 100);
        run_in_parallel(&[0; 100], count).unwrap_err();
        assert!(runs.into_inner() <= thread::available_parallelism().unwrap().get() as u32);
    }

    #[test]
    fn a_member_has_the_name_in_its_manifest() {
        let orb = wing("orb").unwrap();
        let core = orb.iter().find(|member| member.folder.ends_with("core")).unwrap();
        assert_eq!(core.name, "spandrel-orb");
    }
}
