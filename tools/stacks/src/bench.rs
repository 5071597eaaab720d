//! The experiment: throughput, context switches and lock waiting by architecture, protocol, locks and threads.

use spandrel_lab::machine::Machine;
use spandrel_measure::stats::Summary;
use spandrel_measure::table;

use crate::architecture::{Architecture, Locks, Protocol, Queues, Settings, run};
use crate::costs::Cost;
use crate::measurement::{Outcome, StackError};
use crate::{smoltcp_peer, ttcp};

/// The combinations of parameters that are measured, and the number of rounds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The parameters that all runs share.
    pub base: Settings,
    /// The architectures that are measured.
    pub architectures: Vec<Architecture>,
    /// The protocols that are measured.
    pub protocols: Vec<Protocol>,
    /// The locking strategies that are measured.
    pub locks: Vec<Locks>,
    /// The queues of the task-based architecture. Lock-free ones are measured with the last of the locking strategies.
    pub queues: Vec<Queues>,
    /// The numbers of threads; those that are not a multiple of two are left out for the task-based architecture.
    pub threads: Vec<usize>,
    /// The number of rounds, in each of which every run has its turn.
    pub rounds: usize,
    /// Whether `smoltcp` is measured as well.
    pub with_smoltcp: bool,
}

impl Plan {
    /// The runs of a round with the stacks of this crate.
    fn runs(&self) -> Vec<Settings> {
        let mut runs = Vec::new();
        for protocol in self.protocols.iter().copied() {
            for architecture in self.architectures.iter().copied() {
                for (locks, queues) in self.strategies(architecture) {
                    for threads in self.threads.iter().copied() {
                        if architecture == Architecture::Message || threads.is_multiple_of(2) {
                            runs.push(Settings { protocol, architecture, locks, queues, threads, ..self.base });
                        }
                    }
                }
            }
        }
        runs
    }

    /// The locks and queues with which an architecture is measured.
    fn strategies(&self, architecture: Architecture) -> Vec<(Locks, Queues)> {
        let locked = self.locks.iter().map(|locks| (*locks, Queues::Locked));
        let lock_free = self.locks.last().map(|locks| (*locks, Queues::LockFree));
        match architecture {
            Architecture::Message => locked.collect(),
            Architecture::Task => {
                let is_chosen = |(_, queues): &(Locks, Queues)| self.queues.contains(queues);
                locked.chain(lock_free).filter(is_chosen).collect()
            }
        }
    }
}

/// The figures of one configuration over all rounds.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Row {
    /// The TCP: that of this crate, or `smoltcp`.
    pub stack: &'static str,
    /// TCP or UDP, for all connections of the run.
    pub protocol: Protocol,
    /// The parts of the stack that have threads of their own.
    pub architecture: Architecture,
    /// The strategy of all locks in the stack.
    pub locks: Locks,
    /// The queues of the run, if it is task-based.
    pub queues: Queues,
    /// The number of threads.
    pub threads: usize,
    /// Whether there are more threads than cores.
    pub exceeds_cores: bool,
    /// Messages that the application got in each round, and the octets.
    pub messages: Vec<u64>,
    /// Mbit/s of messages in each round, in their order.
    pub samples: Vec<f64>,
    /// The distribution of the Mbit/s of messages.
    pub mbits: Summary,
    /// Mbit/s divided by those of the same configuration with one thread, in the same round.
    pub speedup: Option<Summary>,
    /// Voluntary context switches of a run.
    pub voluntary: Summary,
    /// Involuntary context switches of a run.
    pub involuntary: Summary,
    /// Milliseconds in which the threads waited for locks, all together.
    pub lock_ms: Summary,
    /// The waits for locks, of all threads together.
    pub lock_waits: Summary,
    /// Milliseconds in which they waited for conditions, all together.
    pub condition_ms: Summary,
    /// The share of segments that took the short path of header prediction, in percent (TCP of this crate).
    pub predicted_percent: Option<f64>,
    /// Segments that the device sent again, of the last round.
    pub retransmissions: u64,
}

/// The results of all runs, with the machine.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Results {
    /// The machine that made the measurements.
    pub machine: Machine,
    /// The medians and ranges of each combination of parameters.
    pub rows: Vec<Row>,
    /// The times of single operations, such as a context switch, in which costs of the architectures can be
    /// counted.
    pub costs: Vec<Cost>,
}

