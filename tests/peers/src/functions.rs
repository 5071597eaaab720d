//! `cargo xtask functions`: the cost of function calls in C++ and in Rust (appendix C of paper 004), in one interleaved run.
//!
//! Each round runs `peers/functions` and `spandrel bench functions`, which have the same method, one after the other.
//! From the time of each kind of call, that of the empty iteration of the same program and round is subtracted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use spandrel_measure::stats::Summary;
use spandrel_measure::table::{Align, with_columns};
use xtask::workspace;

use crate::bounded::Bounded;
use crate::builds::Profile;
use crate::packages;

/// The calls of a run, as in `spandrel bench functions`.
const ITERATIONS: u64 = 10_000_000;
/// The time that a program has for one round.
const ROUND_TIMEOUT: Duration = Duration::from_secs(120);

/// The row of the empty iteration in each program.
const EMPTY_IN_CPP: &str = "empty iteration";
const EMPTY_IN_RUST: &str = "empty";

/// The rows: the paper's, which is also that of the program in C++, and the kind of `spandrel bench functions`.
const ROWS: [(Option<&str>, &str); 12] = [
    (Some(EMPTY_IN_CPP), EMPTY_IN_RUST),
    (Some("inline function call"), "inline-function"),
    (Some("non-inline function call"), "function"),
    (Some("inline member function call"), "inline-method"),
    (Some("non-inline member function call"), "method"),
    (Some("virtual member function call, optimizable"), "known-trait-object"),
    (Some("virtual member function call"), "trait-object"),
    (None, "inline-generic"),
    (None, "generic"),
    (None, "closure"),
    (None, "boxed-closure"),
    (None, "function-pointer"),
];

/// The nanoseconds of an iteration, by kind of call.
type Round = BTreeMap<String, f64>;

/// Runs so many rounds of both programs, and prints a table.
///
/// Without a compiler for C++ its column says so, and the task fails after the table.
pub(crate) fn run(rounds: usize, profile: Profile) -> Result<()> {
    ensure!(rounds > 0, "the number of rounds must be at least 1");
    let peers = workspace::target().join("peers");
    let built = packages::require(packages::CPP).and_then(|()| build(&peers));
    profile.build(&[("spandrel-cli", "spandrel")])?;
    let rust = profile.program("spandrel");
    let (mut in_cpp, mut in_rust) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if built.is_ok() && round % 2 == 0 {
            in_cpp.push(round_in_cpp(&peers, ITERATIONS)?);
        }
        in_rust.push(round_in_rust(&rust)?);
        if built.is_ok() && round % 2 == 1 {
            in_cpp.push(round_in_cpp(&peers, ITERATIONS)?);
        }
    }
    println!(
        "{rounds} rounds of {ITERATIONS} calls; nanoseconds beyond an empty iteration: median (lowest to highest)\n"
    );
    if profile == Profile::Dev {
        println!("The program in Rust is not optimised: its times are no measure.\n");
    }
    let columns =
        [("appendix C", Align::Left), ("C++", Align::Right), ("Rust", Align::Right), ("kind in Rust", Align::Left)];
    let mut table = with_columns(&columns);
    for (row, kind) in ROWS {
        let cpp = match (row, &built) {
            (None, _) => "-".to_owned(),
            (Some(_), Err(_)) => "absent".to_owned(),
            (Some(row), Ok(())) => cell(&in_cpp, row, EMPTY_IN_CPP)?,
        };
        let rust = cell(&in_rust, kind, EMPTY_IN_RUST)?;
        table.add_row([row.unwrap_or("-").to_owned(), cpp, rust, kind.to_owned()]);
    }
    println!("{table:#}\n\nThe row of the empty iteration is its whole time.");
    built.context("the rows in C++ are absent")
}

fn build(folder: &Path) -> Result<()> {
    let mut make = Command::new("make");
    make.args(["--silent", "-C", "peers/functions"]).arg(format!("OUT={}", std::path::absolute(folder)?.display()));
    workspace::run(make.current_dir(workspace::root()))
}

