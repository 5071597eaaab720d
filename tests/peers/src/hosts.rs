//! `cargo xtask orchestra-hosts`: plans of the Orchestrator between machines that are network namespaces.
//!
//! [`network`] makes the machines, [`site`] runs the programs on them, [`checks`] compares the results with the requests
//! of the plans, and [`costs`] measures what each agent costs (`cargo xtask orchestra-agents`). The link of the server's
//! machine goes through a relay (`spandrel-stacks relay`), which delays, loses, duplicates and reorders its packets.

mod checks;
mod costs;
mod network;
mod site;

use std::fs;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use checks::Results;
pub(crate) use costs::print as print_costs;
use network::{Network, Side, WIDE};
use site::{PLAN_TIMEOUT, SUPERVISOR, Site, finish_plan, terminate};
use xtask::workspace;

use crate::bounded::Bounded;
use crate::builds::Profile;
use crate::packages;

/// The link with faults.
const FAULTS: &[&str] =
    &["--delay", "1ms", "--loss", "1", "--duplication", "1", "--reordering", "5", "--lateness", "3ms", "--seed", "18"];
/// The octets of an answer.
const OCTETS: u64 = 4000;
/// The local ports of a machine that has too few.
const FEW_PORTS: u64 = 10;
/// The pause before a file is read again.
const PAUSE: Duration = Duration::from_millis(5);

/// The servers of a plan.
const IN_C: &str = "[[server]]\nhost = \"server\"\ncommand = \"posix\"\n";
const OURS: &str = "[[server]]\nhost = \"server\"\ncommand = \"spandrel\"\n";
const BOTH: &str = "architectures = [\"iterative\", \"thread-per-connection\"]\n";
const ITERATIVE: &str = "architectures = [\"iterative\"]\n";

/// Runs all plans and checks their results.
pub(crate) fn run() -> Result<()> {
    network::require_root()?;
    packages::require(packages::NAMESPACES)?;
    packages::require(packages::CERTIFICATES)?;
    packages::require(packages::CAPTURING)?;
    packages::require(packages::POSIX_SERVERS)?;
    site::build(Profile::Dev)?;
    let started = Instant::now();
    let machines = [(SUPERVISOR, Side::Near), ("load1", Side::Near), ("load2", Side::Near), ("server", Side::Far)];
    let network = Network::create(&machines)?;
    let folder = std::path::absolute(workspace::target().join("orchestra-hosts"))?;
    let site = Site::start(network, &folder, SUPERVISOR, Profile::Dev)?;
    let relay = site.start_relay(FAULTS, "faults.pcap")?;
    let mut agents = Vec::new();
    for name in ["server", "load1", "load2"] {
        site.issue(name)?;
        agents.push(site.start_agent(name, name, name == "server")?);
    }
    agents.iter().try_for_each(Site::await_agent)?;
    println!("machines and agents: {:.1} s", started.elapsed().as_secs_f64());

    refuses_strangers(&site)?;
    counts_all_requests(&site, relay)?;
    let load2 = agents.pop().context("three agents were started")?;
    let load1 = agents.pop().context("three agents were started")?;
    let load1 = survives_the_death_of_an_agent(&site, load1)?;
    exhausts_ports(&site)?;
    shows_packets(&site)?;
    agents.extend([load1, load2]);
    // Agents remove their names at their end: the server's one also needs its link for that.
    let _relay = site.start_relay(&[], "end.pcap")?;
    agents.into_iter().try_for_each(terminate)?;
    println!("{:.0} s in all; results: {}", started.elapsed().as_secs_f64(), folder.display());
    Ok(())
}

/// The agents obey the supervisor alone.
fn refuses_strangers(site: &Site) -> Result<()> {
    let plan = format!("name = \"stranger\"\nclients = [\"load1\"]\nsamples = 1\nrequests = 1\n{OURS}{ITERATIVE}");
    let (status, errors) = finish_plan(site.start_plan("stranger", &plan, "stranger")?)?;
    ensure!(
        status.code() == Some(1) && errors.contains("NO_PERMISSION"),
        "a stranger is not refused: {status}\n{errors}"
    );
    println!("good    a certificate that is not the supervisor's is refused");
    Ok(())
}

