//! The tasks that push events of the broker to consumers, discard those of consumers that are too slow, and pull events
//! from suppliers.

use std::future::Future;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use spandrel::cdr::{from_octets, to_octets};
use spandrel::services::cos_event_comm::pull_supplier::TryPullError;
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PullSupplier, PushConsumer};
use spandrel::types::Any;
use spandrel::{ObjectRef, SystemException, SystemExceptionKind};
use spandrel_delivery::PeerOptions;

use crate::broker::{ACK_WAIT, form};
use crate::registry::{Connection, ConnectionCounts, ProxyId, Registry};

/// The time between two calls of a pull supplier that had no event.
const PULL_INTERVAL: Duration = Duration::from_secs(1);
/// The time between two looks at the events that wait for a consumer which pulls.
const BOUND_INTERVAL: Duration = Duration::from_secs(5);
/// The pause after a failure of the broker.
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// The time limit of a request for events, after which it is made again.
const REQUEST: Duration = Duration::from_secs(20);
/// The time between two signs of life of a node. Without two of them the request is made to another node.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The failed requests in a row after which the consumer is looked for.
const MAX_FAILURES: u32 = 10;
/// The events that one request asks for. The broker sends the next one after the acknowledgement alone.
const REQUESTED: usize = 64;

/// The decision after an event was offered to its consumer.
enum Offer {
    /// The next event follows.
    Done,
    /// The connection is to end; the peer gets notice unless it failed.
    Disconnect { has_failed: bool },
}

