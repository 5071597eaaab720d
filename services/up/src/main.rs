//! The executable `spandrel-up`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure};
use spandrel_up::{NAMES, PORT, Services};

/// Naming service, interface repository and activator in one process, with one data folder.
#[derive(Debug, Parser)]
#[command(name = "spandrel-up", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
}

fn main() -> ExitCode {
    spandrel_daemon::run(|| Args::parse().serve())
}

impl Args {
    fn serve(&self) -> Result<(), Failure> {
        let daemon = self.daemon.start_services(&NAMES, PORT)?;
        let services = Services::start(&daemon)?;
        daemon.serve(&services.urls(&daemon)?)?;
        services.stop()
    }
}
