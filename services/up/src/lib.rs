//! The services in one process: naming service, interface repository and activator on one ORB, with one data folder.
//!
//! Each service has the keys, the adapters and the store that its own executable has, so that a data folder can change
//! between the two.
#![forbid(unsafe_code)]

#[cfg(feature = "console")]
mod console;

#[cfg(feature = "console")]
pub use console::ConsoleArgs;

use spandrel::dynamic::describe;
use spandrel::services::{IDL_FILES, activation::IMPL_REPO_SERVICE, repository::fill};
use spandrel_activator::{Activator, ActivatorArgs, ReadCommands};
use spandrel_daemon::{Daemon, DaemonArgs, Failure, FailureKind};
use spandrel_naming::{NamingArgs, NamingService, ROOT_KEY};
use spandrel_repository::{InterfaceRepository, KEY, RepositoryError, RepositoryOptions};

/// The port of the services: that of naming services.
pub const PORT: u16 = 2809;

/// The names of the services, by which a data folder is locked.
pub const NAMES: [&str; 3] = ["naming", "repository", "activator"];

/// The options of the services as arguments of an executable: those of their own executables.
#[derive(Clone, Debug, clap::Args)]
pub struct ServicesArgs {
    #[command(flatten)]
    naming: NamingArgs,
    #[command(flatten)]
    activator: ActivatorArgs,
}

impl ServicesArgs {
    /// Reads the files of the options before the process becomes a server.
    ///
    /// # Errors
    /// Commands that cannot be read, or are malformed.
    pub fn read_commands(&self, daemon: &DaemonArgs) -> Result<ReadCommands, Failure> {
        self.activator.read_commands(daemon)
    }
}

/// The naming service, the interface repository and the activator, running on one ORB.
#[derive(Debug)]
pub struct Services {
    naming: NamingService,
    repository: InterfaceRepository,
    activator: Activator,
}

impl Services {
    /// Starts all services on the ORB of a process, and enters their interfaces into the repository.
    ///
    /// # Errors
    /// A store that cannot be opened, with the exit code 4; an adapter that cannot be created, with 1.
    pub fn start(daemon: &Daemon, args: &ServicesArgs, commands: ReadCommands) -> Result<Self, Failure> {
        let activator = args.activator.start(daemon, commands)?; // it makes the ORB listen
        let naming = args.naming.start(daemon)?;
        let path_check = daemon.path_check(spandrel_repository::ADAPTER);
        let options = RepositoryOptions { path_check, ..RepositoryOptions::new(daemon.data()) };
        let repository = InterfaceRepository::start(daemon.orb(), options).map_err(|error| match error {
            RepositoryError::Store(error) => Failure::new(FailureKind::Data, error),
            error => Failure::failed(error),
        })?;
        enter_interfaces(&repository);
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

/// The IDL of the services in the process.
fn idl_of_services() -> impl Iterator<Item = &'static str> {
    IDL_FILES.into_iter().chain([spandrel_store::IDL])
}

/// Enters the interfaces of the services into the repository; those that it has stay as they are. The services run
/// without them, too.
fn enter_interfaces(repository: &InterfaceRepository) {
    for idl in idl_of_services() {
        let entered = describe(idl)
            .map_err(anyhow::Error::from)
            .and_then(|described| fill(repository.reference(), &described).map_err(anyhow::Error::from));
        if let Err(error) = entered {
            tracing::warn!("the interfaces of the services cannot be entered into the repository: {error:#}");
        }
    }
}
