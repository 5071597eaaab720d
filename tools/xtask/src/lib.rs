//! Tasks of the repository, run as `cargo xtask NAME`.
//!
//! Each task is a module; this file has the command line. All tasks have in common: every child process has a
//! deadline and is ended by its handle, missing packages are installed or named, and nothing is skipped
//! silently.
#![forbid(unsafe_code)]

mod book;
mod dist;
mod features;
mod full;
mod fuzz;
mod miri;
mod models;
mod mutants;
mod package;
mod peers;
pub mod profile;
mod public_api;
mod robustness;
mod seeds;
mod structure;
pub mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;

/// Tasks of the repository. Those that need programs or libraries install them, or name them.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true, after_help = peers::HELP)]
enum Task {
    /// Attack servers at length, and print the memory and time that each attack has cost (some minutes)
    Hostile {
        /// The number of attacks, as a multiple of those of the tests
        #[arg(default_value_t = 20)]
        strength: u32,
    },
    /// End connections and servers at every step of calls, and compare the outcomes at the callers with the executed
    /// calls; prints the seed, which SPANDREL_FAULTS_SEED repeats
    Faults {
        /// The number of calls
        #[arg(long, value_name = "N", default_value_t = 4000)]
        rounds: u32,
    },
    /// Fuzz every target, with a new random seed each time
    Fuzz {
        /// The time for each target
        #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "replay")]
        seconds: u32,
        /// Run each on its corpus, its seeds and a fixed number of mutated copies of them, which are the same each time
        #[arg(long)]
        replay: bool,
    },
    /// Run those tests of cdr, giop, connection and message under Miri that handle octets with `unsafe`
    Miri {
        /// Run all tests of these crates
        #[arg(long)]
        all: bool,
    },
    /// Run the models of concurrent algorithms in net and orb under many interleavings (some minutes)
    Models {
        /// The number of interleavings, as a multiple of that which each model specifies
        #[arg(long, value_name = "N", default_value_t = 20)]
        times: u32,
    },
    /// Change chosen files in small ways (cargo-mutants), and run the tests that guard them: 95 % of the changes that
    /// compile must fail a test, except those that tools/xtask/mutants.toml lists as equivalent. An interrupted run goes
    /// on, as long as sources and tests are the same
    Mutants {
        /// Keep the results of caught mutants also after a change of tests
        #[arg(long)]
        keep: bool,
        /// connection, cdr, giop, authorization, naming or proxy; without a name all
        areas: Vec<String>,
    },
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
    /// Run the long forms of all checks (hours; `full.rs` has the list). Each has a time limit and its output in
    /// target/full. At the end: a line for each step with its time and the last line of its output
    Full {
        /// Run also steps that have passed for the same sources; without, the same command goes on after an interruption
        #[arg(long)]
        again: bool,
        /// The beginnings of the names of steps; without any, all steps
        steps: Vec<String>,
    },
    /// The tasks that are commands of `tests/peers`.
    #[command(external_subcommand)]
    Peers(Vec<String>),
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
        Task::Hostile { strength } => robustness::hostile(strength),
        Task::Faults { rounds } => robustness::faults(rounds),
        Task::Fuzz { replay: true, .. } => fuzz::replay(),
        Task::Fuzz { seconds, .. } => fuzz::explore(seconds),
        Task::Miri { all } => miri::run(all),
        Task::Models { times } => models::run(times),
        Task::Mutants { keep, areas } => mutants::run(&strs(&areas), keep),
        Task::Features { all } => features::run(all),
        Task::WindowsCheck => workspace::cargo(&["check", "--workspace", "--target", "x86_64-pc-windows-gnu"]),
        Task::Structure(options) => structure::run(&options),
        Task::Book => book::run(),
        Task::Package { verify: true } => package::verify(),
        Task::Package { verify: false } => package::run(),
        Task::PublicApi { revision, packages } => public_api::run(&revision, &strs(&packages)),
        Task::Dist => dist::run(),
        Task::Full { again, steps } => full::run(&strs(&steps), again),
        Task::Peers(words) if peers::COMMANDS.contains(&&*words[0]) => peers::run(&strs(&words)),
        Task::Peers(words) => bail!("unknown task `{}`: `cargo xtask --help` has the list", words[0]),
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
    fn arguments_are_consistent_and_help_names_each_task_of_peers() {
        Task::command().debug_assert();
        let help = Task::command().render_help().to_string();
        for command in peers::COMMANDS {
            assert!(help.contains(&format!("  {command} ")), "{command}: {help}");
        }
    }

    #[test]
    fn a_task_of_peers_gets_its_own_options() {
        let task = Task::try_parse_from(["xtask", "interop", "--chosen", "--help"]).unwrap();
        assert!(matches!(task, Task::Peers(words) if words == ["interop", "--chosen", "--help"]));
        assert!(run(Task::Peers(vec!["moon".to_owned()])).unwrap_err().to_string().starts_with("unknown task `moon`"));
        for words in [&["fuzz", "--seconds", "no"][..], &["fuzz", "--replay", "--seconds", "3"], &["miri", "--some"]] {
            assert!(Task::try_parse_from([&["xtask"], words].concat()).is_err(), "{words:?}");
        }
    }

    #[test]
    fn the_steps_of_the_full_run_are_tasks() {
        for words in full::tasks() {
            let task = Task::try_parse_from([&["xtask"], words].concat()).unwrap();
            assert!(!matches!(&task, Task::Peers(words) if !peers::COMMANDS.contains(&&*words[0])), "{task:?}");
        }
    }
}