/// A plan over the link with faults, which TCP hides: all requests are answered. The relay has seen one connection for
/// each request.
fn counts_all_requests(site: &Site, relay: site::Relay) -> Result<()> {
    const REQUESTS: u64 = 60;
    let plan = format!(
        "name = \"faults\"\nclients = [\"load1\", \"load2\"]\nsamples = 2\nrequests = {REQUESTS}\nworkers = 3\n\
         {OURS}{BOTH}{IN_C}{BOTH}"
    );
    site.run_plan("faults", &plan)?;
    let results = Results::read(&site.results("faults"))?;
    let requests = results.check(8, REQUESTS, OCTETS)?;
    results.check_answered()?;
    ensure!(results.failures.is_empty(), "samples failed: {:?}", results.failures);
    let capture = relay.capture.clone();
    let counts = relay.end()?;
    let has_faults = counts.lost > 0 && counts.duplicated > 0 && counts.reordered > 0;
    ensure!(has_faults && counts.overflowed == 0, "the relay had other faults: {counts:?}");
    let clients = [site.network.machine("load1")?, site.network.machine("load2")?];
    let connections = checks::connections(&capture, &clients, site.network.machine("server")?)?;
    ensure!(connections == requests, "{requests} requests are counted, and {connections} connections were opened");
    println!(
        "good    {requests} requests over {} frames, of which {} lost, {} duplicated, {} late: all answered, each in a \
         connection of its own",
        counts.received, counts.lost, counts.duplicated, counts.reordered
    );
    Ok(())
}

/// A load agent is killed during the load of the second sample. The sample is recorded as a failure with its name; the
/// run goes on when it is started again. Returns the new agent.
fn survives_the_death_of_an_agent(site: &Site, agent: Bounded) -> Result<Bounded> {
    const REQUESTS: u64 = 200;
    let plan = format!(
        "name = \"death\"\nclients = [\"load1\", \"load2\"]\nsamples = 3\nrequests = {REQUESTS}\nagent_wait = 60\n\
         {OURS}{BOTH}{IN_C}{BOTH}"
    );
    let relay = site.start_relay(&["--delay", "2ms"], "death.pcap")?;
    let run = site.start_plan("death", &plan, SUPERVISOR)?;
    await_results(site, |results| !results.samples.is_empty(), "sample")?;
    let server = site.network.machine("server")?.address.parse()?;
    await_condition("connection of load1", || has_connection(agent.id(), server))?;
    drop(agent); // kills it
    await_results(site, |results| !results.failures.is_empty(), "failure")?;
    let agent = site.start_agent("load1", "load1", false)?;
    Site::await_agent(&agent)?;
    let (status, errors) = finish_plan(run)?;
    ensure!(status.success(), "the run ended with {status}\n{errors}");
    relay.end()?;
    let results = Results::read(&site.results("death"))?;
    let requests = results.check(12, REQUESTS, OCTETS)?;
    results.check_answered()?;
    let is_recorded = |failure: &checks::Failure| failure.lost_agent.as_deref() == Some("load1");
    ensure!(results.failures.iter().all(is_recorded), "the death is not recorded: {:?}", results.failures);
    let reason = results.failures.first().map(|failure| failure.reason.as_str()).unwrap_or_default();
    println!("good    an agent was killed: {} samples failed ({reason})", results.failures.len());
    println!("        and were taken again after its start: {requests} requests, all answered");
    Ok(agent)
}

/// Waits until the results of the running plan fulfil a condition.
fn await_results(site: &Site, is_fulfilled: impl Fn(&Results) -> bool, name: &str) -> Result<()> {
    await_condition(name, || Ok(is_fulfilled(&Results::read(&site.results("death"))?)))
}

