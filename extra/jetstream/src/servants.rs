//! The servants of channels, administrators and proxies, found by object ids alone.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::AckKind;
use spandrel::net::sync::Arc;
use spandrel::poa::{Cookie, Incarnation, ObjectId, ServantLocator};
use spandrel::server::{DeferredOperations, DeferredReply, DeferringSkeleton, Servant, ServerCall, TakenRequest};
use spandrel::services::cos_event_channel_admin::proxy_pull_consumer::ConnectPullSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_pull_supplier::ConnectPullConsumerError;
use spandrel::services::cos_event_channel_admin::proxy_push_consumer::ConnectPushSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_push_supplier::ConnectPushConsumerError;
use spandrel::services::cos_event_channel_admin::{
    AlreadyConnected, ConsumerAdmin, ConsumerAdminServant, ConsumerAdminSkeleton, EventChannelServant,
    ProxyPullConsumer, ProxyPullConsumerServant, ProxyPullConsumerSkeleton, ProxyPullSupplier,
    ProxyPullSupplierServant, ProxyPullSupplierSkeleton, ProxyPushConsumer, ProxyPushConsumerServant,
    ProxyPushConsumerSkeleton, ProxyPushSupplier, ProxyPushSupplierServant, ProxyPushSupplierSkeleton, SupplierAdmin,
    SupplierAdminServant, SupplierAdminSkeleton,
};
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{
    Disconnected, PullConsumer, PullConsumerServant, PullSupplier, PullSupplierServant, PushConsumer,
    PushConsumerServant, PushSupplier, PushSupplierServant,
};
use spandrel::services::event_monitoring::{MonitorSkeleton, MonitoredFactorySkeleton};
use spandrel::services::ft::PullMonitorableServant;
use spandrel::services::omni_events::{EventChannelServant as OmniEventChannelServant, EventChannelSkeleton};
use spandrel::types::{Any, Interface as _};
use spandrel::{CompletionStatus, ObjectRef, Poa, SystemException};
use spandrel_daemon::require_at_most;
use spandrel_delivery::no_event;
use spandrel_event::{FACTORY_KEY, FactoryServant, MONITOR_KEY};

use crate::delivery::{answer, event, next_event, publish};
use crate::monitor::MonitorState;
use crate::registry::{ConnectOutcome, ProxyId, ProxyKind, Registry, SharedChannels, gone};

/// The parts of object ids of the administrators.
const CONSUMERS: &str = "consumers";
const SUPPLIERS: &str = "suppliers";
/// The most calls of `pull` that wait in this server.
const WAITING_PULLS: usize = 4_096;
/// The time of one request for an event, after which the caller's connection is looked at again.
const PULL_SLICE: Duration = Duration::from_secs(2);

/// Finds servants by object ids.
#[derive(Debug)]
pub(crate) struct Locator(pub(crate) Arc<Registry>);

impl ServantLocator for Locator {
    fn preinvoke(&self, oid: &ObjectId, _: &Poa, _: &str) -> Result<(Arc<dyn Servant>, Cookie), Incarnation> {
        let servant = self.servant(&String::from_utf8_lossy(oid.as_bytes()));
        servant.map(|servant| (servant, Box::new(()) as Cookie)).map_err(Incarnation::from)
    }
}

impl Locator {
    fn servant(&self, id: &str) -> Result<Arc<dyn Servant>, SystemException> {
        let registry = &self.0;
        match id {
            FACTORY_KEY => {
                let channels = SharedChannels(Arc::clone(registry));
                return Ok(Arc::new(MonitoredFactorySkeleton::new(FactoryServant(channels))));
            }
            MONITOR_KEY => return Ok(Arc::new(MonitorSkeleton::new(MonitorState(Arc::clone(registry))))),
            _ => {}
        }
        if let Some((id, kind)) = ProxyId::parse(id, '/') {
            let servant = ProxyServant { registry: Arc::clone(registry), id, kind };
            return Ok(match kind {
                ProxyKind::PushConsumer => Arc::new(ProxyPushConsumerSkeleton::new(servant)),
                ProxyKind::PullConsumer => Arc::new(ProxyPullConsumerSkeleton::new(servant)),
                ProxyKind::PushSupplier => Arc::new(ProxyPushSupplierSkeleton::new(servant)),
                ProxyKind::PullSupplier => {
                    let deferred = DeferredPulls(servant.clone());
                    Arc::new(DeferringSkeleton::new(ProxyPullSupplierSkeleton::new(servant), deferred))
                }
            });
        }
        let (name, part) = match id.split_once('/') {
            Some((name, part)) => (name, Some(part)),
            None => (id, None),
        };
        registry.require_channel(name)?;
        let servant = ChannelServant { registry: Arc::clone(registry), name: name.to_owned() };
        match part {
            None => Ok(Arc::new(EventChannelSkeleton::new(servant))),
            Some(CONSUMERS) => Ok(Arc::new(ConsumerAdminSkeleton::new(servant))),
            Some(SUPPLIERS) => Ok(Arc::new(SupplierAdminSkeleton::new(servant))),
            Some(_) => Err(gone()),
        }
    }
}

