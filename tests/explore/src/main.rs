//! Checks that explore: they change code or inputs, draw random cases, or run for hours.
//!
//! Each command is a module. `cargo xtask NAME` builds this program and runs its command `NAME`; `.ci/run` calls the
//! program that the tests have built.
#![forbid(unsafe_code)]

mod full;
mod fuzz;
mod miri;
mod models;
mod mutants;
mod parallel;
mod robustness;
mod seeds;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Checks that explore. Each builds and installs what it needs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
enum Command {
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
    /// compile must fail a test, except those that tests/explore/mutants.toml lists as equivalent. An interrupted run goes
    /// on, as long as sources and tests are the same
    Mutants {
        /// Keep the results of caught mutants also after a change of tests
        #[arg(long)]
        keep: bool,
        /// connection, cdr, giop, authorization, naming or proxy; without a name all
        areas: Vec<String>,
    },
    /// Run the long forms of all checks (hours; `full.rs` has the list). Each has a time limit and its output in
    /// target/full. At the end: a line for each step with its time and the last line of its output
    Full {
        /// Run also steps that have passed for the same sources; without, the same command goes on after an interruption
        #[arg(long)]
        again: bool,
        /// The beginnings of the names of steps; without any, all steps
        steps: Vec<String>,
    },
    /// Runs a test program until a test fails; for `mutants`
    #[command(name = mutants::UNTIL_FAILURE, hide = true)]
    UntilFailure {
        /// The program with its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("explore: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Hostile { strength } => robustness::hostile(strength),
        Command::Faults { rounds } => robustness::faults(rounds),
        Command::Fuzz { replay: true, .. } => fuzz::replay(),
        Command::Fuzz { seconds, .. } => fuzz::explore(seconds),
        Command::Miri { all } => miri::run(all),
        Command::Models { times } => models::run(times),
        Command::Mutants { keep, areas } => mutants::run(&strs(&areas), keep),
        Command::UntilFailure { command } => mutants::run_until_failure(&command, io::stdout()),
        Command::Full { again, steps } => full::run(&strs(&steps), again),
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
    fn the_arguments_are_consistent_and_xtask_has_each_command() {
        Command::command().debug_assert();
        let command = Command::command();
        let shown = command.get_subcommands().filter(|own| !own.is_hide_set());
        let own: Vec<String> = shown.map(|own| own.get_name().to_owned()).collect();
        for name in &own {
            assert!(xtask::is_task(&[name]), "{name}");
        }
        assert_eq!(own, xtask::EXPLORING);
        for words in [&["fuzz", "--seconds", "no"][..], &["fuzz", "--replay", "--seconds", "3"], &["miri", "--some"]] {
            assert!(Command::try_parse_from([&["xtask"], words].concat()).is_err(), "{words:?}");
        }
    }

    #[test]
    fn the_steps_of_the_full_run_are_tasks() {
        for words in full::tasks() {
            let is_own = Command::try_parse_from([&["xtask"], words].concat()).is_ok();
            assert!(is_own || xtask::is_task(words) && !xtask::EXPLORING.contains(&words[0]), "{words:?}");
        }
    }
}
