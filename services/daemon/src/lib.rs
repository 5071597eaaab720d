//! Common parts of service executables: command line, data folder, readiness, exit codes.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use clap::Parser;
//! use spandrel_daemon::{DaemonArgs, Failure, parse};
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     daemon: DaemonArgs,
//! }
//!
//! fn main() -> ExitCode {
//!     spandrel_daemon::run(|| {
//!         let daemon = parse::<Args>().daemon.start(2809)?;
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
//! | 4 | the data folder or a store cannot be used: unwritable, damaged, in use by another process, or that of another service |
//! | 5 | the policy of authorization cannot be read, or has an error |
//!
//! An error is one line on standard error, with the operation, the object, the reason and the option to change.
//!
//! # Data folders
//! Several services may have one data folder: each has a store of its own in it, and a lock `NAME.lock`. A second
//! process with the same service and folder ends with exit code 4. Only the user of the process can read the stores.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod bounds;
mod caller;
mod client;
mod failure;
mod iterators;
mod publication;
mod purge;
mod signals;
mod toml_text;

use std::fs::{self, File, TryLockError};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use spandrel::authorization::{Authorizer, PathCheck};
use spandrel::diagnostics::log::{self, LogTail};
use spandrel::net::error::escape;
use spandrel::net::reactor::on_termination;
use spandrel::services::activation;
use spandrel::ssliop::Ssliop;
use spandrel::{Endpoint, ObjectRef, Orb, Poa};

pub use args::{DaemonArgs, PolicyArgs, ServedObject};
pub use bounds::require_at_most;
pub use caller::caller;
pub use client::client_orb;
pub use failure::{Failure, FailureKind};
pub use iterators::{ActiveIterators, IteratorOptions};
pub use publication::Publication;
pub use purge::{PurgeOptions, PurgeStop, Purger};
pub use signals::hangup_flag;
pub use spandrel_error::output::{parse, remark};
pub use toml_text::parse_toml;

/// The exit codes, for the help of executables.
pub const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 address in use, 4 data folder or store \
unusable, 5 policy unusable.";

/// The beginning of an executable's name, before that of its service.
const PREFIX: &str = "spandrel-";

/// Runs the body of `main`: prints its error, in one line with the causes below, and returns the exit code.
pub fn run(body: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    run_logged(None, body)
}

/// As [`run`], and keeps the last lines of the log.
pub fn run_logged(tail: Option<&LogTail>, body: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    run_with_level("warn", tail, body)
}

