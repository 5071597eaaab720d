//! The repository on an ORB: its adapter, key and options.

use std::path::PathBuf;

use spandrel::authorization::PathCheck;
use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel::poa::{
    EtherealizeObjects, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, PoaError, RequestProcessingPolicy,
    ServantRetentionPolicy, WaitForCompletion,
};
use spandrel::{ObjectRef, Orb, Poa, SystemException};
use spandrel_store::{Administration, Service, Storage};

use crate::core::Core;
use crate::limits::{KEY, Limits};
use crate::model::{Model, ROOT};
use crate::servant::Definitions;
use crate::store::{Opened, Store, StoreError};

/// The name of the store's file in its folder.
pub const STORE_FILE: &str = "repository.redb";

/// The name of the adapter of all definitions, below the root adapter, by which policies refer to it.
pub const ADAPTER: &str = "InterfaceRepository";

/// The data folder, the limits and the checks of an [`InterfaceRepository`].
#[derive(Clone, Debug)]
pub struct RepositoryOptions {
    /// The folder of the store. It must exist.
    pub data: PathBuf,
    /// The bounds on definitions, and on the lengths of their ids and versions.
    pub limits: Limits,
    /// The check of operations on definitions; none by default. The path of a definition is its scoped name with `/`
    /// (`Bank/Account`), that of the repository is empty; types without a name have none.
    pub path_check: Option<PathCheck>,
    /// The storage of the definitions, instead of the file in `data`. For tests of failures.
    pub storage: Option<Storage>,
}

impl RepositoryOptions {
    /// The defaults, with a store in this folder.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), limits: Limits::default(), path_check: None, storage: None }
    }
}

/// A failure to start or stop an [`InterfaceRepository`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// The database of definitions is damaged, belongs to another service, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The adapter could not be created, or the ORB could not listen.
    #[error("cannot serve the interface repository")]
    Adapter(#[from] PoaError),
    /// A system exception of the ORB while it created the adapter or began to listen.
    #[error("cannot serve the interface repository")]
    System(#[from] SystemException),
}

/// An interface repository on an ORB.
///
/// ```
/// use spandrel::{Endpoint, Orb};
/// use spandrel_repository::{InterfaceRepository, RepositoryOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
/// let repository = InterfaceRepository::start(&orb, RepositoryOptions::new(folder))?;
/// assert!(repository.reference().is_a("IDL:omg.org/CORBA/Repository:1.0")?);
/// repository.stop()?;
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InterfaceRepository {
    core: Arc<Core>,
    orb: Orb,
    root: ObjectRef,
    administration: Administration,
}

impl InterfaceRepository {
    /// Opens the store in the folder of the options, or creates it, and serves it with the plain key [`KEY`]. It becomes the
    /// ORB's initial reference of this name, unless there is one. An [`Administration`] makes copies of the store.
    ///
    /// # Errors
    /// A store that cannot be opened, an ORB that cannot listen or has a repository already.
    pub fn start(orb: &Orb, options: RepositoryOptions) -> Result<Self, RepositoryError> {
        let Opened { store, definitions, next } =
            Store::open(options.storage.unwrap_or_else(|| Storage::file(options.data.join(STORE_FILE))))?;
        let policies = [
            LifespanPolicy::Persistent.into(),
            IdAssignmentPolicy::UserId.into(),
            IdUniquenessPolicy::MultipleId.into(),
            ServantRetentionPolicy::NonRetain.into(),
            RequestProcessingPolicy::UseDefaultServant.into(),
        ];
        let adapter = Poa::root(orb)?.create_poa(ADAPTER, None, policies)?;
        let core = Arc::new(Core {
            model: RwLock::new(Model::new(definitions, next)),
            store: Mutex::new(store),
            adapter: adapter.clone(),
            limits: options.limits,
            path_check: options.path_check,
        });
        adapter.set_servant(Arc::new(Definitions(Arc::clone(&core))))?;
        adapter.the_poa_manager().activate()?;
        let root = core.reference(&core.model.read(), ROOT)?;
        orb.set_object_key_alias(KEY, &root)?;
        // The ORB's own servants answer `_interface` by it. A repository started again has the same reference.
        _ = orb.register_initial_reference(KEY, &root);
        let begin = {
            let core = Arc::clone(&core);
            move || core.store.lock().begin_backup()
        };
        let administration = Administration::serve(orb, Service::Repository, &options.data, begin)?;
        Ok(Self { core, orb: orb.clone(), root, administration })
    }

    /// The repository: an object with the interface `CORBA::Repository`.
    #[must_use]
    pub fn reference(&self) -> &ObjectRef {
        &self.root
    }

    /// The number of its definitions, types without a name included.
    #[must_use]
    pub fn definitions(&self) -> usize {
        self.core.model.read().created()
    }

    /// Ends the service after its running requests.
    ///
    /// # Errors
    /// Those of the adapter's destruction.
    pub fn stop(self) -> Result<(), RepositoryError> {
        drop(self.administration);
        self.orb.remove_object_key_alias(KEY);
        Ok(self.core.adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes)?)
    }
}
