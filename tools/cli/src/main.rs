//! The spandrel command: parses its arguments, calls the libraries, and prints their results.
//!
//! Glue only. Experiments are in `spandrel-lab`, the compiler in `spandrel-idl`. This crate has options, exit
//! codes and error output: one line, with its causes below. Exit codes: 0 success, 1 failure, 2 wrong usage.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod bulk;
mod call;
mod client_args;
mod common;
#[cfg(feature = "completions")]
mod completions;
mod config;
mod describe;
mod dump;
mod events;
mod external;
mod idl;
mod ior;
mod json;
mod latency;
#[cfg(feature = "man")]
mod man;
mod naming;
mod options;
mod orb_args;
mod ping;
mod soak;
mod trade;
mod ttcp;
mod watch;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use spandrel_error::output;
use spandrel_lab::LabError;

/// Distribution middleware in Rust: experiments, diagnosis and the IDL compiler.
#[derive(Debug, Parser)]
#[command(name = "spandrel", version, propagate_version = true, arg_required_else_help = true, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ttcp(ttcp::Args),
    Latency(latency::Args),
    Bench(bench::Args),
    Soak(soak::Args),
    Ior(ior::Args),
    Ping(ping::Args),
    Call(call::Args),
    Describe(describe::Args),
    List(naming::ListArgs),
    Tree(naming::TreeArgs),
    Bind(naming::BindArgs),
    Unbind(naming::UnbindArgs),
    Watch(watch::Args),
    Trade(trade::Args),
    Events(events::Args),
    Bulk(bulk::Args),
    Dump(dump::Args),
    Idl(idl::Args),
    Options(options::Args),
    Config(config::Args),
    #[cfg(feature = "completions")]
    Completions(completions::Args),
    #[cfg(feature = "man")]
    Man(man::Args),
    /// A process of an experiment; started by the experiment itself.
    #[command(hide = true)]
    Peer(spandrel_lab::child_command::Args),
    /// An executable `spandrel-NAME` beside this one, or in PATH.
    #[command(external_subcommand)]
    External(Vec<OsString>),
}

impl Cli {
    /// Parses the command line; prints help, and errors of usage, and then does not return.
    fn from_command_line() -> Self {
        let mut command = Self::command();
        // The folders are searched only if help is likely to be printed.
        let prints_help = |word: OsString| word == "--help" || word == "-h" || word == "help";
        if env::args_os().len() < 2 || env::args_os().any(prints_help) {
            command = command.after_help(external::help() + config::BEFORE_COMMAND + EXIT_CODES);
        }
        let parsed = command
            .try_get_matches_from(config::behind_command(env::args_os().collect()))
            .and_then(|matches| Self::from_arg_matches(&matches));
        parsed.unwrap_or_else(|error| output::end_with(&error))
    }

    /// The names of the commands, without hidden ones.
    fn commands() -> Vec<String> {
        let command = Self::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        shown.map(|command| command.get_name().to_owned()).collect()
    }
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage.";

fn main() -> ExitCode {
    #[cfg(feature = "completions")]
    completions::answer(<Cli as clap::CommandFactory>::command);
    if let Err(error) = spandrel::diagnostics::log::init_or("warn") {
        common::print_error(&error.into());
        return ExitCode::from(2);
    }
    let outcome = match Cli::from_command_line().command {
        Command::Ttcp(args) => args.run(),
        Command::Latency(args) => args.run(),
        Command::Bench(args) => args.run(),
        Command::Soak(args) => args.run(),
        Command::Ior(args) => args.run(),
        Command::Ping(args) => args.run(),
        Command::Call(args) => args.run(),
        Command::Describe(args) => args.run(),
        Command::List(args) => args.run(),
        Command::Tree(args) => args.run(),
        Command::Bind(args) => args.run(),
        Command::Unbind(args) => args.run(),
        Command::Watch(args) => args.run(),
        Command::Trade(args) => args.run(),
        Command::Events(args) => args.run(),
        Command::Bulk(args) => args.run(),
        Command::Dump(args) => args.run(),
        Command::Idl(args) => args.run(),
        Command::Options(args) => args.run(),
        Command::Config(args) => args.run(),
        #[cfg(feature = "completions")]
        Command::Completions(args) => args.run(),
        #[cfg(feature = "man")]
        Command::Man(args) => args.run(<Cli as clap::CommandFactory>::command()),
        Command::Peer(args) => {
            args.run();
            Ok(())
        }
        Command::External(words) => {
            return external::run(&words, &Cli::commands()).unwrap_or_else(|error| {
                common::print_error(&error);
                ExitCode::from(2)
            });
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            common::print_error(&error);
            let usage = error.is::<common::UsageError>() || matches!(error.downcast_ref(), Some(LabError::Settings(_)));
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}
