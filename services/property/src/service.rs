//! The property service on an ORB: its adapter, keys and options.

use std::path::PathBuf;

use spandrel::net::sync::{Arc, Mutex};
use spandrel::poa::{EtherealizeObjects, IdAssignmentPolicy, LifespanPolicy, ObjectId, PoaError, WaitForCompletion};
use spandrel::server::Servant;
use spandrel::services::cos_property_service::{PropertySetDefFactorySkeleton, PropertySetFactorySkeleton};
use spandrel::{ObjectRef, Orb, Poa, SystemException};
use spandrel_daemon::IteratorOptions;
use spandrel_store::{Administration, Service, Storage};

use crate::iterators::PropertyIterators;
use crate::journal::SharedStore;
use crate::limits::ServiceLimits;
use crate::registry::{Counts, Registry, SetDefFactory, SetFactory};
use crate::store::{Store, StoreError};

/// The name of the store's file in its folder.
pub const STORE_FILE: &str = "property.redb";

/// The name of the adapter of sets and factories, below the root adapter, by which policies refer to it. The
/// adapter of their iterators is below it.
pub const ADAPTER: &str = "PropertySets";

/// The key of the factory of `PropertySet`s.
pub const FACTORY_KEY: &str = "PropertySetFactory";

/// The key of the factory of `PropertySetDef`s.
pub const SET_DEF_FACTORY_KEY: &str = "PropertySetDefFactory";

/// The data folder, the limits and the iterators of a [`PropertyService`].
#[derive(Clone, Debug, Default)]
pub struct PropertyOptions {
    /// The folder of the store, which must exist. Without one, sets are in memory and end with the service.
    pub data: Option<PathBuf>,
    /// The bounds on sets, and on the properties of each.
    pub limits: ServiceLimits,
    /// The bounds on iterators that clients have not destroyed.
    pub iterators: IteratorOptions,
    /// The storage of the sets, instead of the file in `data`. For tests of failures.
    pub storage: Option<Storage>,
}

impl PropertyOptions {
    /// The defaults, with a store in this folder.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: Some(data.into()), ..Self::default() }
    }
}

/// A failure to start or stop a [`PropertyService`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PropertyError {
    /// The database of sets is damaged, belongs to another service, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The adapter could not be created, or the ORB could not listen.
    #[error("cannot serve the property sets")]
    Adapter(#[from] PoaError),
    /// A system exception of the ORB while it created the adapter or began to listen.
    #[error("cannot serve the property sets")]
    System(#[from] SystemException),
}

/// A property service on an ORB.
///
/// ```
/// use spandrel::services::cos_property_service::PropertySetFactory;
/// use spandrel::types::Any;
/// use spandrel::{Endpoint, Orb};
/// use spandrel_property::{PropertyOptions, PropertyService};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
/// let service = PropertyService::start(&orb, PropertyOptions::new(folder))?;
///
/// let factory: PropertySetFactory = service.factory().narrow()?;
/// let printer = factory.create_propertyset()?.expect("a set");
/// printer.define_property("ppm", &Any::new(&35_u16)?)?;
/// assert_eq!(printer.get_number_of_properties()?, 1);
/// service.stop()?;
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PropertyService {
    registry: Arc<Registry>,
    orb: Orb,
    factory: ObjectRef,
    set_def_factory: ObjectRef,
    /// Only with a store.
    administration: Option<Administration>,
}

impl PropertyService {
    /// Opens the store in the folder of the options, or creates it, and serves its sets and the factories with the plain
    /// keys [`FACTORY_KEY`] and [`SET_DEF_FACTORY_KEY`]. An [`Administration`] makes copies of the store.
    ///
    /// # Errors
    /// A store that cannot be opened, an ORB that cannot listen or has a property service already.
    pub fn start(orb: &Orb, options: PropertyOptions) -> Result<Self, PropertyError> {
        let file = options.data.as_ref().map(|folder| Storage::file(folder.join(STORE_FILE)));
        let opened = options.storage.or(file).map(Store::open).transpose()?;
        let (store, sets, next) = match opened {
            Some((store, sets, next)) => (Some(Arc::new(SharedStore::new(store))), sets, next),
            None => (None, Vec::new(), 0),
        };
        // The numbers of sets in memory begin anew with the service, and so must their references.
        let lifespan = if store.is_some() { LifespanPolicy::Persistent } else { LifespanPolicy::Transient };
        let policies = [lifespan.into(), IdAssignmentPolicy::UserId.into()];
        let adapter = Poa::root(orb)?.create_poa(ADAPTER, None, policies)?;
        let registry = Arc::new(Registry {
            iterators: PropertyIterators::new(&adapter, options.iterators)?,
            adapter: adapter.clone(),
            limits: options.limits,
            store: store.clone(),
            budget: Arc::default(),
            counts: Mutex::new(Counts::starting_at(next)),
        });
        registry.restore(sets)?;
        let serve = |key: &str, servant: Arc<dyn Servant>| -> Result<ObjectRef, PropertyError> {
            let id = ObjectId::from(key);
            adapter.activate_object_with_id(&id, servant)?;
            let object = adapter.id_to_reference(&id)?;
            orb.set_object_key_alias(key, &object)?;
            Ok(object)
        };
        let factory = SetFactory(Arc::clone(&registry));
        let factory = serve(FACTORY_KEY, Arc::new(PropertySetFactorySkeleton::new(factory)))?;
        let set_def_factory = SetDefFactory(Arc::clone(&registry));
        let set_def_factory =
            serve(SET_DEF_FACTORY_KEY, Arc::new(PropertySetDefFactorySkeleton::new(set_def_factory)))?;
        adapter.the_poa_manager().activate()?;
        let administration = match (store, &options.data) {
            (Some(store), Some(data)) => {
                let begin = move || store.begin_backup();
                Some(Administration::serve(orb, Service::Property, data, begin)?)
            }
            _ => None,
        };
        Ok(Self { registry, orb: orb.clone(), factory, set_def_factory, administration })
    }

    /// The object that creates `PropertySet`s, with the key [`FACTORY_KEY`].
    #[must_use]
    pub fn factory(&self) -> &ObjectRef {
        &self.factory
    }

    /// The object that creates `PropertySetDef`s, with the key [`SET_DEF_FACTORY_KEY`].
    #[must_use]
    pub fn set_def_factory(&self) -> &ObjectRef {
        &self.set_def_factory
    }

    /// The number of property sets that exist.
    #[must_use]
    pub fn sets(&self) -> usize {
        self.registry.sets()
    }

    /// The octets of all sets, as [`ServiceLimits::octets`] counts them.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.registry.budget.used()
    }

    /// Ends the service after its running requests.
    ///
    /// # Errors
    /// Those of the adapter's destruction.
    pub fn stop(self) -> Result<(), PropertyError> {
        drop(self.administration);
        for key in [FACTORY_KEY, SET_DEF_FACTORY_KEY] {
            self.orb.remove_object_key_alias(key);
        }
        Ok(self.registry.adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes)?)
    }
}
