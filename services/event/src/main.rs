//! The executable of the event service: glue of command line, store and service.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use spandrel_daemon::{Daemon, DaemonArgs, EXIT_CODES, Failure, FailureKind, Publication};
use spandrel_delivery::DeliveryArgs;
use spandrel_event::{
    EventError, EventOptions, EventService, FACTORY_KEY, Limits, PeerOptions, STORE_FILE, check_store,
};
use spandrel_store::{BackupCommand, Service};

/// The default port, that of omniEvents.
const PORT: u16 = 11_169;

/// The OMG's event service: channels between suppliers and consumers of events, for clients of omniEvents as well.
#[derive(Debug, Parser)]
#[command(name = "spandrel-event", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Keep channels and connections in memory: they end with the process
    #[arg(long)]
    transient: bool,
    /// A channel that is created if it does not exist, and bound in the naming service with --publish; may be given more
    /// than once
    #[arg(long, value_name = "NAME")]
    channel: Vec<String>,
    /// Bind the factory in the naming service, as `EventChannelFactory` unless another name is given, and the channels of
    /// --channel (--orb `-ORBInitRef NameService=…`)
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "EventChannelFactory")]
    publish: Option<String>,
    #[command(flatten)]
    delivery: DeliveryArgs,
    /// Wait for events in `pull` of pull suppliers, instead of calling `try_pull` in the interval of the channel
    #[arg(long)]
    blocking_pull: bool,
    /// Show the numbers of channels, consumers and the ORB to Prometheus: http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify the store of a service that does not run. No file is written
    Check,
    /// Make a running service copy its store into the folder `backups/event` below its data folder
    Backup(BackupCommand),
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        match &args.command {
            None => serve(&args),
            Some(Command::Check) => check(&args.daemon),
            Some(Command::Backup(backup)) => backup.run(Service::Event, &args.daemon, PORT),
        }
    })
}

fn serve(args: &Args) -> Result<(), Failure> {
    let daemon = args.daemon.start(PORT)?;
    let options = EventOptions {
        data: (!args.transient).then(|| daemon.data().to_owned()),
        limits: Limits {
            queue_events: args.delivery.queue_events(),
            octets: args.delivery.octets(),
            ..Limits::default()
        },
        peers: PeerOptions { blocking_pull: args.blocking_pull, ..args.delivery.peers() },
        storage: None,
    };
    let service = EventService::start(daemon.orb(), options).map_err(failure)?;
    let published = publish(args, &daemon, &service)?;
    let _endpoint = args.metrics.map(|address| daemon.open_metrics(address, service.metrics())).transpose()?;
    let url = daemon.url(FACTORY_KEY, service.factory())?;
    daemon.serve_published(&[format!("{FACTORY_KEY} {url}")], published)?;
    service.stop().map_err(failure)
}

fn failure(error: EventError) -> Failure {
    match error {
        EventError::Store(error) => Failure::new(FailureKind::Data, error),
        error @ EventError::Name(_) => Failure::usage(error),
        error => Failure::failed(error),
    }
}

/// Creates the channels of the command line, and binds them and the factory.
fn publish(args: &Args, daemon: &Daemon, service: &EventService) -> Result<Option<Publication>, Failure> {
    let mut objects = Vec::new();
    for name in &args.channel {
        objects.push((name.clone(), service.channel(name).map_err(failure)?));
    }
    let Some(factory) = &args.publish else { return Ok(None) };
    objects.push((factory.clone(), service.factory().clone()));
    Publication::new(daemon, objects).map(Some)
}

fn check(args: &DaemonArgs) -> Result<(), Failure> {
    let file = args.data_folder()?.join(STORE_FILE);
    let (channels, connections) = check_store(&file).map_err(|error| Failure::new(FailureKind::Data, error))?;
    spandrel_daemon::print(&format!("the store is sound: {channels} channels with {connections} connections\n"))
}
