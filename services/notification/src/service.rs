//! The notification service on an ORB: its adapter, keys and options.

use std::path::PathBuf;

use spandrel::net::sync::Arc;
use spandrel::poa::{EtherealizeObjects, IdAssignmentPolicy, LifespanPolicy, ObjectId, PoaError, WaitForCompletion};
use spandrel::services::cos_notify_filter::FilterFactorySkeleton;
use spandrel::services::cos_typed_notify_channel_admin::TypedEventChannelFactorySkeleton;
use spandrel::services::event_monitoring::MonitorSkeleton;
use spandrel::services::notification_monitoring::MonitoredFactorySkeleton;
use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException};
use spandrel_delivery::{EventMemory, PeerOptions, PullReplies, Timer};
use spandrel_store::{Administration, Service, Storage};

use crate::channel_servant::{FactoryServant, create_channel};
use crate::durable::DurableStore;
use crate::filter_bounds::FilterBounds;
use crate::filter_factory::FilterFactory;
use crate::filters::Filters;
use crate::keys::{FACTORY_KEY, FILTERS, MONITOR, TYPED_FACTORY_KEY};
use crate::limits::Limits;
use crate::metrics::render;
use crate::monitor::MonitorState;
use crate::qos::Qos;
use crate::records::ChannelRecord;
use crate::registry::Registry;
use crate::restore::{RestoreError, restore};
use crate::shared::Shared;
use crate::store::{Store, StoreError, StoredState, damaged};

/// The name of the store's file in its folder.
pub const STORE_FILE: &str = "notification.redb";

/// The name of the adapter of all objects of the service, below the root adapter, by which policies refer to
/// it.
pub const ADAPTER: &str = "Notification";

/// The calls at once that tell peers of event types.
const NOTICES: usize = 1_000;

/// The data folder, the limits and the treatment of peers of a [`NotificationService`].
#[derive(Clone, Debug, Default)]
pub struct NotificationOptions {
    /// The folder of the store, which must exist. Without one, all channels end with the service.
    pub data: Option<PathBuf>,
    /// The bounds on channels, administrators, proxies, filters and queues.
    pub limits: Limits,
    /// The treatment of peers that fail or are slow. Pull suppliers are called by the `try_pull` operations alone.
    pub peers: PeerOptions,
    /// The storage of the state, instead of the file in `data`. For tests of failures.
    pub storage: Option<Storage>,
}

impl NotificationOptions {
    /// The defaults, with a store in this folder.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: Some(data.into()), ..Self::default() }
    }
}

