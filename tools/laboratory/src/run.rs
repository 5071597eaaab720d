//! Runs: the points of rows that have no results yet, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use spandrel_lab::LabError;

use crate::folder::{Folder, FolderError, Form, PointResult};
use crate::inventory::Row;
use crate::measure;
use crate::point::Point;

/// The size of the measurements, and the time that they may take.
#[derive(Clone, Copy, Debug)]
pub struct RunSettings {
    /// The size of the measurements.
    pub form: Form,
    /// The time of this part: no point begins that is planned to end later, except the first one.
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
/// Points of a short form are measured side by side, since their figures mean nothing: the run ends earlier.
///
/// # Errors
/// If results cannot be written. A point that fails is in the outcome and in the folder, and the next one follows.
pub fn run(
    rows: &[&Row],
    folder: &mut Folder,
    settings: RunSettings,
    say: &mut dyn FnMut(&str),
) -> Result<RunOutcome, FolderError> {
    let all = points(rows, settings.form);
    let (measured, mut pending): (Vec<Point>, Vec<Point>) =
        all.into_iter().partition(|point| folder.result(point).is_some());
    // What failed before comes last, so that it does not take the time of each part.
    pending.sort_by_key(|point| folder.failure(point).is_some());
    let mut outcome = RunOutcome { already: measured.len(), ..RunOutcome::default() };
    let mut times = Times::new(folder);
    let (queue, events) = (Queue::new(&pending, settings), mpsc::channel());
    thread::scope(|scope| -> Result<(), FolderError> {
        let (sender, events) = events;
        for _ in 0..workers(settings.form).min(pending.len()) {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || queue.measure(&sender));
        }
        drop(sender);
        for event in events {
            match event {
                Event::Begins(index) => {
                    let left = in_words(times.left(pending[index..].iter(), settings.form));
                    say(&format!("[{}/{}] {}, {left} left", index + 1, pending.len(), pending[index]));
                }
                Event::Ends(index, Ok(result)) => {
                    times.add(&pending[index], result.seconds);
                    if let Some(cut) = &result.cut {
                        say(&format!("    cut by the bound of time: {cut}"));
                    }
                    for (name, reason) in &result.absent {
                        say(&format!("    {name} is absent: {reason}"));
                    }
                    // A queue without an end would be measured in vain.
                    folder.add(*result).inspect_err(|_| queue.end())?;
                    outcome.measured += 1;
                }
                Event::Ends(index, Err(error)) => {
                    let reason = error.chain();
                    say(&format!("    {} failed: {reason}", pending[index]));
                    folder.add_failure(&pending[index], &reason).inspect_err(|_| queue.end())?;
                    outcome.failed.push((pending[index].to_string(), reason));
                }
            }
        }
        Ok(())
    })?;
    outcome.left = pending.len() - outcome.measured - outcome.failed.len();
    Ok(outcome)
}

/// The most points of a short form that are measured at once: on a machine with more cores they wait for each other.
const MOST_WORKERS: usize = 4;

fn workers(form: Form) -> usize {
    match form {
        Form::Full => 1,
        Form::Short => thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS),
    }
}

/// The points that are left, and the time within which they are to end.
struct Queue<'p> {
    points: &'p [Point],
    next: AtomicUsize,
    settings: RunSettings,
    start: Instant,
}

/// The begin or the end of the measurement of a point, by its index.
enum Event {
    Begins(usize),
    Ends(usize, Result<Box<PointResult>, LabError>),
}

impl<'p> Queue<'p> {
    fn new(points: &'p [Point], settings: RunSettings) -> Self {
        Self { points, next: AtomicUsize::new(0), settings, start: Instant::now() }
    }

    /// Begins no further point.
    fn end(&self) {
        self.next.store(self.points.len(), Ordering::Relaxed);
    }

    /// Measures the points that fit into the time.
    fn measure(&self, events: &mpsc::Sender<Event>) {
        while self.start.elapsed() < self.settings.part {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = self.points.get(index) else { break };
            let planned = Duration::from_secs_f64(measure::planned_seconds(point, self.settings.form));
            if index > 0 && self.start.elapsed() + planned > self.settings.part {
                continue; // a later one may be shorter
            }
            // The receiver outlives all senders, unless results cannot be written: then the queue has ended.
            _ = events.send(Event::Begins(index));
            _ = events.send(Event::Ends(index, measure::measure(point, self.settings.form).map(Box::new)));
        }
    }
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