/// The consumer of a proxy; `None` once the server ends.
async fn consumer(registry: &Weak<Registry>, id: &ProxyId, first_event: u64) -> Option<PullConsumer> {
    loop {
        let strong = registry.upgrade()?;
        match strong.broker.consumer(&id.channel, &id.name, first_event).await {
            Ok(consumer) => return Some(consumer),
            Err(error) => tracing::warn!(%error, channel = %id.channel, proxy = %id.name, "no consumer of the broker"),
        }
        drop(strong);
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Pushes the events of a connection to its consumer, as far as the broker gives them to this server.
pub(crate) async fn push(registry: Weak<Registry>, id: ProxyId, peer: ObjectRef, connection: Connection) {
    let counts = &connection.counts;
    let Some(settings) = registry.upgrade().map(|registry| registry.peers) else { return };
    let peer: PushConsumer = peer.with_timeout(Some(settings.timeout)).unchecked_narrow();
    let Some(mut requested) = consumer(&registry, &id, connection.first_event).await else { return };
    let mut failures = 0;
    loop {
        if failures == MAX_FAILURES {
            // It may be absent: its stream was created anew.
            let Some(consumer) = consumer(&registry, &id, connection.first_event).await else { return };
            (requested, failures) = (consumer, 0);
        }
        let request = requested.stream().max_messages_per_batch(REQUESTED).expires(REQUEST).heartbeat(HEARTBEAT);
        let mut messages = match request.messages().await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::warn!(%error, channel = %id.channel, proxy = %id.name, "no events of the broker");
                failures += 1;
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
            }
        };
        while let Some(message) = messages.next().await {
            let message = match message {
                Ok(message) => {
                    failures = 0;
                    message
                }
                Err(error) => {
                    failures += 1;
                    tracing::debug!(%error, channel = %id.channel, proxy = %id.name, "events are requested again");
                    break;
                }
            };
            let Some(registry) = registry.upgrade() else { return };
            let Offer::Disconnect { has_failed } = offer(&registry, &id, &peer, &message, counts).await else {
                continue;
            };
            // Its end also ends this task.
            if let Err(error) = registry.disconnect(&id, has_failed).await {
                tracing::warn!(%error, channel = %id.channel, proxy = %id.name, "the end of a connection is not stored");
            }
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Answers the broker. If the answer is lost, the event comes again.
pub(crate) async fn answer(message: &Message, kind: AckKind) {
    if let Err(error) = message.ack_with(kind).await {
        tracing::debug!(%error, "an answer to the broker is lost");
    }
}

/// Waits for a call on a peer, and tells the broker meanwhile that the event is in work.
async fn in_progress<T>(message: &Message, call: impl Future<Output = T>) -> T {
    let mut call = std::pin::pin!(call);
    loop {
        match tokio::time::timeout(ACK_WAIT / 3, &mut call).await {
            Ok(value) => return value,
            Err(_) => answer(message, AckKind::Progress).await,
        }
    }
}

/// Whether too many events wait for the consumer behind this one.
fn is_beyond(registry: &Registry, message: &Message) -> bool {
    message.info().is_ok_and(|info| info.pending >= registry.broker.options.queue)
}

/// Discards an event that its consumer does not get.
async fn discard(message: &Message, id: &ProxyId, counts: &ConnectionCounts) {
    if counts.discarded.fetch_add(1, Ordering::Relaxed) == 0 {
        tracing::warn!(channel = %id.channel, proxy = %id.name, "a consumer is too slow: its oldest events are discarded");
    }
    answer(message, AckKind::Term).await;
}

/// The event in a message; `None` for octets that are none.
pub(crate) fn event(registry: &Registry, message: &Message) -> Option<Any> {
    from_octets(&message.payload, &form().binder(&registry.orb)).ok()
}

async fn offer(
    registry: &Registry,
    id: &ProxyId,
    peer: &PushConsumer,
    message: &Message,
    counts: &ConnectionCounts,
) -> Offer {
    let content = event(registry, message).filter(|_| !is_beyond(registry, message));
    let Some(content) = content else {
        discard(message, id, counts).await;
        return Offer::Done;
    };
    let exception = match in_progress(message, peer.push_async(&content)).await {
        Ok(()) => {
            counts.delivered.fetch_add(1, Ordering::Relaxed);
            counts.failures.store(0, Ordering::Relaxed);
            answer(message, AckKind::Ack).await;
            return Offer::Done;
        }
        Err(PushError::Disconnected(_)) => return Offer::Disconnect { has_failed: true },
        Err(PushError::System(exception)) => exception,
    };
    let failures = counts.failures.fetch_add(1, Ordering::Relaxed) + 1;
    if exception.kind() == SystemExceptionKind::ObjectNotExist || has_waited(message, registry.peers.keep) {
        tracing::warn!(
            channel = %id.channel, proxy = %id.name, error = %exception,
            "a consumer is disconnected: it does not exist, or failed for too long"
        );
        return Offer::Disconnect { has_failed: true };
    }
    // The consumer gets the event later: from this server, or from another one that reaches it.
    let pause = PeerOptions::default().pause(u32::try_from(failures).unwrap_or(u32::MAX));
    answer(message, AckKind::Nak(Some(pause))).await;
    Offer::Done
}

/// Whether the broker received the event longer ago.
fn has_waited(message: &Message, limit: Duration) -> bool {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let published = message.info().map(|info| info.published.unix_timestamp()).unwrap_or(i64::MAX);
    i64::try_from(since.saturating_sub(limit).as_secs()).is_ok_and(|earliest| published < earliest)
}

/// The next event of a consumer that pulls; `None` if there is none within the time.
pub(crate) async fn next_event(
    registry: &Registry,
    id: &ProxyId,
    wait: Option<Duration>,
) -> Result<Option<Message>, SystemException> {
    let failed = |error: &dyn std::fmt::Display| crate::broker::unavailable(error);
    let consumer = registry.broker.existing_consumer(&id.channel, &id.name).await?;
    let mut messages = match wait {
        Some(wait) => consumer.batch().max_messages(1).expires(wait).messages().await,
        None => consumer.fetch().max_messages(1).messages().await,
    }
    .map_err(|error| failed(&error))?;
    messages.next().await.transpose().map_err(|error| failed(&error))
}

/// Discards the oldest events of a consumer that pulls too slowly.
pub(crate) async fn bound(registry: Weak<Registry>, id: ProxyId, connection: Connection) {
    let counts = &connection.counts;
    loop {
        tokio::time::sleep(BOUND_INTERVAL).await;
        let Some(registry) = registry.upgrade() else { return };
        let Ok(consumer) = registry.broker.consumer(&id.channel, &id.name, connection.first_event).await else {
            continue;
        };
        let queue = registry.broker.options.queue;
        while consumer.get_info().await.is_ok_and(|info| info.num_pending > queue) {
            let Ok(Some(message)) = next_event(&registry, &id, None).await else { break };
            if !is_beyond(&registry, &message) {
                // Another server was faster.
                answer(&message, AckKind::Nak(None)).await;
                break;
            }
            discard(&message, &id, counts).await;
        }
    }
}

/// Pulls events from a supplier, and stores them.
pub(crate) async fn pull(registry: Weak<Registry>, id: ProxyId, peer: ObjectRef, connection: Connection) {
    let counts = &connection.counts;
    let Some(settings) = registry.upgrade().map(|registry| registry.peers) else { return };
    let peer: PullSupplier = peer.with_timeout(Some(settings.timeout)).unchecked_narrow();
    let mut last_success = SystemTime::now();
    loop {
        let pulled = peer.try_pull_async().await;
        let Some(registry) = registry.upgrade() else { return };
        let pause = match pulled {
            Ok((event, true)) => {
                last_success = SystemTime::now();
                counts.delivered.fetch_add(1, Ordering::Relaxed);
                // The supplier has forgotten the event: it is stored as soon as the broker answers.
                while let Err(error) = publish(&registry, &id.channel, &event).await {
                    if matches!(error.kind(), SystemExceptionKind::Transient | SystemExceptionKind::NoResources) {
                        tracing::warn!(%error, channel = %id.channel, "an event of a pull supplier waits for the broker");
                        tokio::time::sleep(RETRY_PAUSE).await;
                    } else {
                        tracing::warn!(%error, channel = %id.channel, "an event of a pull supplier is refused");
                        break;
                    }
                }
                continue;
            }
            Ok((_, false)) => {
                last_success = SystemTime::now();
                PULL_INTERVAL
            }
            Err(error) => {
                let is_gone = match &error {
                    TryPullError::Disconnected(_) => true,
                    TryPullError::System(exception) => exception.kind() == SystemExceptionKind::ObjectNotExist,
                };
                let has_failed_long = last_success.elapsed().unwrap_or_default() > settings.keep;
                if is_gone || has_failed_long {
                    tracing::warn!(channel = %id.channel, proxy = %id.name, %error, "a supplier is disconnected");
                    _ = registry.disconnect(&id, true).await;
                }
                counts.failures.fetch_add(1, Ordering::Relaxed);
                PULL_INTERVAL
            }
        };
        drop(registry);
        tokio::time::sleep(pause).await;
    }
}

/// Stores an event of a supplier.
pub(crate) async fn publish(registry: &Registry, channel: &str, event: &Any) -> Result<(), SystemException> {
    let octets = to_octets(event, &form()).map_err(|error| {
        let detail = format!("the event has no encoding: {error}");
        SystemException::bad_param(0, spandrel::CompletionStatus::No).with_detail(detail)
    })?;
    registry.broker.publish(channel, octets, || registry.has_channel(channel)).await?;
    if let Some(received) = registry.received(channel) {
        received.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
