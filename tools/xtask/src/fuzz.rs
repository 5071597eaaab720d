//! `cargo xtask fuzz`: runs every fuzz target, on fixed inputs or in search of new ones.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{place, seeds};

const TOOL: &str = "cargo-fuzz";
const TOOL_VERSION: &str = "0.13.2";

/// Changed copies of each seed and each file of a corpus that a replay runs: fewer where there are many files, and where each takes
/// long.
fn changes(target: &str) -> u32 {
    match target {
        "idl" => 250,
        "text" => 1000,
        _ => 5000,
    }
}

/// Octets of address space of a replay: what no input may exhaust.
const ADDRESS_SPACE: u64 = 4 << 30;

/// Replays each target's corpus and then looks for new inputs for so long, from a new start each time.
pub(crate) fn explore(seconds: u32) -> Result<()> {
    require()?;
    let targets = targets()?;
    for target in &targets {
        println!("fuzzing {target}");
        // What is found goes to a folder of its own, so that the kept corpus stays small.
        let found = place::target().join("fuzz-found").join(target);
        fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
        let mut command = fuzz();
        command.args(["run", "--features", "libfuzzer", target]).arg(&found).args(inputs(target)?).arg("--");
        command.args([&format!("-max_total_time={seconds}"), "-max_len=65536", "-verbosity=0", "-print_final_stats=1"]);
        command.args(["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=256"]);
        place::run(&mut command)?;
    }
    println!("{} targets fuzzed: nothing found", targets.len());
    Ok(())
}

/// Runs each target on its corpus, its seeds, and a fixed number of changed copies of each, which depend on nothing else: neither
/// on the machine and its clock, nor on what other code does with them. No instrumentation, no nightly toolchain.
pub(crate) fn replay() -> Result<()> {
    let target_folder = place::target().join("fuzz-replay");
    let mut build = Command::new(place::cargo_program());
    build.args(["build", "--release", "--locked", "--bin", "replay"]).current_dir(place::root().join("fuzz"));
    build.env("CARGO_TARGET_DIR", &target_folder);
    place::run(&mut build)?;
    let program = target_folder.join("release/replay");
    let targets = targets()?;
    for target in &targets {
        let mut command = Command::new("sh");
        // Memory is bounded by the kernel, and a failed allocation ends the process.
        command.args(["-c", &format!("ulimit -v {}; exec \"$0\" \"$@\"", ADDRESS_SPACE >> 10)]);
        command.arg(&program).args([target, &changes(target).to_string()]).args(inputs(target)?);
        place::run(command.current_dir(place::root().join("fuzz")))?;
    }
    println!("{} targets replayed: nothing found", targets.len());
    Ok(())
}

/// The folders with what each run begins with: kept inputs, and those made of what the tests have.
fn inputs(target: &str) -> Result<[PathBuf; 2]> {
    let corpus = place::root().join("fuzz/corpus").join(target);
    fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
    Ok([corpus, seeds::write(target)?])
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
    if names.is_empty() {
        bail!("{} has no targets", folder.display());
    }
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
