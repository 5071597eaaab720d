//! The notification service on an ORB: its adapter, keys and options.

use spandrel::net::sync::Arc;
use spandrel::poa::{EtherealizeObjects, IdAssignmentPolicy, ObjectId, PoaError, WaitForCompletion};
use spandrel::services::cos_notify_channel_admin::EventChannelFactorySkeleton;
use spandrel::services::cos_notify_filter::FilterFactorySkeleton;
use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException};
use spandrel_delivery::{EventMemory, PeerOptions, PullReplies, Timer};

use crate::admin_properties::AdminSettings;
use crate::channel_servant::{FactoryServant, create_channel};
use crate::filter_bounds::FilterBounds;
use crate::filter_factory::FilterFactory;
use crate::filters::Filters;
use crate::keys::{FACTORY_KEY, FILTERS};
use crate::limits::Limits;
use crate::metrics::render;
use crate::qos::Qos;
use crate::registry::Registry;
use crate::shared::Shared;

/// The name of the adapter of all objects of the service, below the root adapter; for policies.
pub const ADAPTER: &str = "Notification";

/// The calls at once that tell peers of event types.
const NOTICES: usize = 1_000;

/// The settings of a notification service.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotificationOptions {
    /// The most that the service holds.
    pub limits: Limits,
    /// The treatment of peers that fail or are slow. Pull suppliers are called by the `try_pull` operations alone.
    pub peers: PeerOptions,
}

/// The reason why a notification service or a channel cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotificationError {
    /// The adapter could not be created, or the ORB could not listen.
    #[error("cannot serve notification channels")]
    Adapter(#[from] PoaError),
    /// The ORB raised an exception instead, as for `Adapter`.
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
}

impl NotificationService {
    /// Serves the factory of channels with the plain key [`FACTORY_KEY`].
    ///
    /// # Errors
    /// An ORB that cannot listen or has a notification service already.
    pub fn start(orb: &Orb, options: NotificationOptions) -> Result<Self, NotificationError> {
        let adapter = Poa::root(orb)?.create_poa(ADAPTER, None, [IdAssignmentPolicy::UserId.into()])?;
        let NotificationOptions { limits, peers } = options;
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
            filters: Filters::default(),
        });
        let registry = Registry::new(Arc::clone(&shared));
        let factory = EventChannelFactorySkeleton::new(FactoryServant(Arc::clone(&registry)));
        let factory = shared.serve(&ObjectId::from(FACTORY_KEY), Arc::new(factory))?;
        orb.set_object_key_alias(FACTORY_KEY, &factory)?;
        let filters = FilterFactorySkeleton::new(FilterFactory(Arc::clone(&shared)));
        shared.serve(&ObjectId::from(FILTERS), Arc::new(filters))?;
        shared.adapter.the_poa_manager().activate()?;
        Ok(Self { registry, factory })
    }

    /// The reference to the factory, as clients resolve it.
    #[must_use]
    pub fn factory(&self) -> &ObjectRef {
        &self.factory
    }

    /// Creates a channel with the default properties.
    ///
    /// # Errors
    /// IMP_LIMIT for a channel beyond the bound.
    pub fn create_channel(&self) -> Result<ObjectRef, NotificationError> {
        Ok(create_channel(&self.registry, Qos::default(), AdminSettings::default())?.0)
    }

    /// The number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.registry.all().len()
    }

    /// The octets of the events in all queues.
    #[must_use]
    pub fn event_octets(&self) -> usize {
        self.registry.shared.memory.used()
    }

    /// A function that renders the state of channels and consumers in Prometheus' text format.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let registry = Arc::clone(&self.registry);
        move || render(&registry)
    }

    /// Ends the service after its running requests. Channels and events end with it.
    ///
    /// # Errors
    /// Those of the adapter's destruction.
    pub fn stop(self) -> Result<(), NotificationError> {
        let shared = &self.registry.shared;
        shared.orb.remove_object_key_alias(FACTORY_KEY);
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