/// Carries out the plan; `progress` is called before each round.
///
/// # Errors
/// [`StackError`] of the first run that fails.
pub fn measure(plan: &Plan, mut progress: impl FnMut(usize)) -> Result<Vec<Row>, StackError> {
    let mut runs: Vec<_> = plan.runs().into_iter().map(|settings| ("own", settings)).collect();
    if plan.with_smoltcp && plan.protocols.contains(&Protocol::Tcp) {
        let settings = Settings {
            protocol: Protocol::Tcp,
            architecture: Architecture::Message,
            locks: Locks::Sleeping,
            threads: 1,
            ..plan.base
        };
        runs.push(("smoltcp", settings));
    }
    let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); runs.len()];
    for round in 0..plan.rounds {
        progress(round);
        for ((stack, settings), outcomes) in runs.iter().zip(&mut outcomes) {
            outcomes.push(if *stack == "own" { run(settings)? } else { smoltcp_peer::run(settings)? });
        }
    }
    let base = |of: &Settings| {
        let of = *of;
        runs.iter().zip(&outcomes).find_map(move |((stack, other), outcomes)| {
            let key = |run: &Settings| (run.protocol, run.architecture, run.locks, run.queues);
            let is_same = key(other) == key(&of);
            // The task-based architecture has two threads at least.
            let first = if of.architecture == Architecture::Task { 2 } else { 1 };
            (*stack == "own" && is_same && other.threads == first).then_some(outcomes)
        })
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let row = |(stack, settings): &(&'static str, Settings), outcomes: &Vec<Outcome>| {
        let summary = |value: &dyn Fn(&Outcome) -> f64| Summary::from_values(outcomes.iter().map(value));
        let millis = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        let rates =
            |outcomes: &[Outcome]| -> Vec<(u32, f64)> { (0..).zip(outcomes.iter().map(Outcome::mbits)).collect() };
        let received: u64 = outcomes.iter().flat_map(|outcome| &outcome.connections).map(|c| c.received).sum();
        let predicted: u64 = outcomes.iter().flat_map(|outcome| &outcome.connections).map(|c| c.predicted_data).sum();
        Some(Row {
            stack,
            protocol: settings.protocol,
            architecture: settings.architecture,
            locks: settings.locks,
            queues: settings.queues,
            threads: settings.threads,
            exceeds_cores: settings.threads > cores,
            messages: outcomes.iter().map(|outcome| outcome.received).collect(),
            samples: outcomes.iter().map(Outcome::mbits).collect(),
            mbits: summary(&Outcome::mbits)?,
            speedup: base(settings)
                .filter(|_| *stack == "own")
                .and_then(|base| Summary::of_ratios(&rates(outcomes), &rates(base))),
            voluntary: summary(&|outcome| outcome.voluntary as f64)?,
            involuntary: summary(&|outcome| outcome.involuntary as f64)?,
            lock_ms: summary(&|outcome| millis(outcome.waits.locks))?,
            lock_waits: summary(&|outcome| outcome.waits.lock_waits as f64)?,
            condition_ms: summary(&|outcome| millis(outcome.waits.conditions))?,
            predicted_percent: (received > 0).then(|| predicted as f64 * 100.0 / received as f64),
            retransmissions: outcomes.last().map_or(0, |outcome| {
                outcome.senders.iter().map(|sender| sender.fast_retransmissions + sender.timeouts).sum()
            }),
        })
    };
    Ok(runs.iter().zip(&outcomes).filter_map(|(run, outcomes)| row(run, outcomes)).collect())
}

