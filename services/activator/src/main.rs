//! The executable of the implementation repository: glue of command line, commands and service.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::{Parser, Subcommand, ValueEnum};
use spandrel::ObjectRef;
use spandrel::net::error::{escape, output};
use spandrel::services::activation::{self, IMPL_REPO_SERVICE};
use spandrel::services::implementation_repository::{
    ActivationMode, Administration, ServerInformation, ServerState, StartupOptions,
};
use spandrel::services::offer_text::{TextOffer, default_trader};
use spandrel_activator::{ActivatorArgs, STORE_FILE, check_store};
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure, FailureKind};
use spandrel_store::{BackupCommand, Service};

/// The port of the implementation repository as a process of its own.
const PORT: u16 = 2810;
/// The time between two questions for the state of a server.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The implementation repository: starts servers when they are called, and forwards their clients.
#[derive(Debug, Parser)]
#[command(name = "spandrel-activator", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    #[command(flatten)]
    activator: ActivatorArgs,
    /// Subcommands call the activator at this address, or at ssliop://HOST[:PORT], or by the URL of its object. The
    /// default is the initial reference ImplRepoService, such as that of the site, or else 127.0.0.1; the default port
    /// is 2810
    #[arg(long, global = true, value_name = "HOST[:PORT]", env = "SPANDREL_ACTIVATOR")]
    server: Option<String>,
    /// The time limit of each call of subcommands, in seconds
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..=86_400)
    )]
    timeout: u32,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify the store of an activator that does not run. No file is written
    Check,
    /// Make a running activator copy its store into the folder `backups/activator` below its data folder
    Backup {
        /// The name of the file
        name: String,
    },
    #[command(flatten)]
    Administration(AdministrationCommand),
}

/// A call of a running activator.
#[derive(Debug, Subcommand)]
enum AdministrationCommand {
    /// Register a server
    Add {
        /// The name of the server
        name: String,
        #[command(flatten)]
        options: Options,
        /// Export an object of the server as an offer of this service type: the object's plain key, and the properties. The
        /// trader is the initial reference TradingService, or that at 127.0.0.1:2811
        #[arg(long, num_args = 2.., value_names = ["TYPE", "KEY", "NAME=VALUE"])]
        offer: Vec<String>,
    },
    /// Replace the registration of a server, from its next start on
    Update {
        /// The name of the server
        name: String,
        #[command(flatten)]
        options: Options,
    },
    /// List the servers and their states
    List,
    /// Show a server with its administrative data
    Show {
        /// The name of the server
        name: String,
    },
    /// Start a server, and wait until it has registered or has failed
    Start {
        /// The name of the server
        name: String,
    },
    /// End a server by SIGTERM, and by SIGKILL if it has not ended in time
    Stop {
        /// The name of the server
        name: String,
    },
    /// End a server with its running requests; later ones wait for its next process
    Drain {
        /// The name of the server
        name: String,
    },
    /// Forbid a server to be started, and its clients to be forwarded
    Disable {
        /// The name of the server
        name: String,
    },
    /// Allow a disabled server to be started again
    Enable {
        /// The name of the server
        name: String,
    },
    /// Remove a server that does not run
    Remove {
        /// The name of the server
        name: String,
    },
}

/// The registration of a server.
#[derive(Debug, clap::Args)]
struct Options {
    /// The name of a command in the configuration [default: none, for the mode manual]
    #[arg(long, value_name = "NAME", default_value = "")]
    command: String,
    /// When the server is started
    #[arg(long, value_enum, default_value_t = Mode::Normal)]
    mode: Mode,
    /// The time from its start to its registration, in milliseconds [default: that of the activator]
    #[arg(long, value_name = "MS", default_value_t = 0, hide_default_value = true)]
    start_timeout: u32,
    /// The failures in sequence after which it is not started again [default: those of the activator]
    #[arg(long = "failures", value_name = "N", default_value_t = 0, hide_default_value = true)]
    failures: u32,
    /// The owner, for administrators
    #[arg(long, default_value = "", hide_default_value = true)]
    owner: String,
    /// The permissions, for administrators
    #[arg(long, default_value = "", hide_default_value = true)]
    permissions: String,
    /// A description, for administrators
    #[arg(long, default_value = "", hide_default_value = true)]
    description: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// When a client calls it
    Normal,
    /// By `start`, or outside of the activator
    Manual,
    /// When the activator starts, and when a client calls it
    Auto,
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        match &args.command {
            None => args.serve(),
            Some(Command::Check) => args.check(),
            Some(Command::Backup { name }) => args.back_up(name),
            Some(Command::Administration(command)) => args.administer(command),
        }
    })
}

