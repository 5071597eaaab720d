//! Chores of the repository, run as `cargo xtask NAME`.
//!
//! Each chore is a module; this one only chooses. What they have in common: every child process is bounded in time and
//! ended by its handle, what is missing is installed or named, and nothing is skipped in silence.
#![forbid(unsafe_code)]

mod bounded;
mod compile;
mod compiler;
mod fuzz;
mod golden;
mod idl;
mod interop;
mod known;
mod matrix;
mod models;
mod packages;
mod peer;
mod place;
mod seeds;
mod windows;

use std::env;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::fuzz::Bound;

const USAGE: &str = "\
cargo xtask NAME

  interop [--only PREFIX] [--peer omniorb|jacorb] [--allow-absent]
                            run our ORB against omniORB's and JacORB's in GIOP 1.0, 1.1 and 1.2, both byte orders, both directions,
                            and compare our IDL compiler with omniidl; builds and installs what it needs; a peer that cannot be had
                            is a failure unless it may be absent
  idl [--compile]           compare what our IDL compiler and omniidl understand of the files that Debian ships and of ours;
                            then generate Rust from all of them with several settings, and have clippy read it (some minutes);
                            installs what it needs
  golden                    record the golden GIOP messages of orb/giop/tests again
  fuzz [--seconds N | --runs N]
                            replay every fuzz target's corpus, then fuzz each for N seconds (default 20) from a new
                            start, or with N inputs from the same start each time
  models [--times N]        run the models of threads in net and orb under many interleavings (default 20 times as many as
                            each says, about a minute)
  windows [--only CRATE]    build the tests of net and of most of orb for x86_64-pc-windows-gnu and run them under Wine;
                            installs what it needs
  windows-check             cargo check for x86_64-pc-windows-gnu
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
        ["interop", words @ ..] => interop::run(interop::Wanted::parse(words)?),
        ["idl"] => idl::run(false),
        ["idl", "--compile"] => idl::run(true),
        ["golden"] => golden::run(),
        ["fuzz"] => fuzz::run(Bound::Seconds(20)),
        ["fuzz", "--seconds", seconds] => fuzz::run(Bound::Seconds(seconds.parse()?)),
        ["fuzz", "--runs", runs] => fuzz::run(Bound::Runs(runs.parse()?)),
        ["models"] => models::run(20),
        ["models", "--times", times] => models::run(times.parse()?),
        ["windows"] => windows::run(None),
        ["windows", "--only", name] => windows::run(Some(name)),
        [windows::runner::NAME, words @ ..] => windows::runner::run(words),
        ["windows-check"] => place::cargo(&["check", "--workspace", "--target", "x86_64-pc-windows-gnu"]),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => bail!("not a chore: {}\n\n{USAGE}", words.join(" ")),
    }
}
