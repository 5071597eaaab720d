//! The event service on an ORB: its adapter and keys.

use std::time::Duration;

use spandrel::net::sync::Arc;
use spandrel::poa::{
    EtherealizeObjects, IdAssignmentPolicy, LifespanPolicy, ObjectId, PoaError, RequestProcessingPolicy,
    ServantManager, ServantRetentionPolicy, WaitForCompletion,
};
use spandrel::{CompletionStatus, ObjectRef, Orb, Poa, SystemException};
use spandrel_event::{ADAPTER, CreateError, EventChannels as _, FACTORY_KEY, MONITOR_KEY};

use crate::broker::{Broker, BrokerError, BrokerOptions};
use crate::monitor::render;
use crate::registry::{PeerSettings, Registry, SharedChannels};
use crate::servants::Locator;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// The nodes and limits of the broker.
    pub broker: BrokerOptions,
    /// The time limit of a call on a consumer or pull supplier.
    pub peer_timeout: Duration,
    /// The age of the oldest event of a consumer that fails, from which the consumer is disconnected.
    pub keep: Duration,
}

/// The reason why a server or a channel cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The broker cannot be used.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The adapter could not be created, or the ORB could not listen.
    #[error("cannot serve event channels")]
    Adapter(#[from] PoaError),
    /// The ORB or the broker raised an exception instead.
    #[error("cannot serve event channels")]
    System(#[from] SystemException),
    /// A name that no channel can have.
    #[error(
        "`{0}` cannot be the name of a channel: it has at most 64 letters, digits, `-` and `_`, and is not reserved"
    )]
    Name(String),
}

/// One of several servers whose channels are those of a broker.
#[derive(Debug)]
pub struct JetStreamEventService {
    registry: Arc<Registry>,
    factory: ObjectRef,
}

impl JetStreamEventService {
    /// Connects to the broker, and serves its channels. The factory has the plain key of the event service, and each channel
    /// its name.
    ///
    /// # Errors
    /// A broker that does not answer in time; an ORB that cannot listen or has an event service already.
    pub fn start(orb: &Orb, options: ServiceOptions) -> Result<Self, ServiceError> {
        let broker = Broker::open(options.broker)?;
        let policies = [
            LifespanPolicy::Persistent.into(),
            IdAssignmentPolicy::UserId.into(),
            ServantRetentionPolicy::NonRetain.into(),
            RequestProcessingPolicy::UseServantManager.into(),
        ];
        let adapter = Poa::root(orb)?.create_poa(ADAPTER, None, policies)?;
        let peers = PeerSettings { timeout: options.peer_timeout, keep: options.keep };
        let registry = Registry::new(orb, adapter.clone(), broker, peers);
        adapter.set_servant_manager(ServantManager::Locator(Arc::new(Locator(Arc::clone(&registry)))))?;
        let id = ObjectId::from(FACTORY_KEY);
        let factory = adapter.create_reference_with_id(&id, "IDL:EventMonitoring/MonitoredFactory:1.0")?;
        orb.set_object_key_alias(FACTORY_KEY, &factory)?;
        orb.set_object_key_alias(MONITOR_KEY, &SharedChannels(Arc::clone(&registry)).monitor()?)?;
        registry.start();
        adapter.the_poa_manager().activate()?;
        Ok(Self { registry, factory })
    }

    /// The reference to the factory, as clients resolve it.
    #[must_use]
    pub fn factory(&self) -> &ObjectRef {
        &self.factory
    }

    /// The channel with this name, which is created if it does not exist.
    ///
    /// # Errors
    /// A name that no channel can have; a broker that does not answer in time.
    pub fn channel(&self, name: &str) -> Result<ObjectRef, ServiceError> {
        self.registry.channel(name).map_err(|error| match error {
            CreateError::Name => ServiceError::Name(name.to_owned()),
            CreateError::System(exception) => exception.into(),
        })
    }

    /// A function that renders the state of channels in Prometheus' text format.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let registry = Arc::clone(&self.registry);
        move || render(&registry)
    }

    /// Ends the service after its running requests. Channels, connections and events stay in the broker.
    ///
    /// # Errors
    /// Those of the adapter's destruction.
    pub fn stop(self) -> Result<(), ServiceError> {
        for key in [FACTORY_KEY, MONITOR_KEY] {
            self.registry.orb.remove_object_key_alias(key);
        }
        self.registry.stop();
        match self.registry.adapter.destroy(EtherealizeObjects::No, WaitForCompletion::Yes) {
            // An ORB that was shut down has destroyed it.
            Err(PoaError::System(exception)) if exception.completed() == CompletionStatus::No => Err(exception.into()),
            ended => Ok(ended?),
        }
    }
}
