//! The rounds of a series, one job after another.

use std::time::{Duration, Instant};

use super::contender::Contender;
use super::job::{Job, Style};
use super::programs::{ClientReply, Programs, Running, Timed};
use super::results::{Absent, Measurement, Memory, Results};
use super::settings::Settings;
use crate::LabError;
use crate::machine::Machine;
use crate::peer::pair::Launch;
use crate::placement::Placement;
use crate::progress::Progress;

/// Runs the whole series and summarises it. A contender that is not available, or fails, keeps its rows, with
/// the reason.
///
/// # Errors
/// If the settings are invalid, or one of our own processes fails.
pub fn run(settings: &Settings, launch: Launch<'_>) -> Result<Results, LabError> {
    settings.check()?;
    let machine = Machine::here();
    let (mut here, mut absent) = (Vec::new(), Vec::new());
    for contender in &settings.contenders {
        let given = match contender {
            Contender::Orb | Contender::OrbPrivate | Contender::Tao => None,
            Contender::OmniOrb => settings.omniorb.as_deref(),
            Contender::JacOrb => settings.jacorb.as_deref(),
        };
        match Programs::find(*contender, given) {
            Ok(programs) => here.push((*contender, programs)),
            Err(reason) => absent.push(Absent { contender: *contender, servants: None, style: None, reason }),
        }
    }
    let stages = settings.placements.len() * settings.servants.len();
    let runs = stages * settings.jobs().len() * here.len() * settings.rounds as usize;
    let progress = Progress::begin(runs as u64);
    let mut series = Series { settings, launch, here, absent, progress, measured: Vec::new(), memory: Vec::new() };
    let outcome = series.all();
    series.progress.finish();
    outcome?;
    Ok(Results::from_measurements(machine, settings.clone(), series.measured, series.memory, &series.absent))
}

/// One contender's server with that many servants, and its client.
struct AvailableContender {
    contender: Contender,
    servants: u32,
    pair: Running,
}

struct Series<'a> {
    settings: &'a Settings,
    launch: Launch<'a>,
    here: Vec<(Contender, Programs)>,
    absent: Vec<Absent>,
    progress: Progress,
    measured: Vec<Measurement>,
    memory: Vec<Memory>,
}

impl Series<'_> {
    fn all(&mut self) -> Result<(), LabError> {
        for placement in &self.settings.placements {
            for is_dynamic in [false, true] {
                self.stage(*placement, is_dynamic)?;
            }
        }
        Ok(())
    }

    /// All rounds with static servants, or with dynamic ones.
    fn stage(&mut self, placement: Placement, is_dynamic: bool) -> Result<(), LabError> {
        let jobs: Vec<_> =
            self.settings.jobs().into_iter().filter(|job| job.style.wants_dynamic_servants() == is_dynamic).collect();
        if jobs.is_empty() {
            return Ok(());
        }
        let mut running = self.start_all(placement, is_dynamic)?;
        let (start, budget) = (Instant::now(), self.settings.budget_seconds.map(Duration::from_secs));
        for round in 0..self.settings.rounds {
            if round > 0 && budget.is_some_and(|budget| start.elapsed() >= budget) {
                break;
            }
            for job in &jobs {
                // The order rotates from round to round, so that no contender is always first.
                let turn = usize::from(!running.is_empty());
                running.rotate_left(turn);
                for one in &mut running {
                    self.one(placement, round, job, one)?;
                }
            }
        }
        Ok(())
    }

    fn one(
        &mut self,
        placement: Placement,
        round: u32,
        job: &Job,
        one: &mut AvailableContender,
    ) -> Result<(), LabError> {
        let AvailableContender { contender, servants, pair } = one;
        let (contender, servants, job) = (*contender, *servants, *job);
        let label = format!("{contender} {servants} {job} ({})", placement.description());
        self.progress.at(&label);
        let run = self.settings.run(job, servants, round);
        match pair.run(&run, self.settings.limit())? {
            ClientReply::Timed(Timed { times, servants_called }) => {
                let (times, begin) = (times.times(), run.begin);
                self.progress.step(&label, &format!("{:.2} µs", times.each.median));
                self.measured.push(Measurement {
                    placement,
                    servants,
                    job,
                    round,
                    contender,
                    begin,
                    servants_called,
                    times,
                });
            }
            ClientReply::Absent { absent: reason } => {
                self.progress.step(&label, "absent");
                self.absent.push(Absent { contender, servants: Some(servants), style: Some(job.style), reason });
            }
        }
        Ok(())
    }

    /// The servers and clients of all contenders and numbers of servants; idle ones cost nothing.
    fn start_all(&mut self, placement: Placement, is_dynamic: bool) -> Result<Vec<AvailableContender>, LabError> {
        let mut running = Vec::new();
        for servants in &self.settings.servants {
            for (contender, programs) in &self.here {
                let (contender, servants, limit) = (*contender, *servants, self.settings.limit());
                match Running::start(programs, self.launch, placement, servants, is_dynamic, limit) {
                    Ok(pair) => {
                        if let (Some(resident), false) = (pair.resident(), is_dynamic) {
                            self.memory.push(Memory { contender, servants, resident });
                        }
                        running.push(AvailableContender { contender, servants, pair });
                    }
                    // A peer may not support that many servants, or dynamic ones; ours must.
                    Err(error) if !matches!(contender, Contender::Orb | Contender::OrbPrivate) => {
                        self.absent.push(Absent {
                            contender,
                            servants: Some(servants),
                            style: is_dynamic.then_some(Style::DynamicSkeleton),
                            reason: error.chain(),
                        })
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(running)
    }
}
