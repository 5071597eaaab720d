//! The tasks that push events to consumers, and pull them from suppliers.
//!
//! Each connection has one task on the ORB's reactor thread, and one call at a time. Calls have a time limit, and none blocks
//! the thread: a peer that is slow or gone holds up its own task alone.

use std::time::Duration;

use spandrel::net::sync::Arc;
use spandrel::services::cos_event_comm::pull_supplier::{PullError, TryPullError};
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::services::cos_event_comm::{PullSupplier, PushConsumer};
use spandrel::types::Any;
use spandrel::{CompletionStatus, ObjectRef, SystemException, SystemExceptionKind};

use crate::channel::{Channel, DisconnectCause, Proxy};

/// The time between two calls of a pull supplier that had no event, unless the channel has another.
const PULL_INTERVAL: Duration = Duration::from_secs(1);

/// The decision after a failed call.
enum AfterFailure {
    Disconnect,
    /// The peer did not get the request: it is sent again.
    Repeat,
    /// The peer may have got the request.
    GoOn,
}

/// Pushes the events of a queue to its consumer until the connection ends.
pub(crate) async fn push_events(channel: Arc<Channel>, proxy: Arc<Proxy>, consumer: ObjectRef) {
    let timeout = channel.shared.peers.timeout;
    let consumer: PushConsumer = consumer.with_timeout(Some(timeout)).unchecked_narrow();
    while let Some(event) = proxy.task.or(proxy.queue.next()).await {
        loop {
            let Some(outcome) = proxy.task.or(consumer.push_async(&event.value)).await else { return };
            let exception = match outcome {
                Ok(()) => {
                    proxy.queue.end_push(true);
                    break;
                }
                Err(PushError::Disconnected(_)) => None,
                Err(PushError::System(exception)) => Some(exception),
            };
            match after_failure(&channel, &proxy, exception.as_ref()).await {
                AfterFailure::Disconnect => {
                    channel.disconnect(&proxy, DisconnectCause::PeerFailed);
                    return;
                }
                AfterFailure::Repeat => {}
                AfterFailure::GoOn => {
                    proxy.queue.end_push(false);
                    break;
                }
            }
        }
    }
}

/// Pulls events from a supplier until the connection ends.
pub(crate) async fn pull_events(channel: Arc<Channel>, proxy: Arc<Proxy>, supplier: ObjectRef) {
    let peers = channel.shared.peers;
    let interval = channel.settings.pull_interval.unwrap_or(PULL_INTERVAL);
    let timeout = (!peers.blocking_pull).then_some(peers.timeout);
    let supplier: PullSupplier = supplier.with_timeout(timeout).unchecked_narrow();
    loop {
        let pulled = async {
            match peers.blocking_pull {
                true => supplier.pull_async().await.map(Some).map_err(Failed::from),
                false => {
                    let (event, has_event) = supplier.try_pull_async().await.map_err(Failed::from)?;
                    Ok(has_event.then_some(event))
                }
            }
        };
        let Some(outcome) = proxy.task.or(pulled).await else { return };
        match outcome {
            Ok(Some(event)) => {
                proxy.queue.end_push(true);
                publish(&channel, &event);
            }
            Ok(None) => {
                proxy.queue.end_push(true);
                if proxy.task.or(channel.shared.timer.pause(interval)).await.is_none() {
                    return;
                }
            }
            Err(Failed(exception)) => {
                if let AfterFailure::Disconnect = after_failure(&channel, &proxy, exception.as_ref()).await {
                    channel.disconnect(&proxy, DisconnectCause::PeerFailed);
                    return;
                }
            }
        }
    }
}

fn publish(channel: &Channel, event: &Any) {
    if let Err(error) = channel.publish(event) {
        tracing::debug!(%error, channel = %channel.name, "an event of a pull supplier was refused");
    }
}

/// The failure of a pull; `None` is `Disconnected`.
struct Failed(Option<SystemException>);

impl From<PullError> for Failed {
    fn from(error: PullError) -> Self {
        match error {
            PullError::Disconnected(_) => Self(None),
            TryPullError::System(exception) => Self(Some(exception)),
        }
    }
}

/// Counts a failure; `None` is the exception `Disconnected`. Waits unless the peer is disconnected.
async fn after_failure(channel: &Channel, proxy: &Proxy, exception: Option<&SystemException>) -> AfterFailure {
    let Some(exception) = exception else {
        tracing::info!(channel = %channel.name, proxy = %proxy.part(), "a peer has disconnected: its proxy is removed");
        return AfterFailure::Disconnect;
    };
    let failures = proxy.queue.count_failure();
    let is_gone = exception.kind() == SystemExceptionKind::ObjectNotExist;
    if is_gone || failures >= channel.shared.peers.max_failures {
        tracing::warn!(
            channel = %channel.name, proxy = %proxy.part(), failures, error = %exception,
            "a peer is disconnected: it does not exist, or failed too often in a row"
        );
        return AfterFailure::Disconnect;
    }
    let pause = channel.shared.timer.pause(channel.shared.peers.pause(failures));
    _ = proxy.task.or(pause).await; // an ended task ends at its next wait
    match exception.completed() {
        CompletionStatus::No => AfterFailure::Repeat,
        _ => AfterFailure::GoOn,
    }
}
