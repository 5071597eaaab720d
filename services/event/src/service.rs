//! The event service on an ORB: its adapter, keys and options.

use std::path::PathBuf;

use spandrel::net::sync::{Arc, Mutex, RwLock};
use spandrel::poa::{EtherealizeObjects, IdAssignmentPolicy, LifespanPolicy, ObjectId, PoaError, WaitForCompletion};
use spandrel::server::Servant;
use spandrel::services::event_monitoring::{MonitorSkeleton, MonitoredFactorySkeleton};
use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException};
use spandrel_delivery::{EventMemory, PeerOptions, PullReplies, Timer};
use spandrel_store::{Administration, Service, Storage};

use crate::channels::{CreateError, create, find, reference, restore};
use crate::factory::FactoryServant;
use crate::keys::{FACTORY_KEY, MONITOR_KEY};
use crate::limits::Limits;
use crate::monitor::{MonitorState, render};
use crate::registry::{Channels, Registry};
use crate::settings::ChannelSettings;
use crate::shared::Shared;
use crate::store::{Store, StoreError};

/// The name of the store's file in its folder.
pub const STORE_FILE: &str = "event.redb";

/// The name of the adapter of the factory, channels and proxies, below the root adapter, by which policies
/// refer to it.
pub const ADAPTER: &str = "Event";

/// The data folder, the limits and the treatment of peers of an [`EventService`].
#[derive(Clone, Debug, Default)]
pub struct EventOptions {
    /// The folder of the store, which must exist. Without one, channels and connections end with the service.
    pub data: Option<PathBuf>,
    /// The bounds on channels, proxies and queues.
    pub limits: Limits,
    /// The time limit of calls on consumers and suppliers, and the failures that disconnect them.
    pub peers: PeerOptions,
    /// The storage of the state, instead of the file in `data`. For tests of failures.
    pub storage: Option<Storage>,
}

impl EventOptions {
    /// The defaults, with a store in this folder.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: Some(data.into()), ..Self::default() }
    }
}

