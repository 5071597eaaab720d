//! The implementation repository on an ORB: its adapters, keys and options.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::OnceLock;

use spandrel::authorization::PathCheck;
use spandrel::net::sync::atomic::{AtomicBool, Ordering};
use spandrel::net::sync::{Arc, Condition, Mutex, thread};
use spandrel::poa::{
    Current, EtherealizeObjects, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, PoaError,
    RequestProcessingPolicy, ServantRetentionPolicy, WaitForCompletion,
};
use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::services::activation::{self, IMPL_REPO_SERVICE, ServerKey};
use spandrel::services::implementation_repository::AdministrationSkeleton;
use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException};
use spandrel_store::{Administration, Service, Storage};

use crate::administration::AdministrationServant;
use crate::commands::{Commands, CommandsError};
use crate::control::{Core, Shared, new_manager};
use crate::limits::Limits;
use crate::logs::Logs;
use crate::store::{Store, StoreError};

/// The name of the store's file in its folder.
pub const STORE_FILE: &str = "activator.redb";

/// The name of the file of commands in its folder.
pub const COMMANDS_FILE: &str = "commands.toml";

/// The name of the adapter of the administration, below the root adapter, by which policies refer to it.
pub const ADAPTER: &str = "ImplRepoAdministration";

/// The data folder, the programs and the limits of an [`Activator`].
#[derive(Clone, Debug)]
pub struct ActivatorOptions {
    /// The folder of the store and of the servers' output. It must exist.
    pub data: PathBuf,
    /// The programs that may be run, by the names that registrations use.
    pub commands: Commands,
    /// Limits of starts and of waiting requests.
    pub limits: Limits,
    /// The check of administrative operations; none by default.
    pub path_check: Option<PathCheck>,
    /// The storage of the state, instead of the file in `data`. For tests of failures.
    pub storage: Option<Storage>,
}

impl ActivatorOptions {
    /// The defaults, with a store in this folder.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>, commands: Commands) -> Self {
        Self { data: data.into(), commands, limits: Limits::default(), path_check: None, storage: None }
    }
}

