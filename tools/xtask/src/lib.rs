//! Tasks of the repository, run as `cargo xtask NAME`.
//!
//! Each task is a module; this file only dispatches. All tasks have in common: every child process has a
//! deadline and is ended by its handle, missing packages are installed or named, and nothing is skipped
//! silently.
#![forbid(unsafe_code)]

pub mod arguments;
mod big_endian;
mod book;
pub mod bounded;
mod dist;
mod features;
mod full;
mod fuzz;
mod miri;
mod models;
mod mutants;
mod package;
pub mod packages;
pub mod profile;
mod robustness;
pub mod s390x;
mod seeds;
mod structure;
pub mod windows;
pub mod workspace;

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use arguments::number;
use profile::Profile;

const USAGE: &str = "\
cargo xtask NAME

  interop [--only PREFIX] [--suite NAME] [--peer omniorb|jacorb] [--allow-absent] [--tshark] [--record] [--chosen]
                            run our ORB against omniORB and JacORB in GIOP 1.0, 1.1 and 1.2, both byte orders, both directions,
                            and compare our IDL compiler with omniidl; builds and installs what it needs; an absent peer is a
                            failure without --allow-absent; with --tshark all plain GIOP traffic is captured, and tshark must dissect
                            as many messages and report no fault; the cases of a whole run are compared with the number in
                            docs/interoperability.md, or written there with --record; --chosen runs, for each suite, client and
                            server, only the oldest and the newest version, and only the compiled engine
  hostile [STRENGTH]        attack servers at length, by default 20 times as much as the tests do, and print the memory and time
                            that each attack has cost (some minutes)
  faults [--rounds N]       end connections and servers at every step of N calls (default 4000), and compare the outcomes at
                            the callers with the executed calls; prints the seed, which SPANDREL_FAULTS_SEED repeats
  idl [--compile | --repository]
                            compare our IDL compiler with omniidl on the files of Debian packages and on ours; with --compile
                            then generate Rust from all of them with several settings, and run clippy on it (some minutes);
                            with --repository enter each file of the packages into an interface repository instead, print it, compile
                            the printed IDL with omniidl and compare (some minutes); installs what it needs
  golden                    record the golden GIOP messages of orb/giop/tests again
  fuzz [--seconds N | --replay]
                            fuzz every target for N seconds (default 20), with a new random seed each time; or run each on its
                            corpus, its seeds and a fixed number of mutated copies of them, which are the same each time
  big-endian [--all]        run the tests of cdr, giop, connection and message for s390x under QEMU; with --all those of the ORB, too,
                            and calls between such programs and those of this machine, both ways; installs what it needs
  miri [--all]              run the tests of cdr, giop, connection and message under Miri; without --all those that handle octets with `unsafe`
  models [--times N]        run the models of concurrent algorithms in net and orb under many interleavings (default 20 times as
                            many as each model specifies, some minutes)
  mutants [--keep] [AREA...]
                            change chosen files in small ways (cargo-mutants), and run the tests that guard them: 95 % of the
                            changes that compile must fail a test, except those that tools/xtask/mutants.toml lists as equivalent;
                            areas are connection, cdr, giop, authorization, naming and proxy, by default all; an interrupted run
                            goes on, as long as sources and tests are the same; --keep keeps the results of caught mutants also
                            after a change of tests; installs the tool into the target folder
  windows [--only CRATE | --chosen]
                            build the tests of net, of most of orb, and tests/orb (--chosen: of net alone) for x86_64-pc-windows-gnu and run
                            them under Wine; installs what it needs
  features [--all]          check the facade with several sets of fewer features (--all: with all sets)
  windows-check             cargo check for x86_64-pc-windows-gnu
  services [--kills N]      run the naming service against the clients of JacORB and GlassFish's ORB, the interface repository against
                            JacORB's, and our stubs against JacORB's naming service; kill a server of the activator whose client is JacORB's;
                            then end the naming service N times (default 500) while clients bind names, and compare its state with
                            what it acknowledged; installs what it needs
  proxy [--examples N]      check the HTTP proxy's OpenAPI document with openapi-spec-validator, call by a client that
                            openapi-python-client generates, and send N (default 50) requests of schemathesis for each operation and
                            phase; installs these into the target folder
  queues [--rounds N]       print the time of a message through our queues, a plain queue, a channel and ACE's message queue, in one
                            interleaved run of N rounds (default 25); builds and installs what it needs
  functions [--rounds N] [--debug]
                            print the time of function calls in C++ and in Rust by their kinds (appendix C of paper 004), in one interleaved
                            run of N rounds (default 11); builds and installs what it needs; without a compiler for C++ it fails
  servers [--only NAME,...] | --versions
                            build ours and the servers of peers/servers (POSIX, Win32 under Wine, ACE, Asio, Java, Tcl) and check each
                            server architecture of each: replies, fragments, early closes, garbage, 50 clients at once, its end;
                            installs what it needs; or print the versions of compilers, libraries and interpreters
  orchestra [--chosen] [--samples N] [--requests N] [--slices N] [--pinned] [--only NAME,...]
                            measure all of these servers through the Orchestrator on this machine, and compare ours with the others: 50
                            samples of 20,000 requests each (hours; the same command goes on after an interruption), or with --chosen
                            2 samples of 500; servers that are compared run at the same time, and each sample is divided into
                            slices that alternate between them (20, with --chosen 2; 1: one server after the other); with --pinned the
                            servers have one processor, and the load another; the report is in the target folder
  tango                     call a device of TANGO's test server through `spandrel call`, the proxy and the console; installs what it needs
  stacks                    exchange data between our TCP and the kernel's over a TAP device in a network namespace, with and without
                            losses; tshark must find no malformed segment; needs root, installs what it needs
  orchestra-hosts           run plans of the Orchestrator between four machines that are network namespaces, over a link with delay,
                            losses and another order: all requests are counted once, an agent is killed, ports are exhausted; then
                            print the packets of one exchange with our iterative server and with the one in C; needs root,
                            installs what it needs
  orchestra-agents [N] [--debug]
                            print memory, descriptors, processor time and octets on the wire of supervisor and naming service for each
                            agent, from runs with a fifth of N agents and with N (default 100), in network namespaces; needs root
  structure [--crate NAME] [--edges] [--record]
                            print the shape of the crates: cycles of modules, dependencies, gates, spread of impl blocks, lengths of
                            files, vague doc lines; with --crate those of one package (or folder), with --edges all uses between its
                            modules and files; a figure that tools/xtask/structure.toml does not allow is a failure, and --record
                            lowers the bounds there to the present figures
  book                      build the book (docs) as HTML into target/book/html, and check its links; installs mdbook into the target folder;
                            then make the tutorial's package from nothing, with the tutorial's commands
  package [--verify]        package the publishable crates without compiling them; with --verify also compile the packages, check licenses,
                            bans, sources and compatibility with the last release, and build the README's program from the packages
                            alone, outside of the repository
  dist                      build the release archive of this platform: programs, man pages, completions, licenses
  etcd                      run the tests of the naming service over a cluster of etcd, in the workspace `extra`; installs what it needs
  full [--again] [STEP...]  the long forms of all checks (hours; `full.rs` has the list), or of those whose names begin with a word
                            given. Each has a time limit and its output in target/full. Without a word, steps that have passed for
                            the same sources are not run again (--again: they are), so that the same command goes on after an
                            interruption. At the end: a line for each step with its time and the last line of its output
