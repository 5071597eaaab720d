//! The naming service on an ORB: its adapters, keys and options.

use std::path::PathBuf;
use std::time::Duration;

use spandrel::authorization::PathCheck;
use spandrel::net::sync::Arc;
use spandrel::poa::{
    EtherealizeObjects, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, PoaError, RequestProcessingPolicy,
    ServantRetentionPolicy, WaitForCompletion,
};
use spandrel::server::DeferringSkeleton;
use spandrel::services::cos_naming::NamingContextExtSkeleton;
use spandrel::{ObjectRef, Orb, Poa, SystemException};
use spandrel_daemon::{IteratorOptions, PurgeOptions, Purger};
use spandrel_store::{Administration, OpenError, Service};

use crate::bootstrap::{BootstrapSkeleton, InitialReferences};
use crate::context::{ContextServant, Contexts};
use crate::deferral::DeferredChanges;
use crate::iterators::Iterators;
use crate::purge;
use crate::redb_store::{RedbStore, RedbStoreOptions};
use crate::store::{ContextId, Store};

/// The name of the store's file in its folder.
pub const STORE_FILE: &str = "naming.redb";

/// The key of the root context, and its name as an initial reference.
pub const ROOT_KEY: &str = "NameService";

/// The name of the adapter of naming contexts, below the root adapter, by which policies refer to it.
pub const ADAPTER: &str = "NamingContexts";

/// The key of the bootstrap protocol of Java's ORBs.
pub const BOOTSTRAP_KEY: &str = "INIT";

/// The data folder, the store and the limits of a [`NamingService`].
#[derive(Clone, Debug)]
pub struct NamingOptions {
    /// The folder of the store. It must exist.
    pub data: PathBuf,
    /// The durability, the cache and the redo log of the database.
    pub store: RedbStoreOptions,
    /// The check of each operation on a name; none by default.
    pub path_check: Option<PathCheck>,
    /// The removal of bindings to objects that do not exist any more; none by default.
    pub purge: Option<PurgeOptions>,
    /// The bounds on binding iterators that clients have not destroyed.
    pub iterators: IteratorOptions,
    /// The time limit of a call on a context of another server (default 10 seconds).
    pub federation_timeout: Duration,
    /// The largest reference that may be bound, in octets (default 64 KiB).
    pub max_reference: usize,
}

impl NamingOptions {
    /// The defaults, with a store in this folder.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            store: RedbStoreOptions::default(),
            path_check: None,
            purge: None,
            iterators: IteratorOptions::default(),
            federation_timeout: Duration::from_secs(10),
            max_reference: 64 << 10,
        }
    }
}