/// A failure to start an [`Activator`]. Nothing is served then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActivatorError {
    /// The database of registrations is damaged, belongs to another service, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file of commands cannot be read, or is not of its form.
    #[error(transparent)]
    Commands(#[from] CommandsError),
    /// The adapters could not be created, or the ORB could not listen.
    #[error("cannot serve the implementation repository")]
    Adapter(#[from] PoaError),
    /// A system exception of the ORB while it created the adapters or began to listen.
    #[error("cannot serve the implementation repository")]
    System(#[from] SystemException),
    /// The ORB cannot listen.
    #[error("cannot listen")]
    Listen(#[source] SystemException),
    /// The control thread could not be started.
    #[error("cannot start the control thread of the implementation repository")]
    Thread(#[from] io::Error),
}

/// An implementation repository on an ORB.
///
/// ```
/// use spandrel::services::implementation_repository::{Administration, StartupOptions};
/// use spandrel::{Endpoint, Orb};
/// use spandrel_activator::{Activator, ActivatorOptions, Commands};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
/// let activator = Activator::start(&orb, ActivatorOptions::new(folder, Commands::default()))?;
///
/// let administration: Administration = activator.reference().narrow()?;
/// assert!(administration.register_server("bank", &StartupOptions::default()).is_err()); // an unknown command
/// activator.stop()?;
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Activator {
    shared: Arc<Shared>,
    reference: ObjectRef,
    adapters: [Poa; 2],
    /// Keeps the administration object of the store active.
    _store_administration: Administration,
    control: Option<thread::JoinHandle<()>>,
    is_stopped: AtomicBool,
}

/// The commands of a running activator, also after they were read again. Cheap to clone.
#[derive(Clone)]
pub struct CurrentCommands(Arc<Shared>);

impl CurrentCommands {
    /// The address at which a server of this command shows its metrics; `None` without one.
    #[must_use]
    pub fn metrics_address(&self, command: &str) -> Option<SocketAddr> {
        self.0.commands.lock().commands.get(command)?.metrics
    }
}

impl fmt::Debug for CurrentCommands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CurrentCommands").field(&*self.0.commands.lock()).finish()
    }
}

impl Activator {
    /// Opens the store in the folder of the options, or creates it, adopts the servers that run, and serves.
    ///
    /// The repository has the key [`IMPL_REPO_SERVICE`] and is an initial reference of this name. All plain keys of
    /// the ORB that are no alias go to the repository. A [`spandrel_store::Administration`] makes copies of the store.
    ///
    /// # Errors
    /// A store that cannot be opened; an ORB that cannot listen, or has an implementation repository already.
    pub fn start(orb: &Orb, options: ActivatorOptions) -> Result<Self, ActivatorError> {
        let ActivatorOptions { data, commands, limits, path_check, storage } = options;
        let store = Store::open(storage.unwrap_or_else(|| Storage::file(data.join(STORE_FILE))))?;
        let shared = Arc::new(Shared {
            orb: orb.clone(),
            store,
            path_check,
            url: OnceLock::new(),
            commands: Mutex::new(commands),
            core: Mutex::new(Core::default()),
            changed: Condition::new(),
            manager: new_manager(limits.max_processes),
            logs: Logs::new(&data, limits.max_log),
            data,
            limits,
        });
        shared.restore()?;

        // From its first connection on, the ORB knows all keys, and requests wait until their adapters are complete.
        let root = Poa::root(orb)?;
        let policies = [
            LifespanPolicy::Persistent.into(),
            IdAssignmentPolicy::UserId.into(),
            IdUniquenessPolicy::MultipleId.into(),
            ServantRetentionPolicy::NonRetain.into(),
            RequestProcessingPolicy::UseDefaultServant.into(),
        ];
        let adapter = root.create_poa(IMPL_REPO_SERVICE, None, policies)?;
        adapter.set_servant(Arc::new(Forwarder(Arc::clone(&shared))))?;
        let policies = [LifespanPolicy::Persistent.into(), IdAssignmentPolicy::UserId.into()];
        let administration = root.create_poa(ADAPTER, Some(&adapter.the_poa_manager()), policies)?;
        let id = IMPL_REPO_SERVICE.into();
        let servant = AdministrationSkeleton::new(AdministrationServant(Arc::clone(&shared)));
        administration.activate_object_with_id(&id, Arc::new(servant))?;
        adapter.serve_plain_keys().map_err(|error| match error {
            PoaError::System(exception) => ActivatorError::Listen(exception),
            error => error.into(),
        })?;
        let reference = administration.id_to_reference(&id)?;
        orb.set_object_key_alias(IMPL_REPO_SERVICE, &reference)?;
        let begin = {
            let shared = Arc::clone(&shared);
            move || shared.store.begin_backup()
        };
        let store_administration = Administration::serve(orb, Service::Activator, &shared.data, begin)?;
        _ = shared.url.set(activation::repository_url(&reference));
        adapter.the_poa_manager().activate()?;

        let control = thread::Builder::new().name("spandrel-activator".into());
        let control = control.spawn({
            let shared = Arc::clone(&shared);
            move || shared.run()
        })?;
        let adapters = [adapter, administration];
        Ok(Self {
            shared,
            reference,
            adapters,
            _store_administration: store_administration,
            control: Some(control),
            is_stopped: AtomicBool::new(false),
        })
    }

    /// The object that administers the activator, an `ImplementationRepository::Administration`.
    #[must_use]
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }

    /// The programs that may be run, also those that will be read later.
    #[must_use]
    pub fn commands(&self) -> CurrentCommands {
        CurrentCommands(Arc::clone(&self.shared))
    }

    /// Replaces the programs that may be run. Running processes are not affected.
    pub fn set_commands(&self, commands: Commands) {
        *self.shared.commands.lock() = commands;
        self.shared.notify();
    }

    /// Stops serving. Running servers go on, and a later activator adopts them. Waiting requests get TRANSIENT.
    ///
    /// # Errors
    /// Adapters that cannot be destroyed, such as those of an ORB that was shut down before.
    pub fn stop(mut self) -> Result<(), ActivatorError> {
        self.end();
        self.shared.orb.remove_object_key_alias(IMPL_REPO_SERVICE);
        for adapter in &self.adapters {
            adapter.destroy(EtherealizeObjects::No, WaitForCompletion::No)?;
        }
        Ok(())
    }

    fn end(&mut self) {
        if self.is_stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        self.shared.core.lock().is_stopping = true;
        self.shared.changed.notify_all();
        if let Some(control) = self.control.take() {
            _ = control.join();
        }
    }
}

impl Drop for Activator {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Serves all keys behind the repository, with any operation.
struct Forwarder(Arc<Shared>);

impl Servant for Forwarder {
    fn repository_id(&self) -> &str {
        "IDL:omg.org/CORBA/Object:1.0"
    }

    fn is_a(&self, _repository_id: &str) -> bool {
        false
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let id = Current::new().object_id().map_err(|_| SystemException::internal(0, CompletionStatus::No))?;
        let Some(ServerKey { server, key }) = ServerKey::parse(&id) else {
            // A request may come before the repository has its alias.
            let is_early = &*id == IMPL_REPO_SERVICE.as_bytes();
            let exception = if is_early { SystemException::transient } else { SystemException::object_not_exist };
            return Err(exception(0, CompletionStatus::No).with_detail("the object key is none of a server"));
        };
        self.0.serve(server, key, call)
    }
}
