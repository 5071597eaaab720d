//! The executable of the interface repository: glue of command line, store and service.

use std::process::ExitCode;

use clap::Parser;
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure, FailureKind};
use spandrel_repository::{ADAPTER, InterfaceRepository, KEY, RepositoryError, RepositoryOptions};

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
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let daemon = Args::parse().daemon.start(PORT)?;
        let path_check = daemon.path_check(ADAPTER);
        let options = RepositoryOptions { path_check, ..RepositoryOptions::new(daemon.data()) };
        let service = InterfaceRepository::start(daemon.orb(), options).map_err(|error| match error {
            RepositoryError::Store(error) => Failure::new(FailureKind::Data, error),
            error => Failure::failed(error),
        })?;
        daemon.serve(&[format!("{KEY} {}", daemon.url(KEY, service.reference())?)])?;
        service.stop().map_err(Failure::failed)
    })
}
