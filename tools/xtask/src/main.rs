//! Chores of the repository, run as `cargo xtask NAME`.
//!
//! Each chore is a module; this one only chooses. What they have in common: every child process is bounded in time and
//! ended by its handle, what is missing is installed or named, and nothing is skipped in silence.
#![forbid(unsafe_code)]

mod big_endian;
mod bounded;
mod compile;
mod compiler;
mod features;
mod full;
mod fuzz;
mod golden;
mod idl;
mod interop;
mod known;
mod matrix;
mod miri;
mod models;
mod packages;
mod peer;
mod place;
mod robustness;
mod s390x;
mod seeds;
mod structure;
mod windows;

use std::env;
use std::num::ParseIntError;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
cargo xtask NAME

  interop [--only PREFIX] [--suite NAME] [--peer omniorb|jacorb] [--allow-absent] [--tshark] [--record] [--chosen]
                            run our ORB against omniORB's and JacORB's in GIOP 1.0, 1.1 and 1.2, both byte orders, both directions,
                            and compare our IDL compiler with omniidl; builds and installs what it needs; a peer that cannot be had
                            is a failure unless it may be absent; with --tshark all that goes in plain is captured, and tshark's
                            dissector must read as many messages, and find no fault with them; a whole run must have as many cases as
                            docs/interoperability.md says, or writes there how many with --record; --chosen runs, for each suite, client
                            and server, the oldest and the newest version alone, and the compiled engine alone
  hostile [STRENGTH]        let servers be attacked at length, by default 20 times as much as the tests do, and print what each attack
                            has cost in memory and time (some minutes)
  faults [--rounds N]       end connections and servers at every step of N calls (default 4000), and compare what callers are told with
                            what was executed; prints the seed, which SPANDREL_FAULTS_SEED repeats
  idl [--compile]           compare what our IDL compiler and omniidl understand of the files that Debian ships and of ours;
                            then generate Rust from all of them with several settings, and have clippy read it (some minutes);
                            installs what it needs
  golden                    record the golden GIOP messages of orb/giop/tests again
  fuzz [--seconds N | --replay]
                            fuzz every target for N seconds (default 20), from a new start each time; or run each on its
                            corpus, its seeds and a fixed number of changed copies of them, which are the same each time
  big-endian [--all]        run the tests of cdr, giop and message for s390x under QEMU; with --all those of the ORB, too, and calls
                            between such programs and those of this machine, both ways; installs what it needs
  miri [--all]              run the tests of cdr, giop and message under Miri; without --all those that handle octets with `unsafe`
  models [--times N]        run the models of threads in net and orb under many interleavings (default 20 times as many as
                            each says, some minutes)
  windows [--only CRATE | --chosen]
                            build the tests of net and of most of orb (--chosen: of net alone) for x86_64-pc-windows-gnu and run
                            them under Wine; installs what it needs
  features [--all]          check the facade with several sets of fewer features (--all: with all sets)
  windows-check             cargo check for x86_64-pc-windows-gnu
  structure [--crate NAME] [--edges] [--record]
                            print the shape of the crates: cycles of modules, dependencies, gates, spread of impl blocks, lengths of
                            files, vague doc lines; with --crate those of one package (or folder), with --edges all uses between its
                            modules and files; a figure that tools/xtask/structure.toml does not allow is a failure, and --record
                            lowers the bounds there to the present figures
  full                      the long forms of all checks, one after the other, with the time of each (some hours): fuzzing, models,
                            idl --compile, interop --tshark, miri --all, big-endian --all, windows, hostile, faults, ttcp --quick
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["help" | "--help" | "-h"] | [_, "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        ["interop", words @ ..] => interop::run(words),
        ["hostile"] => robustness::hostile(20),
        ["hostile", strength] => robustness::hostile(number(strength)?),
        ["faults"] => robustness::faults(4000),
        ["faults", "--rounds", rounds] => robustness::faults(number(rounds)?),
        ["idl"] => idl::run(false),
        ["idl", "--compile"] => idl::run(true),
        ["golden"] => golden::run(),
        ["fuzz"] => fuzz::explore(20),
        ["fuzz", "--seconds", seconds] => fuzz::explore(number(seconds)?),
        ["fuzz", "--replay"] => fuzz::replay(),
        ["big-endian"] => big_endian::run(false),
        ["big-endian", "--all"] => big_endian::run(true),
        ["miri"] => miri::run(false),
        ["miri", "--all"] => miri::run(true),
        ["models"] => models::run(20),
        ["models", "--times", times] => models::run(number(times)?),
        ["features"] => features::run(false),
        ["features", "--all"] => features::run(true),
        ["windows"] => windows::run(windows::Chosen::All),
        ["windows", "--chosen"] => windows::run(windows::Chosen::Net),
        ["windows", "--only", name] => windows::run(windows::Chosen::Crate(name)),
        [windows::runner::NAME, words @ ..] => windows::runner::run(words),
        ["structure", words @ ..] => structure::run(words),
        ["full"] => full::run(),
        ["windows-check"] => place::cargo(&["check", "--workspace", "--target", "x86_64-pc-windows-gnu"]),
        _ => bail!("not a chore: {}\n\n{USAGE}", words.join(" ")),
    }
}

/// A number among the arguments, which is looked at before anything is built.
fn number<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N> {
    text.parse().with_context(|| format!("`{text}` is not a number that can be taken here"))
}
