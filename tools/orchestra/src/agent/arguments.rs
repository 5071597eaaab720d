//! The command line of an agent, and its ORB.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use spandrel::authorization::Authorizer;
use spandrel::options::OrbArgs;
use spandrel::services::cos_naming::NameComponent;
use spandrel::ssliop::Ssliop;
use spandrel::{Endpoint, ObjectRef, Orb, Poa};
use spandrel_daemon::{Failure, FailureKind};

use super::config::AgentConfig;
use super::harness::Harness;
use super::team::WorkTeam;
use crate::idl::orchestra::{HarnessSkeleton, WorkTeamSkeleton};
use crate::names::{self, DEFAULT_NAMING, Names};

/// The time for the removal of the names at the end: a naming service that cannot be reached does not delay it further.
const WITHDRAWAL: Duration = Duration::from_secs(2);

/// Serve the Harness and the WorkTeam of this machine.
///
/// They are registered in the naming service as /orchestrator/servers/HOST/Harness and
/// /orchestrator/clients/HOST/WorkTeam. Supervisors are authenticated by certificates (TLS), unless --insecure is given.
#[derive(Clone, Debug, clap::Args)]
pub struct AgentArgs {
    /// The configuration: the commands that may be started, and the supervisors
    #[arg(long, value_name = "FILE")]
    commands: PathBuf,
    /// The naming service in which agents are bound
    #[arg(long, value_name = "URL", default_value = DEFAULT_NAMING)]
    naming: String,
    /// The name of this machine in the naming service [default: that of the configuration, or the machine's own]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// An address to listen at, such as ssliop://192.168.0.10:4500; may be given more than once [default: any port of
    /// all interfaces with TLS, of loopback with --insecure]
    #[arg(long, value_name = "ENDPOINT")]
    listen: Vec<String>,
    /// No TLS: every process of this machine may use the agent. Only loopback is listened at
    #[arg(long, conflicts_with_all = ["cert", "ca"])]
    insecure: bool,
    #[command(flatten)]
    orb: OrbArgs,
}