impl Args {
    fn check(&self) -> Result<(), Failure> {
        let servers = check_store(&self.daemon.data_folder()?.join(STORE_FILE)).map_err(data)?;
        spandrel_daemon::print(&format!("the store is sound: {servers} servers\n"))?;
        Ok(())
    }

    fn back_up(&self, name: &str) -> Result<(), Failure> {
        let backup = BackupCommand { name: name.to_owned(), server: self.server.clone(), timeout: self.timeout };
        backup.run(Service::Activator, &self.daemon, PORT)
    }

    /// Calls a running activator.
    fn administer(&self, command: &AdministrationCommand) -> Result<(), Failure> {
        if let AdministrationCommand::Add { options, .. } | AdministrationCommand::Update { options, .. } = command {
            options.check()?;
        }
        let timeout = Duration::from_secs(self.timeout.into());
        let repository =
            self.daemon.served_object(self.server.as_deref(), PORT, (IMPL_REPO_SERVICE, IMPL_REPO_SERVICE), timeout)?;
        let administer = || match command {
            AdministrationCommand::Add { name, options, offer } if !offer.is_empty() => {
                add_with_offer(&repository.object, name, options, offer)
            }
            command => administer(&Administration::unchecked_narrow(&repository.object), command),
        };
        administer()
            .map_err(explained)
            .with_context(|| format!("cannot {} by the activator at {}", command.text(), repository.address))
            .map_err(Failure::failed)
    }

    fn serve(&self) -> Result<(), Failure> {
        let commands = self.activator.read_commands(&self.daemon)?;
        let daemon = self.daemon.start_services(&["activator"], PORT)?;
        let activator = self.activator.start(&daemon, commands)?;
        let url = daemon.url(IMPL_REPO_SERVICE, activator.reference())?;
        daemon.serve(&[format!("{IMPL_REPO_SERVICE} {url}")])?;
        drop(activator); // the ORB was shut down
        Ok(())
    }
}

fn data(error: impl Into<anyhow::Error>) -> Failure {
    Failure::new(FailureKind::Data, error)
}

/// Runs a subcommand by calls of a running activator.
fn administer(repository: &Administration, command: &AdministrationCommand) -> anyhow::Result<()> {
    match command {
        AdministrationCommand::Add { name, options, .. } => Ok(repository.register_server(name, &options.startup())?),
        AdministrationCommand::Update { name, options } => Ok(repository.update_server(name, &options.startup())?),
        AdministrationCommand::List => Ok(output::print(&table(&repository.list()?))?),
        AdministrationCommand::Show { name } => Ok(output::print(&description(&repository.find(name)?))?),
        AdministrationCommand::Start { name } => {
            repository.activate_server(name)?;
            wait_for_start(repository, name)
        }
        AdministrationCommand::Stop { name } => {
            repository.shutdown_server(name, false)?;
            wait_for_end(repository, name)
        }
        AdministrationCommand::Drain { name } => {
            repository.shutdown_server(name, true)?;
            wait_for_end(repository, name)
        }
        AdministrationCommand::Disable { name } => Ok(repository.enable_server(name, false)?),
        AdministrationCommand::Enable { name } => Ok(repository.enable_server(name, true)?),
        AdministrationCommand::Remove { name } => Ok(repository.remove_server(name)?),
    }
}

/// Registers a server, and exports one of its objects as an offer, which is read before anything is changed.
fn add_with_offer(repository: &ObjectRef, name: &str, options: &Options, offer: &[String]) -> anyhow::Result<()> {
    let [service_type, key, properties @ ..] = offer else { bail!("an offer has a service type and a key") };
    let object = activation::bind_at(repository, name, key)?;
    let lookup = default_trader(repository.orb())?;
    let failed = || format!("cannot offer its object `{}` as `{}`", escape(key), escape(service_type));
    let offer = TextOffer::read(&lookup, service_type, properties).with_context(failed)?;
    Administration::unchecked_narrow(repository).register_server(name, &options.startup())?;
    let id = offer.export(&object).with_context(|| format!("{}; it is registered", failed()))?;
    Ok(output::print(&format!("{}\n", escape(&id)))?)
}

