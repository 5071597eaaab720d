//! Runs the rounds of the marshaling experiment.

use std::time::{Duration, Instant};

use super::contender::{Bench, Contender, DIRECTIONS, Direction};
use super::data::Data;
use super::results::{Measurement, Results};
use super::settings::Settings;
use crate::LabError;
use crate::machine::Machine;
use crate::placement::on_core;
use crate::progress::Progress;
use crate::workload::DataType;

/// Runs the whole series and summarises it.
///
/// # Errors
/// If the settings are invalid, or the core is not available.
pub fn run(settings: &Settings) -> Result<Results, LabError> {
    settings.check()?;
    let machine = Machine::here();
    let measured = on_core(settings.core, || rounds(settings))??;
    Ok(Results::from_measurements(machine, settings.clone(), measured))
}

/// Writes or reads one sequence that often, without a clock: for profilers.
///
/// # Errors
/// If the contender cannot marshal the sequence.
pub fn repeat(
    contender: Contender,
    direction: Direction,
    data: DataType,
    octets: usize,
    turns: u64,
) -> Result<(), LabError> {
    Bench::new(contender, &Data::new(data, octets))?.repeat(direction, turns)
}

fn rounds(settings: &Settings) -> Result<Vec<Measurement>, LabError> {
    let start = Instant::now();
    let runs = settings.sizes.len() * settings.types.len() * settings.contenders.len();
    let mut progress = Progress::begin(runs as u64 * u64::from(settings.rounds));
    let mut measured = Vec::new();
    'rounds: for round in 0..settings.rounds {
        for &octets in &settings.sizes {
            for &data_type in &settings.types {
                let overdue =
                    settings.budget_seconds.is_some_and(|budget| start.elapsed() >= Duration::from_secs(budget));
                if overdue && round > 0 {
                    break 'rounds;
                }
                let mut order = settings.contenders.clone();
                let turn = round as usize % order.len();
                order.rotate_left(turn);
                for contender in order {
                    let label = format!("{contender} with {octets} octets of {data_type}");
                    progress.at(&label);
                    measured.extend(one(settings, contender, data_type, octets, round)?);
                    let rate = measured.last().map_or(0.0, |last| last.rate);
                    progress.step(&label, &format!("{rate:.0} MiB/s read"));
                }
            }
        }
    }
    progress.finish();
    Ok(measured)
}

fn one(
    settings: &Settings,
    contender: Contender,
    data_type: DataType,
    octets: usize,
    round: u32,
) -> Result<Vec<Measurement>, LabError> {
    let data = Data::new(data_type, octets);
    let mut bench = Bench::new(contender, &data)?;
    let span = Duration::from_micros(settings.run_micros);
    let measure = |direction| {
        let rate = bench.rate(direction, span)?;
        Ok(Measurement { octets, data_type, direction, round, contender, rate })
    };
    DIRECTIONS.into_iter().map(measure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            contenders: Contender::all(),
            types: DataType::ALL.to_vec(),
            sizes: vec![240, 1_024],
            rounds: 2,
            run_micros: 10,
            core: None,
            budget_seconds: None,
        }
    }

    #[test]
    fn every_contender_runs_in_every_round_in_both_directions() {
        let results = run(&settings()).unwrap();
        assert_eq!(results.rows.len(), 2 * 6 * 2 * Contender::all().len());
        assert!(results.rows.iter().all(|row| row.rate.count == 2 && row.rate.median > 0.0));
        assert!(results.rows.iter().all(|row| row.over_original.is_some()));
    }

    #[test]
    fn invalid_settings_are_refused() {
        assert!(settings().check().is_ok());
        assert!(Settings { types: Vec::new(), ..settings() }.check().is_err());
        assert!(Settings { run_micros: 0, ..settings() }.check().is_err());
        let error = Settings { sizes: vec![3], ..settings() }.check().unwrap_err();
        assert!(error.to_string().ends_with("not 3"), "{error}");
    }
}
