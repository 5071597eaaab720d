//! Runs the rounds of lookups and calls.

use std::time::{Duration, Instant};

use spandrel_measure::units::grouped;

use super::calls::{ALGORITHMS, CallPairs, CallPredictions, MeasuredCall};
use super::lookup::{self, Objects, RunLimit};
use super::requests::Requests;
use super::results::{Measurement, Results};
use super::settings::{Settings, Strategy};
use crate::LabError;
use crate::counter::Instructions;
use crate::machine::Machine;
use crate::placement::on_core;
use crate::progress::Progress;

/// Runs the whole series and summarises it.
///
/// # Errors
/// If the settings are invalid, the core is not available, or a call fails.
pub fn run(settings: &Settings) -> Result<Results, LabError> {
    settings.check()?;
    let machine = Machine::here();
    let (measured, calls) = on_core(settings.core, || Series::new(settings).rounds())??;
    Ok(Results::from_measurements(machine, settings.clone(), measured, calls))
}

struct Series<'s> {
    settings: &'s Settings,
    start: Instant,
    progress: Progress,
}

impl<'s> Series<'s> {
    fn new(settings: &'s Settings) -> Self {
        let situations = settings.operations.len() * settings.algorithms.len();
        let lookups: usize =
            settings.objects.iter().map(|count| supported_strategies(settings, *count).len() * situations).sum();
        let calls = if settings.calls == 0 { 0 } else { ALGORITHMS.len() * CallPredictions::ALL.len() };
        let progress = Progress::begin((lookups + calls) as u64 * u64::from(settings.rounds));
        Self { settings, start: Instant::now(), progress }
    }

    fn rounds(mut self) -> Result<(Vec<Measurement>, Vec<MeasuredCall>), LabError> {
        let calls = self.calls()?;
        let mut measured = Vec::new();
        for (nth, count) in self.settings.objects.iter().enumerate() {
            // The time left is shared by the remaining numbers of objects.
            let left = self.settings.objects.len() - nth;
            let budget = self.settings.budget_seconds.map(|seconds| {
                let now = self.start.elapsed();
                now + Duration::from_secs(seconds).saturating_sub(now) / left as u32
            });
            self.lookups(*count, budget, &mut measured)?;
        }
        self.progress.finish();
        Ok((measured, calls))
    }

    fn calls(&mut self) -> Result<Vec<MeasuredCall>, LabError> {
        let mut measured = Vec::new();
        if self.settings.calls > 0 {
            let parties = CallPairs::new()?;
            for round in 0..self.settings.rounds {
                measured.extend(parties.round(self.settings, round, &mut self.progress)?);
            }
            parties.end()?;
        }
        Ok(measured)
    }

    /// All rounds with that many objects: a million of them are not created again for each round.
    fn lookups(
        &mut self,
        count: u32,
        budget: Option<Duration>,
        measured: &mut Vec<Measurement>,
    ) -> Result<(), LabError> {
        let settings = self.settings;
        let counter = Instructions::start();
        let interfaces: Vec<_> =
            settings.operations.iter().map(|count| lookup::interface(*count)).collect::<Result<_, _>>()?;
        let mut made: Vec<(Strategy, Objects)> = Vec::new();
        for strategy in supported_strategies(settings, count) {
            self.progress.at(&format!("{} objects for {strategy}", grouped(f64::from(count))));
            made.push((strategy, Objects::new(strategy, count, settings.adapters)?));
        }
        let run_limit =
            settings.lookups.map_or(RunLimit::Time(Duration::from_micros(settings.run_micros)), RunLimit::Lookups);
        for round in 0..settings.rounds {
            if round > 0 && budget.is_some_and(|budget| self.start.elapsed() >= budget) {
                break;
            }
            for (operations, interface) in settings.operations.iter().zip(&interfaces) {
                lookup::choose(interface);
                for algorithm in &settings.algorithms {
                    let mut order: Vec<&(Strategy, Objects)> = made.iter().collect();
                    order.rotate_left(round as usize % made.len().max(1));
                    // The same requests for every strategy in a round.
                    let requests = Requests::new(*algorithm, count, *operations, u64::from(round) + 1);
                    for (strategy, objects) in order {
                        let label = format!("{strategy}, {} objects, {algorithm}", grouped(f64::from(count)));
                        self.progress.at(&label);
                        let costs = objects.cost(&requests, run_limit, counter.as_ref());
                        self.progress.step(&label, &format!("{:.0} ns for a lookup", costs.both.nanos));
                        let (strategy, algorithm, operations) = (*strategy, *algorithm, *operations);
                        measured.push(Measurement { objects: count, operations, algorithm, strategy, round, costs });
                    }
                }
            }
        }
        Ok(())
    }
}

fn supported_strategies(settings: &Settings, objects: u32) -> Vec<Strategy> {
    let all = settings.strategies.iter().copied();
    all.filter(|strategy| strategy.unsupported_reason(objects).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::requests::Algorithm;
    use super::*;

    fn settings() -> Settings {
        Settings {
            strategies: Strategy::ALL.to_vec(),
            objects: vec![1, 20_000],
            operations: vec![1, 10],
            adapters: 2,
            algorithms: Algorithm::ALL.to_vec(),
            rounds: 2,
            run_micros: 1_000,
            lookups: Some(200),
            calls: 0,
            core: None,
            budget_seconds: None,
        }
    }

    #[test]
    fn every_supported_strategy_runs_in_every_round() {
        let results = run(&settings()).unwrap();
        assert_eq!(results.rows.len(), 2 * 2 * 4 * 6);
        assert!(results.calls.is_empty());
        for row in &results.rows {
            let left_out = row.strategy == Strategy::Linear && row.objects == 20_000;
            assert_eq!(row.absent.is_some(), left_out, "{row:?}");
            assert_eq!(row.both().is_some_and(|both| both.nanos.count == 2), !left_out, "{row:?}");
        }
    }

    #[test]
    fn invalid_settings_are_refused() {
        assert!(settings().check().is_ok());
        assert!(Settings { rounds: 0, ..settings() }.check().is_err());
        assert!(Settings { adapters: 0, ..settings() }.check().is_err());
        assert!(Settings { algorithms: Vec::new(), ..settings() }.check().is_err());
        let error = Settings { operations: vec![0], ..settings() }.check().unwrap_err();
        assert!(error.to_string().ends_with("operations, not 0"), "{error}");
    }
}
