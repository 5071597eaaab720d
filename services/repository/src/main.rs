//! The executable of the interface repository: glue of command line, store and service.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure, FailureKind};
use spandrel_repository::{
    ADAPTER, InterfaceRepository, KEY, RepositoryError, RepositoryOptions, STORE_FILE, check_store,
};
use spandrel_store::{BackupCommand, Service};

/// The default port: `spandrel up` serves all services there.
const PORT: u16 = 2809;

/// The interface repository: definitions of IDL at run time, kept on disk.
///
/// `spandrel idl --to-repository` fills it. It is the initial reference InterfaceRepository of its clients.
#[derive(Debug, Parser)]
#[command(name = "spandrel-repository", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Verify the store of a service that does not run. No file is written
    Check,
    /// Make a running service copy its store into the folder `backups/repository` below its data folder
    Backup(BackupCommand),
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        match &args.command {
            None => serve(&args.daemon),
            Some(Command::Check) => check(&args.daemon),
            Some(Command::Backup(backup)) => backup.run(Service::Repository, &args.daemon, PORT),
        }
    })
}

fn serve(args: &DaemonArgs) -> Result<(), Failure> {
    let daemon = args.start(PORT)?;
    let path_check = daemon.path_check(ADAPTER);
    let options = RepositoryOptions { path_check, ..RepositoryOptions::new(daemon.data()) };
    let service = InterfaceRepository::start(daemon.orb(), options).map_err(|error| match error {
        RepositoryError::Store(error) => Failure::new(FailureKind::Data, error),
        error => Failure::failed(error),
    })?;
    daemon.serve(&[format!("{KEY} {}", daemon.url(KEY, service.reference())?)])?;
    service.stop().map_err(Failure::failed)
}

fn check(args: &DaemonArgs) -> Result<(), Failure> {
    let file = args.data_folder()?.join(STORE_FILE);
    let definitions = check_store(&file).map_err(|error| Failure::new(FailureKind::Data, error))?;
    spandrel_daemon::print(&format!("the store is sound: {definitions} definitions\n"))
}
