//! The runner that Cargo calls for each test program: runs it under Wine with a deadline, and knows Wine's
//! own faults.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::faults::{self, Fault};
use super::report::{self, EntryKind};
use crate::bounded::Bounded;

/// The task name under which Cargo calls this runner.
pub(crate) const NAME: &str = "run-under-wine";
/// The environment variable that names Wine's loader.
pub(crate) const LOADER: &str = "SPANDREL_WINE_LOADER";

/// The deadline of one test program.
const LIMIT: Duration = Duration::from_secs(300);
/// The deadlines of longer programs, by package and target: they run many of their tests again, with other servers.
const LONGER_LIMITS: &[(&str, &str, Duration)] = &[
    ("spandrel-orb-tests", "connections", Duration::from_secs(1200)),
    ("spandrel-orb-tests", "invocation", Duration::from_secs(900)),
];
/// The deadline of one test that is known to fail.
const FAULT_LIMIT: Duration = Duration::from_secs(10);

/// Runs a test program with its arguments. Tests that are known to fail run separately, and their failure is
/// no failure.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let [program, arguments @ ..] = words else { bail!("no program to run") };
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    let target = target_name(program);
    let known_faults = faults::of(&package, target);
    let result =
        run_all(&package, program, &[arguments, &skip_options(&known_faults)].concat(), limit(&package, target));
    let result = known_faults.into_iter().fold(result, |result, fault| {
        let known = run_known_fault(&package, program, fault);
        result.and(known)
    });
    if result.is_err() {
        report::add(&package, EntryKind::Failed, target)?;
    }
    result
}

/// The deadline of a test program.
fn limit(package: &str, target: &str) -> Duration {
    let longer = LONGER_LIMITS.iter().find(|(of, name, _)| (*of, *name) == (package, target));
    longer.map_or(LIMIT, |(_, _, limit)| *limit)
}

/// The harness's options for skipping these tests. They match by the whole name, which needs one `--exact`.
fn skip_options(known_faults: &[&Fault]) -> Vec<&'static str> {
    let exact = (!known_faults.is_empty()).then_some("--exact");
    exact.into_iter().chain(known_faults.iter().flat_map(|fault| ["--skip", fault.test])).collect()
}

/// The target that Cargo built the program from: its file name without extension and hash.
fn target_name(program: &str) -> &str {
    let stem = Path::new(program).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem.rsplit_once('-').map_or(stem, |(name, _)| name)
}

/// Runs the program and shows its output.
fn run_all(package: &str, program: &str, arguments: &[&str], limit: Duration) -> Result<()> {
    let mut child = start(program, arguments)?;
    let deadline = Instant::now() + limit;
    let mut finished = Vec::new();
    loop {
        match child.line(deadline) {
            Ok(Some(line)) => {
                println!("{line}");
                finished.extend(finished_test(&line).map(str::to_owned));
                if let Some(number) = passed(&line) {
                    report::add(package, EntryKind::Passed, &number.to_string())?;
                }
            }
            Ok(None) => break,
            Err(error) => {
                eprint!("{}", child.stderr());
                let unfinished = unfinished(program, &finished).unwrap_or_default();
                return Err(error.context(format!("not finished: {}", unfinished.join(", "))));
            }
        }
    }
    eprint!("{}", child.stderr());
    let status = child.finish(LIMIT)?;
    if !status.success() {
        bail!("{} exited with {status}", target_name(program));
    }
    Ok(())
}

/// Runs a test that is known to fail, and reports if it passes.
fn run_known_fault(package: &str, program: &str, fault: &Fault) -> Result<()> {
    let child = start(program, &["--exact", fault.test])?;
    let deadline = Instant::now() + FAULT_LIMIT;
    let mut passes = false;
    // A timeout is a failure.
    while let Some(line) = child.line(deadline).unwrap_or_default() {
        if line == "running 0 tests" {
            bail!("{} is listed as failing under Wine, but there is no such test", fault.test);
        }
        passes |= passed(&line) == Some(1);
    }
    let line = match passes {
        true => format!("passes although listed: {}", fault.test),
        false => format!("known Wine fault: {}: {}", fault.test, fault.cause.reason),
    };
    println!("{line}");
    report::add(package, EntryKind::Note, &line)
}

fn start(program: &str, arguments: &[&str]) -> Result<Bounded> {
    let loader = env::var_os(LOADER).context("only `cargo xtask windows` runs this")?;
    Bounded::start(target_name(program), Command::new(loader).arg(program).args(arguments))
}

/// The program's tests other than these.
fn unfinished(program: &str, finished: &[String]) -> Result<Vec<String>> {
    let child = start(program, &["--list"])?;
    let deadline = Instant::now() + FAULT_LIMIT;
    let mut names = Vec::new();
    while let Some(line) = child.line(deadline)? {
        names.extend(line.strip_suffix(": test").map(str::to_owned).filter(|name| !finished.contains(name)));
    }
    Ok(names)
}

/// The test that a line of the harness reports as finished.
fn finished_test(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("test ")?.split_once(" ... ")?;
    Some(name.trim_end_matches(" - should panic"))
}

/// The number of passed tests, if the line is the harness's last.
fn passed(line: &str) -> Option<u32> {
    let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
    rest.split_once(" passed;")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_harness_are_parsed() {
        assert_eq!(finished_test("test tests::one ... ok"), Some("tests::one"));
        assert_eq!(finished_test("test tests::two - should panic ... FAILED"), Some("tests::two"));
        assert_eq!(finished_test("test result: ok. 5 passed; 0 failed; 0 ignored"), None);
        assert_eq!(passed("test result: FAILED. 7 passed; 1 failed; 0 ignored"), Some(7));
        assert_eq!(passed("test result ... ok"), None);
    }

    #[test]
    fn known_faults_are_skipped_by_their_full_names() {
        assert!(skip_options(&[]).is_empty());
        let known_faults = faults::of("spandrel-ipc", "ipc");
        let options = skip_options(&known_faults);
        assert_eq!(options.len(), 1 + 2 * known_faults.len());
        assert_eq!(options.iter().filter(|option| **option == "--exact").count(), 1);
    }

    #[test]
    fn a_longer_program_has_a_longer_deadline() {
        assert_eq!(limit("spandrel-orb-tests", "servants"), LIMIT);
        assert!(limit("spandrel-orb-tests", "connections") > LIMIT);
    }

    #[test]
    fn a_program_is_named_after_its_target() {
        assert_eq!(
            target_name("/target/x86_64-pc-windows-gnu/debug/deps/spandrel_ipc-862b1e3c7756ab05.exe"),
            "spandrel_ipc"
        );
        assert_eq!(target_name("/tmp/rustdoctest/rust_out.exe"), "rust_out");
    }
}