impl AgentArgs {
    /// Serves until the process is told to end.
    ///
    /// # Errors
    /// A wrong configuration; neither TLS nor `--insecure`; a naming service that refuses.
    pub fn run(&self) -> Result<(), Failure> {
        let has_certificate = self.orb.certificate().map_err(Failure::usage)?.is_some();
        let has_tls = has_certificate && self.orb.authorities().map_err(Failure::usage)?.is_some();
        if !self.insecure && !has_tls {
            return Err(Failure::usage(anyhow!(
                "an agent starts programs: give --cert, --key and --ca, or --insecure on loopback"
            )));
        }
        let config = AgentConfig::read(&self.commands).map_err(Failure::usage)?;
        let host = self.host.clone().or_else(|| config.host.clone()).or_else(machine_name);
        let host = host.filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| Failure::usage(anyhow!("the machine has no name: give --host")))?;
        let orb = self.orb(&config)?;
        let root = Poa::root(&orb).map_err(Failure::failed)?;
        // References have the addresses: otherwise the first object would make the ORB listen.
        orb.listen().map_err(Failure::cannot_listen)?;
        let harness = Arc::new(Harness::new(config.clone()));
        let team = Arc::new(WorkTeam::new(config, self.insecure));
        let harness_object = root.activate(HarnessSkeleton::new(Arc::clone(&harness))).map_err(Failure::failed)?;
        let team_object = root.activate(WorkTeamSkeleton::new(Arc::clone(&team))).map_err(Failure::failed)?;
        let bindings = [(names::harness(&host), harness_object), (names::work_team(&host), team_object)];
        let names = Names::at(&orb, &self.naming).map_err(Failure::usage)?;
        let register = || bindings.iter().try_for_each(|(name, object)| names.register(name, object));
        register().context("the agent cannot be registered (--naming)").map_err(Failure::failed)?;
        let ready = bindings.iter().map(|(name, _)| format!("/{}", spandrel::services::name::to_string(name)));
        let ready: Vec<String> = ready.collect();
        let (ending, waiting) = (orb.clone(), orb.clone());
        // The names go first, so that no supervisor finds objects that are about to end.
        let before_end = {
            let bindings = bindings.clone();
            move || withdraw(names.clone(), bindings.clone())
        };
        let begin_shutdown = move || {
            before_end();
            drop(ending.begin_shutdown());
        };
        let served = spandrel_daemon::serve(&ready, &|| Ok(()), begin_shutdown, move || waiting.run());
        team.end();
        harness.end();
        served
    }

    fn orb(&self, config: &AgentConfig) -> Result<Orb, Failure> {
        let settings = self.orb.settings().map_err(Failure::usage)?;
        if self.insecure && settings.iter().any(|of| of.option.to_ascii_lowercase().contains("endpoint")) {
            return Err(Failure::usage(anyhow!("with --insecure, addresses are given by --listen")));
        }
        let mut builder = Orb::builder()
            .connect_timeout(Some(names::TIMEOUT))
            .request_timeout(Some(names::TIMEOUT))
            .protocol(Ssliop::new(Arc::new(rustls::crypto::ring::default_provider())));
        let mut args = self.orb.clone();
        if !self.insecure {
            args = args.with_default("-ORBSSLVerify", "require");
            let policy = config.policy().map_err(|error| Failure::new(FailureKind::Policy, error))?;
            builder = Authorizer::new(policy).install(builder).map_err(Failure::failed)?;
        }
        for endpoint in self.endpoints()? {
            builder = builder.listen(endpoint);
        }
        args.apply(builder).map_err(Failure::usage)?.build().map_err(Failure::cannot_listen)
    }

    /// The endpoints: with TLS only, or on loopback only.
    fn endpoints(&self) -> Result<Vec<Endpoint>, Failure> {
        let default = if self.insecure { "iiop://127.0.0.1:0" } else { "ssliop://*:0" };
        let texts = match &self.listen[..] {
            [] => vec![default.to_owned()],
            given => given.to_vec(),
        };
        let mut endpoints = Vec::new();
        for text in texts {
            let endpoint: Endpoint = text.parse().map_err(Failure::usage)?;
            if self.insecure && !is_local(&endpoint) {
                return Err(Failure::usage(anyhow!("--insecure listens at loopback only, not at {text} (--listen)")));
            }
            if !self.insecure && endpoint.scheme() != "ssliop" {
                return Err(Failure::usage(anyhow!("{text} (--listen) has no TLS: expected ssliop://HOST:PORT")));
            }
            endpoints.push(endpoint);
        }
        Ok(endpoints)
    }
}

/// Whether only this machine reaches the endpoint.
fn is_local(endpoint: &Endpoint) -> bool {
    let publishes = ["publish", "interface"].iter().any(|option| endpoint.option(option).is_some());
    match endpoint.host_and_port() {
        Ok((host, _)) if !publishes => {
            let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
            matches!(host, "" | "localhost") || address.is_ok_and(|address| address.is_loopback())
        }
        _ => false,
    }
}

/// Removes the names of the agent, within the time that there is for that. The calls have a thread of their own, since
/// the search for the address of the naming service has no time limit.
fn withdraw(names: Names, bindings: [(Vec<NameComponent>, ObjectRef); 2]) {
    let (sender, end) = mpsc::channel::<()>();
    let remove = move || {
        let _sender = sender; // dropped after the last call
        for (name, object) in bindings {
            // An agent that was started later may have replaced them.
            let is_own = names.resolve(&name).is_ok_and(|bound| bound.is_equivalent(&object));
            if is_own && let Err(error) = names.remove(&name) {
                tracing::warn!("{error:#}");
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("withdrawal".to_owned()).spawn(remove) {
        tracing::warn!(%error, "the names remain in the naming service");
    }
    if end.recv_timeout(WITHDRAWAL) == Err(mpsc::RecvTimeoutError::Timeout) {
        tracing::warn!("the naming service does not answer: the names remain in it");
    }
}

#[cfg(unix)]
fn machine_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn machine_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}
