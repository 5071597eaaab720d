//! Runs the rounds of timers.

use std::time::{Duration, Instant};

use spandrel_measure::units::grouped;

use super::cost;
use super::results::{Measurement, Results};
use super::settings::{Settings, Strategy};
use crate::LabError;
use crate::machine::Machine;
use crate::placement::on_core;
use crate::progress::Progress;

/// Runs the whole series and summarises it.
///
/// # Errors
/// If the settings are invalid, or the core is not available.
pub fn run(settings: &Settings) -> Result<Results, LabError> {
    settings.check()?;
    let machine = Machine::here();
    let measured = on_core(settings.core, || rounds(settings))?;
    Ok(Results::from_measurements(machine, settings.clone(), measured))
}

fn rounds(settings: &Settings) -> Vec<Measurement> {
    let start = Instant::now();
    let supported_strategies = |count: u32| {
        let all = settings.strategies.iter().copied();
        all.filter(|strategy| strategy.unsupported_reason(count).is_none()).collect::<Vec<Strategy>>()
    };
    let runs: usize = settings.counts.iter().map(|count| supported_strategies(*count).len()).sum();
    let mut progress = Progress::begin(runs as u64 * u64::from(settings.rounds));
    let mut measured = Vec::new();
    'rounds: for round in 0..settings.rounds {
        for count in &settings.counts {
            let overdue = settings.budget_seconds.is_some_and(|budget| start.elapsed() >= Duration::from_secs(budget));
            if overdue && round > 0 {
                break 'rounds;
            }
            let mut order = supported_strategies(*count);
            let turn = round as usize % order.len().max(1);
            order.rotate_left(turn);
            for strategy in order {
                let label = format!("{strategy} with {} timers", grouped(f64::from(*count)));
                progress.at(&label);
                // The same times for every strategy in a round.
                let mut random = fastrand::Rng::with_seed(u64::from(round) + 1);
                let horizon = Duration::from_secs(settings.horizon_seconds.into());
                let nanos = cost::measure(strategy, *count, horizon, &mut random);
                progress.step(&label, &format!("{:.0} ns to schedule one", nanos[0]));
                measured.push(Measurement { count: *count, round, strategy, nanos });
            }
        }
    }
    progress.finish();
    measured
}

#[cfg(test)]
mod tests {
    use spandrel_reactor::timer::TimerStrategy;

    use super::*;

    fn settings() -> Settings {
        Settings {
            strategies: Strategy::all(),
            counts: vec![10, 20_000],
            rounds: 2,
            horizon_seconds: 300,
            core: None,
            budget_seconds: None,
        }
    }

    #[test]
    fn every_supported_strategy_runs_in_every_round() {
        let results = run(&settings()).unwrap();
        assert_eq!(results.rows.len(), 2 * 4);
        for row in &results.rows {
            let left_out = row.strategy.0 == TimerStrategy::List && row.count == 20_000;
            assert_eq!(row.absent.is_some(), left_out, "{row:?}");
            let summarised =
                row.nanos.is_some_and(|nanos| nanos.iter().all(|nanos| nanos.count == 2 && nanos.median > 0.0));
            assert_eq!(summarised, !left_out, "{row:?}");
        }
    }

    #[test]
    fn invalid_settings_are_refused() {
        assert!(settings().check().is_ok());
        assert!(Settings { rounds: 0, ..settings() }.check().is_err());
        let error = Settings { counts: vec![0], ..settings() }.check().unwrap_err();
        assert!(error.to_string().ends_with("not 0"), "{error}");
    }
}