/// Runs a round of the program in C++.
fn round_in_cpp(folder: &Path, iterations: u64) -> Result<Round> {
    let mut command = Command::new(folder.join("functions"));
    let lines = output("the calls in C++", command.arg(iterations.to_string()))?;
    let round: Option<Round> = lines
        .iter()
        .map(|line| line.split_once('\t').and_then(|(row, nanos)| Some((row.to_owned(), nanos.parse().ok()?))))
        .collect();
    round.with_context(|| format!("not rows and nanoseconds: {lines:?}"))
}

/// Runs a round of our program, without pinning it to a core, as the one in C++ is not.
fn round_in_rust(program: &Path) -> Result<Round> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command.args(["bench", "functions", "--rounds", "1", "--placement", "free", "--out"]).arg(folder.path());
    output("spandrel bench functions", &mut command)?;
    let results: serde_json::Value = serde_json::from_slice(&fs::read(folder.path().join("functions.json"))?)?;
    let runs = results["measured"].as_array().context("functions.json has no runs")?;
    let run = |run: &serde_json::Value| Some((run["kind"].as_str()?.to_owned(), run["nanos"].as_f64()?));
    runs.iter().map(run).collect::<Option<Round>>().context("functions.json has other runs")
}

/// Runs a program to its successful end; returns the lines of its output.
fn output(name: &str, command: &mut Command) -> Result<Vec<String>> {
    let mut child = Bounded::start(name, command)?;
    let deadline = Instant::now() + ROUND_TIMEOUT;
    let mut lines = Vec::new();
    while let Some(line) = child.line(deadline)? {
        lines.push(line);
    }
    let status = child.finish(ROUND_TIMEOUT)?;
    if !status.success() {
        bail!("{name} ended with {status}: {}", child.stderr());
    }
    Ok(lines)
}

/// The median, lowest and highest time of a call over all rounds.
fn cell(rounds: &[Round], kind: &str, empty: &str) -> Result<String> {
    let time = |round: &Round| {
        let of = |kind: &str| round.get(kind).copied().with_context(|| format!("no time of `{kind}`"));
        Ok(if kind == empty { of(kind)? } else { (of(kind)? - of(empty)?).max(0.0) })
    };
    let times = rounds.iter().map(time).collect::<Result<Vec<f64>>>()?;
    let Summary { median, low, high, .. } = Summary::from_values(times).context("no round")?;
    Ok(format!("{median:.2} ({low:.2} to {high:.2})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_beyond_the_empty_iteration_of_their_round() {
        let round = |empty: f64, call: f64| Round::from([("empty".to_owned(), empty), ("function".to_owned(), call)]);
        let rounds = [round(1.0, 3.0), round(2.0, 3.5), round(1.0, 0.5)];
        assert_eq!(cell(&rounds, "function", "empty").unwrap(), "1.50 (0.00 to 2.00)");
        assert_eq!(cell(&rounds, "empty", "empty").unwrap(), "1.00 (1.00 to 2.00)");
        assert_eq!(cell(&rounds, "method", "empty").unwrap_err().to_string(), "no time of `method`");
    }

    #[test]
    fn the_program_in_cpp_has_the_rows_of_the_paper() {
        if packages::find(&["g++"]).is_none() {
            assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "g++ is absent");
            eprintln!("not run: g++ is absent");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        build(folder.path()).unwrap();
        let round = round_in_cpp(folder.path(), 1_000).unwrap();
        let rows: Vec<&str> = ROWS.iter().filter_map(|(row, _)| *row).collect();
        assert_eq!(round.len(), rows.len());
        assert!(rows.iter().all(|row| round.contains_key(*row)), "{round:?}");
        assert!(round_in_cpp(folder.path(), 0).unwrap_err().to_string().contains("usage: functions ITERATIONS"));
    }
}