/// The reason why an event service or a channel cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The database of channels is damaged, belongs to another service, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The adapter could not be created, or the ORB could not listen.
    #[error("cannot serve event channels")]
    Adapter(#[from] PoaError),
    /// A system exception of the ORB while it created the adapter or began to listen.
    #[error("cannot serve event channels")]
    System(#[from] SystemException),
    /// A name that no channel can have.
    #[error("`{0}` cannot be the name of a channel: it is reserved, too long, or has control characters or `/`")]
    Name(String),
}

/// An event service on an ORB.
///
/// ```
/// use spandrel::services::cos_event_channel_admin::EventChannel;
/// use spandrel::types::Any;
/// use spandrel::{Endpoint, Orb};
/// use spandrel_event::{EventOptions, EventService};
///
/// let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
/// let service = EventService::start(&orb, EventOptions::default())?;
/// let client = Orb::builder().build()?;
/// let channel = client.string_to_object(&service.channel("Alarms")?.to_string())?;
/// let channel: EventChannel = channel.narrow()?;
///
/// let consumer = channel.for_consumers()?.expect("consumers").obtain_pull_supplier()?.expect("a proxy");
/// consumer.connect_pull_consumer(None)?;
/// let supplier = channel.for_suppliers()?.expect("suppliers").obtain_push_consumer()?.expect("a proxy");
/// supplier.connect_push_supplier(None)?;
/// supplier.push(&Any::new("the tank is empty")?)?;
/// assert_eq!(consumer.pull()?.extract::<String>()?, "the tank is empty");
/// client.shutdown()?;
/// service.stop()?;
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EventService {
    registry: Arc<Registry>,
    factory: ObjectRef,
    /// Only with a store.
    administration: Option<Administration>,
}

impl EventService {
    /// Opens the store in the folder of the options, or creates it, and serves the factory with the plain key
    /// [`FACTORY_KEY`], and each channel with its name as its key. Stored connections are served again.
    ///
    /// # Errors
    /// A store that cannot be opened, an ORB that cannot listen or has an event service already.
    pub fn start(orb: &Orb, options: EventOptions) -> Result<Self, EventError> {
        let file = options.data.as_ref().map(|folder| Storage::file(folder.join(STORE_FILE)));
        let (store, stored, next) = match options.storage.or(file).map(Store::open).transpose()? {
            Some((store, stored, next)) => (Some(Arc::new(Mutex::new(store))), stored, next),
            None => (None, Vec::new(), 1),
        };
        let lifespan = if store.is_some() { LifespanPolicy::Persistent } else { LifespanPolicy::Transient };
        let policies = [lifespan.into(), IdAssignmentPolicy::UserId.into()];
        let adapter = Poa::root(orb)?.create_poa(ADAPTER, None, policies)?;
        let shared = Arc::new(Shared {
            orb: orb.clone(),
            adapter,
            limits: options.limits,
            peers: options.peers,
            memory: EventMemory::new(options.limits.octets),
            timer: Timer::start(),
            store: store.clone(),
            replies: PullReplies::start(),
        });
        let channels = RwLock::new(Channels { next, ..Channels::default() });
        let registry = Arc::new(Registry { shared: Arc::clone(&shared), channels });
        let serve = |key: &str, servant: Arc<dyn Servant>| -> Result<ObjectRef, EventError> {
            let id = ObjectId::from(key);
            shared.adapter.activate_object_with_id(&id, servant)?;
            let object = shared.adapter.id_to_reference(&id)?;
            orb.set_object_key_alias(key, &object)?;
            Ok(object)
        };
        let factory = serve(FACTORY_KEY, Arc::new(MonitoredFactorySkeleton::new(FactoryServant(registry.clone()))))?;
        serve(MONITOR_KEY, Arc::new(MonitorSkeleton::new(MonitorState(registry.clone()))))?;
        for channel in stored {
            restore(&registry, channel)?;
        }
        shared.adapter.the_poa_manager().activate()?;
        let administration = match (store, &options.data) {
            (Some(store), Some(data)) => {
                let begin = move || store.lock().begin_backup();
                Some(Administration::serve(orb, Service::Event, data, begin)?)
            }
            _ => None,
        };
        Ok(Self { registry, factory, administration })
    }

    /// The factory of channels, with the object key that omniEvents uses.
    #[must_use]
    pub fn factory(&self) -> &ObjectRef {
        &self.factory
    }

    /// The channel with this name, which is created if it does not exist.
    ///
    /// # Errors
    /// A name that no channel can have; too many channels; a store that cannot be written.
    pub fn channel(&self, name: &str) -> Result<ObjectRef, EventError> {
        if let Some(channel) = find(&self.registry, name) {
            return Ok(reference(&channel)?);
        }
        let settings = ChannelSettings { name: Some(name.to_owned()), ..ChannelSettings::default() };
        match create(&self.registry, settings) {
            Ok(object) => Ok(object),
            Err(CreateError::Name) => match find(&self.registry, name) {
                Some(channel) => Ok(reference(&channel)?),
                None => Err(EventError::Name(name.to_owned())),
            },
            Err(CreateError::System(exception)) => Err(exception.into()),
        }
    }

    /// The number of channels that exist.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.registry.channels.read().by_name.len()
    }

    /// The octets of the events that wait in queues, all channels together.
    #[must_use]
    pub fn event_octets(&self) -> usize {
        self.registry.shared.memory.used()
    }

    /// A function that renders the state of channels and consumers in Prometheus' text format.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let registry = Arc::clone(&self.registry);
        move || render(&registry)
    }

    /// Ends the service after its running requests. Stored connections are served again at the next start; events in
    /// queues are lost.
    ///
    /// # Errors
    /// Those of the adapter's destruction.
    pub fn stop(self) -> Result<(), EventError> {
        drop(self.administration);
        let orb = &self.registry.shared.orb;
        let channels = std::mem::take(&mut self.registry.channels.write().by_name);
        for key in [FACTORY_KEY, MONITOR_KEY].into_iter().chain(channels.keys().map(String::as_str)) {
            orb.remove_object_key_alias(key);
        }
        for channel in channels.values() {
            channel.halt();
        }
        let ended = self.registry.shared.adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes);
        self.registry.shared.replies.stop();
        match ended {
            // An ORB that was shut down has destroyed it.
            Err(PoaError::System(exception)) if exception.completed() == CompletionStatus::No => Err(exception.into()),
            ended => Ok(ended?),
        }
    }
}
