//! `spandrel orchestra run`: carries out a plan.

mod error;
mod interruption;
mod measured;
mod sample;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use spandrel::Orb;
use spandrel::options::OrbArgs;
use spandrel_daemon::Failure;
use spandrel_lab::progress::Progress;

use crate::idl::orchestra::{Command, Harness, Property, WorkTeam};
use crate::names::{self, DEFAULT_NAMING, Names};
use crate::plan::{Plan, Step, Target};
use crate::results::{self, Host, Record, ResultsFile};
use error::SampleError;
use interruption::Interruption;
use sample::Sampling;

/// The time limit of a call of an agent: longer than a server may take to listen.
const TIMEOUT: Duration = Duration::from_secs(90);
/// The pause between two attempts to reach an agent that has died.
const PAUSE: Duration = Duration::from_millis(200);
/// How often missing samples are tried in one run.
const PASSES: u32 = 2;

/// Carry out a plan: all samples of all servers and loads, in an interleaved order.
///
/// Each sample is appended to the file of results. A run that was interrupted goes on where it ended; samples that
/// failed are tried again. At SIGINT (Ctrl-C) and SIGTERM the present sample is given up, and its server and loads end.
/// With `slices` in the plan, servers that are compared run at the same time, and their slices alternate.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// The plan of the samples (TOML)
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// The file of results (lines of JSON) [default: the plan's name with .jsonl]
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// The naming service in which agents are bound
    #[arg(long, value_name = "URL", default_value = DEFAULT_NAMING)]
    naming: String,
    /// Print the samples in their order, and end
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    orb: OrbArgs,
}

impl RunArgs {
    /// Takes all samples that are missing.
    ///
    /// # Errors
    /// A wrong plan; results that cannot be written; samples that could not be taken.
    pub fn run(&self) -> Result<(), Failure> {
        let plan = Plan::read(&self.plan).map_err(Failure::usage)?;
        if self.dry_run {
            let (targets, steps) = (plan.targets(), plan.steps());
            let line = |step: Step| {
                let names: Vec<&str> = step.targets.iter().map(|target| &*targets[*target].name).collect();
                format!("{} {} {}\n", step.round + 1, names.join(" "), plan.loads[step.load].name)
            };
            return spandrel_daemon::print(&steps.into_iter().map(line).collect::<String>());
        }
        let path = self.results.clone().unwrap_or_else(|| self.plan.with_extension("jsonl"));
        let orb = spandrel_daemon::client_orb(&self.orb, TIMEOUT)?;
        let names = Names::at(&orb, &self.naming).map_err(Failure::usage)?;
        let (file, results) = ResultsFile::open(&path, &plan).map_err(Failure::failed)?;
        let done = results.done();
        let (interruption, _handler) = Interruption::handled().map_err(Failure::failed)?;
        let (targets, lost) = (plan.targets(), BTreeSet::new());
        let mut supervisor = Supervisor { orb, names, targets, plan, file, done, lost, interruption };
        supervisor.describe_hosts().map_err(Failure::failed)?;
        let missing = supervisor.take_all().map_err(Failure::failed)?;
        spandrel_daemon::print(&format!("results: {}\n", path.display()))?;
        match missing {
            1.. if supervisor.interruption.is_requested() => {
                Err(Failure::failed(anyhow!("the run was interrupted: the same command continues it")))
            }
            0 => Ok(()),
            count => {
                let (missing, them) = if count == 1 {
                    ("1 sample is".to_owned(), "it")
                } else {
                    (format!("{count} samples are"), "them")
                };
                let path = path.display();
                let text = format!("{missing} missing, for the reasons in {path}: the same command takes {them}");
                Err(Failure::failed(anyhow!(text)))
            }
        }
    }
}

/// A plan that is being carried out.
struct Supervisor {
    orb: Orb,
    names: Names,
    plan: Plan,
    targets: Vec<Target>,
    file: ResultsFile,
    /// The samples that were taken.
    done: BTreeSet<(String, String, u32)>,
    /// The hosts of agents that died, and did not come back.
    lost: BTreeSet<String>,
    interruption: Arc<Interruption>,
}

impl Supervisor {
    /// Records the machines of the plan. An agent that cannot be reached is an error here: a plan begins with all.
    fn describe_hosts(&mut self) -> anyhow::Result<()> {
        let servers: BTreeSet<String> = self.targets.iter().map(|target| target.host.clone()).collect();
        for host in servers {
            let harness = self.names.resolve(&names::harness(&host))?;
            let harness = Harness::unchecked_narrow(&harness);
            let unreachable = || format!("cannot reach the Harness of {host}");
            let commands = harness.list_commands().with_context(unreachable)?;
            self.targets
                .iter()
                .filter(|target| target.host == host)
                .try_for_each(|target| check_command(target, &commands))?;
            let versions = commands.into_iter().map(|command| (command.name, command.version)).collect();
            let properties = map(harness.machine().with_context(unreachable)?);
            let role = "server".to_owned();
            self.file.append(&Record::Host(Host { host, role, properties, versions }))?;
        }
        for host in self.plan.clients.clone() {
            let team = WorkTeam::unchecked_narrow(&self.names.resolve(&names::work_team(&host))?);
            let properties = team.machine().with_context(|| format!("cannot reach the WorkTeam of {host}"))?;
            let (role, versions) = ("client".to_owned(), BTreeMap::new());
            self.file.append(&Record::Host(Host { host, role, properties: map(properties), versions }))?;
        }
        Ok(())
    }

