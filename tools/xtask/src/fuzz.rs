//! `cargo xtask fuzz`: a bounded run of every fuzz target.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{place, seeds};

const TOOL: &str = "cargo-fuzz";
const TOOL_VERSION: &str = "0.13.2";

/// How far to look for new inputs after the corpus was replayed.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    /// So long, from a new start each time: what people run.
    Seconds(u32),
    /// So many inputs, always from the same start: what a check runs, whose answer must depend on the change alone.
    Runs(u32),
}

/// Replays each target's corpus and then looks for new inputs.
pub(crate) fn run(bound: Bound) -> Result<()> {
    require()?;
    let targets = targets()?;
    if targets.is_empty() {
        bail!("fuzz/fuzz_targets has no targets");
    }
    for target in &targets {
        println!("fuzzing {target}");
        let corpus = place::root().join("fuzz/corpus").join(target);
        // What is found goes to a folder of its own, so that the kept corpus stays small.
        let found = place::target().join("fuzz-found").join(target);
        for folder in [&found, &corpus] {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let mut command = fuzz();
        command.args(["run", target]).arg(&found).arg(&corpus).arg(seeds::write(target)?).arg("--");
        match bound {
            Bound::Seconds(seconds) => command.arg(format!("-max_total_time={seconds}")),
            Bound::Runs(runs) => command.args([&format!("-runs={runs}"), "-seed=1", "-max_total_time=120"]),
        };
        command.args(["-max_len=65536", "-verbosity=0", "-print_final_stats=1"]);
        command.args(["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=256"]);
        place::run(&mut command)?;
    }
    println!("{} targets fuzzed: nothing found", targets.len());
    Ok(())
}

/// Cargo with the tool, on the toolchain that can instrument.
fn fuzz() -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz"]).current_dir(place::root().join("fuzz"));
    // Its own, or it would be this toolchain's.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    if let Some(path) = env::var_os("PATH") {
        let folders = std::iter::once(tool_root().join("bin")).chain(env::split_paths(&path));
        command.env("PATH", env::join_paths(folders).expect("they were joined before"));
    }
    command
}

fn tool_root() -> PathBuf {
    place::target().join("tools")
}

fn targets() -> Result<Vec<String>> {
    let folder = place::root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Makes sure of the nightly toolchain and of the tool; the latter takes about a minute to build.
fn require() -> Result<()> {
    let nightly = Command::new("cargo").args(["+nightly", "--version"]).env_remove("RUSTUP_TOOLCHAIN").output();
    if !nightly.is_ok_and(|out| out.status.success()) {
        bail!("fuzzing needs a nightly toolchain: `rustup toolchain install nightly --profile minimal`");
    }
    let there = fuzz().arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    println!("{TOOL} is missing: building it into {}", tool_root().display());
    let mut install = Command::new("cargo");
    install.args(["install", TOOL, "--locked", "--version", TOOL_VERSION, "--root"]).arg(tool_root());
    place::run(&mut install).context("cargo-fuzz could not be installed")
}
