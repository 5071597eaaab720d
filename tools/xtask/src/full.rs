//! `cargo xtask full`: the checks that draw random cases, or take too long for each change.
//!
//! `.ci/run` has the checks whose result depends on a change alone. Here each check explores, and prints its
//! duration. A failed check does not stop the others.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::{
    big_endian, book, features, fuzz, hosts, idl, interop, miri, models, package, proxy, robustness, servers, services,
    stacks, tango, windows, workspace,
};

/// The name of a step, and its function.
type Step = (&'static str, fn() -> Result<()>);

const STEPS: [Step; 21] = [
    ("features --all", || features::run(true)),
    ("tests, with more random inputs", tests),
    ("models of threads", || models::run(20)),
    ("miri --all", || miri::run(true)),
    ("big-endian --all", || big_endian::run(true)),
    ("windows", || windows::run(windows::CrateSelection::All)),
    ("idl --compile", || idl::run(true)),
    ("interop --tshark", || interop::run(&["--tshark"])),
    ("services, 500 kills", || services::run(500)),
    ("proxy", || proxy::run(50)),
    ("tango", tango::run),
    ("stacks", stacks::run),
    ("servers of paper 004", || {
        servers::run(None)?;
        servers::experiment::run(&["--samples", "5", "--requests", "2000"])
    }),
    ("orchestra-hosts", hosts::run),
    ("extra workspace: naming over etcd", services::over_etcd),
    ("hostile peers", || robustness::hostile(20)),
    ("faults", || robustness::faults(4000)),
    ("fuzzing, 60 seconds a target", || fuzz::explore(60)),
    ("book", book::run),
    ("package --verify", package::verify),
    ("ttcp --quick", || workspace::cargo(&["run", "--release", "--locked", "--", "ttcp", "--quick"])),
];

fn tests() -> Result<()> {
    let mut command = Command::new(workspace::cargo_program());
    command.args(["test", "--quiet", "--workspace", "--no-fail-fast"]).env("PROPTEST_CASES", "1024");
    workspace::run(command.current_dir(workspace::root()))
}

/// Runs the steps whose names begin with one of these words, all without a word, and then fails if one has
/// failed.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    run_all(&selected(words)?)
}

fn selected(words: &[&str]) -> Result<Vec<Step>> {
    if let Some(word) = words.iter().find(|word| !STEPS.iter().any(|(name, _)| name.starts_with(**word))) {
        let names: Vec<_> = STEPS.iter().map(|(name, _)| *name).collect();
        bail!("no step begins with `{word}`; there are: {}", names.join(", "));
    }
    let is_selected = |name: &str| words.is_empty() || words.iter().any(|word| name.starts_with(word));
    Ok(STEPS.into_iter().filter(|(name, _)| is_selected(name)).collect())
}

fn run_all(steps: &[Step]) -> Result<()> {
    let mut failed = Vec::new();
    let mut times = Vec::new();
    for (name, step) in steps {
        println!("\n== {name}");
        let start = Instant::now();
        let result = step();
        if let Err(error) = &result {
            eprintln!("{name}: {error:#}");
            failed.push(*name);
        }
        let seconds = start.elapsed().as_secs();
        let answer = if result.is_ok() { "passed" } else { "failed" };
        times.push(format!("{:>3} min {:>2} s  {answer}  {name}", seconds / 60, seconds % 60));
    }
    println!("\n{}", times.join("\n"));
    if !failed.is_empty() {
        bail!("{} of {} steps failed: {}", failed.len(), steps.len(), failed.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    static RUN: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn steps_are_selected_by_the_beginning_of_their_names() {
        let names = |words: &[&str]| selected(words).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&[]).len(), STEPS.len());
        assert_eq!(names(&["models", "miri"]), ["models of threads", "miri --all"]);
        assert!(
            selected(&["moon"]).unwrap_err().to_string().starts_with("no step begins with `moon`; there are: feat")
        );
    }

    #[test]
    fn a_failed_step_does_not_stop_later_steps() {
        let fails: Step = ("one", || bail!("no"));
        let passes: Step = ("two", || {
            RUN.fetch_add(1, Relaxed);
            Ok(())
        });
        let error = run_all(&[fails, passes]).unwrap_err();
        assert_eq!(error.to_string(), "1 of 2 steps failed: one");
        assert_eq!(RUN.load(Relaxed), 1);
        run_all(&[passes]).unwrap();
    }
}
