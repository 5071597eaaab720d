//! The figures of a report, for all of its forms.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde::Serialize;
use spandrel_measure::stats::{Comparison, Moments};

use crate::results::{Cpu, Failure, Host, Results, Sample};

/// The content of a report, computed from samples.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The plan's own name, for titles.
    pub name: String,
    /// Requests of a sample, octets of an answer, workers of a client, and samples of each server and load.
    pub requests: u64,
    /// Octets that a server returns to each request.
    pub octets: u32,
    /// Parallel requests of each client.
    pub workers: u32,
    /// Samples of each server and load, as planned.
    pub samples: u32,
    /// The slices of a sample, which alternate between servers that are compared.
    pub slices: u32,
    /// The sentences of the plan for its report.
    pub notes: Vec<String>,
    /// The versions of tools (table B.1), several if one was replaced during the run.
    pub versions: BTreeMap<String, Vec<String>>,
    /// The machines, and the versions of their commands.
    pub hosts: Vec<Host>,
    /// The servers under each load, in the order of the plan.
    pub rows: Vec<Row>,
    /// The servers and loads of the plan without a sample.
    pub absent: Vec<(String, String)>,
    /// The pairs that the plan compares.
    pub pairs: Vec<PairSummary>,
    /// The samples that could not be taken at first.
    pub failures: Vec<Failure>,
}

/// The figures of one server under one load.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The server and its configuration, as the plan names them.
    pub target: String,
    /// The figure in which it stands.
    pub picture: String,
    /// The load, as the plan names it.
    pub load: String,
    /// The samples that the figures are of.
    pub count: usize,
    /// Seconds of a sample.
    pub elapsed: Moments,
    /// Processor time of the server: its control group, or else its process tree.
    pub server: Option<CpuMoments>,
    /// Processor time of the whole machine.
    pub machine: Option<CpuMoments>,
    /// The server's processor time for one request, in microseconds.
    pub cpu_per_request: Option<f64>,
    /// Requests that were answered, in all samples.
    pub answered: u64,
    /// Requests that failed, in all samples.
    pub failed: u64,
    /// Failed requests by kind.
    pub errors: BTreeMap<String, u64>,
    /// Means over the samples of the median, 99 % and highest latency, in seconds.
    pub latency: [f64; 3],
    /// The mean of the octets of resident memory after the load.
    pub resident: f64,
}

/// Processor time in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuMoments {
    /// Seconds in user mode.
    pub user: Moments,
    /// Seconds in the kernel.
    pub system: Moments,
    /// The sum of both times.
    pub total: Moments,
}

impl CpuMoments {
    fn from_times(times: &[Cpu]) -> Option<Self> {
        let moments = |part: fn(&Cpu) -> f64| Moments::from_values(times.iter().map(part));
        Some(Self {
            user: moments(|time| time.user)?,
            system: moments(|time| time.system)?,
            total: moments(|time| time.total())?,
        })
    }
}

/// The comparison of two servers under one load.
#[derive(Clone, Debug, Serialize)]
pub struct PairSummary {
    /// The server that is compared to the second.
    pub first: String,
    /// The second, to which the first is compared.
    pub second: String,
    /// The load, as the plan names it.
    pub load: String,
    /// The comparison of the processor times of the servers.
    pub server: Option<Compared>,
    /// The comparison of the processor times of the whole machine.
    pub machine: Option<Compared>,
}

/// The means of two servers, and the test of their difference.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compared {
    /// The mean of the first, in seconds.
    pub first: f64,
    /// The mean of the second, in seconds.
    pub second: f64,
    /// Z and the relative difference; none if one of them is a single sample, or neither has any variance.
    pub comparison: Option<Comparison>,
}

impl Summary {
    /// Summarizes results; `pairs` are compared besides those of the plan.
    ///
    /// # Errors
    /// Results without a plan or without samples; a pair with an unknown server.
    pub fn from_results(results: &Results, pairs: &[(String, String)]) -> anyhow::Result<Self> {
        let plan = results.plan.as_ref().context("the results have no plan")?;
        let (mut rows, mut absent) = (Vec::new(), Vec::new());
        for load in &plan.loads {
            for target in plan.targets() {
                let samples = |sample: &&Sample| sample.target == target.name && sample.load == load.name;
                let samples: Vec<&Sample> = results.samples.iter().filter(samples).collect();
                match Row::from_samples(&target.name, &target.picture, &load.name, &samples) {
                    Some(row) => rows.push(row),
                    None => absent.push((target.name, load.name.clone())),
                }
            }
        }
        if rows.is_empty() {
            bail!("the results have no sample yet");
        }
        let planned = plan.all_pairs().into_iter().map(|pair| (pair.first, pair.second));
        let mut compared = Vec::new();
        for (first, second) in planned.chain(pairs.iter().cloned()) {
            for name in [&first, &second] {
                if !plan.targets().iter().any(|target| target.name == *name) {
                    bail!("the pair {first},{second} names `{name}`, which is no server of the results");
                }
            }
            for load in &plan.loads {
                let row = |target: &str| rows.iter().find(|row: &&Row| row.target == target && row.load == load.name);
                if let (Some(one), Some(other)) = (row(&first), row(&second)) {
                    let rounds = if plan.slices > 1 { alternated(results, one, other) } else { Vec::new() };
                    compared.push(PairSummary::compare(one, other, &rounds));
                }
            }
        }
        Ok(Self {
            name: plan.name.clone(),
            requests: plan.requests,
            octets: plan.octets,
            workers: plan.workers,
            samples: plan.samples,
            slices: plan.slices,
            notes: plan.notes.clone(),
            versions: results.versions.clone(),
            hosts: results.hosts.clone(),
            rows,
            absent,
            pairs: compared,
            failures: results.failures.clone(),
        })
    }

