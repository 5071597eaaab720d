//! Runs of our programs with those of others: foreign ORBs and compilers, servers of other toolkits, emulated machines,
//! Wine, and machines that are network namespaces.
//!
//! Each command is a module. `cargo xtask NAME` builds this program as the tests are built, and runs its command `NAME`.
#![forbid(unsafe_code)]

mod authority;
mod big_endian;
mod bounded;
mod build_all;
mod builds;
mod compile;
mod compiler;
mod functions;
mod golden;
mod hosts;
mod idl;
mod interop;
mod known_failures;
mod matrix;
mod packages;
mod peer;
mod proxy;
mod queues;
mod repository;
mod s390x;
mod servers;
mod services;
mod stacks;
mod tango;
mod windows;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use builds::Profile;
use windows::CrateSelection;

/// Runs our programs with those of others. Each command builds and installs what it needs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
enum Command {
    /// Run our ORB against omniORB and JacORB in GIOP 1.0, 1.1 and 1.2, both byte orders, both directions, and compare our
    /// IDL compiler with omniidl
    Interop(interop::Selection),
    /// Build the programs of others beside which ours are measured; a program that cannot be built has the reason
    Peers {
        /// The folder with the sources of TAO and their build, for the programs over TAO
        #[arg(long, value_name = "DIR")]
        tao: Option<PathBuf>,
    },
    /// Run the tests of cdr, giop, connection and message for s390x under QEMU
    BigEndian {
        /// Also run those of the ORB, and calls between such programs and those of this machine, both ways
        #[arg(long)]
        all: bool,
    },
    /// Build the tests of net, of most of orb, and tests/orb for x86_64-pc-windows-gnu and run them under Wine
    Windows {
        /// One crate, with or without the prefix `spandrel-`
        #[arg(long, value_name = "CRATE")]
        only: Option<String>,
        /// The crates of net alone
        #[arg(long, conflicts_with = "only")]
        chosen: bool,
    },
    /// The runner that Cargo calls for each test program for Windows
    #[command(name = windows::runner::NAME, hide = true)]
    RunUnderWine {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Compare our IDL compiler with omniidl on the files of Debian packages and on ours
    Idl {
        /// Then generate Rust from all of them with several settings, and run clippy on it (some minutes)
        #[arg(long)]
        compile: bool,
        /// Instead enter each file of the packages into an interface repository, print it, compile the printed IDL with
        /// omniidl and compare (some minutes)
        #[arg(long, conflicts_with = "compile")]
        repository: bool,
    },
    /// Record the golden GIOP messages of orb/giop/tests again
    Golden,
    /// Run our services against the clients of JacORB, GlassFish's ORB and omniORB, and our stubs against JacORB's naming
    /// and notification service; kill a server of the activator whose client is JacORB's; then end services and activator
    /// while clients use them
    Services {
        #[command(flatten)]
        selection: services::Selection,
        /// Instead push events to a consumer that never reads, for this time
        #[arg(long, value_name = "SECONDS")]
        silent: Option<u32>,
    },
    /// Run the tests of the naming service over a cluster of etcd, in the workspace `extra`
    Etcd,
    /// Run the tests of the event service over a cluster of JetStream, in the workspace `extra`
    Jetstream {
        /// The time for which servers and nodes of the cluster are killed at random
        #[arg(long, value_name = "SECONDS", default_value_t = 600)]
        seconds: u32,
    },
    /// Check the HTTP proxy's OpenAPI document with openapi-spec-validator, call by a client that openapi-python-client
    /// generates, and send requests of schemathesis
    Proxy {
        /// The requests for each operation and phase
        #[arg(long, value_name = "N", default_value_t = 50)]
        examples: u32,
    },
    /// Print the time of a message through our queues, a plain queue, a channel and ACE's message queue, in one
    /// interleaved run
    Queues {
        /// The number of rounds
        #[arg(long, value_name = "N", default_value_t = 25)]
        rounds: usize,
    },
    /// Print the time of function calls in C++ and in Rust by their kinds (appendix C of paper 004), in one interleaved
    /// run; without a compiler for C++ it fails
    Functions {
        /// The number of rounds
        #[arg(long, value_name = "N", default_value_t = 11)]
        rounds: usize,
        /// Measure a program that is not optimised
        #[arg(long)]
        debug: bool,
    },
    /// Build ours and the servers of peers/servers (POSIX, Win32 under Wine, ACE, Asio, Java, Tcl) and check each server
    /// architecture of each: replies, fragments, early closes, garbage, 50 clients at once, its end
    Servers {
        /// Only these programs, separated by commas
        #[arg(long, value_name = "NAME,…")]
        only: Option<String>,
        /// Only print the versions of compilers, libraries and interpreters
        #[arg(long, conflicts_with = "only")]
        versions: bool,
    },
    /// Measure all of these servers through the Orchestrator on this machine, and compare ours with the others (hours; the
    /// same command goes on after an interruption); the report is in the target folder
    Orchestra(servers::experiment::Options),
    /// Run plans of the Orchestrator between four machines that are network namespaces, over a link with delay, losses and
    /// another order; needs root
    OrchestraHosts,
    /// Print memory, descriptors, processor time and octets on the wire of supervisor and naming service for each agent,
    /// in network namespaces; needs root
    OrchestraAgents {
        /// The number of agents; a fifth of them runs first
        #[arg(value_name = "N", default_value_t = 100)]
        agents: usize,
        /// Run programs that are not optimised
        #[arg(long)]
        debug: bool,
    },
    /// Exchange data between our TCP and the kernel's over a TAP device in a network namespace, with and without losses;
    /// tshark must find no malformed segment; needs root
    Stacks,
    /// Call a device of TANGO's test server through `spandrel call`, the proxy and the console
    Tango,
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let profile = |debug: bool| if debug { Profile::Dev } else { Profile::Release };
    match command {
        Command::Interop(selection) => interop::run(&selection),
        Command::Peers { tao } => build_all::run(tao.as_deref()),
        Command::BigEndian { all } => big_endian::run(all),
        Command::Windows { only: Some(name), .. } => windows::run(CrateSelection::Crate(&name)),
        Command::Windows { chosen, .. } => windows::run(if chosen { CrateSelection::Net } else { CrateSelection::All }),
        Command::RunUnderWine { words } => windows::runner::run(&words.iter().map(String::as_str).collect::<Vec<_>>()),
        Command::Idl { repository: true, .. } => repository::run(),
        Command::Idl { compile, .. } => idl::run(compile),
        Command::Golden => golden::run(),
        Command::Services { silent: Some(seconds), .. } => services::run_silent_consumer(seconds),
        Command::Services { selection, .. } => services::run(&selection),
        Command::Etcd => services::over_etcd(),
        Command::Jetstream { seconds } => services::over_jetstream(seconds),
        Command::Proxy { examples } => proxy::run(examples),
        Command::Queues { rounds } => queues::run(rounds),
        Command::Functions { rounds, debug } => functions::run(rounds, profile(debug)),
        Command::Servers { versions: true, .. } => {
            servers::print_versions();
            Ok(())
        }
        Command::Servers { only, .. } => servers::run(only.as_deref()),
        Command::Orchestra(options) => servers::experiment::run(&options),
        Command::OrchestraHosts => hosts::run(),
        Command::OrchestraAgents { agents, debug } => hosts::print_costs(agents, profile(debug)),
        Command::Stacks => stacks::run(),
        Command::Tango => tango::run(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Command::command().debug_assert();
        for words in [
            &["interop", "--tshark", "--chosen", "--peer", "omniorb", "--suite", "types"][..],
            &["orchestra", "--samples", "5", "--requests", "2000"],
            &["orchestra-agents", "10", "--debug"],
            &["peers", "--tao", "ACE_wrappers"],
            &["servers", "--only", "posix,ace"],
            &["services", "--kills", "3", "--only", "jacorb", "--allow-absent"],
        ] {
            Command::try_parse_from([&["peers"], words].concat()).unwrap();
        }
        assert!(Command::try_parse_from(["peers", "interop", "--peer", "tao"]).is_err());
    }
}