/// A channel, as the servant of its own interface and those of its administrators.
#[derive(Clone, Debug)]
struct ChannelServant {
    registry: Arc<Registry>,
    name: String,
}

impl ChannelServant {
    fn part(&self, part: &str, interface: &str) -> Result<ObjectRef, SystemException> {
        let id = ObjectId::from(format!("{}/{part}", self.name).as_str());
        Ok(self.registry.adapter.create_reference_with_id(&id, interface)?)
    }

    fn create_proxy(&self, kind: ProxyKind, interface: &str) -> Result<ObjectRef, SystemException> {
        let id = ProxyId::random(&self.name, kind);
        Ok(self.registry.adapter.create_reference_with_id(&id.object_id(), interface)?)
    }
}

impl EventChannelServant for ChannelServant {
    fn for_consumers(&self) -> Result<Option<ConsumerAdmin>, SystemException> {
        Ok(Some(self.part(CONSUMERS, ConsumerAdmin::REPOSITORY_ID)?.unchecked_narrow()))
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdmin>, SystemException> {
        Ok(Some(self.part(SUPPLIERS, SupplierAdmin::REPOSITORY_ID)?.unchecked_narrow()))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        self.registry.destroy(&self.name)
    }
}

impl PullMonitorableServant for ChannelServant {
    fn is_alive(&self) -> Result<bool, SystemException> {
        Ok(true)
    }
}

impl OmniEventChannelServant for ChannelServant {}

impl ConsumerAdminServant for ChannelServant {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplier>, SystemException> {
        Ok(Some(self.create_proxy(ProxyKind::PushSupplier, ProxyPushSupplier::REPOSITORY_ID)?.unchecked_narrow()))
    }

    fn obtain_pull_supplier(&self) -> Result<Option<ProxyPullSupplier>, SystemException> {
        Ok(Some(self.create_proxy(ProxyKind::PullSupplier, ProxyPullSupplier::REPOSITORY_ID)?.unchecked_narrow()))
    }
}

impl SupplierAdminServant for ChannelServant {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumer>, SystemException> {
        Ok(Some(self.create_proxy(ProxyKind::PushConsumer, ProxyPushConsumer::REPOSITORY_ID)?.unchecked_narrow()))
    }

    fn obtain_pull_consumer(&self) -> Result<Option<ProxyPullConsumer>, SystemException> {
        Ok(Some(self.create_proxy(ProxyKind::PullConsumer, ProxyPullConsumer::REPOSITORY_ID)?.unchecked_narrow()))
    }
}

/// A proxy, as the servant of all four interfaces.
#[derive(Clone, Debug)]
struct ProxyServant {
    registry: Arc<Registry>,
    id: ProxyId,
    kind: ProxyKind,
}

/// BAD_PARAM for a nil reference where the standard requires one (Event Service 1.2, 2.3.5 and 2.3.7).
fn required(peer: Option<&ObjectRef>) -> Result<&ObjectRef, SystemException> {
    peer.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No).with_detail("the reference is nil"))
}

impl ProxyServant {
    fn connect<E: From<SystemException> + From<AlreadyConnected>>(&self, peer: Option<&ObjectRef>) -> Result<(), E> {
        match self.registry.connect(&self.id, self.kind, peer)? {
            ConnectOutcome::Connected => Ok(()),
            ConnectOutcome::Twice => Err(AlreadyConnected {}.into()),
        }
    }

    fn require_connected<E: From<SystemException> + From<Disconnected>>(&self) -> Result<(), E> {
        match self.registry.connection(&self.id, self.kind)? {
            Some(_) => Ok(()),
            None => Err(Disconnected {}.into()),
        }
    }

    fn disconnect(&self) -> Result<(), SystemException> {
        self.registry.connection(&self.id, self.kind)?;
        self.registry.broker.wait(self.registry.disconnect(&self.id, false))
    }
}

