//! The tasks that push events to consumers, and pull them from suppliers.
//!
//! Each connection has one task on the ORB's reactor thread, and one call at a time. Calls have a time limit, and none blocks
//! the thread: a peer that is slow or gone holds up its own task alone.

use std::future::Future;
use std::time::Duration;

use spandrel::messaging::AsyncReply;
use spandrel::net::sync::Arc;
use spandrel::{CompletionStatus, ObjectRef, Orb, SystemException, SystemExceptionKind};

use crate::event::Event;
use crate::limits::PeerOptions;
use crate::pulls::WaitingPull;
use crate::queue::EventQueue;
use crate::task::TaskEnd;
use crate::timer::Timer;

/// The reason why a call on a consumer or supplier has failed.
#[derive(Debug)]
pub enum PeerFailure {
    /// The peer raised `Disconnected`.
    Disconnected,
    /// The call failed with an exception of the ORB.
    System(SystemException),
}

/// The number of events that one push takes together, and the time for which it waits for them.
#[derive(Clone, Copy, Debug)]
pub struct BatchBounds {
    /// The most events of a push; at least one.
    pub events: usize,
    /// The time for which a push waits for further events; zero if it does not wait.
    pub pacing: Duration,
}

impl BatchBounds {
    /// Each event is pushed by itself, without a wait.
    pub const ONE: Self = Self { events: 1, pacing: Duration::ZERO };
}

/// A connected consumer: the interface of its service by which [`Delivery`] pushes.
pub trait PushConsumerPeer<V>: Sync {
    /// The bounds on the next push; the default is one event without a wait.
    fn batch(&self) -> BatchBounds {
        BatchBounds::ONE
    }

    /// Calls the consumer with at least one event, in the order of delivery.
    fn push(&self, events: &[Arc<Event<V>>]) -> impl Future<Output = Result<(), PeerFailure>> + Send;
}

/// A connected supplier: the interface of its service by which [`Delivery`] pulls.
pub trait PullSupplierPeer: Sync {
    /// The content of one reply: an event, or a sequence of them.
    type Pulled: Send;

    /// Calls the supplier, which answers `None` if it has no event now.
    fn pull(&self) -> impl Future<Output = Result<Option<Self::Pulled>, PeerFailure>> + Send;
}

/// The reason why the task of a connection has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DeliveryEnd {
    /// The proxy was disconnected by this side: its [`TaskEnd`] was ended.
    TaskEnded,
    /// The peer has disconnected, does not exist, or failed too often.
    PeerFailed,
}

/// The decision after a failed call.
enum AfterFailure {
    Disconnect,
    /// The peer did not get the request: it is sent again.
    Repeat,
    /// The peer may have got the request.
    GoOn,
}

/// The parts with which the task of one connection pushes or pulls events.
#[derive(Debug)]
pub struct Delivery<'d, W: WaitingPull> {
    /// The events for the peer, and the counts of its failures.
    pub queue: &'d EventQueue<W>,
    /// Ends the task at its next wait, when the proxy is disconnected.
    pub task: &'d TaskEnd,
    /// Wakes the task after the pauses between failed or empty calls.
    pub timer: &'d Timer,
    /// The time limit of calls, the pauses after failures, and the number of failures that ends the
    /// connection.
    pub peers: PeerOptions,
    /// The channel's name, for log records.
    pub channel: &'d str,
    /// The proxy's name, for log records.
    pub proxy: &'d str,
}