/// Formats the results for a terminal.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut text = results.machine.summary() + "\n" + &results.machine.warning().unwrap_or_default() + "\n";
    if !results.rows.is_empty() {
        let header = [
            "stack",
            "PEs",
            "Mbit/s",
            "speed-up",
            "voluntary",
            "involuntary",
            "lock ms",
            "lock waits",
            "cond. ms",
            "predicted %",
            "sent again",
        ];
        let mut table = table::with_header(header.map(str::to_owned).to_vec());
        for row in &results.rows {
            let name = match row.stack {
                "own" => format!("{} {}", row.protocol, configuration(row.architecture, row.locks, row.queues)),
                other => other.to_owned(),
            };
            let speedup = row.speedup.map_or(String::new(), |speedup| format!("{:.2}", speedup.median));
            table.add_row([
                name,
                format!("{}{}", row.threads, if row.exceeds_cores { "*" } else { "" }),
                format!("{:.0} ± {:2.0} %", row.mbits.median, row.mbits.spread_percent()),
                speedup,
                format!("{:.0}", row.voluntary.median),
                format!("{:.0}", row.involuntary.median),
                format!("{:.2}", row.lock_ms.median),
                format!("{:.0}", row.lock_waits.median),
                format!("{:.1}", row.condition_ms.median),
                row.predicted_percent.map_or(String::new(), |percent| format!("{percent:.0}")),
                format!("{}", row.retransmissions),
            ]);
        }
        text +=
            &format!("{table}\n\n* more threads than cores; speed-up over the fewest threads in the same round\n\n");
    }
    if !results.costs.is_empty() {
        let mut table = table::with_header(["", "µs here", "µs in the paper"].map(str::to_owned).to_vec());
        for cost in &results.costs {
            let here = format!("{:.3} ± {:2.0} %", cost.micros.median, cost.micros.spread_percent());
            let paper = cost.paper.map_or(String::new(), |paper| format!("{paper:.0}"));
            table.add_row([cost.operation.to_owned(), here, paper]);
        }
        text += &format!("{table}\n");
    }
    text
}

/// The name of a configuration in reports.
fn configuration(architecture: Architecture, locks: Locks, queues: Queues) -> String {
    let queues = if queues == Queues::Locked { "" } else { ", lock-free queues" };
    format!("{architecture} {locks}{queues}")
}

/// The figures of an architecture, a window and a number of applications.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TtcpRow {
    /// The parts of both stacks that have threads of their own.
    pub architecture: Architecture,
    /// The strategy of all locks in both stacks.
    pub locks: Locks,
    /// The queues of both stacks, if they are task-based.
    pub queues: Queues,
    /// The threads of the receiving side.
    pub threads: usize,
    /// The window in octets.
    pub window: usize,
    /// The number of applications.
    pub applications: usize,
    /// Messages that the receiver got in each round.
    pub messages: Vec<u64>,
    /// Mbit/s of messages in each round, in their order.
    pub samples: Vec<f64>,
    /// The distribution of the Mbit/s of messages.
    pub mbits: Summary,
    /// Segments of data that were sent again, of all rounds.
    pub retransmitted: u64,
    /// Time-outs, of all rounds.
    pub timeouts: u64,
}

/// Transfers between two stacks with each of the parameters, in interleaved rounds.
///
/// # Errors
/// [`StackError`] of the first transfer that fails.
pub fn ttcp(rounds: usize, transfers: &[ttcp::Settings]) -> Result<Vec<TtcpRow>, StackError> {
    let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); transfers.len()];
    for _ in 0..rounds {
        for (settings, outcomes) in transfers.iter().zip(&mut outcomes) {
            outcomes.push(ttcp::transfer(settings)?);
        }
    }
    let row = |(settings, outcomes): (&ttcp::Settings, &Vec<Outcome>)| {
        let connections = || outcomes.iter().flat_map(|outcome| &outcome.connections);
        Some(TtcpRow {
            architecture: settings.architecture,
            locks: settings.locks,
            queues: settings.queues,
            threads: settings.threads,
            window: settings.window,
            applications: settings.applications,
            messages: outcomes.iter().map(|outcome| outcome.received).collect(),
            samples: outcomes.iter().map(Outcome::mbits).collect(),
            mbits: Summary::from_values(outcomes.iter().map(Outcome::mbits))?,
            retransmitted: connections().map(|connection| connection.retransmitted).sum(),
            timeouts: connections().map(|connection| connection.timeouts).sum(),
        })
    };
    Ok(transfers.iter().zip(&outcomes).filter_map(row).collect())
}

/// The report on transfers as text.
#[must_use]
pub fn ttcp_text(rows: &[TtcpRow]) -> String {
    let header = ["stacks", "PEs", "window", "applications", "Mbit/s", "sent again", "time-outs"];
    let mut table = table::with_header(header.map(str::to_owned).to_vec());
    for row in rows {
        table.add_row([
            configuration(row.architecture, row.locks, row.queues),
            row.threads.to_string(),
            row.window.to_string(),
            row.applications.to_string(),
            format!("{:.0} ± {:2.0} %", row.mbits.median, row.mbits.spread_percent()),
            row.retransmitted.to_string(),
            row.timeouts.to_string(),
        ]);
    }
    format!("{table}\n")
}
