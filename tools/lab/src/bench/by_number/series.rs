//! Runs the interleaved rounds of all contenders.

use std::time::{Duration, Instant};

use spandrel_measure::units::grouped;

use super::experiment::{Experiment, Subject};
use super::results::{Absent, Measurement, Results};
use super::settings::Settings;
use crate::LabError;
use crate::machine::Machine;
use crate::peer::pair::Launch;
use crate::placement::{Placement, cores, on_core};
use crate::progress::Progress;

/// The duration of the warm-up run of each contender and number, as a fraction of a run.
pub(in crate::bench) const WARM_UP_PART: u32 = 10;

/// Runs the whole series and summarises it. A contender that is not available, or cannot serve such a number,
/// keeps its row, with the reason.
///
/// # Errors
/// If the settings are invalid, or a run fails.
pub(in crate::bench) fn run<E: Experiment>(
    settings: &Settings<E::Contender>,
    launch: Launch<'_>,
) -> Result<Results<E::Contender>, LabError> {
    E::check(settings)?;
    let machine = Machine::here();
    let runs = settings.contenders.len() * settings.placements.len() * settings.numbers.len();
    let progress = Progress::begin((runs * settings.rounds as usize) as u64);
    let mut series = Series { start: Instant::now(), progress, absent: Vec::new(), measured: Vec::new() };
    let mut outcome = Ok(());
    for (index, placement) in settings.placements.iter().enumerate() {
        outcome = outcome.and_then(|()| series.placed::<E>(settings, launch, *placement, index + 1));
    }
    series.progress.finish();
    outcome?;
    let base = if settings.contenders.contains(&E::BASE) { E::BASE } else { settings.contenders[0] };
    let Series { measured, absent, .. } = series;
    Ok(Results::from_measurements(E::NAME, &base.to_string(), machine, settings.clone(), measured, &absent))
}

struct Series {
    start: Instant,
    progress: Progress,
    absent: Vec<Absent>,
    measured: Vec<Measurement>,
}

impl Series {
    /// All rounds of one placement; this program's load runs on its core.
    fn placed<E: Experiment>(
        &mut self,
        settings: &Settings<E::Contender>,
        launch: Launch<'_>,
        placement: Placement,
        number: usize,
    ) -> Result<(), LabError> {
        let mut subjects = Vec::new();
        for contender in &settings.contenders {
            match E::start(*contender, settings, launch, placement)? {
                Ok(subject) => subjects.push((contender.to_string(), subject)),
                Err(reason) => self.absent.push(Absent { contender: contender.to_string(), number: None, reason }),
            }
        }
        let share = number as f64 / settings.placements.len() as f64;
        let budget = settings.budget_seconds.map(|budget| Duration::from_secs(budget).mul_f64(share));
        let of_load = placement.core(crate::placement::Role::Transmitter, &cores())?;
        let (numbers, time) = (&settings.numbers, settings.run_time());
        on_core(of_load, || {
            for round in 0..settings.rounds {
                for number in numbers {
                    if round > 0 && budget.is_some_and(|budget| self.start.elapsed() >= budget) {
                        return Ok(());
                    }
                    // The order rotates from round to round, so that no contender always follows the same one.
                    let turn = round as usize % subjects.len().max(1);
                    subjects.rotate_left(turn);
                    for (contender, subject) in &mut subjects {
                        self.one(contender, subject.as_mut(), (placement, *number, round), time)?;
                    }
                    subjects.rotate_right(turn);
                }
            }
            Ok(())
        })?
    }

    fn one(
        &mut self,
        contender: &str,
        subject: &mut dyn Subject,
        (placement, number, round): (Placement, u32, u32),
        time: Duration,
    ) -> Result<(), LabError> {
        if self.absent.iter().any(|absent| absent.contender == contender && absent.number == Some(number)) {
            return Ok(());
        }
        let label = format!("{contender} {number} ({})", placement.description());
        self.progress.at(&label);
        let contender = contender.to_owned();
        match subject.run(number, time)? {
            Ok(figures) => {
                self.progress.step(&label, &format!("{} calls/s", grouped(figures.calls_per_second)));
                self.measured.push(Measurement { placement, number, round, contender, figures });
            }
            Err(reason) => {
                self.progress.step(&label, &reason);
                self.absent.push(Absent { contender, number: Some(number), reason });
            }
        }
        Ok(())
    }
}
