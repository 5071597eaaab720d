//! The services in one process: naming service, interface repository and activator on one ORB, with one data folder.
//!
//! Each service has the keys, the adapters and the store that its own executable has, so that a data folder can change
//! between the two.
#![forbid(unsafe_code)]

#[cfg(feature = "console")]
mod console;

#[cfg(feature = "console")]
pub use console::ConsoleArgs;

use spandrel::services::activation::IMPL_REPO_SERVICE;
use spandrel_activator::{Activator, ActivatorError, ActivatorOptions, COMMANDS_FILE, Commands, Limits};
use spandrel_daemon::{Daemon, Failure, FailureKind};
use spandrel_naming::{ADAPTER, NamingError, NamingOptions, NamingService, ROOT_KEY};
use spandrel_repository::{InterfaceRepository, KEY, RepositoryError, RepositoryOptions};

/// The port of the services: that of naming services.
pub const PORT: u16 = 2809;

/// The names of the services, by which a data folder is locked.
pub const NAMES: [&str; 3] = ["naming", "repository", "activator"];

/// The three services while they run.
#[derive(Debug)]
pub struct Services {
    naming: NamingService,
    repository: InterfaceRepository,
    activator: Activator,
}

impl Services {
    /// Starts all services on the ORB of a process.
    ///
    /// # Errors
    /// A store that cannot be opened, with the exit code 4; an adapter that cannot be created, with 1.
    pub fn start(daemon: &Daemon) -> Result<Self, Failure> {
        let activator = start_activator(daemon)?; // it makes the ORB listen
        let path_check = daemon.path_check(ADAPTER);
        let options = NamingOptions { path_check, ..NamingOptions::new(daemon.data()) };
        let naming = NamingService::start(daemon.orb(), options).map_err(|error| match error {
            NamingError::Store(error) => Failure::new(FailureKind::Data, error),
            error => Failure::failed(error),
        })?;
        let path_check = daemon.path_check(spandrel_repository::ADAPTER);
        let options = RepositoryOptions { path_check, ..RepositoryOptions::new(daemon.data()) };
        let repository = InterfaceRepository::start(daemon.orb(), options).map_err(|error| match error {
            RepositoryError::Store(error) => Failure::new(FailureKind::Data, error),
            error => Failure::failed(error),
        })?;
        Ok(Self { naming, repository, activator })
    }

    /// The name of each service and its URL, for the lines of readiness.
    ///
    /// # Errors
    /// An ORB that was shut down.
    pub fn urls(&self, daemon: &Daemon) -> Result<Vec<String>, Failure> {
        let objects = [
            (ROOT_KEY, self.naming.reference()),
            (KEY, self.repository.reference()),
            (IMPL_REPO_SERVICE, self.activator.reference()),
        ];
        objects.iter().map(|(key, object)| Ok(format!("{key} {}", daemon.url(key, object)?))).collect()
    }

    /// The services that a console shows.
    #[cfg(feature = "console")]
    pub(crate) fn shown(&self) -> spandrel_console::Services {
        spandrel_console::Services {
            naming: self.naming.reference().clone(),
            activator: self.activator.reference().clone(),
            commands: self.activator.commands(),
        }
    }

    /// Ends the services after their running requests.
    ///
    /// # Errors
    /// Those of the adapters' destruction.
    pub fn stop(self) -> Result<(), Failure> {
        self.naming.stop().map_err(Failure::failed)?;
        self.repository.stop().map_err(Failure::failed)?;
        self.activator.stop().map_err(Failure::failed)
    }
}

/// The activator, with the commands in the data folder if there are any.
fn start_activator(daemon: &Daemon) -> Result<Activator, Failure> {
    // Servers have working directories of their own.
    let data = daemon.data().canonicalize().map_err(|error| Failure::new(FailureKind::Data, error))?;
    let file = Some(data.join(COMMANDS_FILE)).filter(|file| file.exists());
    let commands = file.as_ref().map(|file| Commands::read(file)).transpose().map_err(Failure::usage)?;
    let reload = file.as_ref().map(|_| spandrel_daemon::hangup_flag()).transpose().map_err(Failure::failed)?;
    let options = ActivatorOptions {
        limits: Limits { reload, commands_file: file, ..Limits::default() },
        path_check: daemon.path_check(spandrel_activator::ADAPTER),
        ..ActivatorOptions::new(data, commands.unwrap_or_default())
    };
    Activator::start(daemon.orb(), options).map_err(|error| match error {
        ActivatorError::Store(error) => Failure::new(FailureKind::Data, error),
        ActivatorError::Listen(exception) => Failure::cannot_listen(exception),
        error => Failure::failed(error),
    })
}
