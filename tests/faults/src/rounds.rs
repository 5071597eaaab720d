//! Scripts by chance, one after another; the smallest that fails.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail};
use fastrand::Rng;

use crate::call::Told;
use crate::judge::{Case, judge};
use crate::script::{Kind, Script};
use crate::stage::Stage;

/// Scripts for one server, or for one and those that follow it when it is killed.
const BATCH: usize = 100;
/// How often a simpler script is tried before it counts as one that is played well.
const TRIES: usize = 3;

/// What came of so many calls.
#[derive(Debug, Default)]
pub struct Tally(BTreeMap<String, u32>);

impl Tally {
    fn add(&mut self, case: &Case) {
        let told = match &case.told {
            Told::Done => "done".to_owned(),
            Told::Nothing => "dropped".to_owned(),
            Told::Wrong(what) => what.clone(),
            Told::Refused(exception) => format!("{:?} {:?}", exception.kind(), exception.completed()),
        };
        *self.0.entry(told).or_default() += 1;
        if case.fired.is_some() {
            *self.0.entry("misfortunes".to_owned()).or_default() += 1;
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

/// The seed of this run: that of the environment, where it is said.
///
/// # Errors
/// If it is no number.
pub fn seed() -> Result<u64> {
    match std::env::var("SPANDREL_FAULTS_SEED") {
        Ok(text) => text.parse().context("SPANDREL_FAULTS_SEED is no number"),
        Err(_) => Ok(fastrand::u64(..)),
    }
}

/// Plays so many scripts against servers with these options.
///
/// # Errors
/// If a caller was told what is not so: by the smallest script that was found to do that.
pub fn run(seed: u64, rounds: usize, kind: Kind, options: &[&str]) -> Result<Tally> {
    let mut rng = Rng::with_seed(seed);
    let mut tally = Tally::default();
    let scripts: Vec<_> = (0..rounds).map(|_| Script { kind, ..Script::draw(&mut rng) }).collect();
    for batch in scripts.chunks(BATCH) {
        if let Err((script, error)) = play(batch, options, &mut tally) {
            let smallest = shrink(script, options);
            bail!("seed {seed}: {script}: {error:#}\nthe smallest that fails: {smallest}");
        }
    }
    Ok(tally)
}

/// Plays them on one stage; the first that failed.
fn play(scripts: &[Script], options: &[&str], tally: &mut Tally) -> Result<(), (Script, anyhow::Error)> {
    let first = scripts[0];
    let mut stage = Stage::set(first.kind, options).map_err(|error| (first, error))?;
    let mut cases = Vec::new();
    for &script in scripts {
        cases.extend(stage.play(script).map_err(|error| (script, error))?);
    }
    let executed = stage.finish().map_err(|error| (first, error))?;
    for case in &cases {
        let executed = executed.get(&case.number).copied().unwrap_or_default();
        judge(case, executed)
            .with_context(|| format!("{case:?}, {executed:?}"))
            .map_err(|error| (case.script, error))?;
        tally.add(case);
    }
    Ok(())
}

fn shrink(mut script: Script, options: &[&str]) -> String {
    let fails = |script: Script| play(&[script; TRIES], options, &mut Tally::default()).err();
    let mut reason = None;
    while let Some((simpler, error)) = script.simpler().into_iter().find_map(fails) {
        script = simpler;
        reason = Some(error);
    }
    match reason {
        Some(error) => format!("{script}: {error:#}"),
        None => format!("{script} (no simpler one does)"),
    }
}
