//! Tasks of the repository, run as `cargo xtask NAME`.
//!
//! Each task is a module; this file has the command line. All tasks have in common: every child process has a
//! deadline and is ended by its handle, missing packages are installed or named, and nothing is skipped
//! silently.
#![forbid(unsafe_code)]

mod book;
mod dist;
mod features;
pub mod metadata;
mod package;
mod programs;
mod public_api;
mod structure;
pub mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
pub use programs::EXPLORING;

/// Tasks of the repository. Those that need programs or libraries install them, or name them.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true, after_help = programs::HELP)]
enum Task {
    /// Check the facade with several sets of fewer features
    Features {
        /// Check all sets
        #[arg(long)]
        all: bool,
    },
    /// Run cargo check for x86_64-pc-windows-gnu
    WindowsCheck,
    /// Print the shape of the crates: cycles of modules, dependencies, gates, spread of impl blocks, lengths of files,
    /// vague doc lines. A figure that tools/xtask/structure.toml does not allow is a failure
    Structure(structure::Options),
    /// Build the book (docs) as HTML into target/book/html, and check its links; then make the tutorial's package from
    /// nothing, with the tutorial's commands
    Book,
    /// Package the publishable crates without compiling them
    Package {
        /// Also compile the packages, check licenses, bans, sources and compatibility with the last release, and build the
        /// README's program from the packages alone, outside of the repository
        #[arg(long)]
        verify: bool,
    },
    /// Print the public items, of the crates that programs name, that were removed or added since a revision; needs a
    /// nightly toolchain, and builds cargo-public-api
    PublicApi {
        /// The older revision, such as a tag or `main`
        revision: String,
        /// Compare these packages alone
        packages: Vec<String>,
    },
    /// Build the release archive of this platform: programs, man pages, completions, licenses
    Dist,
    /// The tasks that are commands of another program.
    #[command(external_subcommand)]
    Other(Vec<String>),
}

/// Runs the task that the arguments name, and prints the error if it fails.
#[must_use]
pub fn main() -> ExitCode {
    match run(Task::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Features { all } => features::run(all),
        Task::WindowsCheck => workspace::cargo(&["check", "--workspace", "--target", "x86_64-pc-windows-gnu"]),
        Task::Structure(options) => structure::run(&options),
        Task::Book => book::run(),
        Task::Package { verify: true } => package::verify(),
        Task::Package { verify: false } => package::run(),
        Task::PublicApi { revision, packages } => public_api::run(&revision, &strs(&packages)),
        Task::Dist => dist::run(),
        Task::Other(words) => programs::run(&strs(&words)),
    }
}

/// Whether the program would run these arguments; those of tasks that are commands of another program are its own.
#[must_use]
pub fn is_task(words: &[&str]) -> bool {
    match Task::try_parse_from([&["xtask"], words].concat()) {
        Ok(Task::Other(words)) => programs::PEERS.iter().chain(&EXPLORING).any(|name| words[0] == *name),
        Ok(_) => true,
        Err(_) => false,
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn arguments_are_consistent_and_help_names_each_task_of_another_program() {
        Task::command().debug_assert();
        let help = Task::command().render_help().to_string();
        for command in programs::PEERS.iter().chain(&EXPLORING) {
            assert!(help.contains(&format!("  {command} ")), "{command}: {help}");
        }
    }

    #[test]
    fn a_task_of_another_program_gets_its_own_options() {
        let task = Task::try_parse_from(["xtask", "interop", "--chosen", "--help"]).unwrap();
        assert!(matches!(task, Task::Other(words) if words == ["interop", "--chosen", "--help"]));
        assert!(run(Task::Other(vec!["moon".to_owned()])).unwrap_err().to_string().starts_with("unknown task `moon`"));
        assert!(is_task(&["package", "--verify"]) && !is_task(&["package", "--some"]) && !is_task(&["moon"]));
    }
}