/// As [`run_logged`], with this level of the log unless the environment sets one.
pub fn run_with_level(level: &str, tail: Option<&LogTail>, body: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    let started = match tail {
        Some(tail) => log::init_with_tail(level, tail),
        None => log::init_or(level),
    };
    let outcome = match started {
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

/// Prints lines to standard output: [`print`](spandrel_error::output::print).
///
/// # Errors
/// Standard output that cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    spandrel_error::output::print(text).map_err(Failure::failed)
}

/// A process that serves objects: its ORB and its data folder.
#[derive(Debug)]
pub struct Daemon {
    orb: Orb,
    data: PathBuf,
    authorizer: Option<Authorizer>,
    ssliop: Ssliop,
    /// Locked while the process runs.
    _locks: Vec<File>,
}

impl DaemonArgs {
    /// As [`start_services`](Self::start_services), with one service: that of the executable `spandrel-NAME`.
    ///
    /// # Errors
    /// As [`start_services`](Self::start_services).
    pub fn start(&self, default_port: u16) -> Result<Daemon, Failure> {
        let program = std::env::current_exe().ok();
        let name = program.as_ref().and_then(|program| program.file_stem()?.to_str()).unwrap_or("service");
        self.start_services(&[name.strip_prefix(PREFIX).unwrap_or(name)], default_port)
    }

    /// Reads the policy, locks the data folder for these services, and opens an ORB that listens: at `--listen`, or at
    /// this port of the loopback interface. Clients wait until [`Daemon::serve`], so that none learns that objects do not
    /// exist yet.
    ///
    /// # Errors
    /// An invalid policy; a folder that cannot be written or that another process uses; an address in use; wrong
    /// options.
    pub fn start_services(&self, names: &[&str], default_port: u16) -> Result<Daemon, Failure> {
        let authorizer = self.policy.authorizer(self.site()?)?;
        let data = self.data_folder()?;
        fs::create_dir_all(&data)
            .with_context(|| format!("cannot create the data folder {} (--data)", data.display()))
            .map_err(|error| Failure::new(FailureKind::Data, error))?;
        let locks = names.iter().map(|name| lock(&data, name)).collect::<Result<_, _>>()?;
        let (orb, endpoints, ssliop) = self.orb(default_port, authorizer.as_ref())?;
        Poa::root(&orb).map_err(Failure::failed)?; // it makes the ORB a server
        orb.listen().map_err(Failure::cannot_listen)?;
        warn_of_exposure(&endpoints, authorizer.is_some());
        Ok(Daemon { orb, data, authorizer, ssliop, _locks: locks })
    }
}

impl Daemon {
    /// The ORB that serves the daemon's objects.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        &self.orb
    }

    /// The protocol of TLS of the ORB, with the certificate and the authorities of the options: for connections beside those
    /// of the ORB.
    #[must_use]
    pub fn ssliop(&self) -> &Ssliop {
        &self.ssliop
    }

    /// The data folder, which is locked.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The policy in force, if there is one (`--policy`). The services of the ORB state by it which adapters check
    /// paths ([`Authorizer::check_paths_of`]).
    #[must_use]
    pub fn authorizer(&self) -> Option<&Authorizer> {
        self.authorizer.as_ref()
    }

    /// The check of paths by the policy, for a service with this adapter: it decides about an operation and a path, or
    /// about an object without one. `None` without a policy. `adapter` has the names below the root adapter, separated
    /// by `/`.
    #[must_use]
    pub fn path_check(&self, adapter: &str) -> Option<PathCheck> {
        self.authorizer.as_ref().map(|authorizer| authorizer.path_check(adapter))
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

    /// The URL of an object with a plain key: `corbaloc::HOST:PORT/KEY`; its reference as text (`IOR:…`) if the ORB
    /// listens at no TCP port without TLS, since a `corbaloc:` URL has no other addresses.
    ///
    /// # Errors
    /// An ORB that was shut down.
    pub fn url(&self, key: &str, object: &ObjectRef) -> Result<String, Failure> {
        let addresses = self.orb.listen().map_err(Failure::failed)?;
        match addresses.first() {
            Some((_, port)) if *port != 0 => Ok(format!("corbaloc::{}/{key}", self.address()?)),
            _ => Ok(object.to_string()),
        }
    }

    /// Reports that the services are ready ([`serve`]), with `-ORBUseImR 1` (`--orb`) also to the
    /// implementation repository. Then serves until the process is told to end.
    ///
    /// # Errors
    /// Standard output that cannot be written; an implementation repository that refuses the server.
    pub fn serve(&self, services: &[String]) -> Result<(), Failure> {
        self.serve_until(services, |shutdown| shutdown())
    }

    /// As [`serve`](Self::serve); `end` gets the function that shuts the ORB down, when the process is told to end.
    fn serve_until(
        &self,
        services: &[String],
        end: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        let (orb, is_ready) =
            (self.orb.clone(), &|| activation::impl_is_ready(&self.orb).map(drop).map_err(Failure::failed));
        self.orb.accept_connections();
        let begin_shutdown = move || {
            let orb = orb.clone();
            // An ORB that was shut down already needs no shutdown.
            end(Box::new(move || drop(orb.begin_shutdown())));
        };
        serve(services, is_ready, begin_shutdown, || self.orb.run())
    }
}

/// Reports that services are ready, by a line `ready: …` for each of them on standard output, and by
/// `READY=1` to systemd. Then runs `wait`, which returns after `begin_shutdown`: that is called when the
/// process is told to end. A second signal ends the process at once.
///
/// # Errors
/// Standard output that cannot be written; the error of `is_ready`, which is called before the others learn of the
/// services.
pub fn serve(
    services: &[String],
    is_ready: &dyn Fn() -> Result<(), Failure>,
    begin_shutdown: impl Fn() + Send + Sync + 'static,
    wait: impl FnOnce(),
) -> Result<(), Failure> {
    // Before others know that the process runs, and may end it.
    let is_first = AtomicBool::new(true);
    let termination = on_termination(move |request| {
        let is_first = is_first.swap(false, Ordering::Relaxed);
        if is_first {
            tracing::info!(%request, "shutting down");
            notify("STOPPING=1");
            begin_shutdown();
        }
        is_first
    })
    .context("cannot handle signals")
    .map_err(Failure::failed)?;
    is_ready()?;
    print(&services.iter().map(|service| format!("ready: {}\n", escape(service))).collect::<String>())?;
    notify("READY=1");
    wait();
    drop(termination);
    Ok(())
}

/// Warns of endpoints that other machines reach, without TLS or without a policy.
fn warn_of_exposure(endpoints: &[Endpoint], has_policy: bool) {
    let mut exposed = endpoints.iter().filter(|endpoint| is_reached_from_other_machines(endpoint));
    if !has_policy && let Some(endpoint) = exposed.clone().next() {
        tracing::warn!("{endpoint} has no policy: every peer that reaches it may call all operations (--policy)");
    }
    if let Some(endpoint) = exposed.find(|endpoint| endpoint.scheme() != "ssliop") {
        tracing::warn!(
            "{endpoint} has no TLS: others on the network can read and change requests (--listen ssliop://…, --cert)"
        );
    }
}

fn is_reached_from_other_machines(endpoint: &Endpoint) -> bool {
    if matches!(endpoint.scheme(), "uds" | "shm" | "bidir") {
        return false;
    }
    let Ok((host, _)) = endpoint.host_and_port() else { return true };
    match host {
        // With one of these options all addresses are listened at.
        "" => ["publish", "interface"].iter().any(|option| endpoint.option(option).is_some()),
        "localhost" => false,
        host => !host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
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

/// The time that the lock of an earlier process may remain after its end: a child that it was starting has the file
/// open until its own program begins.
const LOCK_WAIT: Duration = Duration::from_secs(1);
/// The pause between two attempts to lock.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Locks the folder for this process and a service.
fn lock(data: &Path, service: &str) -> Result<File, Failure> {
    let failed = |error: anyhow::Error| Failure::new(FailureKind::Data, error);
    let path = data.join(format!("{service}.lock"));
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.with_context(|| format!("cannot write to the data folder {} (--data)", data.display()));
    let file = file.map_err(failed)?;
    let deadline = Instant::now() + LOCK_WAIT;
    let mut locked = file.try_lock();
    while matches!(locked, Err(TryLockError::WouldBlock)) && Instant::now() < deadline {
        thread::sleep(LOCK_PAUSE);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(failed(anyhow!(
            "the data folder {} is in use by another process (--data): end that process, or name another folder",
            data.display()
        ))),
        Err(TryLockError::Error(error)) => {
            Err(failed(anyhow!(error).context(format!("cannot lock {}", path.display()))))
        }
    }
}
