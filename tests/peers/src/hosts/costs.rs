//! `cargo xtask orchestra-agents`: the cost of each agent for the supervisor and for the naming service.
//!
//! Supervisor, naming service and agents are on three machines. The agents share theirs, so that figures of time depend
//! on this machine; those of memory, descriptors and octets do not. Two numbers of agents give the cost of each by the
//! difference.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use spandrel_measure::table::with_header;
use xtask::workspace;

use super::checks::Results;
use super::network::{self, Network, Side};
use super::site::{self, PLAN_TIMEOUT, SUPERVISOR, Site, finish_plan, terminate};
use crate::bounded::Bounded;
use crate::builds::Profile;
use crate::packages;

/// Agents that are started at once.
const AT_ONCE: usize = 8;
/// Samples of the run.
const SAMPLES: usize = 5;
/// Requests of each agent in a sample.
const REQUESTS: u64 = 10;
/// The pause between two looks at the supervisor.
const PAUSE: Duration = Duration::from_millis(2);
/// The kernel's unit of processor time, in seconds.
const TICK: f64 = 0.01;
/// The machine of the naming service, and that of the agents.
const NAMING: &str = "naming";
const AGENTS: &str = "agents";

/// The use of resources by a process.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// Resident memory and its highest value, in KiB.
    resident: f64,
    peak: f64,
    descriptors: f64,
    threads: f64,
    /// User and system time in seconds.
    cpu: f64,
}

impl Usage {
    /// That of a running process; an error if it has ended.
    fn of(process: u32) -> Result<Self> {
        let read = |name: &str| {
            let path = format!("/proc/{process}/{name}");
            fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let status = read("status")?;
        let value = |key: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            number.with_context(|| format!("process {process} has no {key}"))
        };
        let stat = read("stat")?;
        // Fields 14 and 15; the second one, a name in parentheses, may contain spaces.
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').skip(11).take(2));
        let ticks: Vec<f64> = fields.into_iter().flatten().filter_map(|field| field.parse().ok()).collect();
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).context("the process has ended")?.count();
        Ok(Self {
            resident: value("VmRSS")?,
            peak: value("VmHWM")?,
            descriptors: descriptors as f64,
            threads: value("Threads")?,
            cpu: ticks.iter().sum::<f64>() * TICK,
        })
    }
}