impl<W: WaitingPull> Delivery<'_, W> {
    /// Pushes the events of the queue to its consumer until the connection ends.
    pub async fn push_events(&self, consumer: &impl PushConsumerPeer<W::Value>) -> DeliveryEnd {
        let mut events = Vec::new();
        loop {
            if self.next_batch(consumer, &mut events).await.is_none() {
                return DeliveryEnd::TaskEnded;
            }
            loop {
                let Some(outcome) = self.task.or(consumer.push(&events)).await else { return DeliveryEnd::TaskEnded };
                let Err(failure) = outcome else {
                    self.queue.end_push(true);
                    events.clear();
                    break;
                };
                match self.after_failure(&failure).await {
                    AfterFailure::Disconnect => return DeliveryEnd::PeerFailed,
                    AfterFailure::Repeat => {}
                    AfterFailure::GoOn => {
                        self.queue.end_push(false);
                        events.clear();
                        break;
                    }
                }
            }
        }
    }

    /// Waits for the events of a push; `None` if the task is to end.
    async fn next_batch(
        &self,
        consumer: &impl PushConsumerPeer<W::Value>,
        events: &mut Vec<Arc<Event<W::Value>>>,
    ) -> Option<()> {
        loop {
            self.task.or(self.queue.wait_for(1)).await?;
            let batch = consumer.batch();
            let most = batch.events.max(1);
            if most > 1 && !batch.pacing.is_zero() {
                // The batch is full, or its time is over.
                self.task.or(either(self.queue.wait_for(most), self.timer.pause(batch.pacing))).await?;
                self.task.or(self.queue.wait_for(0)).await?; // a suspended queue waits
            }
            self.queue.begin_push(most, events);
            if !events.is_empty() {
                return Some(());
            }
        }
    }

    /// Pulls events from a supplier until the connection ends. `interval` is the pause after a call without an event;
    /// the next call begins after `publish`.
    pub async fn pull_events<S: PullSupplierPeer, P: Future<Output = ()> + Send>(
        &self,
        supplier: &S,
        interval: impl Fn() -> Duration + Send,
        publish: impl Fn(S::Pulled) -> P + Send,
    ) -> DeliveryEnd {
        loop {
            let pulled = async {
                self.queue.wait_for(0).await; // unless it is suspended
                supplier.pull().await
            };
            let Some(outcome) = self.task.or(pulled).await else { return DeliveryEnd::TaskEnded };
            match outcome {
                Ok(Some(events)) => {
                    self.queue.count_success();
                    publish(events).await;
                }
                Ok(None) => {
                    self.queue.count_success();
                    if self.task.or(self.timer.pause(interval())).await.is_none() {
                        return DeliveryEnd::TaskEnded;
                    }
                }
                Err(failure) => {
                    if let AfterFailure::Disconnect = self.after_failure(&failure).await {
                        return DeliveryEnd::PeerFailed;
                    }
                }
            }
        }
    }

    /// Counts a failure. Waits unless the peer is disconnected.
    async fn after_failure(&self, failure: &PeerFailure) -> AfterFailure {
        let (channel, proxy) = (self.channel, self.proxy);
        let PeerFailure::System(exception) = failure else {
            tracing::info!(channel, proxy, "a peer has disconnected: its proxy is removed");
            return AfterFailure::Disconnect;
        };
        let failures = self.queue.count_failure();
        let keeps_failed = self.queue.keeps_failed();
        let is_gone = exception.kind() == SystemExceptionKind::ObjectNotExist;
        if is_gone || (failures >= self.peers.max_failures && !keeps_failed) {
            tracing::warn!(
                channel, proxy, failures, error = %exception,
                "a peer is disconnected: it does not exist, or failed too often in a row"
            );
            return AfterFailure::Disconnect;
        }
        _ = self.task.or(self.timer.pause(self.peers.pause(failures))).await; // an ended task ends at its next wait
        match exception.completed() {
            CompletionStatus::No => AfterFailure::Repeat,
            _ if keeps_failed => AfterFailure::Repeat,
            _ => AfterFailure::GoOn,
        }
    }
}

/// Waits for the end of one of two futures.
async fn either<A: Future, B: Future>(first: A, second: B) {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    std::future::poll_fn(|context| {
        if first.as_mut().poll(context).is_ready() || second.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
}

/// Tells a peer of its disconnection by an operation without arguments, and does not wait for the reply.
pub fn notify_disconnection(orb: &Orb, peer: &ObjectRef, operation: &'static str, timeout: Duration) {
    let peer = peer.with_timeout(Some(timeout));
    let reply: AsyncReply<(), SystemException> = peer.invoke_async(operation, |_| Ok(()), |_| Ok(()));
    let task = async move {
        if let Err(error) = reply.await {
            tracing::debug!(%error, operation, "a peer did not get notice of its disconnection");
        }
    };
    if let Err(error) = orb.spawn(task) {
        tracing::debug!(%error, operation, "a peer did not get notice of its disconnection");
    }
}
