//! The Orchestrator on the machines: the naming service, agents, the relay, and commands of the supervisor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use xtask::workspace;

use super::network::{Machine, Network, TAPS};
use crate::authority::Authority;
use crate::bounded::Bounded;
use crate::builds::Profile;

/// The time for a start or an end.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The time for a plan.
pub(super) const PLAN_TIMEOUT: Duration = Duration::from_secs(120);
/// The supervisor's machine, which also has the naming service unless another one is given.
pub(super) const SUPERVISOR: &str = "supervisor";

/// Builds the programs.
pub(super) fn build(profile: Profile) -> Result<()> {
    profile.build(&[
        ("spandrel-naming", "spandrel-naming"),
        ("spandrel-orchestra", "spandrel-orchestra"),
        ("spandrel-stacks", "spandrel-stacks"),
        ("spandrel-architectures", "transfer-server"),
    ])?;
    let mut make = Command::new("make");
    make.args(["--silent", "-C", "peers/servers/posix"]).arg(format!("OUT={}", peers()?.display()));
    workspace::run(make.current_dir(workspace::root()))
}

fn peers() -> Result<PathBuf> {
    Ok(std::path::absolute(workspace::target().join("peers/servers"))?)
}

/// The numbers of frames, as the relay prints them.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct RelayCounts {
    pub(super) received: u64,
    pub(super) lost: u64,
    pub(super) overflowed: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
}

/// The network with the naming service, certificates and files.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) folder: PathBuf,
    profile: Profile,
    authority: Authority,
    naming: String,
    /// Dropped before the network.
    pub(super) naming_service: Bounded,
    pub(super) network: Network,
}

