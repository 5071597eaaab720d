//! The executable of the image store: glue of command line, store and service.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use spandrel::bulk::BulkLimits;
use spandrel::net::ipc::inet;
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure, FailureKind};
use spandrel_imaging::{ADAPTER, ImagingError, ImagingOptions, ImagingService, Limits, STORE_KEY, check_store};
use spandrel_store::{BackupCommand, Service};

/// The default port, beside those of the naming service, the activator, the trading and the property service.
const PORT: u16 = 2813;

/// A store of medical images: calls find and describe them, bulk connections carry their pixels.
#[derive(Debug, Parser)]
#[command(name = "spandrel-imaging", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// The address at which bulk connections are accepted; port 0 is chosen by the system
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    bulk: inet::Addr,
    /// The address at which bulk connections over TLS are accepted (--cert, --key and --ca), for clients whose requests come
    /// over TLS: they take no others. Without it, they use calls
    #[arg(long, value_name = "HOST:PORT")]
    bulk_tls: Option<inet::Addr>,
    /// The host at which clients reach these addresses [default: the address that their requests have reached]
    #[arg(long, value_name = "HOST")]
    bulk_host: Option<String>,
    /// The most viewers and uploads at a time, each with a bulk connection and a thread
    #[arg(long, value_name = "NUMBER", default_value_t = BulkLimits::default().connections)]
    viewers: usize,
    /// The most bulk connections of one client
    #[arg(long, value_name = "NUMBER", default_value_t = BulkLimits::default().connections_per_party)]
    viewers_per_client: usize,
    /// The time after which a viewer that takes no octets loses its connection, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    viewer_idle: u32,
    /// The most octets of one uploaded file
    #[arg(long, value_name = "OCTETS", default_value_t = Limits::default().file)]
    max_file: u64,
    /// The most octets of all files and their zoom levels
    #[arg(long, value_name = "OCTETS", default_value_t = Limits::default().octets)]
    max_store: u64,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify the database and the files of a store whose service does not run. No file is written
    Check,
    /// Make a running service copy its database into the folder `backups/imaging` below its data folder. The files of
    /// images do not change, and are copied like other files, after the database
    Backup(BackupCommand),
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        match &args.command {
            None => serve(&args),
            Some(Command::Check) => check(&args.daemon),
            Some(Command::Backup(backup)) => backup.run(Service::Imaging, &args.daemon, PORT),
        }
    })
}

fn serve(args: &Args) -> Result<(), Failure> {
    let daemon = args.daemon.start(PORT)?;
    let data = daemon.data().canonicalize().context("cannot use the data folder (--data)");
    let data = data.map_err(|error| Failure::new(FailureKind::Data, error))?;
    let defaults = ImagingOptions::new(&data);
    let options = ImagingOptions {
        limits: Limits { file: args.max_file, octets: args.max_store, ..defaults.limits },
        bulk: BulkLimits {
            connections: args.viewers,
            connections_per_party: args.viewers_per_client,
            idle: Duration::from_secs(args.viewer_idle.into()),
            ..defaults.bulk
        },
        tcp: Some(args.bulk),
        tls: args.bulk_tls.map(|addr| (addr, daemon.ssliop().clone())),
        host: args.bulk_host.clone(),
        unix: cfg!(unix).then(|| data.join("imaging.bulk")),
        path_check: daemon.path_check(ADAPTER),
        ..defaults
    };
    let service = ImagingService::start(daemon.orb(), options).map_err(|error| match error {
        ImagingError::Store(error) => Failure::new(FailureKind::Data, error),
        ImagingError::Listen(error) => Failure::cannot_listen(error),
        error => Failure::failed(error),
    })?;
    daemon.serve(&[format!("{STORE_KEY} {}", daemon.url(STORE_KEY, service.store())?)])?;
    service.stop().map_err(Failure::failed)
}

fn check(args: &DaemonArgs) -> Result<(), Failure> {
    let (images, octets) = check_store(&args.data_folder()?).map_err(|error| Failure::new(FailureKind::Data, error))?;
    spandrel_daemon::print(&format!("the store is sound: {images} images of {octets} octets with their zoom levels\n"))
}
