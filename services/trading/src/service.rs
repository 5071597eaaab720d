//! The trading service on an ORB: its adapter, keys and options.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use spandrel::net::sync::{Arc, Mutex};
use spandrel::poa::{EtherealizeObjects, IdAssignmentPolicy, LifespanPolicy, ObjectId, PoaError, WaitForCompletion};
use spandrel::server::Servant;
use spandrel::services::cos_trading::{AdminSkeleton, LinkSkeleton, LookupSkeleton, ProxySkeleton, RegisterSkeleton};
use spandrel::services::cos_trading_repos::ServiceTypeRepositorySkeleton;
use spandrel::{ObjectRef, Orb, Poa, SystemException};
use spandrel_daemon::{IteratorOptions, PurgeOptions, Purger};
use spandrel_store::{Administration, Service, Storage};

use crate::components::TraderServant;
use crate::dynamic::{DynamicCache, DynamicOptions};
use crate::federation::linked::{LinkOptions, LinkedTraders};
use crate::iterators::Iterators;
use crate::limits::Limits;
use crate::links::{StoredLinks, follow_settings, restore};
use crate::purge;
use crate::state::{SharedState, State};
use crate::store::{Store, StoreError};
use crate::trader::{Components, Trader};

/// The name of the store's file in its folder.
pub const STORE_FILE: &str = "trading.redb";

/// The name of the adapter of the trader's interfaces, below the root adapter, by which policies refer to it.
/// The adapter of their iterators is below it.
pub const ADAPTER: &str = "Trading";

/// The key of `Lookup`, and the standard's name of the initial reference to it.
pub const LOOKUP_KEY: &str = "TradingService";

/// The keys of the other interfaces.
const REGISTER_KEY: &str = "TradingRegister";
const LINK_KEY: &str = "TradingLink";
const PROXY_KEY: &str = "TradingProxy";
const ADMIN_KEY: &str = "TradingAdmin";
const TYPES_KEY: &str = "TradingServiceTypes";

/// The data folder, the limits and the federation of a [`TradingService`].
#[derive(Clone, Debug)]
pub struct TradingOptions {
    /// The folder of the store, which must exist. Without one, types and offers are in memory and end with the service.
    pub data: Option<PathBuf>,
    /// The bounds on offers, service types and their sizes.
    pub limits: Limits,
    /// The bounds on iterators that clients have not destroyed.
    pub iterators: IteratorOptions,
    /// The time of a query (default 2 seconds). A query that ends by it has the offers found until then, and
    /// [`QUERY_TIME`](crate::QUERY_TIME) in `limits_applied`.
    pub query_time: Duration,
    /// Whether an exported object is asked for the interface of its service type (default no: the exporter may not serve
    /// yet). An object that cannot be asked is believed.
    pub checks_interfaces: bool,
    /// The withdrawal of offers whose object is gone (default none).
    pub purge: Option<PurgeOptions>,
    /// The bounds on links to other traders.
    pub links: LinkOptions,
    /// The bounds on calls of evaluators.
    pub dynamic: DynamicOptions,
    /// The storage of the state, instead of the file in `data`. For tests of failures.
    pub storage: Option<Storage>,
}

impl Default for TradingOptions {
    fn default() -> Self {
        Self {
            data: None,
            limits: Limits::default(),
            iterators: IteratorOptions::default(),
            query_time: Duration::from_secs(2),
            checks_interfaces: false,
            purge: None,
            links: LinkOptions::default(),
            dynamic: DynamicOptions::default(),
            storage: None,
        }
    }
}

impl TradingOptions {
    /// The defaults, with a store in this folder.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: Some(data.into()), ..Self::default() }
    }
}