/// The reason why a notification service or a channel cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotificationError {
    /// The database of channels, filters and events is damaged, belongs to another service, or cannot be
    /// read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The adapter could not be created, or the ORB could not listen.
    #[error("cannot serve notification channels")]
    Adapter(#[from] PoaError),
    /// A system exception of the ORB while it created the adapter or began to listen.
    #[error("cannot serve notification channels")]
    System(#[from] SystemException),
}

/// A notification service on an ORB.
///
/// ```
/// use spandrel::services::cos_notification::StructuredEvent;
/// use spandrel::services::cos_notify_channel_admin::{
///     ClientType, EventChannelFactory, StructuredProxyPullSupplier, StructuredProxyPushConsumer,
/// };
/// use spandrel::services::cos_notify_filter::ConstraintExp;
/// use spandrel::types::Interface as _;
/// use spandrel::{Endpoint, Orb};
/// use spandrel_notification::{NotificationOptions, NotificationService};
///
/// let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build()?;
/// let service = NotificationService::start(&orb, NotificationOptions::default())?;
/// let client = Orb::builder().build()?;
/// let factory: EventChannelFactory = client.string_to_object(&service.factory().to_string())?.narrow()?;
/// let channel = factory.create_channel(&[], &[])?.0.expect("a channel");
///
/// let admin = channel.default_consumer_admin()?.expect("an administrator");
/// let proxy = admin.obtain_notification_pull_supplier(ClientType::StructuredEvent)?.0.expect("a proxy");
/// let consumer: StructuredProxyPullSupplier = proxy.as_object().narrow()?;
/// consumer.connect_structured_pull_consumer(None)?;
/// let filter = channel.default_filter_factory()?.expect("a factory").create_filter("EXTENDED_TCL")?.expect("a filter");
/// filter.add_constraints(&[ConstraintExp { constraint_expr: "$event_name == 'alarm'".into(), ..Default::default() }])?;
/// consumer.add_filter(Some(&filter))?;
///
/// let admin = channel.default_supplier_admin()?.expect("an administrator");
/// let proxy = admin.obtain_notification_push_consumer(ClientType::StructuredEvent)?.0.expect("a proxy");
/// let supplier: StructuredProxyPushConsumer = proxy.as_object().narrow()?;
/// supplier.connect_structured_push_supplier(None)?;
/// for name in ["noise", "alarm"] {
///     let mut event = StructuredEvent::default();
///     event.header.fixed_header.event_name = name.into();
///     supplier.push_structured_event(&event)?;
/// }
/// assert_eq!(consumer.pull_structured_event()?.header.fixed_header.event_name, "alarm");
/// client.shutdown()?;
/// service.stop()?;
/// orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NotificationService {
    registry: Arc<Registry>,
    factory: ObjectRef,
    /// Only with a store.
    administration: Option<Administration>,
}

impl NotificationService {
    /// Opens the store in the folder of the options, or creates it, and serves the factory of channels with the plain key
    /// [`FACTORY_KEY`]. Channels, connections and events of the store are served again.
    ///
    /// # Errors
    /// A store that cannot be opened; an ORB that cannot listen or has a notification service already.
    pub fn start(orb: &Orb, options: NotificationOptions) -> Result<Self, NotificationError> {
        let file = options.data.as_ref().map(|folder| Storage::file(folder.join(STORE_FILE)));
        let storage = options.storage.or(file);
        let opened = storage.clone().map(|storage| Store::open(storage, Some(orb))).transpose()?;
        let lifespan = if opened.is_some() { LifespanPolicy::Persistent } else { LifespanPolicy::Transient };
        let policies = [lifespan.into(), IdAssignmentPolicy::UserId.into()];
        let adapter = Poa::root(orb)?.create_poa(ADAPTER, None, policies)?;
        let (store, state) = match opened {
            Some((store, state)) => {
                let last_event = state.events.last_key_value().map_or(0, |(number, _)| *number);
                (Some(DurableStore::start(store, last_event)), state)
            }
            None => (None, StoredState::default()),
        };
        let outcome = Self::start_with(orb, adapter, options.limits, options.peers, store.clone(), state);
        let mut service = outcome.map_err(|error| {
            if let Some(store) = &store {
                store.stop();
            }
            match (error, storage) {
                (RestoreError::Damaged(text), Some(storage)) => NotificationError::Store(damaged(&storage, text)),
                (RestoreError::Damaged(_), None) => SystemException::internal(0, CompletionStatus::No).into(),
                (RestoreError::System(exception), _) => exception.into(),
            }
        })?;
        if let (Some(store), Some(data)) = (store, &options.data) {
            let begin = move || store.begin_backup();
            service.administration = Some(Administration::serve(orb, Service::Notification, data, begin)?);
        }
        Ok(service)
    }