impl Site {
    /// Empties the folder, issues certificates for the supervisor, a stranger and the machines, and starts the naming
    /// service on a machine.
    pub(super) fn start(network: Network, folder: &Path, naming: &str, profile: Profile) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        let authority = Authority::create(&folder.join("certificates"), "laboratory authority")?;
        authority.issue(SUPERVISOR, SUPERVISOR, &[])?;
        authority.issue("stranger", "stranger", &[])?;
        let machine = network.machine(naming)?.clone();
        let mut command = machine.command(program("spandrel-naming", profile)?);
        command.arg("--data").arg(folder.join("names"));
        command.args(["--listen", &format!("iiop://{}:2809", machine.address)]);
        let naming_service = Bounded::start("spandrel-naming", &mut command)?;
        let line = naming_service.line(Instant::now() + START_TIMEOUT)?;
        ensure!(line.is_some(), "the naming service has ended: {}", naming_service.stderr());
        let naming = format!("corbaloc::{}:2809/NameService", machine.address);
        Ok(Self { folder: folder.to_owned(), profile, authority, naming, naming_service, network })
    }

    /// Writes a file of the site's folder.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Issues the certificate of a machine's agents.
    pub(super) fn issue(&self, machine: &str) -> Result<()> {
        let machine = self.network.machine(machine)?;
        self.authority.issue(machine.name, machine.name, &[&machine.address])
    }

    /// Starts an agent of this name on a machine. It may start our servers and those in C if `has_servers`.
    pub(super) fn start_agent(&self, host: &str, machine: &str, has_servers: bool) -> Result<Bounded> {
        let machine = self.network.machine(machine)?;
        let mut config = format!("supervisors = [\"cn:{SUPERVISOR}\"]\ntargets = [\"10.78.0.*\"]\nmax_workers = 64\n");
        if has_servers {
            let ours = program("transfer-server", self.profile)?;
            for (command, program) in [("spandrel", ours), ("posix", peers()?.join("posix"))] {
                config += &format!(
                    "[commands.{command}]\nprogram = '{}'\narguments = [\"--host\", \"{}\"]\narchitectures = \
                     [\"iterative\", \"thread-per-connection\"]\n",
                    program.display(),
                    machine.address
                );
            }
        }
        let config = self.write(&format!("{host}.toml"), &config)?;
        let mut command = machine.command(program("spandrel-orchestra", self.profile)?);
        command.args(["agent", "--host", host, "--naming", &self.naming, "--commands"]).arg(config);
        command.args(["--listen", &format!("ssliop://{}:0", machine.address)]);
        self.add_certificate(&mut command, machine.name);
        Bounded::start(&format!("the agent {host}"), &mut command)
    }

    /// Waits until an agent is registered.
    pub(super) fn await_agent(agent: &Bounded) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        for _ in 0..2 {
            let line = agent.line(deadline)?.unwrap_or_default();
            ensure!(line.starts_with("ready: /orchestrator/"), "not ready: `{line}`, {}", agent.stderr());
        }
        Ok(())
    }

    /// Starts a plan on the supervisor's machine, with the certificate of this owner.
    pub(super) fn start_plan(&self, plan: &str, text: &str, owner: &str) -> Result<Bounded> {
        let file = self.write(&format!("{plan}.toml"), text)?;
        let mut command = self.network.machine(SUPERVISOR)?.command(program("spandrel-orchestra", self.profile)?);
        command.arg("run").arg(file).args(["--naming", &self.naming]);
        self.add_certificate(&mut command, owner);
        Bounded::start(&format!("the plan {plan}"), &mut command)
    }

    /// Carries out a plan as the supervisor.
    pub(super) fn run_plan(&self, plan: &str, text: &str) -> Result<()> {
        let (status, errors) = finish_plan(self.start_plan(plan, text, SUPERVISOR)?)?;
        ensure!(status.success(), "the plan {plan}: {status}\n{errors}");
        Ok(())
    }

    /// The file with the results of a plan.
    pub(super) fn results(&self, plan: &str) -> PathBuf {
        self.folder.join(format!("{plan}.jsonl"))
    }

    fn add_certificate(&self, command: &mut Command, owner: &str) {
        command.args(["--cert", &self.authority.file(&format!("{owner}.pem"))]);
        command.args(["--key", &self.authority.file(&format!("{owner}.key"))]);
        command.args(["--ca", &self.authority.certificate()]);
    }

    /// Starts the relay with these options.
    pub(super) fn start_relay(&self, options: &[&str], capture: &str) -> Result<Relay> {
        let mut command = self.network.hub().command(program("spandrel-stacks", self.profile)?);
        let capture = self.folder.join(capture);
        command.arg("relay").args(TAPS).args(options).arg("--capture").arg(&capture);
        let process = Bounded::start("the relay", &mut command)?;
        let line = process.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
        ensure!(line == "ready", "the relay does not begin: `{line}`, {}", process.stderr());
        Ok(Relay { process, capture })
    }

    /// The packets of the first exchange in a capture with this client, as text.
    pub(super) fn packets(&self, capture: &Path, client: &Machine) -> Result<String> {
        let mut command = Command::new(program("spandrel-orchestra", self.profile)?);
        command.arg("packets").arg(capture).args(["--client", &client.address]);
        for name in ["load1", "server"] {
            command.args(["--name", &format!("{}={name}", self.network.machine(name)?.address)]);
        }
        super::network::output(&mut command)
    }
}

/// Waits for the end of a plan; returns its exit status and standard error.
pub(super) fn finish_plan(mut run: Bounded) -> Result<(ExitStatus, String)> {
    let status = run.finish(PLAN_TIMEOUT);
    let errors = run.stderr();
    status.map(|status| (status, errors.clone())).context(errors)
}

/// Ends a process by SIGTERM.
pub(super) fn terminate(mut process: Bounded) -> Result<()> {
    super::network::output(Command::new("kill").args(["-TERM", &process.id().to_string()]))?;
    let status = process.finish(START_TIMEOUT)?;
    ensure!(status.success(), "{status} after SIGTERM: {}", process.stderr());
    Ok(())
}

#[derive(Debug)]
pub(super) struct Relay {
    process: Bounded,
    pub(super) capture: PathBuf,
}

impl Relay {
    /// Ends it.
    pub(super) fn end(mut self) -> Result<RelayCounts> {
        self.process.close_stdin();
        let line = self.process.line(Instant::now() + START_TIMEOUT)?.unwrap_or_default();
        let status = self.process.finish(START_TIMEOUT)?;
        ensure!(status.success(), "the relay: {status}, {}", self.process.stderr());
        serde_json::from_str(&line).with_context(|| format!("the relay prints `{line}`"))
    }
}

/// The absolute path of one of our programs.
fn program(name: &str, profile: Profile) -> Result<PathBuf> {
    Ok(std::path::absolute(profile.program(name))?)
}
