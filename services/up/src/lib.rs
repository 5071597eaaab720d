//! The services in one process: naming service, interface repository and activator on one ORB, with one data folder.
//!
//! Each service has the keys, the adapters and the store that its own executable has, so that a data folder can change
//! between the two.
#![forbid(unsafe_code)]

use spandrel_daemon::{Daemon, Failure, FailureKind};
use spandrel_naming::{ADAPTER, NamingError, NamingOptions, NamingService, Permission, ROOT_KEY};
use spandrel_repository::{InterfaceRepository, KEY, RepositoryError, RepositoryOptions};

/// The port of the services: that of naming services.
pub const PORT: u16 = 2809;

/// The names of the services, by which a data folder is locked.
pub const NAMES: [&str; 2] = ["naming", "repository"];

/// The running services.
#[derive(Debug)]
pub struct Services {
    naming: NamingService,
    repository: InterfaceRepository,
}

impl Services {
    /// Starts all services on the ORB of a process.
    ///
    /// # Errors
    /// A store that cannot be opened, with the exit code 4; an adapter that cannot be created, with 1.
    pub fn start(daemon: &Daemon) -> Result<Self, Failure> {
        let permission = daemon.path_check(ADAPTER).map(Permission::new);
        let options = NamingOptions { permission, ..NamingOptions::new(daemon.data()) };
        let naming = NamingService::start(daemon.orb(), options).map_err(|error| match error {
            NamingError::Store(error) => Failure::new(FailureKind::Data, error),
            error => Failure::failed(error),
        })?;
        let options = RepositoryOptions::new(daemon.data());
        let repository = InterfaceRepository::start(daemon.orb(), options).map_err(|error| match error {
            RepositoryError::Store(error) => Failure::new(FailureKind::Data, error),
            error => Failure::failed(error),
        })?;
        Ok(Self { naming, repository })
    }

    /// The name of each service and its URL, for the lines of readiness.
    ///
    /// # Errors
    /// An ORB that was shut down.
    pub fn urls(&self, daemon: &Daemon) -> Result<Vec<String>, Failure> {
        let objects = [(ROOT_KEY, self.naming.reference()), (KEY, self.repository.reference())];
        objects.iter().map(|(key, object)| Ok(format!("{key} {}", daemon.url(key, object)?))).collect()
    }

    /// Ends the services after their running requests.
    ///
    /// # Errors
    /// Those of the adapters' destruction.
    pub fn stop(self) -> Result<(), Failure> {
        self.repository.stop().map_err(Failure::failed)?;
        self.naming.stop().map_err(Failure::failed)
    }
}
