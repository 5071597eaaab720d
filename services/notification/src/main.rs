//! The executable of the notification service: glue of command line and service.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use spandrel_daemon::{Daemon, DaemonArgs, EXIT_CODES, Failure, FailureKind, Publication};
use spandrel_delivery::DeliveryArgs;
use spandrel_notification::{
    FACTORY_KEY, Limits, NotificationError, NotificationOptions, NotificationService, STORE_FILE, StoreCounts,
    StoreError, check_store, recover_store,
};
use spandrel_store::{BackupCommand, Service};

/// The default port, that of omniNotify.
const PORT: u16 = 11_166;

/// The OMG's notification service: channels of structured events with filters and qualities of service.
#[derive(Debug, Parser)]
#[command(name = "spandrel-notification", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Bind the factory in the naming service, as `NotifyEventChannelFactory` unless another name is given, and the channels
    /// of --channel (--orb `-ORBInitRef NameService=…`)
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "NotifyEventChannelFactory")]
    publish: Option<String>,
    /// Keep all channels in memory: they end with the process
    #[arg(long, conflicts_with = "persistent")]
    transient: bool,
    /// Give the channels of --channel persistent connections and events; a channel of the store is as it was
    #[arg(long, requires = "channel")]
    persistent: bool,
    /// A channel that is created, and bound in the naming service with this name with --publish; may be given more than once
    #[arg(long, value_name = "NAME")]
    channel: Vec<String>,
    #[command(flatten)]
    delivery: DeliveryArgs,
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
    /// Open the store of a service that does not run without the changes of its redo log that cannot be read
    Recover,
    /// Make a running service copy its store into the folder `backups/notification` below its data folder
    Backup(BackupCommand),
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        match &args.command {
            None => serve(&args),
            Some(Command::Check) => count(&args.daemon, check_store),
            Some(Command::Recover) => count(&args.daemon, recover_store),
            Some(Command::Backup(backup)) => backup.run(Service::Notification, &args.daemon, PORT),
        }
    })
}

fn serve(args: &Args) -> Result<(), Failure> {
    let daemon = args.daemon.start(PORT)?;
    let options = NotificationOptions {
        data: (!args.transient).then(|| daemon.data().to_owned()),
        limits: Limits {
            queue_events: args.delivery.queue_events(),
            octets: args.delivery.octets(),
            ..Limits::default()
        },
        peers: args.delivery.peers(),
        storage: None,
    };
    let service = NotificationService::start(daemon.orb(), options).map_err(failure)?;
    let published = publish(args, &daemon, &service)?;
    let _endpoint = args.metrics.map(|address| daemon.open_metrics(address, service.metrics())).transpose()?;
    let url = daemon.url(FACTORY_KEY, service.factory())?;
    daemon.serve_published(&[format!("{FACTORY_KEY} {url}")], published)?;
    service.stop().map_err(failure)
}

/// Creates the channels of the command line, and binds them and the factory.
fn publish(args: &Args, daemon: &Daemon, service: &NotificationService) -> Result<Option<Publication>, Failure> {
    let mut objects = Vec::new();
    for name in &args.channel {
        objects.push((name.clone(), service.channel(name, args.persistent).map_err(failure)?));
    }
    let Some(factory) = &args.publish else { return Ok(None) };
    objects.push((factory.clone(), service.factory().clone()));
    Publication::new(daemon, objects).map(Some)
}

fn failure(error: NotificationError) -> Failure {
    match error {
        NotificationError::Store(error) => Failure::new(FailureKind::Data, error),
        error => Failure::failed(error),
    }
}

/// Opens the store by a function, and prints its counts.
fn count(args: &DaemonArgs, open: impl FnOnce(&Path) -> Result<StoreCounts, StoreError>) -> Result<(), Failure> {
    let file = args.data_folder()?.join(STORE_FILE);
    let counts = open(&file).map_err(|error| Failure::new(FailureKind::Data, error))?;
    let StoreCounts { channels, connections, filters, events, .. } = counts;
    spandrel_daemon::print(&format!(
        "the store is sound: {channels} channels with {connections} connections, {filters} filters and {events} events\n"
    ))
}
