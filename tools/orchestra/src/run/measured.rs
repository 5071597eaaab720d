//! A server under test, with the measurements of its slices so far.

use std::collections::BTreeMap;

use anyhow::Context as _;
use spandrel_measure::histogram::Histogram;

use crate::idl::orchestra::{Address, CpuTime, LoadResult, Scope, Snapshot};
use crate::load::HIGHEST;
use crate::plan::Target;
use crate::results::{Cpu, Latencies, LiveSample, Sample};

/// A server that was started, and the sum of its slices.
pub(super) struct MeasuredServer<'s> {
    pub(super) target: &'s Target,
    /// Its number at the agent.
    pub(super) number: u32,
    /// The address for clients.
    pub(super) address: Address,
    sample: Sample,
    /// By scope. The parts of a slice may be negative: the kernel divides time into user and system time anew each time.
    cpu: BTreeMap<&'static str, (f64, f64)>,
    /// Voluntary and involuntary context switches. They are those of threads that exist, and may become fewer.
    switches: (i64, i64),
    latencies: Histogram,
}

impl<'s> MeasuredServer<'s> {
    pub(super) fn new(target: &'s Target, number: u32, listens_at: Address) -> Self {
        let host = target.address.clone().unwrap_or(listens_at.host);
        Self {
            target,
            number,
            address: Address { host, port: listens_at.port },
            sample: Sample::default(),
            cpu: BTreeMap::new(),
            switches: (0, 0),
            latencies: Histogram::new(HIGHEST),
        }
    }

    /// Adds a slice: the snapshots before and after it, and the result of each client.
    ///
    /// # Errors
    /// A histogram that cannot be read.
    pub(super) fn add(&mut self, before: &Snapshot, after: &Snapshot, results: &[LoadResult]) -> anyhow::Result<()> {
        let sample = &mut self.sample;
        sample.resident = after.resident;
        sample.peak_resident = after.peak_resident;
        sample.processes = after.processes;
        self.switches.0 += after.voluntary_switches.wrapping_sub(before.voluntary_switches).cast_signed();
        self.switches.1 += after.involuntary_switches.wrapping_sub(before.involuntary_switches).cast_signed();
        sample.elapsed += results.iter().map(|result| result.elapsed).fold(0.0, f64::max);
        for result in results {
            sample.requests += result.requests;
            sample.answered += result.answered;
            sample.failed += result.failed;
            sample.octets += result.octets;
            result.errors.iter().for_each(|error| *sample.errors.entry(error.kind.clone()).or_default() += error.count);
            let histogram = Histogram::decode(&result.histogram, HIGHEST);
            self.latencies.add(&histogram.context("a WorkTeam has sent a histogram that cannot be read")?);
        }
        for usage in &after.cpu {
            let earlier = before.cpu.iter().find(|earlier| earlier.counted == usage.counted);
            let CpuTime { user, system } = earlier.map(|earlier| earlier.time).unwrap_or_default();
            let sum = self.cpu.entry(scope_name(usage.counted)).or_default();
            *sum = (sum.0 + usage.time.user - user, sum.1 + usage.time.system - system);
        }
        Ok(())
    }

    pub(super) fn set_live(&mut self, live: Vec<LiveSample>) {
        self.sample.live = live;
    }

    /// The sum of the slices as a sample of this load, which ended at this time.
    pub(super) fn into_sample(self, load: &str, round: u32, at: f64) -> Sample {
        let count = |switches: i64| u64::try_from(switches).unwrap_or(0);
        let cpu = |(user, system): (f64, f64)| Cpu { user: user.max(0.0), system: system.max(0.0) };
        Sample {
            target: self.target.name.clone(),
            load: load.to_owned(),
            round,
            at,
            cpu: self.cpu.into_iter().map(|(scope, time)| (scope.to_owned(), cpu(time))).collect(),
            voluntary_switches: count(self.switches.0),
            involuntary_switches: count(self.switches.1),
            latency: Latencies::of(&self.latencies),
            ..self.sample
        }
    }
}

/// The name of a scope in results.
fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Process => "process",
        Scope::Children => "children",
        Scope::Tree => "tree",
        Scope::Group => "group",
        Scope::Machine => "machine",
    }
}