/// A row of the table: a quantity, its value in each of both runs, and its decimals.
type Row = (&'static str, f64, usize);

/// Prints the costs, from a run with a fifth of this number of agents and one with all.
pub(crate) fn print(agents: usize, profile: Profile) -> Result<()> {
    ensure!((5..=1000).contains(&agents), "the number of agents is not from 5 to 1000");
    network::require_root()?;
    packages::require(packages::NAMESPACES)?;
    packages::require(packages::CERTIFICATES)?;
    packages::require(packages::POSIX_SERVERS)?;
    site::build(profile)?;
    let few = agents / 5;
    let (first, second) = (measure(few, profile)?, measure(agents, profile)?);
    println!(
        "\nProfile {}; {SAMPLES} samples, {REQUESTS} requests of each agent in each sample; TLS.\n",
        profile.folder()
    );
    let header = ["quantity".to_owned(), format!("{few} agents"), format!("{agents} agents"), "each agent".to_owned()];
    let mut table = with_header(header.to_vec());
    for ((name, one, decimals), (_, other, _)) in first.into_iter().zip(second) {
        let each = (other - one) / (agents - few) as f64;
        let figure = |figure: f64, decimals: usize| format!("{figure:.decimals$}");
        table.add_row([name.to_owned(), figure(one, decimals), figure(other, decimals), figure(each, decimals + 2)]);
    }
    println!("{table:#}");
    Ok(())
}

/// Starts so many agents, and runs a plan with all.
fn measure(count: usize, profile: Profile) -> Result<Vec<Row>> {
    let network = Network::create(&[(SUPERVISOR, Side::Near), (NAMING, Side::Near), (AGENTS, Side::Near)])?;
    let folder = std::path::absolute(workspace::target().join("orchestra-agents"))?;
    let site = Site::start(network, &folder, NAMING, profile)?;
    site.issue(AGENTS)?;
    let naming = site.naming_service.id();
    let naming_octets = || site.network.machine(NAMING)?.octets();
    let supervisor_octets = || site.network.machine(SUPERVISOR)?.octets();

    let (before, octets_before) = (Usage::of(naming)?, naming_octets()?);
    let names: Vec<String> = (1..=count).map(|number| format!("agent{number}")).collect();
    let mut agents: Vec<Bounded> = Vec::new();
    for (batch, names) in names.chunks(AT_ONCE).enumerate() {
        for (index, name) in names.iter().enumerate() {
            agents.push(site.start_agent(name, AGENTS, batch + index == 0)?);
        }
        agents[batch * AT_ONCE..].iter().try_for_each(Site::await_agent)?;
    }
    let (registered, octets_registered) = (Usage::of(naming)?, naming_octets()?);

    let clients: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let requests = REQUESTS * count as u64;
    let plan = format!(
        "name = \"agents\"\nclients = [{}]\nsamples = {SAMPLES}\nrequests = {requests}\nworkers = 1\n[[server]]\n\
         host = \"agent1\"\ncommand = \"spandrel\"\narchitectures = [\"thread-per-connection\"]\n",
        clients.join(", ")
    );
    let octets_idle = supervisor_octets()?;
    let run = site.start_plan("agents", &plan, SUPERVISOR)?;
    let supervisor = observe(&run)?;
    let (status, errors) = finish_plan(run)?;
    ensure!(status.success(), "the plan: {status}\n{errors}");
    let (after, octets_after) = (Usage::of(naming)?, naming_octets()?);
    let octets_run = supervisor_octets()?;
    let results = Results::read(&site.results("agents"))?;
    results.check(SAMPLES, requests, 4000)?;
    results.check_answered()?;

    let mut all = Usage::default();
    for agent in &agents[1..] {
        let usage = Usage::of(agent.id())?;
        all.resident += usage.resident;
        all.descriptors += usage.descriptors;
        all.threads += usage.threads;
        all.cpu += usage.cpu;
    }
    agents.into_iter().try_for_each(terminate)?;
    println!("good    {} requests of {count} agents, all answered", SAMPLES as u64 * requests);
    let difference = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64;
    Ok(vec![
        ("naming service: resident memory, KiB", registered.resident, 0),
        ("naming service: descriptors", registered.descriptors, 0),
        ("naming service: CPU of the registrations, s", registered.cpu - before.cpu, 2),
        ("naming service: octets on the wire for the registrations", difference(octets_registered, octets_before), 0),
        ("naming service: CPU of the run, s", after.cpu - registered.cpu, 2),
        ("naming service: octets on the wire in the run", difference(octets_after, octets_registered), 0),
        ("supervisor: peak resident memory, KiB", supervisor.peak, 0),
        ("supervisor: descriptors", supervisor.descriptors, 0),
        ("supervisor: threads", supervisor.threads, 0),
        ("supervisor: CPU of the run, s", supervisor.cpu, 2),
        ("supervisor: octets on the wire in the run", difference(octets_run, octets_idle), 0),
        ("all agents but the first: resident memory, KiB", all.resident, 0),
        ("all agents but the first: descriptors", all.descriptors, 0),
        ("all agents but the first: threads", all.threads, 0),
        ("all agents but the first: CPU, s", all.cpu, 2),
    ])
}

/// The highest use by a running supervisor, as observed until it ends.
fn observe(run: &Bounded) -> Result<Usage> {
    let (mut highest, deadline) = (Usage::default(), Instant::now() + PLAN_TIMEOUT);
    // A process that has ended, and is not waited for yet, has no memory.
    while let Ok(usage) = Usage::of(run.id()) {
        highest.resident = highest.resident.max(usage.resident);
        highest.peak = highest.peak.max(usage.peak);
        highest.descriptors = highest.descriptors.max(usage.descriptors);
        highest.threads = highest.threads.max(usage.threads);
        highest.cpu = highest.cpu.max(usage.cpu);
        ensure!(Instant::now() < deadline, "the plan did not end within {} s", PLAN_TIMEOUT.as_secs());
        thread::sleep(PAUSE);
    }
    ensure!(highest.peak > 0.0, "the supervisor ended at once: {}", run.stderr());
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_this_process_is_found() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.peak >= usage.resident && usage.resident > 100.0, "{usage:?}");
        assert!(usage.descriptors >= 3.0 && usage.threads >= 1.0 && usage.cpu >= 0.0, "{usage:?}");
        assert!(Usage::of(u32::MAX).is_err());
    }
}