    /// The loads, in the order of the plan.
    #[must_use]
    pub fn loads(&self) -> Vec<&str> {
        let mut loads: Vec<&str> = self.rows.iter().map(|row| &*row.load).collect();
        loads.dedup();
        loads
    }

    /// The figures of a load, in the order of the plan.
    #[must_use]
    pub fn pictures(&self, load: &str) -> Vec<&str> {
        let mut pictures = Vec::new();
        for row in self.rows.iter().filter(|row| row.load == load) {
            if !pictures.contains(&&*row.picture) {
                pictures.push(&*row.picture);
            }
        }
        pictures
    }
}

impl Row {
    fn from_samples(target: &str, picture: &str, load: &str, samples: &[&Sample]) -> Option<Self> {
        let elapsed = Moments::from_values(samples.iter().map(|sample| sample.elapsed))?;
        // A figure that some samples lack would compare different sets.
        let times = |of: fn(&Sample) -> Option<Cpu>| {
            let times: Option<Vec<Cpu>> = samples.iter().map(|sample| of(sample)).collect();
            times.as_deref().and_then(CpuMoments::from_times)
        };
        let mean = |of: fn(&Sample) -> f64| samples.iter().map(|sample| of(sample)).sum::<f64>() / samples.len() as f64;
        let server = times(Sample::server_cpu);
        let answered: u64 = samples.iter().map(|sample| sample.answered).sum();
        let mut errors = BTreeMap::new();
        for (kind, count) in samples.iter().flat_map(|sample| &sample.errors) {
            *errors.entry(kind.clone()).or_default() += count;
        }
        Some(Self {
            target: target.to_owned(),
            picture: picture.to_owned(),
            load: load.to_owned(),
            count: samples.len(),
            elapsed,
            server,
            machine: times(Sample::machine_cpu),
            cpu_per_request: server
                .filter(|_| answered > 0)
                .map(|cpu| cpu.total.mean * samples.len() as f64 / answered as f64 * 1e6),
            answered,
            failed: samples.iter().map(|sample| sample.failed).sum(),
            errors,
            latency: [
                mean(|sample| sample.latency.p50),
                mean(|sample| sample.latency.p99),
                mean(|sample| sample.latency.highest),
            ],
            resident: mean(|sample| sample.resident as f64),
        })
    }
}

/// The pairs of samples of two servers whose slices alternated.
fn alternated<'r>(results: &'r Results, first: &Row, second: &Row) -> Vec<(&'r Sample, &'r Sample)> {
    let of = |row: &Row| {
        let (target, load) = (row.target.clone(), row.load.clone());
        results.samples.iter().filter(move |sample| sample.target == target && sample.load == load)
    };
    let seconds: BTreeMap<u32, &Sample> = of(second).map(|sample| (sample.round, sample)).collect();
    let pair = |one: &'r Sample| Some((one, *seconds.get(&one.round).filter(|other| other.at == one.at)?));
    of(first).filter_map(pair).collect()
}

impl PairSummary {
    fn compare(first: &Row, second: &Row, rounds: &[(&Sample, &Sample)]) -> Self {
        let compared = |of: fn(&Row) -> Option<CpuMoments>, of_sample: fn(&Sample) -> Option<Cpu>| {
            let (one, other) = (of(first)?.total, of(second)?.total);
            // A single sample shows no variance.
            let comparison = if one.count.min(other.count) > 1 { Comparison::between(&one, &other) } else { None };
            let times = rounds.iter().map(|(one, other)| Some((of_sample(one)?.total(), of_sample(other)?.total())));
            let pairs: Option<Vec<(f64, f64)>> = times.collect();
            let comparison = comparison.map(|found| found.with_pairs(&pairs.unwrap_or_default()));
            Some(Compared { first: one.mean, second: other.mean, comparison })
        };
        Self {
            first: first.target.clone(),
            second: second.target.clone(),
            load: first.load.clone(),
            server: compared(|row| row.server, Sample::server_cpu),
            machine: compared(|row| row.machine, Sample::machine_cpu),
        }
    }
}