/// Waits until a server has registered. Its first failure, or a command that ends it, is an error.
fn wait_for_start(repository: &Administration, name: &str) -> anyhow::Result<()> {
    let mut was_starting = false;
    loop {
        let server = repository.find(name)?;
        let reason = || match &*server.last_failure {
            "" => anyhow!("it was stopped, or has ended"),
            reason => anyhow!("{reason}"),
        };
        match server.state {
            _ if !server.enabled => return Err(anyhow!("it is disabled")),
            ServerState::Running => return Ok(()),
            ServerState::Starting => was_starting = true,
            ServerState::Stopping if !was_starting => {} // an earlier process
            ServerState::Stopping | ServerState::Stopped | ServerState::Failed => return Err(reason()),
            ServerState::Backoff => return Err(anyhow!("{}; the activator tries again", reason())),
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until a server has ended.
fn wait_for_end(repository: &Administration, name: &str) -> anyhow::Result<()> {
    while repository.find(name)?.state == ServerState::Stopping {
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

impl AdministrationCommand {
    /// The operation and its object, for errors.
    fn text(&self) -> String {
        match self {
            Self::Add { name, .. } => format!("add server `{name}`"),
            Self::Update { name, .. } => format!("update server `{name}`"),
            Self::List => "list servers".to_owned(),
            Self::Show { name } => format!("show server `{name}`"),
            Self::Start { name } => format!("start server `{name}`"),
            Self::Stop { name } => format!("stop server `{name}`"),
            Self::Drain { name } => format!("drain server `{name}`"),
            Self::Disable { name } => format!("disable server `{name}`"),
            Self::Enable { name } => format!("enable server `{name}`"),
            Self::Remove { name } => format!("remove server `{name}`"),
        }
    }
}

/// The error of a call; an exception that has a name only, in words.
fn explained(error: anyhow::Error) -> anyhow::Error {
    let raised = |name| error.chain().any(|cause| cause.to_string() == name);
    if raised("NotFound") {
        anyhow!("it is not registered (`list` shows the servers, `add` registers one)")
    } else if raised("AlreadyRegistered") {
        anyhow!("it is registered already (`update` changes it)")
    } else {
        error
    }
}

impl Options {
    /// # Errors
    /// A mode that needs a command, without one.
    fn check(&self) -> Result<(), Failure> {
        if self.command.is_empty() && !matches!(self.mode, Mode::Manual) {
            return Err(Failure::usage(anyhow!(
                "a command is expected: --command NAME, or --mode manual for a server that is started by others"
            )));
        }
        Ok(())
    }

    fn startup(&self) -> StartupOptions {
        StartupOptions {
            command: self.command.clone(),
            activation: match self.mode {
                Mode::Normal => ActivationMode::Normal,
                Mode::Manual => ActivationMode::Manual,
                Mode::Auto => ActivationMode::AutoStart,
            },
            start_limit: self.failures,
            start_timeout: self.start_timeout,
            owner: self.owner.clone(),
            permissions: self.permissions.clone(),
            description: self.description.clone(),
        }
    }
}

fn mode_name(mode: ActivationMode) -> &'static str {
    match mode {
        ActivationMode::Normal => "normal",
        ActivationMode::Manual => "manual",
        ActivationMode::AutoStart => "auto",
    }
}

fn state_name(server: &ServerInformation) -> &'static str {
    match server.state {
        _ if !server.enabled => "disabled",
        ServerState::Stopped => "stopped",
        ServerState::Starting => "starting",
        ServerState::Running => "running",
        ServerState::Stopping => "stopping",
        ServerState::Backoff => "backoff",
        ServerState::Failed => "failed",
    }
}

/// The servers, one in each line below a header.
fn table(servers: &[ServerInformation]) -> String {
    let header =
        format!("{:<24} {:<10} {:<10} {:>8} {:>7} {:>9}\n", "server", "mode", "state", "pid", "starts", "failures");
    let lines = servers.iter().map(|server| {
        let pid = if server.pid == 0 { "-".to_owned() } else { server.pid.to_string() };
        let (mode, state) = (mode_name(server.startup.activation), state_name(server));
        let (name, starts, failures) = (escape(&server.server).to_string(), server.starts, server.failures);
        format!("{name:<24} {mode:<10} {state:<10} {pid:>8} {starts:>7} {failures:>9}\n")
    });
    std::iter::once(header).chain(lines).collect()
}

/// The data of a server, one in each line.
fn description(server: &ServerInformation) -> String {
    let startup = &server.startup;
    let lines = [
        ("server", server.server.clone()),
        ("command", startup.command.clone()),
        ("mode", mode_name(startup.activation).to_owned()),
        ("state", state_name(server).to_owned()),
        ("pid", if server.pid == 0 { String::new() } else { server.pid.to_string() }),
        ("starts", server.starts.to_string()),
        ("failures", server.failures.to_string()),
        ("last failure", server.last_failure.clone()),
        ("waiting requests", server.waiting.to_string()),
        ("owner", startup.owner.clone()),
        ("permissions", startup.permissions.clone()),
        ("description", startup.description.clone()),
    ];
    let lines = lines.iter().filter(|(_, value)| !value.is_empty());
    lines.map(|(name, value)| format!("{name}: {}\n", escape(value))).collect()
}
