//! Parallel protocol stacks (paper 002, section 3.5).

use spandrel_lab::LabError;
use spandrel_stacks::architecture::{self, Architecture, Locks, Protocol, Settings};
use spandrel_stacks::measurement::{Outcome, StackError};

use crate::folder::Form;
use crate::series::{Measured, Series, Unit};

/// The architectures with the locks that the paper uses for each, and with the other ones.
const CONFIGURATIONS: [(Architecture, Locks); 4] = [
    (Architecture::Message, Locks::Adaptive),
    (Architecture::Message, Locks::Sleeping),
    (Architecture::Task, Locks::Sleeping),
    (Architecture::Task, Locks::Adaptive),
];

pub(super) fn measure(form: Form, protocol: Protocol, threads: usize) -> Result<Measured, LabError> {
    let (rounds, messages) = if form == Form::Full { (9, 10_000) } else { (2, 200) };
    let is_possible = |architecture| architecture == Architecture::Message || threads.is_multiple_of(2);
    let (possible, others): (Vec<_>, Vec<_>) = CONFIGURATIONS.into_iter().partition(|(one, _)| is_possible(*one));
    let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); possible.len()];
    for round in 0..rounds {
        // The order rotates, so that no configuration always follows the same one.
        for turn in 0..possible.len() {
            let index = (turn + round) % possible.len();
            let (architecture, locks) = possible[index];
            let settings = Settings { architecture, protocol, locks, threads, messages, ..Settings::default() };
            outcomes[index].push(architecture::run(&settings).map_err(|error| failure(&error))?);
        }
    }
    let mut measured = Measured::default();
    for ((architecture, locks), outcomes) in possible.iter().zip(&outcomes) {
        let name = format!("{architecture} {locks}");
        let received = outcomes.iter().map(|outcome| outcome.received).sum();
        let series = |part: &str, unit, value: fn(&Outcome) -> f64| {
            Series::new(format!("{name} {part}"), unit, outcomes.iter().map(value).collect())
        };
        let rates = series("Mbit/s", Unit::MbitPerSecond, Outcome::mbits);
        measured.series.push(rates.counting("messages", received));
        measured.series.push(series("voluntary", Unit::Count, |outcome| outcome.voluntary as f64));
        measured.series.push(series("involuntary", Unit::Count, |outcome| outcome.involuntary as f64));
        measured.series.push(series("locks", Unit::Milliseconds, |outcome| outcome.waits.locks.as_secs_f64() * 1e3));
    }
    for (architecture, locks) in others {
        let reason = "it has two threads for each stream".to_owned();
        measured.absent.push((format!("{architecture} {locks}"), reason));
    }
    Ok(measured)
}

fn failure(error: &StackError) -> LabError {
    LabError::Peer { role: "protocol stack".to_owned(), detail: error.to_string() }
}
