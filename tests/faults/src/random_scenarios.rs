//! Runs random scenarios, and minimizes a failing one.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail};
use fastrand::Rng;

use crate::call::Outcome;
use crate::judge::{Case, judge};
use crate::scenario::{Scenario, ServerKind};
use crate::test_bed::TestBed;

/// The number of scenarios for one server and its successors.
const BATCH: usize = 100;
/// The number of runs after which a simpler scenario counts as passing.
const TRIES: usize = 3;

/// The number of calls with each outcome.
#[derive(Debug, Default)]
pub struct Tally(BTreeMap<String, u32>);

impl Tally {
    fn add(&mut self, case: &Case) {
        let outcome = match &case.outcome {
            Outcome::Returned => "done".to_owned(),
            Outcome::Ignored => "dropped".to_owned(),
            Outcome::Violation(what) => what.clone(),
            Outcome::Raised(exception) => format!("{:?} {:?}", exception.kind(), exception.completed()),
        };
        *self.0.entry(outcome).or_default() += 1;
        if case.injected.is_some() {
            *self.0.entry("faults".to_owned()).or_default() += 1;
        }
    }

    pub fn count(&self, what: &str) -> u32 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|(what, count)| format!("{what} {count}")).collect();
        f.write_str(&parts.join(", "))
    }
}

/// The seed of this run, from the environment or random.
///
/// # Errors
/// If the variable is not a number.
pub fn seed() -> Result<u64> {
    match std::env::var("SPANDREL_FAULTS_SEED") {
        Ok(text) => text.parse().context("SPANDREL_FAULTS_SEED is not a number"),
        Err(_) => Ok(fastrand::u64(..)),
    }
}

/// Runs random scenarios against servers with these options.
///
/// # Errors
/// If a check fails; the error names the minimized scenario.
pub fn run(seed: u64, count: usize, kind: ServerKind, options: &[&str]) -> Result<Tally> {
    let mut rng = Rng::with_seed(seed);
    let mut tally = Tally::default();
    let scenarios: Vec<_> = (0..count).map(|_| Scenario { server: kind, ..Scenario::random(&mut rng) }).collect();
    for batch in scenarios.chunks(BATCH) {
        if let Err((scenario, error)) = run_batch(batch, options, &mut tally) {
            let smallest = minimize(scenario, options);
            bail!("seed {seed}: {scenario}: {error:#}\nthe minimized scenario: {smallest}");
        }
    }
    Ok(tally)
}

/// Runs the scenarios on one test bed; the error is that of the first failure.
fn run_batch(scenarios: &[Scenario], options: &[&str], tally: &mut Tally) -> Result<(), (Scenario, anyhow::Error)> {
    let first = scenarios[0];
    let mut test_bed = TestBed::new(first.server, options).map_err(|error| (first, error))?;
    let mut cases = Vec::new();
    for &scenario in scenarios {
        cases.extend(test_bed.run(scenario).map_err(|error| (scenario, error))?);
    }
    let executed = test_bed.finish().map_err(|error| (first, error))?;
    for case in &cases {
        let executed = executed.get(&case.number).copied().unwrap_or_default();
        judge(case, executed)
            .with_context(|| format!("{case:?}, {executed:?}"))
            .map_err(|error| (case.scenario, error))?;
        tally.add(case);
    }
    Ok(())
}

fn minimize(mut scenario: Scenario, options: &[&str]) -> String {
    let fails = |scenario: Scenario| run_batch(&[scenario; TRIES], options, &mut Tally::default()).err();
    let mut reason = None;
    while let Some((simpler, error)) = scenario.simpler().into_iter().find_map(fails) {
        scenario = simpler;
        reason = Some(error);
    }
    match reason {
        Some(error) => format!("{scenario}: {error:#}"),
        None => format!("{scenario} (no simpler one fails)"),
    }
}
