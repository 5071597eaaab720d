//! Runs the series of floods.

use std::time::{Duration, Instant};

use spandrel_measure::units::{Octets, grouped};

use super::results::{Results, Run};
use super::settings::Settings;
use crate::LabError;
use crate::machine::Machine;
use crate::mechanism::{Job, MechanismName, Work};
use crate::peer::pair::{Launch, Pair};
use crate::progress::Progress;
use crate::workload::{CallKind, DataType, Flood};

/// Data of the warm-up floods, one per mechanism.
const WARM_UP_OCTETS: u64 = 4 << 20;
/// The factor by which runs are shortened when the first round exceeds its time.
const SHORTER: u64 = 8;

/// Runs the whole series and summarises it.
///
/// # Errors
/// If the settings are invalid, or a run fails: a figure that is missing would be mistaken for one that is
/// good.
pub fn run(settings: &Settings, launch: Launch<'_>) -> Result<Results, LabError> {
    settings.check()?;
    let machine = Machine::here();
    let mut pair = Pair::start(launch, settings.placement, settings.remote.as_deref())?;
    let cells = settings.cells();
    let runs = cells.len() as u64 * u64::from(settings.repetitions) * settings.mechanisms.len() as u64;
    let mut series = Series { settings, start: Instant::now(), progress: Progress::begin(runs), runs: Vec::new() };
    let outcome = series.all_rounds(&mut pair, &cells);
    series.progress.finish();
    outcome?;
    Ok(Results::from_measurements(machine, settings.clone(), series.runs))
}

struct Series<'a> {
    settings: &'a Settings,
    start: Instant,
    progress: Progress,
    runs: Vec<Run>,
}

impl Series<'_> {
    fn all_rounds(&mut self, pair: &mut Pair, cells: &[(CallKind, DataType, usize)]) -> Result<(), LabError> {
        self.warm_up(pair)?;
        for round in 0..self.settings.repetitions {
            for (call, data, buffer_octets) in cells {
                let overdue = self.is_overdue();
                if overdue && round > 0 {
                    return Ok(());
                }
                let total = if overdue { self.settings.bytes.0 / SHORTER } else { self.settings.bytes.0 };
                let flood = Flood::with_total(*data, *call, *buffer_octets, total);
                // The order rotates from round to round, so that no mechanism always follows the same one.
                let mut order = self.settings.mechanisms.clone();
                let turn = round as usize % order.len();
                order.rotate_left(turn);
                for mechanism in order {
                    self.one(pair, round, mechanism, flood)?;
                }
            }
        }
        Ok(())
    }

    fn is_overdue(&self) -> bool {
        self.settings.budget_seconds.is_some_and(|budget| self.start.elapsed() >= Duration::from_secs(budget))
    }

    fn warm_up(&self, pair: &mut Pair) -> Result<(), LabError> {
        let octets = WARM_UP_OCTETS.min(self.settings.bytes.0);
        for mechanism in &self.settings.mechanisms {
            let flood = Flood::with_total(
                self.settings.types[0],
                self.settings.calls[0],
                self.settings.sizes[0].0 as usize,
                octets,
            );
            pair.run(&self.job(*mechanism, flood), Duration::from_secs(self.settings.limit_seconds))?;
        }
        Ok(())
    }

    fn one(&mut self, pair: &mut Pair, round: u32, mechanism: MechanismName, flood: Flood) -> Result<(), LabError> {
        let label = format!("{mechanism} {} {} {}", flood.call, flood.data, Octets(flood.buffer_octets as u64));
        self.progress.at(&label);
        let outcome = pair.run(&self.job(mechanism, flood), Duration::from_secs(self.settings.limit_seconds))?;
        self.progress.step(&label, &format!("{} Mbit/s", grouped(outcome.mbps())));
        self.runs.push(Run { round, mechanism, flood, outcome });
        Ok(())
    }

    fn job(&self, mechanism: MechanismName, flood: Flood) -> Job {
        Job { mechanism, sockets: self.settings.sockets, work: Work::Flood(flood) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::SocketOptions;
    use crate::placement::Placement;

    pub(crate) fn settings() -> Settings {
        Settings {
            types: vec![DataType::Octet, DataType::Struct],
            sizes: vec![Octets(1024), Octets(2048)],
            calls: vec![CallKind::OneWay],
            mechanisms: vec![MechanismName::C, MechanismName::Ipc],
            bytes: Octets(1 << 20),
            repetitions: 3,
            sockets: SocketOptions { queue_octets: None },
            placement: Placement::Free,
            remote: None,
            limit_seconds: 10,
            budget_seconds: None,
        }
    }

    #[test]
    fn a_round_visits_every_cell() {
        let cells = settings().cells();
        assert_eq!(cells.len(), 4);
        assert_eq!(cells[0], (CallKind::OneWay, DataType::Octet, 1024));
        assert_eq!(cells[3], (CallKind::OneWay, DataType::Struct, 2048));
    }

    #[test]
    fn invalid_settings_are_refused() {
        assert!(settings().check().is_ok());
        assert!(Settings { types: Vec::new(), ..settings() }.check().is_err());
        assert!(Settings { repetitions: 0, ..settings() }.check().is_err());
        let error = Settings { sizes: vec![Octets(1 << 40)], ..settings() }.check().unwrap_err();
        assert!(error.to_string().contains("a buffer of 1024G octets"), "{error}");
    }
}