fn await_condition(name: &str, is_fulfilled: impl Fn() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + PLAN_TIMEOUT;
    while !is_fulfilled()? {
        ensure!(Instant::now() < deadline, "no {name} within {} s", PLAN_TIMEOUT.as_secs());
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Whether the machine of this process has an established connection to an address.
fn has_connection(process: u32, address: Ipv4Addr) -> Result<bool> {
    const ESTABLISHED: &str = "01";
    let path = format!("/proc/{process}/net/tcp");
    let text = fs::read_to_string(&path).with_context(|| path)?;
    // The address is a number of the machine's byte order, in hexadecimal digits.
    let remote = format!("{:08X}:", u32::from_ne_bytes(address.octets()));
    Ok(text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|fields| {
        fields.get(2).is_some_and(|field| field.starts_with(&remote)) && fields.get(3) == Some(&ESTABLISHED)
    }))
}

/// A machine with ten local ports makes ten requests at most in the time of TIME_WAIT; all others are `ports exhausted`.
fn exhausts_ports(site: &Site) -> Result<()> {
    const REQUESTS: u64 = 100;
    let machine = site.network.machine("load2")?;
    let plan = |name: &str| {
        format!("name = \"{name}\"\nclients = [\"load2\"]\nsamples = 1\nrequests = {REQUESTS}\n{OURS}{ITERATIVE}")
    };
    let relay = site.start_relay(&[], "ports.pcap")?;
    machine.set_ports(&format!("50000 {}", 50000 + FEW_PORTS - 1))?;
    site.run_plan("few-ports", &plan("few-ports"))?;
    machine.set_ports(WIDE)?;
    let results = Results::read(&site.results("few-ports"))?;
    results.check(1, REQUESTS, OCTETS)?;
    let sample = &results.samples[0];
    let exhausted = sample.errors.get("ports exhausted").copied().unwrap_or_default();
    ensure!(
        (1..=FEW_PORTS).contains(&sample.answered) && exhausted == sample.failed && sample.errors.len() == 1,
        "with {FEW_PORTS} ports: {sample:?}"
    );
    site.run_plan("many-ports", &plan("many-ports"))?;
    let results = Results::read(&site.results("many-ports"))?;
    results.check(1, REQUESTS, OCTETS)?;
    results.check_answered()?;
    relay.end()?;
    println!(
        "good    {FEW_PORTS} local ports: {} requests answered, {exhausted} `ports exhausted`; {REQUESTS} of {REQUESTS} \
         answered in the range {WIDE}",
        sample.answered
    );
    Ok(())
}

/// Appendix D: the packets of one exchange with our iterative server, and with the one in C.
fn shows_packets(site: &Site) -> Result<()> {
    let mut text = "# The packets of one exchange\n".to_owned();
    for (title, command, servers) in [("Spandrel", "spandrel", OURS), ("POSIX calls in C", "posix", IN_C)] {
        let relay = site.start_relay(&[], &format!("packets-{command}.pcap"))?;
        let name = format!("packets-{command}");
        let plan = format!(
            "name = \"{name}\"\nclients = [\"load1\"]\nsamples = 1\nrequests = 1\nworkers = 1\n{servers}{ITERATIVE}"
        );
        site.run_plan(&name, &plan)?;
        let results = Results::read(&site.results(&name))?;
        results.check(1, 1, OCTETS)?;
        results.check_answered()?;
        let capture = relay.capture.clone();
        relay.end()?;
        let packets = site.packets(&capture, site.network.machine("load1")?)?;
        // The greeting, the request, and the last segment of the answer; the client closes first.
        let position = |part: &str| packets.find(part).with_context(|| format!("no `{part}` in\n{packets}"));
        position(" 1:8(7) ")?;
        position(" 1:5(4) ")?;
        position(":4008(")?;
        let close = packets.lines().position(|line| line.contains("| F"));
        let answer = packets.lines().position(|line| line.contains(":4008("));
        let closer = close.and_then(|at| packets.lines().nth(at)).unwrap_or_default();
        ensure!(close > answer && closer.contains("| load1."), "not closed by the client after the answer:\n{packets}");
        text += &format!("\n## {title}, iterative\n\n{packets}");
    }
    site.write("packets.md", &text)?;
    println!("good    the packets of one exchange:\n\n{text}");
    Ok(())
}
