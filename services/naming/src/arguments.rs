//! The options of a naming service, for its own executable and for those that serve it beside others.

use std::time::Duration;

use spandrel_daemon::{Daemon, Failure, FailureKind};

use crate::{ADAPTER, NamingError, NamingOptions, NamingService, PurgeOptions, RedbStoreOptions, Synchronization};

/// The options of a naming service as arguments of an executable.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct NamingArgs {
    /// The time between two writes of names to the disk, in milliseconds. Changes of that time are lost with the process
    /// [default: each change is written before it is acknowledged]
    #[arg(long, value_name = "MS")]
    sync_interval: Option<u64>,
    /// The time between two removals of bindings whose object does not exist any more, in seconds: each bound object is
    /// called [default: none are removed]
    #[arg(long, value_name = "SECONDS")]
    purge: Option<u64>,
    /// Remove bindings to objects of unreachable servers, too
    #[arg(long, requires = "purge")]
    purge_unreachable: bool,
}

impl NamingArgs {
    /// Starts the naming service on the ORB of a process.
    ///
    /// # Errors
    /// A store that cannot be opened, with the exit code 4; an adapter that cannot be created.
    pub fn start(&self, daemon: &Daemon) -> Result<NamingService, Failure> {
        let purge = self.purge.map(|seconds| PurgeOptions {
            removes_unreachable: self.purge_unreachable,
            ..PurgeOptions::new(Duration::from_secs(seconds.max(1)))
        });
        let synchronization = match self.sync_interval {
            None => Synchronization::Always,
            Some(interval) => Synchronization::Every(Duration::from_millis(interval.max(1))),
        };
        let store = RedbStoreOptions { synchronization, ..RedbStoreOptions::default() };
        let path_check = daemon.path_check(ADAPTER);
        let options = NamingOptions { store, purge, path_check, ..NamingOptions::new(daemon.data()) };
        NamingService::start(daemon.orb(), options).map_err(|error| match error {
            NamingError::Store(error) => Failure::new(FailureKind::Data, error),
            error => Failure::failed(error),
        })
    }
}