impl PushConsumerServant for ProxyServant {
    fn push(&self, data: &Any) -> Result<(), PushError> {
        self.require_connected::<PushError>()?;
        Ok(self.registry.broker.wait(publish(&self.registry, &self.id.channel, data))?)
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl ProxyPushConsumerServant for ProxyServant {
    fn connect_push_supplier(&self, push_supplier: Option<&PushSupplier>) -> Result<(), ConnectPushSupplierError> {
        self.connect(push_supplier.map(|supplier| supplier.as_object()))
    }
}

impl PullConsumerServant for ProxyServant {
    fn disconnect_pull_consumer(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl ProxyPullConsumerServant for ProxyServant {
    fn connect_pull_supplier(&self, pull_supplier: Option<&PullSupplier>) -> Result<(), ConnectPullSupplierError> {
        self.connect(Some(required(pull_supplier.map(|supplier| supplier.as_object()))?))
    }
}

impl PushSupplierServant for ProxyServant {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl ProxyPushSupplierServant for ProxyServant {
    fn connect_push_consumer(&self, push_consumer: Option<&PushConsumer>) -> Result<(), ConnectPushConsumerError> {
        self.connect(Some(required(push_consumer.map(|consumer| consumer.as_object()))?))
    }
}

impl PullSupplierServant for ProxyServant {
    /// Replies to calls that expect no reply. They take no event, as its acknowledgement would come before the reply.
    fn pull(&self) -> Result<Any, PullError> {
        self.require_connected::<PullError>()?;
        Err(no_event().into())
    }

    fn try_pull(&self) -> Result<(Any, bool), TryPullError> {
        self.require_connected::<TryPullError>()?;
        Ok((Any::default(), false))
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        self.disconnect()
    }
}

impl ProxyPullSupplierServant for ProxyServant {
    fn connect_pull_consumer(&self, pull_consumer: Option<&PullConsumer>) -> Result<(), ConnectPullConsumerError> {
        self.connect(pull_consumer.map(|consumer| consumer.as_object()))
    }
}

/// The operations `pull` and `try_pull`, which wait for the broker without a thread. An event is acknowledged after the
/// reply with it was sent.
#[derive(Debug)]
struct DeferredPulls(ProxyServant);

impl DeferredOperations for DeferredPulls {
    fn take<'m>(&self, call: ServerCall<'m>) -> Result<TakenRequest<'m>, SystemException> {
        let ProxyServant { registry, id, kind } = self.0.clone();
        let waits = call.operation() == "pull";
        let is_pull = waits || call.operation() == "try_pull";
        if !is_pull || !call.is_response_expected() || registry.connection(&id, kind)?.is_none() {
            return Ok(TakenRequest::LeftToSkeleton(call));
        }
        require_at_most(registry.waiting_pulls.load(Ordering::Relaxed) + 1, WAITING_PULLS, "calls that wait")?;
        let (taken, task): (_, PullTask) = if waits {
            let (reply, replied) = call.defer_reply()?;
            (replied, Box::pin(wait_for_event(Arc::clone(&registry), id, reply)))
        } else {
            let (reply, replied) = call.defer_reply()?;
            (replied, Box::pin(look_for_event(Arc::clone(&registry), id, reply)))
        };
        registry.waiting_pulls.fetch_add(1, Ordering::Relaxed);
        let counted = Arc::clone(&registry);
        registry.broker.spawn(async move {
            task.await;
            counted.waiting_pulls.fetch_sub(1, Ordering::Relaxed);
        });
        Ok(TakenRequest::Taken(taken))
    }
}

/// A call that waits for the broker.
type PullTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Sends a reply by another thread, as it may wait for the connection of its caller.
async fn send(reply: impl FnOnce() + Send + 'static) {
    _ = tokio::task::spawn_blocking(reply).await; // fails if the server ends
}

/// Replies to `pull` with the next event.
async fn wait_for_event(registry: Arc<Registry>, id: ProxyId, reply: DeferredReply<Any, PullError>) {
    while !reply.cancellation().is_cancelled() {
        if !registry.has_connection(&id) {
            return send(move || reply.send(Err(Disconnected {}.into()))).await;
        }
        let outcome = match next_event(&registry, &id, Some(PULL_SLICE)).await {
            Ok(Some(message)) => match event(&registry, &message) {
                // The caller has left meanwhile: the event is for its next call.
                Some(_) if reply.cancellation().is_cancelled() => return answer(&message, AckKind::Nak(None)).await,
                Some(content) => {
                    send(move || reply.send(Ok(content))).await;
                    return answer(&message, AckKind::Ack).await;
                }
                None => {
                    answer(&message, AckKind::Term).await;
                    continue;
                }
            },
            Ok(None) => continue,
            Err(exception) => Err(exception.into()),
        };
        return send(move || reply.send(outcome)).await;
    }
}

/// Replies to `try_pull`. The result comes before the `out` parameter.
async fn look_for_event(registry: Arc<Registry>, id: ProxyId, reply: DeferredReply<(Any, bool), TryPullError>) {
    let message = match next_event(&registry, &id, None).await {
        Ok(message) => message,
        Err(exception) => return send(move || reply.send(Err(exception.into()))).await,
    };
    let content = message.as_ref().and_then(|message| event(&registry, message));
    let is_cancelled = reply.cancellation().is_cancelled();
    let kind = match content {
        Some(_) if is_cancelled => AckKind::Nak(None),
        Some(_) => AckKind::Ack,
        None => AckKind::Term,
    };
    let outcome = content.map_or_else(|| (Any::default(), false), |content| (content, true));
    send(move || reply.send(Ok(outcome))).await;
    if let Some(message) = message {
        answer(&message, kind).await;
    }
}
