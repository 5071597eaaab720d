//! An open loop with a report.

use std::time::Instant;

use super::record::Record;
use super::{Arrival, LoadReport, LoadSettings, LoadStop, Request, Schedule, StartError, Worker, drive};

/// Makes requests at equal distances with one thread for each worker, and reports.
///
/// A worker makes one request each time that it is called, and returns after its answer. The error is the kind
/// of the failure, by which failures are counted.
///
/// `stop` ends the load before its time; the report is then that of the requests that were due until then.
///
/// Returns `None` for no workers, or a rate or duration without a single request.
///
/// # Errors
/// A thread that the system does not start.
pub fn run<W>(settings: &LoadSettings, workers: Vec<W>, stop: &LoadStop) -> Result<Option<LoadReport>, StartError>
where
    W: FnMut() -> Result<(), String> + Send,
{
    let start = Instant::now();
    let end = start.checked_add(settings.duration).and_then(|end| end.checked_add(settings.drain));
    let (Some(requests), Some(end), false) = (settings.requests(), end, workers.is_empty()) else { return Ok(None) };
    let schedule = Schedule::new(Arrival::Paced { rate: settings.rate }, requests, None, start);
    let workers = workers.into_iter().map(|call| Caller { call, end, record: Record::new() });
    let workers = drive(&schedule, stop, workers)?;
    let ended = start.elapsed();
    let mut whole = Record::new();
    for worker in workers {
        whole.add(&worker.map_or_else(|_| Record::of_panic(), |worker| worker.record));
    }
    let stopped = stop.time().map(|time| time.saturating_duration_since(start));
    Ok(Some(LoadReport::from_record(settings, &whole, ended, stopped)))
}

/// A worker that calls a function.
struct Caller<C> {
    call: C,
    /// The time from which on requests are given up.
    end: Instant,
    record: Record,
}

impl<C: FnMut() -> Result<(), String> + Send> Worker for Caller<C> {
    fn make(&mut self, request: Request) {
        if Instant::now() > self.end {
            self.record.given_up += 1;
            return;
        }
        self.record.sent_late(request.begin.elapsed());
        match (self.call)() {
            Ok(()) => self.record.answered(request.begin.elapsed()),
            Err(kind) => self.record.failed(kind, 1),
        }
    }
}
