//! The process of a client that makes calls by commands: it prints `ready`, and then answers each line
//! `NUMBER MILLISECONDS` with one of JSON about the calls that it has made.

use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spandrel_measure::Times;

use crate::LabError;
use crate::bench::by_number::Figures;
use crate::call_times::Printed;
use crate::peer::child::ChildHandle;
use crate::placement::on_core;
use crate::raw::processor_time::processor_time;

/// A client's answer to a line with a number and a time.
#[derive(Debug, Deserialize, Serialize)]
pub(in crate::bench) struct Report {
    #[serde(flatten)]
    pub(in crate::bench) times: Printed,
    /// From the first request to the last reply.
    pub(in crate::bench) seconds: f64,
    /// The calls on the slowest connection as a part of the median of all connections, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::bench) fairness: Option<f64>,
}

/// The calls of one run.
pub(in crate::bench) struct Run {
    pub(in crate::bench) calls: u64,
    pub(in crate::bench) calls_per_second: f64,
    pub(in crate::bench) times: Times,
    /// Processor time of the client.
    pub(in crate::bench) cpu: Option<Duration>,
    pub(in crate::bench) fairness: Option<f64>,
}

impl Run {
    /// The figures of the run. `server_cpu`: the processor time of the server.
    pub(in crate::bench) fn figures(&self, server_cpu: Option<Duration>) -> Figures {
        let per_call = |cpu: Duration| cpu.as_secs_f64() * 1e6 / self.calls as f64;
        Figures {
            calls: self.calls,
            calls_per_second: self.calls_per_second,
            p50_us: self.times.median,
            p99_us: self.times.p99,
            p999_us: self.times.p999,
            server_us: server_cpu.map(per_call),
            load_us: self.cpu.map(per_call),
            fairness: self.fairness,
        }
    }
}

/// The process of a client, ended when dropped.
#[derive(Debug)]
pub(in crate::bench) struct ClientProcess {
    process: ChildHandle,
    /// The longest response time.
    limit: Duration,
}

impl ClientProcess {
    /// Starts a client on a core, and waits until it has called its server.
    ///
    /// # Errors
    /// If it does not start within the limit.
    pub(in crate::bench) fn start(command: Command, core: Option<usize>, limit: Duration) -> Result<Self, LabError> {
        let mut process = on_core(core, || ChildHandle::start("client", command))??;
        match process.line(limit)? {
            ready if ready.trim() == "ready" => Ok(Self { process, limit }),
            line => Err(LabError::Protocol { role: "client".to_owned(), found: line }),
        }
    }

    /// Has the client make calls with that number for a time.
    ///
    /// # Errors
    /// If a call fails.
    pub(in crate::bench) fn run(&mut self, number: u32, time: Duration) -> Result<Run, LabError> {
        let cpu = || processor_time(self.process.id()).ok();
        let cpu_before = cpu();
        self.process.send_line(&format!("{number} {}", time.as_millis().max(1)))?;
        let line = self.process.line(time + self.limit)?;
        let cpu = processor_time(self.process.id()).ok().zip(cpu_before).map(|(after, before)| after - before);
        let report: Report =
            serde_json::from_str(&line).map_err(|_| LabError::Protocol { role: "client".to_owned(), found: line })?;
        let times = report.times.times();
        let rate = if report.seconds > 0.0 { times.calls as f64 / report.seconds } else { 0.0 };
        let fairness = report.fairness;
        Ok(Run { calls: times.calls, calls_per_second: rate, times: times.each, cpu, fairness })
    }
}
