//! `cargo xtask fuzz`: runs every fuzz target, on fixed inputs or in search of new ones.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use xtask::workspace;

use crate::parallel::run_in_parallel;
use crate::seeds;

const TOOL: &str = "cargo-fuzz";
const TOOL_VERSION: &str = "0.13.2";

/// The number of mutated copies of each seed and corpus file in a replay: fewer where there are many files,
/// or each run takes long.
fn changes(target: &str) -> u32 {
    match target {
        "idl" => 250,
        "text" => 1000,
        _ => 5000,
    }
}

/// The limit of a replay's address space in octets, which no input may exceed.
const ADDRESS_SPACE: u64 = 4 << 30;

/// Replays each target's corpus and then searches for new inputs for that many seconds, with a new random
/// seed each time.
pub(crate) fn explore(seconds: u32) -> Result<()> {
    require()?;
    let targets = targets()?;
    workspace::run(fuzz().args(["build", "--features", "libfuzzer"]))?;
    run_in_parallel(&targets, |target| {
        println!("fuzzing {target}");
        // New inputs go to a folder of their own, so that the committed corpus stays small.
        let found = workspace::target().join("fuzz-found").join(target);
        fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
        let mut command = fuzz();
        command.args(["run", "--features", "libfuzzer", target]).arg(&found).args(inputs(target)?).arg("--");
        command.args([&format!("-max_total_time={seconds}"), "-max_len=65536", "-verbosity=0", "-print_final_stats=1"]);
        command.args(["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=256"]);
        workspace::run(&mut command)
    })?;
    println!("{} targets fuzzed: nothing found", targets.len());
    Ok(())
}

/// Runs each target on its corpus, its seeds, and a fixed number of mutated copies of each. The copies depend
/// neither on the machine and its clock nor on other code. No instrumentation, no nightly toolchain.
pub(crate) fn replay() -> Result<()> {
    let target_folder = workspace::target().join("fuzz-replay");
    let mut build = Command::new(workspace::cargo_program());
    build.args(["build", "--release", "--locked", "--bin", "replay"]).current_dir(workspace::root().join("fuzz"));
    build.env("CARGO_TARGET_DIR", &target_folder);
    workspace::run(&mut build)?;
    let program = target_folder.join("release/replay");
    let targets = targets()?;
    run_in_parallel(&targets, |target| {
        let mut command = Command::new("sh");
        // The kernel bounds the memory, and a failed allocation ends the process.
        command.args(["-c", &format!("ulimit -v {}; exec \"$0\" \"$@\"", ADDRESS_SPACE >> 10)]);
        command.arg(&program).args([target, &changes(target).to_string()]).args(inputs(target)?);
        workspace::run(command.current_dir(workspace::root().join("fuzz")))
    })?;
    println!("{} targets replayed: nothing found", targets.len());
    Ok(())
}

/// The folders of the initial inputs: the committed corpus, and seeds made from files of the tests.
fn inputs(target: &str) -> Result<[PathBuf; 2]> {
    let corpus = workspace::root().join("fuzz/corpus").join(target);
    fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
    Ok([corpus, seeds::write(target)?])
}

/// Cargo with the tool, on the toolchain that supports instrumentation.
fn fuzz() -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "fuzz"]).current_dir(workspace::root().join("fuzz"));
    // Cargo of that toolchain; otherwise the present toolchain's would run.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    if let Some(path) = env::var_os("PATH") {
        let folders = std::iter::once(tool_root().join("bin")).chain(env::split_paths(&path));
        command.env("PATH", env::join_paths(folders).expect("they were joined before"));
    }
    command
}

fn tool_root() -> PathBuf {
    workspace::target().join("tools")
}

fn targets() -> Result<Vec<String>> {
    let folder = workspace::root().join("fuzz/fuzz_targets");
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

/// Checks for the nightly toolchain and the tool; building the tool takes about a minute.
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
    workspace::run(&mut install).context("cargo-fuzz could not be installed")
}
