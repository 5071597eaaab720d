//! One sample: a server is started, measured under load, and ended.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use spandrel::SystemException;

use super::interruption::Interruption;
use crate::idl::orchestra::harness::{RecordError, ServerAddressError, StartServerError, StopServerError};
use crate::idl::orchestra::work_team::{BeginError, TakeResultError};
use crate::idl::orchestra::{Address, CpuTime, Harness, LoadResult, Scope, Snapshot, WorkTeam};
use crate::load::CANCELLED;
use crate::names::{self, Names};
use crate::plan::{LoadPlan, Plan, Target};
use crate::results::{Cpu, Latencies, LiveSample, Sample, now};

/// The longest wait of one call for the end of a load, in seconds. The Harness is called between two waits.
const WAIT: f64 = 5.0;
/// The longest time in seconds for the server of a sample that is given up to end.
const GIVEN_UP_GRACE: f64 = 0.5;

/// The reason why a sample could not be taken.
pub(super) struct SampleError {
    /// The host of the agent that could not be reached.
    pub(super) lost_agent: Option<String>,
    pub(super) reason: anyhow::Error,
}

/// A failed call of the agent on a host.
trait AgentError {
    /// The system exception, if it is one: the agent did not answer, or not in time.
    fn system(&self) -> Option<&SystemException>;
}

impl AgentError for SystemException {
    fn system(&self) -> Option<&SystemException> {
        Some(self)
    }
}

macro_rules! agent_errors {
    ($($error:ident)*) => {
        $(impl AgentError for $error {
            fn system(&self) -> Option<&SystemException> {
                match self {
                    Self::System(exception) => Some(exception),
                    _ => None,
                }
            }
        })*
    };
}
agent_errors!(StartServerError StopServerError ServerAddressError RecordError BeginError TakeResultError);

/// Adds the host and the call to the error of a call.
fn called<T, E>(outcome: Result<T, E>, host: &str, operation: &str) -> Result<T, SampleError>
where
    E: AgentError + std::error::Error + Send + Sync + 'static,
{
    outcome.map_err(|error| {
        let is_lost = error.system().is_some();
        let text = if is_lost { "at the agent of" } else { "on" };
        let reason = anyhow!(error).context(format!("{operation} {text} {host} failed"));
        SampleError { lost_agent: is_lost.then(|| host.to_owned()), reason }
    })
}

/// The error of a sample whose agents answer.
fn failed(reason: impl Into<String>) -> SampleError {
    SampleError { lost_agent: None, reason: anyhow!(reason.into()) }
}

/// A sample that is to be taken.
pub(super) struct Sampling<'s> {
    pub(super) plan: &'s Plan,
    pub(super) names: &'s Names,
    pub(super) target: &'s Target,
    pub(super) load: &'s LoadPlan,
    pub(super) round: u32,
    pub(super) interruption: &'s Interruption,
}