";

/// Runs the task that the arguments name, and prints the error if it fails.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The tasks that are commands of `tests/peers`.
const PEERS: [&str; 14] = [
    "interop",
    "idl",
    "golden",
    "services",
    "etcd",
    "proxy",
    "queues",
    "functions",
    "servers",
    "orchestra",
    "orchestra-hosts",
    "orchestra-agents",
    "stacks",
    "tango",
];

/// Builds the program of `tests/peers` as the tests are built, and runs a command of it.
fn peers(words: &[&str]) -> Result<()> {
    workspace::run(&mut profile::build_as_for_tests(&["peers"]))?;
    let name = words.first().copied().unwrap_or_default();
    let mut command = Command::new(Profile::Dev.program("peers"));
    let status = command.args(words).status().context("cannot start peers")?;
    ensure!(status.success(), "{name} failed ({status})");
    Ok(())
}

fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["help" | "--help" | "-h"] | [_, "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        [name, ..] if PEERS.contains(name) => peers(&words),
        ["hostile"] => robustness::hostile(20),
        ["hostile", strength] => robustness::hostile(number(strength)?),
        ["faults"] => robustness::faults(4000),
        ["faults", "--rounds", rounds] => robustness::faults(number(rounds)?),
        ["fuzz"] => fuzz::explore(20),
        ["fuzz", "--seconds", seconds] => fuzz::explore(number(seconds)?),
        ["fuzz", "--replay"] => fuzz::replay(),
        ["big-endian"] => big_endian::run(false),
        ["big-endian", "--all"] => big_endian::run(true),
        ["miri"] => miri::run(false),
        ["miri", "--all"] => miri::run(true),
        ["models"] => models::run(20),
        ["models", "--times", times] => models::run(number(times)?),
        ["mutants", "--keep", areas @ ..] => mutants::run_keeping(areas),
        ["mutants", areas @ ..] => mutants::run(areas),
        ["features"] => features::run(false),
        ["features", "--all"] => features::run(true),
        ["windows"] => windows::run(windows::CrateSelection::All),
        ["windows", "--chosen"] => windows::run(windows::CrateSelection::Net),
        ["windows", "--only", name] => windows::run(windows::CrateSelection::Crate(name)),
        [windows::runner::NAME, words @ ..] => windows::runner::run(words),
        ["structure", words @ ..] => structure::run(words),
        ["book"] => book::run(),
        ["full", steps @ ..] => full::run(steps),
        ["package"] => package::run(),
        ["package", "--verify"] => package::verify(),
        ["dist"] => dist::run(),
        ["windows-check"] => workspace::cargo(&["check", "--workspace", "--target", "x86_64-pc-windows-gnu"]),
        _ => bail!("unknown task: {}\n\n{USAGE}", words.join(" ")),
    }
}
