//! The executable of the property service: glue of command line, store and service.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure, FailureKind};
use spandrel_property::{
    FACTORY_KEY, PropertyError, PropertyOptions, PropertyService, SET_DEF_FACTORY_KEY, STORE_FILE, ServiceLimits,
    check_store,
};
use spandrel_store::{BackupCommand, Service};

/// The default port, beside those of the naming service, the activator and the trading service.
const PORT: u16 = 2812;

/// The OMG's property service: sets of named values, kept on disk.
#[derive(Debug, Parser)]
#[command(name = "spandrel-property", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Keep the sets in memory: they end with the process
    #[arg(long)]
    transient: bool,
    /// The most property sets that peers with one address create
    #[arg(long, value_name = "NUMBER", default_value_t = ServiceLimits::default().sets_of_client)]
    sets_of_client: usize,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify the store of a service that does not run. No file is written
    Check,
    /// Make a running service copy its store into the folder `backups/property` below its data folder
    Backup(BackupCommand),
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        match &args.command {
            None => serve(&args),
            Some(Command::Check) => check(&args.daemon),
            Some(Command::Backup(backup)) => backup.run(Service::Property, &args.daemon, PORT),
        }
    })
}

fn serve(args: &Args) -> Result<(), Failure> {
    let daemon = args.daemon.start(PORT)?;
    let data = (!args.transient).then(|| daemon.data().to_owned());
    let limits = ServiceLimits { sets_of_client: args.sets_of_client, ..ServiceLimits::default() };
    let options = PropertyOptions { data, limits, ..PropertyOptions::default() };
    let service = PropertyService::start(daemon.orb(), options).map_err(|error| match error {
        PropertyError::Store(error) => Failure::new(FailureKind::Data, error),
        error => Failure::failed(error),
    })?;
    let line = |key: &str, object| Ok::<_, Failure>(format!("{key} {}", daemon.url(key, object)?));
    daemon.serve(&[line(FACTORY_KEY, service.factory())?, line(SET_DEF_FACTORY_KEY, service.set_def_factory())?])?;
    service.stop().map_err(Failure::failed)
}

fn check(args: &DaemonArgs) -> Result<(), Failure> {
    let file = args.data_folder()?.join(STORE_FILE);
    let (sets, properties) = check_store(&file).map_err(|error| Failure::new(FailureKind::Data, error))?;
    spandrel_daemon::print(&format!("the store is sound: {sets} sets with {properties} properties\n"))
}