/// A failure to start or stop a [`TradingService`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TradingError {
    /// The database of types and offers is damaged, belongs to another service, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The adapter could not be created, or the ORB could not listen.
    #[error("cannot serve the trader")]
    Adapter(#[from] PoaError),
    /// A system exception of the ORB while it created the adapter or began to listen.
    #[error("cannot serve the trader")]
    System(#[from] SystemException),
}

/// A trading service on an ORB.
///
/// ```
/// use spandrel::services::cos_trading::lookup::{HowManyProps, SpecifiedProps};
/// use spandrel::services::cos_trading::{Lookup, Property};
/// use spandrel::services::cos_trading_repos::ServiceTypeRepository;
/// use spandrel::types::Any;
/// use spandrel::{Endpoint, Orb};
/// use spandrel_trading::{TradingOptions, TradingService};
///
/// let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
/// let service = TradingService::start(&orb, TradingOptions::default())?;
/// let lookup: Lookup = service.lookup().narrow()?;
///
/// let types: ServiceTypeRepository = lookup.type_repos()?.expect("a repository").narrow()?;
/// types.add_type("Printer", "IDL:Office/Printer:1.0", &[], &[])?;
/// let register = lookup.register_if()?.expect("a register");
/// let printer = orb.string_to_object("corbaloc::printer.example:2000/Laser")?;
/// register.export(Some(&printer), "Printer", &[Property { name: "ppm".into(), value: Any::new(35_u16)? }])?;
///
/// let all = SpecifiedProps::Unlisted(HowManyProps::All);
/// let (offers, _, _) = lookup.query("Printer", "ppm > 20", "max ppm", &[], &all, 10)?;
/// assert_eq!(offers[0].reference.as_ref(), Some(&printer));
/// service.stop()?;
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TradingService {
    trader: Arc<Trader>,
    adapter: Poa,
    orb: Orb,
    lookup: ObjectRef,
    /// Only with the withdrawal of offers whose object is gone.
    purger: Option<Purger>,
    /// Only with a store.
    administration: Option<Administration>,
}

impl TradingService {
    /// Opens the store in the folder of the options, or creates it, and serves `Lookup` with the plain key
    /// [`LOOKUP_KEY`], from which clients get the other interfaces. An [`Administration`] makes copies of the store.
    ///
    /// # Errors
    /// A store that cannot be opened, an ORB that cannot listen or has a trading service already.
    pub fn start(orb: &Orb, options: TradingOptions) -> Result<Self, TradingError> {
        let file = options.data.as_ref().map(|folder| Storage::file(folder.join(STORE_FILE)));
        let (store, mut state) =
            match options.storage.or(file).map(|storage| Store::open(storage, Some(orb))).transpose()? {
                Some((store, state)) => (Some(Arc::new(Mutex::new(store))), state),
                None => (None, State::default()),
            };
        let stored_links = std::mem::take(&mut state.stored_links);
        let lifespan = if store.is_some() { LifespanPolicy::Persistent } else { LifespanPolicy::Transient };
        let policies = [lifespan.into(), IdAssignmentPolicy::UserId.into()];
        let adapter = Poa::root(orb)?.create_poa(ADAPTER, None, policies)?;
        let shared = Arc::new(SharedState::new(state, store.clone()));
        let stored = Arc::new(StoredLinks(Arc::clone(&shared)));
        let followed = LinkedTraders::new(options.links, Some(stored), follow_settings(&shared));
        restore(&followed.links, stored_links, orb);
        let trader = Arc::new(Trader {
            orb: orb.clone(),
            shared,
            iterators: Iterators::new(&adapter, options.iterators)?,
            limits: options.limits,
            query_time: options.query_time,
            checks_interfaces: options.checks_interfaces,
            followed,
            dynamic: options.dynamic,
            dynamic_cache: Arc::new(DynamicCache::default()),
            components: OnceLock::new(),
        });
        let serve = |key: &str, servant: Arc<dyn Servant>| -> Result<ObjectRef, TradingError> {
            let id = ObjectId::from(key);
            adapter.activate_object_with_id(&id, servant)?;
            let object = adapter.id_to_reference(&id)?;
            orb.set_object_key_alias(key, &object)?;
            Ok(object)
        };
        let servant = TraderServant(Arc::clone(&trader));
        let lookup = serve(LOOKUP_KEY, Arc::new(LookupSkeleton::new(servant.clone())))?;
        let register = serve(REGISTER_KEY, Arc::new(RegisterSkeleton::new(servant.clone())))?;
        let admin = serve(ADMIN_KEY, Arc::new(AdminSkeleton::new(servant.clone())))?;
        let types = serve(TYPES_KEY, Arc::new(ServiceTypeRepositorySkeleton::new(servant.clone())))?;
        let proxy = serve(PROXY_KEY, Arc::new(ProxySkeleton::new(servant.clone())))?;
        let link = serve(LINK_KEY, Arc::new(LinkSkeleton::new(servant)))?;
        let components = Components {
            lookup: Some(lookup.unchecked_narrow()),
            register: Some(register.unchecked_narrow()),
            link: Some(link.unchecked_narrow()),
            proxy: Some(proxy.unchecked_narrow()),
            admin: Some(admin.unchecked_narrow()),
            type_repository: Some(types),
        };
        _ = trader.components.set(components); // it is set once
        adapter.the_poa_manager().activate()?;
        let administration = match (store, &options.data) {
            (Some(store), Some(data)) => {
                let begin = move || store.lock().begin_backup();
                Some(Administration::serve(orb, Service::Trading, data, begin)?)
            }
            _ => None,
        };
        let purger = options.purge.map(|options| purge::start(Arc::clone(&trader), options));
        Ok(Self { trader, adapter, orb: orb.clone(), lookup, purger, administration })
    }

    /// The trader's `Lookup` interface, with the key that clients resolve.
    #[must_use]
    pub fn lookup(&self) -> &ObjectRef {
        &self.lookup
    }

    /// The number of offers that can be found.
    #[must_use]
    pub fn offers(&self) -> usize {
        self.trader.shared.read(|state| state.offers.len())
    }

    /// The number of service types that the repository holds.
    #[must_use]
    pub fn types(&self) -> usize {
        self.trader.shared.read(|state| state.types.len())
    }

    /// Ends the service after its running requests.
    ///
    /// # Errors
    /// Those of the adapter's destruction.
    pub fn stop(self) -> Result<(), TradingError> {
        drop((self.purger, self.administration));
        for key in [LOOKUP_KEY, REGISTER_KEY, LINK_KEY, PROXY_KEY, ADMIN_KEY, TYPES_KEY] {
            self.orb.remove_object_key_alias(key);
        }
        Ok(self.adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes)?)
    }
}