/// A failure to start or stop a [`NamingService`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// The database of bindings is damaged, belongs to another service, or cannot be read.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The adapters could not be created, or the ORB could not listen.
    #[error("cannot serve the naming contexts")]
    Adapter(#[from] PoaError),
    /// A system exception of the ORB while it created the adapters or began to listen.
    #[error("cannot serve the naming contexts")]
    System(#[from] SystemException),
}

/// A naming service on an ORB.
///
/// ```
/// use spandrel::services::cos_naming::NamingContextExt;
/// use spandrel::services::name;
/// use spandrel::{Endpoint, Orb};
/// use spandrel_naming::{NamingOptions, NamingService};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
/// let service = NamingService::start(&orb, NamingOptions::new(folder))?;
///
/// let names: NamingContextExt = service.reference().narrow()?;
/// names.bind_new_context(&name::parse("bank")?)?;
/// assert!(names.resolve_str("bank").is_ok());
/// service.stop()?;
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NamingService {
    contexts: Arc<Contexts>,
    root_adapter: Poa,
    adapter: Poa,
    root: ObjectRef,
    bootstrap: ObjectRef,
    /// Only with a store that can be copied.
    administration: Option<Administration>,
    purger: Option<Purger>,
}

impl NamingService {
    /// Opens the store in the folder of the options, or creates it, and serves it.
    ///
    /// The root context has the key [`ROOT_KEY`] and is an initial reference of this name. The object with the key
    /// [`BOOTSTRAP_KEY`] serves Java's ORBs, and an [`Administration`] makes copies of the store.
    ///
    /// # Errors
    /// A store that cannot be opened, an ORB that cannot listen or has a naming service already.
    pub fn start(orb: &Orb, options: NamingOptions) -> Result<Self, NamingError> {
        let store = Arc::new(RedbStore::open(&options.data.join(STORE_FILE), &options.store)?);
        let data = options.data.clone();
        let mut service = Self::start_with(orb, Arc::clone(&store) as Arc<dyn Store>, options)?;
        let begin = move || store.begin_backup();
        service.administration = Some(Administration::serve(orb, Service::Naming, &data, begin)?);
        Ok(service)
    }

    /// As [`start`](Self::start), over another store.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(orb: &Orb, store: Arc<dyn Store>, options: NamingOptions) -> Result<Self, NamingError> {
        let root_adapter = Poa::root(orb)?;
        let policies = [
            LifespanPolicy::Persistent.into(),
            IdAssignmentPolicy::UserId.into(),
            IdUniquenessPolicy::MultipleId.into(),
            ServantRetentionPolicy::NonRetain.into(),
            RequestProcessingPolicy::UseDefaultServant.into(),
        ];
        let adapter = root_adapter.create_poa(ADAPTER, None, policies)?;
        Self::start_on(orb, &root_adapter, &adapter, store, options).inspect_err(|_| {
            // The store is given back, so that another attempt can open it.
            _ = adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes);
        })
    }

    fn start_on(
        orb: &Orb,
        root_adapter: &Poa,
        adapter: &Poa,
        store: Arc<dyn Store>,
        options: NamingOptions,
    ) -> Result<Self, NamingError> {
        let iterators = adapter.create_poa("BindingIterators", Some(&adapter.the_poa_manager()), [])?;
        let contexts = Arc::new(Contexts {
            orb: orb.clone(),
            poa: adapter.clone(),
            store,
            iterators: Arc::new(Iterators::new(iterators, options.iterators, options.path_check.clone())),
            path_check: options.path_check,
            federation_timeout: options.federation_timeout,
            max_reference: options.max_reference,
        });
        let skeleton = NamingContextExtSkeleton::new(ContextServant(Arc::clone(&contexts)));
        adapter.set_servant(Arc::new(DeferringSkeleton::new(skeleton, DeferredChanges(Arc::clone(&contexts)))))?;
        adapter.the_poa_manager().activate()?;

        let root = contexts.reference(ContextId::ROOT)?;
        orb.set_object_key_alias(ROOT_KEY, &root)?;
        let initial = InitialReferences { own: vec![(ROOT_KEY, root.clone())] };
        let bootstrap = root_adapter.activate(BootstrapSkeleton::new(initial))?;
        orb.set_object_key_alias(BOOTSTRAP_KEY, &bootstrap)?;
        let purger = options.purge.map(|options| purge::start(orb.clone(), Arc::clone(&contexts.store), options));
        Ok(Self {
            contexts,
            root_adapter: root_adapter.clone(),
            adapter: adapter.clone(),
            root,
            bootstrap,
            administration: None,
            purger,
        })
    }

    /// The reference of the root context.
    #[must_use]
    pub fn reference(&self) -> &ObjectRef {
        &self.root
    }

    /// The store that holds the contexts.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.contexts.store
    }

    /// Ends the service after its running requests. Changes of a store that writes at intervals are written when its
    /// last user is gone.
    ///
    /// # Errors
    /// Those of the adapters' destruction.
    pub fn stop(self) -> Result<(), NamingError> {
        drop(self.purger);
        drop(self.administration);
        for key in [ROOT_KEY, BOOTSTRAP_KEY] {
            self.contexts.orb.remove_object_key_alias(key);
        }
        // An ORB that was shut down has no active objects.
        _ = self.root_adapter.deactivate(&self.bootstrap);
        Ok(self.adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes)?)
    }
}
