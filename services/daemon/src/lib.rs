//! Common parts of service executables: command line, data folder, readiness, exit codes.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use clap::Parser;
//! use spandrel_daemon::{DaemonArgs, Failure};
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     daemon: DaemonArgs,
//! }
//!
//! fn main() -> ExitCode {
//!     spandrel_daemon::run(|| {
//!         let daemon = Args::parse().daemon.start(2809)?;
//!         // Objects are activated on `daemon.orb()`; state is kept below `daemon.data()`.
//!         daemon.serve(&["Example corbaloc::127.0.0.1:2809/Example".to_owned()])
//!     })
//! }
//! ```
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | ended by SIGTERM or SIGINT, after the running requests |
//! | 1 | failed |
//! | 2 | wrong usage |
//! | 3 | an address is in use |
//! | 4 | the data folder or a store cannot be used |
//! | 5 | the policy of authorization cannot be used |
#![forbid(unsafe_code)]

mod args;
mod failure;

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use spandrel::{Orb, Poa};

pub use args::DaemonArgs;
pub use failure::{Failure, FailureKind};

/// The name of the file that a process locks in its data folder.
const LOCK_FILE: &str = "lock";

/// Runs the body of `main`: prints its error, in one line with the causes below, and returns the exit code.
pub fn run(body: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    let outcome = match spandrel::log::init_or("warn") {
        Ok(()) => body(),
        Err(error) => Err(Failure::usage(error)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// A process that serves objects: its ORB and its data folder.
#[derive(Debug)]
pub struct Daemon {
    orb: Orb,
    data: PathBuf,
    /// Locked while the process runs.
    _lock: File,
}

impl DaemonArgs {
    /// Locks the data folder and opens an ORB that listens: at `--listen`, or at this port of the loopback interface.
    ///
    /// # Errors
    /// A folder that cannot be written or that another process uses; an address in use; wrong options.
    pub fn start(&self, default_port: u16) -> Result<Daemon, Failure> {
        let data = self.data_folder()?;
        let lock = lock(&data)?;
        let (orb, is_encrypted) = self.orb(default_port)?;
        Poa::root(&orb).map_err(Failure::failed)?; // it makes the ORB a server
        if let Err(exception) = orb.listen() {
            let error = anyhow!(exception).context("cannot listen (--listen)");
            let in_use = |cause: &(dyn std::error::Error + 'static)| {
                cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::AddrInUse)
            };
            let is_in_use = error.chain().any(in_use);
            return Err(Failure::new(if is_in_use { FailureKind::AddressInUse } else { FailureKind::Failed }, error));
        }
        let daemon = Daemon { orb, data, _lock: lock };
        daemon.warn_of_open_door(is_encrypted);
        Ok(daemon)
    }
}

impl Daemon {
    /// The ORB. It listens.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        &self.orb
    }

    /// The data folder.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The first address that the ORB listens at, as in a `corbaloc:` URL: `127.0.0.1:2809`.
    ///
    /// # Errors
    /// An ORB that listens at no address with a port.
    pub fn address(&self) -> Result<String, Failure> {
        let addresses = self.orb.listen().map_err(Failure::failed)?;
        let (host, port) = addresses.first().ok_or_else(|| Failure::failed(anyhow!("the ORB has no address")))?;
        let is_v6 = host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
        Ok(if is_v6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    }

    /// Tells that the services are ready: a line `ready: …` for each of them on standard output, and `READY=1` to
    /// systemd. Then serves until the process is told to end.
    ///
    /// # Errors
    /// Standard output that cannot be written.
    pub fn serve(&self, services: &[String]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let lines = services.iter().try_for_each(|service| writeln!(out, "ready: {service}"));
        match lines.and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Err(Failure::failed(anyhow!(error).context("cannot write to standard output")));
            }
            _ => drop(out),
        }
        notify("READY=1");
        let outcome = self.orb.run_until_signal();
        notify("STOPPING=1");
        outcome.map_err(Failure::failed)
    }

    /// Warns of a server that others can reach, and that lets them do everything.
    fn warn_of_open_door(&self, is_encrypted: bool) {
        let is_loopback = |host: &str| host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let Ok(addresses) = self.orb.listen() else { return };
        if !is_encrypted && let Some((host, port)) = addresses.iter().find(|(host, _)| !is_loopback(host)) {
            tracing::warn!("{host}:{port} is not encrypted: any host may call these services (--cert, --key, --ca)");
        }
    }
}

/// Tells systemd a state, if it wants to know.
#[cfg(target_os = "linux")]
fn notify(state: &str) {
    if let Err(error) = sd_notify::notify(false, &[sd_notify::NotifyState::Custom(state)]) {
        tracing::warn!(%error, "systemd could not be told {state}");
    }
}

#[cfg(not(target_os = "linux"))]
fn notify(_state: &str) {}

/// Creates the folder and locks it for this process.
fn lock(data: &Path) -> Result<File, Failure> {
    let failed = |error: anyhow::Error| Failure::new(FailureKind::Data, error);
    fs::create_dir_all(data)
        .with_context(|| format!("cannot create the data folder {} (--data)", data.display()))
        .map_err(failed)?;
    let path = data.join(LOCK_FILE);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.with_context(|| format!("cannot write to the data folder {} (--data)", data.display()));
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let error = anyhow!("the data folder {} is in use by another process (--data)", data.display());
            Err(failed(error))
        }
        Err(TryLockError::Error(error)) => {
            Err(failed(anyhow!(error).context(format!("cannot lock {}", path.display()))))
        }
    }
}