impl Sampling<'_> {
    pub(super) fn take(&self) -> Result<Sample, SampleError> {
        let found = |name: &[_], host: &str| {
            let lost = |reason| SampleError { lost_agent: Some(host.to_owned()), reason };
            self.names.resolve(name).map_err(lost)
        };
        let host = &self.target.host;
        // Agents that were started again have other references.
        let harness = Harness::unchecked_narrow(&found(&names::harness(host), host)?);
        let mut teams = Vec::new();
        for client in &self.plan.clients {
            let team = WorkTeam::unchecked_narrow(&found(&names::work_team(client), client)?);
            called(team.cancel(), client, "cancel")?; // of a load that an interrupted supervisor has begun
            teams.push((client.as_str(), team));
        }
        let listening = called(harness.start_server(&self.target.server), host, "start_server")?;
        self.interruption.set_teams(teams.iter().map(|(_, team)| team.clone()).collect());
        let measured = self.measure(&harness, &teams, &listening);
        self.interruption.set_teams(Vec::new());
        if measured.is_err() {
            teams.iter().for_each(|(_, team)| _ = team.cancel());
        }
        let is_given_up = measured.is_err() && self.interruption.is_requested();
        let grace = if is_given_up { self.plan.grace.min(GIVEN_UP_GRACE) } else { self.plan.grace };
        let stopped = called(harness.stop_server(grace), host, "stop_server");
        let sample = measured?;
        stopped?;
        Ok(sample)
    }

    /// Measures the server that listens at this address.
    fn measure(
        &self,
        harness: &Harness,
        teams: &[(&str, WorkTeam)],
        listening: &Address,
    ) -> Result<Sample, SampleError> {
        let host = &self.target.host;
        self.interruption.wait(Duration::from_secs_f64(self.plan.settle));
        self.check_interruption()?;
        let before = called(harness.take_snapshot(), host, "take_snapshot")?;
        if self.plan.live > 0.0 {
            called(harness.record(self.plan.live), host, "record")?;
        }
        let address = self.target.address.as_ref().unwrap_or(&listening.host);
        let numbers = self.begin(teams, &Address { host: address.clone(), port: listening.port })?;
        let mut results = Vec::new();
        for ((name, team), number) in teams.iter().zip(numbers) {
            results.push(loop {
                self.check_interruption()?;
                let taken = team.take_result(WAIT);
                // The load of this sample is there until it is taken here, or cancelled.
                if let Err(TakeResultError::NoLoad(_)) = taken {
                    return Err(failed(format!("take_result on {name} failed: {CANCELLED}")));
                }
                match called(taken, name, "take_result")? {
                    (true, result) if result.number == number => break result,
                    (true, _) => return Err(failed(format!("another supervisor has begun a load on {name}"))),
                    (false, _) => _ = called(harness.server_address(), host, "server_address")?,
                }
            });
        }
        let after = called(harness.take_snapshot(), host, "take_snapshot")?;
        let at_end = called(harness.server_address(), host, "server_address")?;
        if after.process != before.process || at_end != *listening {
            return Err(failed(format!("another supervisor has started a server on {host}")));
        }
        let mut sample = self.sample(&before, &after, &results).map_err(|reason| failed(format!("{reason:#}")))?;
        if self.plan.live > 0.0 {
            called(harness.record(0.0), host, "record")?;
            sample.live = self.live(harness, before.at)?;
        }
        Ok(sample)
    }

    fn check_interruption(&self) -> Result<(), SampleError> {
        match self.interruption.is_requested() {
            true => Err(failed("the run was interrupted")),
            false => Ok(()),
        }
    }

    /// Begins the loads of all clients at the same time, each with a thread of its own, so that many clients begin as
    /// one does. Returns their numbers.
    fn begin(&self, teams: &[(&str, WorkTeam)], address: &Address) -> Result<Vec<u32>, SampleError> {
        let begin = |(client, (name, team)): (usize, &(&str, WorkTeam))| {
            let greeting = self.target.server.greeting;
            let load = self.plan.load(self.load, address, client, self.round, greeting);
            match team.begin(&load) {
                Err(BeginError::Busy(_)) => {
                    Err(failed(format!("begin on {name} failed: another supervisor has begun a load there")))
                }
                begun => called(begun, name, "begin"),
            }
        };
        if let [only] = teams {
            return Ok(vec![begin((0, only))?]);
        }
        thread::scope(|scope| {
            let calls: Vec<_> = teams.iter().enumerate().map(|team| scope.spawn(move || begin(team))).collect();
            calls.into_iter().map(|call| call.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    /// The live samples of the load, which began at this time of the agent.
    fn live(&self, harness: &Harness, began: f64) -> Result<Vec<LiveSample>, SampleError> {
        let mut live = Vec::new();
        loop {
            let first = u32::try_from(live.len()).unwrap_or(u32::MAX);
            let more = called(harness.recorded(first), &self.target.host, "recorded")?;
            if more.is_empty() {
                return Ok(live);
            }
            live.extend(more.iter().map(|snapshot| {
                let time = |scope: Scope| snapshot.cpu.iter().find(|usage| usage.counted == scope);
                let cpu = time(Scope::Group).or_else(|| time(Scope::Tree)).map(|usage| usage.time);
                LiveSample {
                    after: snapshot.at - began,
                    cpu: cpu.map_or(0.0, |cpu| cpu.user + cpu.system),
                    resident: snapshot.resident,
                    processes: snapshot.processes,
                    threads: snapshot.threads.len(),
                }
            }));
        }
    }

    fn sample(&self, before: &Snapshot, after: &Snapshot, results: &[LoadResult]) -> anyhow::Result<Sample> {
        let mut sample = Sample {
            target: self.target.name.clone(),
            load: self.load.name.clone(),
            round: self.round,
            at: now(),
            resident: after.resident,
            peak_resident: after.peak_resident,
            voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
            processes: after.processes,
            latency: latencies(results)?,
            ..Sample::default()
        };
        for result in results {
            sample.elapsed = sample.elapsed.max(result.elapsed);
            sample.requests += result.requests;
            sample.answered += result.answered;
            sample.failed += result.failed;
            sample.octets += result.octets;
            result.errors.iter().for_each(|error| *sample.errors.entry(error.kind.clone()).or_default() += error.count);
        }
        for usage in &after.cpu {
            let earlier = before.cpu.iter().find(|earlier| earlier.counted == usage.counted);
            let CpuTime { user, system } = earlier.map(|earlier| earlier.time).unwrap_or_default();
            let time = Cpu { user: (usage.time.user - user).max(0.0), system: (usage.time.system - system).max(0.0) };
            sample.cpu.insert(scope_name(usage.counted).to_owned(), time);
        }
        Ok(sample)
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

/// The latencies of all clients together.
fn latencies(results: &[LoadResult]) -> anyhow::Result<Latencies> {
    let mut all: Option<Histogram<u64>> = None;
    for result in results {
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut result.histogram.as_slice())
            .context("a WorkTeam has sent a histogram that cannot be read")?;
        match &mut all {
            Some(all) => all.add(&histogram).context("histograms of WorkTeams have other bounds")?,
            None => all = Some(histogram),
        }
    }
    let latency = all.map(|all| crate::load::latency(&all)).unwrap_or_default();
    Ok(Latencies {
        mean: latency.mean,
        p50: latency.p50,
        p90: latency.p90,
        p99: latency.p99,
        p999: latency.p999,
        highest: latency.highest,
    })
}
