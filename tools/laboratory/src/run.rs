//! Runs: the points of rows that have no results yet, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::folder::{Folder, FolderError, Form};
use crate::inventory::Row;
use crate::measure;
use crate::point::Point;

/// The bounds of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunSettings {
    /// The size of the measurements.
    pub form: Form,
    /// The time after which no further point begins.
    pub part: Duration,
}

/// The points of a run by their outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOutcome {
    /// Points that were measured now.
    pub measured: usize,
    /// Points that had results before.
    pub already: usize,
    /// Points that failed, each with the reason.
    pub failed: Vec<(String, String)>,
    /// Points that are left, since the time was over.
    pub left: usize,
}

/// Measures the points of the rows that have no results in the folder. `say` gets lines of progress.
///
/// # Errors
/// If results cannot be written. A point that fails is in the outcome, and the next one follows.
pub fn run(
    rows: &[&Row],
    folder: &mut Folder,
    settings: RunSettings,
    say: &mut dyn FnMut(&str),
) -> Result<RunOutcome, FolderError> {
    let start = Instant::now();
    let all = points(rows, settings.form);
    let (measured, mut pending): (Vec<Point>, Vec<Point>) =
        all.into_iter().partition(|point| folder.result(point).is_some());
    let mut outcome = RunOutcome { already: measured.len(), ..RunOutcome::default() };
    let mut times = Times::new(folder);
    let total = pending.len();
    pending.reverse();
    while let Some(point) = pending.pop() {
        if start.elapsed() >= settings.part {
            outcome.left = pending.len() + 1;
            break;
        }
        let left = times.left(pending.iter().chain([&point]), settings.form);
        say(&format!("[{}/{total}] {point}, {} left", total - pending.len(), in_words(left)));
        match measure::measure(&point, settings.form) {
            Ok(result) => {
                times.add(&point, result.seconds);
                if let Some(cut) = &result.cut {
                    say(&format!("    cut by the bound of time: {cut}"));
                }
                for (name, reason) in &result.absent {
                    say(&format!("    {name} is absent: {reason}"));
                }
                folder.add(result)?;
                outcome.measured += 1;
            }
            Err(error) => {
                let reason = error.chain();
                say(&format!("    failed: {reason}"));
                outcome.failed.push((point.to_string(), reason));
            }
        }
    }
    Ok(outcome)
}

/// The time that a run of these rows takes at most, as planned: each point once.
#[must_use]
pub fn planned_time(rows: &[&Row], form: Form) -> Duration {
    Duration::from_secs_f64(points(rows, form).iter().map(|point| measure::planned_seconds(point, form)).sum())
}

/// The points of all rows, each once, in the order of the rows.
pub(crate) fn points(rows: &[&Row], form: Form) -> Vec<Point> {
    let mut names = BTreeSet::new();
    let of_row = |row: &&Row| if form == Form::Full { row.points() } else { row.short_points() };
    rows.iter().flat_map(of_row).filter(|point| names.insert(point.to_string())).collect()
}

/// The time that points of each kind took.
struct Times(BTreeMap<&'static str, (f64, u32)>);

impl Times {
    fn new(folder: &Folder) -> Self {
        let mut times = Self(BTreeMap::new());
        for result in folder.results() {
            times.add(&result.point, result.seconds);
        }
        times
    }

    fn add(&mut self, point: &Point, seconds: f64) {
        let entry = self.0.entry(point.kind()).or_default();
        *entry = (entry.0 + seconds, entry.1 + 1);
    }

    /// The time of these points: the mean of their kind, or the plan before there is one.
    fn left<'p>(&self, points: impl Iterator<Item = &'p Point>, form: Form) -> Duration {
        let seconds = points.map(|point| match self.0.get(point.kind()) {
            Some((sum, count)) => sum / f64::from(*count),
            None => measure::planned_seconds(point, form),
        });
        Duration::from_secs_f64(seconds.sum())
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}
