//! Commands that are executables of their own: `spandrel X` runs `spandrel-X`, as `git` and `cargo` do.
//!
//! Such an executable lies in the folder of `spandrel`, or in one of `PATH`. Heavy commands are built apart in
//! this way, and anyone can add a command. Commands of `spandrel` itself come first.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

const PREFIX: &str = "spandrel-";
/// The similarity, between 0 and 1, from which a name is suggested.
const SIMILAR: f64 = 0.75;

/// Runs the executable of a command with its arguments; returns its exit code, or never. `own` are the names of
/// the commands of `spandrel` itself, for suggestions.
///
/// # Errors
/// If there is no such executable, or it cannot be started.
pub(crate) fn run(words: &[OsString], own: &[String]) -> anyhow::Result<ExitCode> {
    let [name, arguments @ ..] = words else { bail!("a command is expected") };
    let Some(program) = name.to_str().and_then(|name| find(name, &folders())) else {
        bail!("{}", unrecognized(name, own, &names(&folders())));
    };
    let mut command = Command::new(&program);
    command.args(arguments);
    start(command).with_context(|| format!("cannot run {}", program.display()))
}

/// Lets the executable of a command complete the words of a command line, behind `spandrel`, in place of this process. Does
/// nothing if there is none, or if the name of the command itself is to be completed. `own` are the commands of `spandrel`
/// itself.
#[cfg(feature = "completions")]
pub(crate) fn complete(words: &[OsString], own: &[String]) -> anyhow::Result<()> {
    /// The number of the word to complete, which some shells set.
    const INDEX: &str = "_CLAP_COMPLETE_INDEX";
    let [name, rest @ ..] = words else { return Ok(()) };
    let Some(name) = name.to_str().filter(|name| !rest.is_empty() && !own.iter().any(|own| own == name)) else {
        return Ok(());
    };
    let Some(program) = find(name, &folders()) else { return Ok(()) };
    let mut command = Command::new(&program);
    command.arg("--").arg(format!("{PREFIX}{name}")).args(rest);
    let index = env::var(INDEX).ok().and_then(|index| index.parse::<usize>().ok());
    if let Some(index) = index {
        command.env(INDEX, index.saturating_sub(1).to_string());
    }
    start(command).map(|_| ()).with_context(|| format!("cannot run {}", program.display()))
}

/// The names of all executables that `spandrel NAME` runs.
#[cfg(feature = "completions")]
pub(crate) fn commands() -> BTreeSet<String> {
    names(&folders())
}

/// Replaces this process by the program; returns its error only.
#[cfg(unix)]
fn start(mut command: Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec())
}

/// Waits for the process, and returns its exit code.
#[cfg(not(unix))]
fn start(mut command: Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().unwrap_or(1);
    std::process::exit(code)
}

/// The part of the help that lists the executables that were found; empty without any.
pub(crate) fn help() -> String {
    let names = names(&folders());
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.into_iter().collect();
    format!("Executables {PREFIX}NAME, run by `spandrel NAME`: {}\n\n", names.join(", "))
}

/// Where executables are looked for, in this order.
fn folders() -> Vec<PathBuf> {
    let own = env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    own.into_iter().chain(env::split_paths(&path)).collect()
}

fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_'));
    let file = format!("{PREFIX}{name}{}", env::consts::EXE_SUFFIX);
    folders.iter().filter(|_| is_name).map(|folder| folder.join(&file)).find(|file| is_executable(file))
}

/// The names of all executables in these folders.
fn names(folders: &[PathBuf]) -> BTreeSet<String> {
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let name = |file: &OsStr| {
        let name = file.to_str()?.strip_prefix(PREFIX)?.strip_suffix(env::consts::EXE_SUFFIX)?;
        find(name, folders).map(|_| name.to_owned())
    };
    files.filter_map(|file| name(&file.file_name())).collect()
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// The message for an unknown command, with the commands that have similar names.
fn unrecognized(name: &OsStr, own: &[String], external: &BTreeSet<String>) -> String {
    let name = name.to_string_lossy();
    let mut similar: Vec<(f64, &String)> =
        own.iter().chain(external).map(|known| (strsim::jaro(&name, known), known)).collect();
    similar.retain(|(similarity, _)| *similarity >= SIMILAR);
    similar.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut message = format!("unrecognized subcommand `{name}`");
    let similar: Vec<String> = similar.into_iter().map(|(_, known)| format!("`{known}`")).collect();
    if !similar.is_empty() {
        message += &format!("; did you mean {}?", similar.join(" or "));
    }
    message
        + &format!(
            "\n  `spandrel --help` lists the commands; an executable {PREFIX}{name} is neither beside spandrel nor in PATH"
        )
}
