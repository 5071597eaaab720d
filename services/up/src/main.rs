//! The executable `spandrel-up`: all services in one process.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::Parser;
use spandrel::diagnostics::log::LogTail;
use spandrel_daemon::{DaemonArgs, EXIT_CODES, Failure};
#[cfg(feature = "console")]
use spandrel_up::ConsoleArgs;
use spandrel_up::{NAMES, PORT, Services, ServicesArgs};

/// Naming service, interface repository and activator in one process, with one data folder.
#[derive(Debug, Parser)]
#[command(name = "spandrel-up", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    #[command(flatten)]
    services: ServicesArgs,
    #[cfg(feature = "console")]
    #[command(flatten)]
    console: ConsoleArgs,
}

fn main() -> ExitCode {
    let args = spandrel_daemon::parse::<Args>();
    match args.log_tail() {
        Some(tail) => spandrel_daemon::run_logged(Some(&tail), || args.serve(tail.clone())),
        None => spandrel_daemon::run(|| args.serve(LogTail::default())),
    }
}

impl Args {
    #[cfg(feature = "console")]
    fn log_tail(&self) -> Option<LogTail> {
        self.console.is_on().then(LogTail::default)
    }

    #[cfg(not(feature = "console"))]
    fn log_tail(&self) -> Option<LogTail> {
        None
    }

    #[cfg(feature = "console")]
    fn serve(&self, log: LogTail) -> Result<(), Failure> {
        let commands = self.services.read_commands(&self.daemon)?;
        let daemon = match self.console.is_on() {
            true => self.daemon.clone().with_orb_option("-ORBMetrics", "yes"),
            false => self.daemon.clone(),
        };
        let daemon = daemon.start_services(&NAMES, PORT)?;
        let services = Services::start(&daemon, &self.services, commands)?;
        let mut ready = services.urls(&daemon)?;
        let console = self.console.start(&daemon, &services, log)?;
        ready.extend(console.iter().map(|console| format!("Console {}", console.login_url())));
        daemon.serve(&ready)?;
        if let Some(console) = console {
            console.stop();
        }
        services.stop()
    }

    #[cfg(not(feature = "console"))]
    fn serve(&self, _log: LogTail) -> Result<(), Failure> {
        let commands = self.services.read_commands(&self.daemon)?;
        let daemon = self.daemon.start_services(&NAMES, PORT)?;
        let services = Services::start(&daemon, &self.services, commands)?;
        daemon.serve(&services.urls(&daemon)?)?;
        services.stop()
    }
}