    /// Takes the missing samples; returns the number of those that are missing still.
    fn take_all(&mut self) -> anyhow::Result<usize> {
        for _ in 0..PASSES {
            let mut missing = self.missing();
            if !self.lost.is_empty() {
                missing.retain(|step| !self.is_lost(step));
            }
            let mut progress = Progress::begin(count(&missing) as u64);
            for step in missing {
                if !self.interruption.is_requested() {
                    self.take(&step, &mut progress)?;
                }
            }
            progress.finish();
        }
        Ok(count(&self.missing()))
    }

    /// Whether the samples need an agent that is lost.
    fn is_lost(&self, step: &Step) -> bool {
        let servers = step.targets.iter().map(|target| &self.targets[*target].host);
        self.plan.clients.iter().chain(servers).any(|host| self.lost.contains(host))
    }

    /// The samples that were not taken. Those of a group that are missing are taken at the same time.
    fn missing(&self) -> Vec<Step> {
        let mut steps = self.plan.steps();
        for step in &mut steps {
            let (round, load) = (step.round, &self.plan.loads[step.load].name);
            let key = |target: usize| (self.targets[target].name.clone(), load.clone(), round);
            step.targets.retain(|target| !self.done.contains(&key(*target)));
        }
        steps.retain(|step| !step.targets.is_empty());
        steps
    }

    /// Takes the samples of a step, and records their outcomes.
    fn take(&mut self, step: &Step, progress: &mut Progress) -> anyhow::Result<()> {
        let targets: Vec<&Target> = step.targets.iter().map(|target| &self.targets[*target]).collect();
        let load = &self.plan.loads[step.load];
        let labels: Vec<String> =
            targets.iter().map(|target| format!("{} {} #{}", target.name, load.name, step.round + 1)).collect();
        if self.is_lost(step) {
            labels.iter().for_each(|label| progress.step(label, "left out: an agent is lost"));
            return Ok(());
        }
        progress.at(&labels.join(", "));
        let (plan, names, interruption) = (&self.plan, &self.names, &*self.interruption);
        let samples = Sampling { plan, names, step, targets, load, interruption }.take();
        for ((label, target), sample) in labels.iter().zip(&step.targets).zip(samples) {
            match sample {
                Ok(sample) => {
                    let cpu = sample.server_cpu().map(|cpu| format!(", {:.3} s CPU", cpu.total())).unwrap_or_default();
                    let result = format!("{:.3} s{cpu}, {} failed", sample.elapsed, sample.failed);
                    self.done.insert((sample.target.clone(), sample.load.clone(), sample.round));
                    self.file.append(&Record::Sample(Box::new(sample)))?;
                    progress.step(label, &result);
                }
                // It is no fault of the server or the agents.
                Err(_) if self.interruption.is_requested() => progress.step(label, "given up"),
                Err(error) => {
                    progress.step(label, &format!("failed: {}", error.reason));
                    self.record_failure(*target, step, error)?;
                }
            }
        }
        Ok(())
    }

    fn record_failure(&mut self, target: usize, step: &Step, error: SampleError) -> anyhow::Result<()> {
        let failure = results::Failure {
            target: self.targets[target].name.clone(),
            load: self.plan.loads[step.load].name.clone(),
            round: step.round,
            at: results::now(),
            lost_agent: error.lost_agent.clone(),
            reason: error.reason,
        };
        self.file.append(&Record::Failure(failure))?;
        if let Some(host) = error.lost_agent
            && !self.lost.contains(&host)
            && !self.is_back(&host)
        {
            spandrel_daemon::remark(&format!("the agent of {host} is lost: its samples are left out\n"));
            self.lost.insert(host);
        }
        Ok(())
    }

    /// Waits for an agent that has died, as long as the plan allows; whether it answers.
    fn is_back(&self, host: &str) -> bool {
        let deadline = Instant::now() + Duration::from_secs_f64(self.plan.agent_wait);
        let name = match self.plan.clients.iter().any(|client| client == host) {
            true => names::work_team(host),
            false => names::harness(host),
        };
        loop {
            // A reference of the dead agent is in the naming service until the next one registers.
            if self.names.resolve(&name).is_ok_and(|object| object.non_existent().is_ok_and(|is_gone| !is_gone)) {
                return true;
            }
            if Instant::now() >= deadline || self.interruption.is_requested() {
                return false;
            }
            self.interruption.wait(PAUSE);
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The process ends; connections need no farewell.
        _ = self.orb.begin_shutdown();
    }
}

/// The number of samples.
fn count(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.targets.len()).sum()
}

/// Checks that the configuration of an agent has the server.
fn check_command(target: &Target, commands: &[Command]) -> anyhow::Result<()> {
    let Target { host, server, .. } = target;
    let Some(command) = commands.iter().find(|command| command.name == server.name) else {
        let command_names: Vec<&str> = commands.iter().map(|command| &*command.name).collect();
        bail!(
            "the agent of {host} has no command `{}` in its configuration, but: {}",
            server.name,
            command_names.join(", ")
        );
    };
    if !command.architectures.contains(&server.architecture) {
        let (name, architecture, known) = (&server.name, &server.architecture, command.architectures.join(", "));
        bail!("the agent of {host} has no architecture `{architecture}` of the command `{name}`, but: {known}");
    }
    Ok(())
}

fn map(properties: Vec<Property>) -> BTreeMap<String, String> {
    properties.into_iter().map(|property| (property.name, property.value)).collect()
}