    fn start_with(
        orb: &Orb,
        adapter: Poa,
        limits: Limits,
        peers: PeerOptions,
        store: Option<Arc<DurableStore>>,
        state: StoredState,
    ) -> Result<Self, RestoreError> {
        let shared = Arc::new(Shared {
            orb: orb.clone(),
            adapter,
            limits,
            peers,
            memory: EventMemory::new(limits.octets),
            filter_bounds: FilterBounds::new(limits),
            notices: EventMemory::new(NOTICES),
            timer: Timer::start(),
            replies: PullReplies::start(),
            filters: Filters::new(store.clone(), state.last_filter),
            peer_memory: EventMemory::new(limits.peer_octets),
            store: store.clone(),
        });
        let last_channel = i32::try_from(state.last_channel).unwrap_or(i32::MAX);
        let registry = Registry::new(Arc::clone(&shared), last_channel);
        let factory = MonitoredFactorySkeleton::new(FactoryServant(Arc::clone(&registry)));
        let factory = shared.serve(&ObjectId::from(FACTORY_KEY), Arc::new(factory))?;
        orb.set_object_key_alias(FACTORY_KEY, &factory)?;
        let typed = TypedEventChannelFactorySkeleton::new(FactoryServant(Arc::clone(&registry)));
        let typed = shared.serve(&ObjectId::from(TYPED_FACTORY_KEY), Arc::new(typed))?;
        orb.set_object_key_alias(TYPED_FACTORY_KEY, &typed)?;
        let filters = FilterFactorySkeleton::new(FilterFactory(Arc::clone(&shared)));
        shared.serve(&ObjectId::from(FILTERS), Arc::new(filters))?;
        let monitor = MonitorSkeleton::new(MonitorState(Arc::clone(&registry)));
        shared.serve(&ObjectId::from(MONITOR), Arc::new(monitor))?;
        if let Some(store) = &store {
            restore(&registry, store, state)?;
        }
        shared.adapter.the_poa_manager().activate().map_err(SystemException::from)?;
        Ok(Self { registry, factory, administration: None })
    }

    /// The factory of channels, an `EventChannelFactory` with the key that clients resolve.
    #[must_use]
    pub fn factory(&self) -> &ObjectRef {
        &self.factory
    }

    /// The channel with this name, which is created if it does not exist. It is not in the naming service.
    ///
    /// A channel with persistent connections and events is found again after a restart.
    ///
    /// # Errors
    /// IMP_LIMIT for a channel beyond the bound; NO_PERMISSION for a persistent one without a store; PERSIST_STORE if the store
    /// cannot be written.
    pub fn channel(&self, name: &str, is_persistent: bool) -> Result<ObjectRef, NotificationError> {
        if let Some(channel) = self.registry.all().into_iter().find(|channel| channel.name == name) {
            return Ok(channel.reference(None)?);
        }
        let qos = if is_persistent { Qos::persistent() } else { Qos::default() };
        if is_persistent && self.registry.shared.store.is_none() {
            let exception = SystemException::no_permission(0, CompletionStatus::No);
            return Err(exception.with_detail("the service has no store for a persistent channel").into());
        }
        let record = ChannelRecord { qos, name: name.to_owned(), ..ChannelRecord::default() };
        Ok(create_channel(&self.registry, record)?.0)
    }

    /// The number of channels that exist.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.registry.all().len()
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

    /// Ends the service after its running requests. Persistent channels, connections and events are served again at the next
    /// start, the others end.
    ///
    /// # Errors
    /// Those of the adapter's destruction.
    pub fn stop(mut self) -> Result<(), NotificationError> {
        drop(self.administration.take());
        let shared = &self.registry.shared;
        if let Some(store) = &shared.store {
            store.freeze();
        }
        shared.orb.remove_object_key_alias(FACTORY_KEY);
        shared.orb.remove_object_key_alias(TYPED_FACTORY_KEY);
        for channel in self.registry.all() {
            channel.halt();
        }
        let ended = shared.adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes);
        shared.replies.stop();
        match ended {
            // An ORB that was shut down has destroyed it.
            Err(PoaError::System(exception)) if exception.completed() == CompletionStatus::No => Err(exception.into()),
            ended => Ok(ended?),
        }
    }
}

impl Drop for NotificationService {
    fn drop(&mut self) {
        if let Some(store) = &self.registry.shared.store {
            store.stop();
        }
    }
}
