//! The executable `spandrel-orchestra`: agents, plans, scripts, reports.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use spandrel_daemon::EXIT_CODES;
use spandrel_orchestra::agent::AgentArgs;
use spandrel_orchestra::packets::PacketsArgs;
use spandrel_orchestra::report::ReportArgs;
use spandrel_orchestra::run::RunArgs;
use spandrel_orchestra::script::ScriptArgs;

/// The Orchestrator: a distributed suite that measures servers under load.
#[derive(Debug, Parser)]
#[command(name = "spandrel-orchestra", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Agent(AgentArgs),
    Run(RunArgs),
    Report(ReportArgs),
    Packets(PacketsArgs),
    Script(ScriptArgs),
}

fn main() -> ExitCode {
    let command = spandrel_daemon::parse::<Args>().command;
    spandrel_daemon::run(|| match command {
        Command::Agent(args) => args.run(),
        Command::Run(args) => args.run(),
        Command::Report(args) => args.run(),
        Command::Packets(args) => args.run(),
        Command::Script(args) => args.run(),
    })
}
