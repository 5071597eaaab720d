//! The queue of a consumer: bounded in events and octets, without a supplier that waits.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Instant;

use spandrel::net::sync::{Arc, Mutex};
use spandrel::server::DeferredReply;
use spandrel::services::cos_event_comm::Disconnected;
use spandrel::services::cos_event_comm::pull_supplier::PullError;
use spandrel::types::Any;

use crate::limits::MemoryCharge;

/// An event in the queues of consumers.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) value: Any,
    pub(crate) octets: usize,
    pub(crate) received: Instant,
    /// The part of the memory for events that it takes.
    pub(crate) _charge: MemoryCharge,
}

/// The reply to a `pull` that waits for an event.
pub(crate) type PullReply = DeferredReply<Any, PullError>;

/// A `pull` and its end. It is sent by a thread that may wait for the peer.
pub(crate) type EndedPull = (PullReply, PullEnd);

/// The end of a `pull`.
#[derive(Debug)]
pub(crate) enum PullEnd {
    Event(Arc<Event>),
    Disconnected,
    /// Too many calls wait at the proxy.
    Refused,
}

/// The bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueBounds {
    pub(crate) events: usize,
    pub(crate) octets: usize,
    pub(crate) waiting_pulls: usize,
}

/// Counts of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueCounts {
    pub(crate) queued: usize,
    pub(crate) octets: usize,
    pub(crate) lag_ms: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) failures: u32,
}

/// The events that a consumer has not yet got.
#[derive(Debug)]
pub(crate) struct EventQueue {
    bounds: QueueBounds,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<Arc<Event>>,
    octets: usize,
    /// The event of the push in progress.
    pushed: Option<Arc<Event>>,
    pulls: VecDeque<PullReply>,
    /// The task that pushes events.
    waker: Option<Waker>,
    is_closed: bool,
    delivered: u64,
    dropped: u64,
    failures: u32,
}

impl QueueState {
    fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.octets -= event.octets;
        Some(event)
    }
}

impl EventQueue {
    pub(crate) fn new(bounds: QueueBounds) -> Self {
        Self { bounds, state: Mutex::new(QueueState::default()) }
    }

    /// Adds an event, and drops the oldest ones beyond the bounds. Returns the `pull` that gets the event in place of the
    /// queue.
    pub(crate) fn add(&self, event: Arc<Event>) -> Option<EndedPull> {
        let waker = {
            let mut state = self.state.lock();
            if state.is_closed {
                return None;
            }
            while let Some(reply) = state.pulls.pop_front() {
                if reply.cancellation().is_cancelled() {
                    continue;
                }
                state.delivered += 1;
                return Some((reply, PullEnd::Event(event)));
            }
            state.octets += event.octets;
            state.events.push_back(event);
            // The newest event stays, also if it alone exceeds the octets.
            while state.events.len() > self.bounds.events
                || (state.octets > self.bounds.octets && state.events.len() > 1)
            {
                drop(state.pop());
                state.dropped += 1;
            }
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        None
    }

    /// Drops the oldest event. Returns whether there was one.
    pub(crate) fn shed(&self) -> bool {
        let mut state = self.state.lock();
        let shed = state.pop();
        state.dropped += u64::from(shed.is_some());
        shed.is_some()
    }

    /// The oldest event, for a consumer that pulls: `Ok(None)` if there is none.
    pub(crate) fn take(&self) -> Result<Option<Arc<Event>>, Disconnected> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Disconnected {});
        }
        let event = state.pop();
        state.delivered += u64::from(event.is_some());
        Ok(event)
    }

    /// Lets a `pull` wait, or returns its end: the oldest event, or a refusal if too many wait.
    pub(crate) fn wait(&self, reply: PullReply) -> Option<EndedPull> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Some((reply, PullEnd::Disconnected));
        }
        if let Some(event) = state.pop() {
            state.delivered += 1;
            return Some((reply, PullEnd::Event(event)));
        }
        if state.pulls.len() >= self.bounds.waiting_pulls {
            state.pulls.retain(|waiting| !waiting.cancellation().is_cancelled());
        }
        if state.pulls.len() >= self.bounds.waiting_pulls {
            return Some((reply, PullEnd::Refused));
        }
        state.pulls.push_back(reply);
        None
    }

    /// Waits for the next event to push. It counts as queued until [`end_push`](Self::end_push).
    pub(crate) async fn next(&self) -> Arc<Event> {
        poll_fn(|context| {
            let mut state = self.state.lock();
            match state.pop() {
                Some(event) => {
                    state.pushed = Some(Arc::clone(&event));
                    Poll::Ready(event)
                }
                None => {
                    state.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Counts the event of [`next`](Self::next) as delivered or dropped.
    pub(crate) fn end_push(&self, is_delivered: bool) {
        let mut state = self.state.lock();
        state.pushed = None;
        if is_delivered {
            state.delivered += 1;
            state.failures = 0;
        } else {
            state.dropped += 1;
        }
    }

    /// Counts a failed push. Returns the failures after the last success.
    pub(crate) fn count_failure(&self) -> u32 {
        let mut state = self.state.lock();
        state.failures += 1;
        state.failures
    }

    /// Closes the queue. Its events are dropped, and the waiting pulls are returned, to end in `Disconnected`.
    pub(crate) fn close(&self) -> Vec<EndedPull> {
        let pulls = {
            let mut state = self.state.lock();
            state.is_closed = true;
            let left = state.events.len() + usize::from(state.pushed.is_some());
            state.dropped += u64::try_from(left).unwrap_or(u64::MAX);
            state.events = VecDeque::new();
            (state.octets, state.pushed) = (0, None);
            state.waker = None;
            std::mem::take(&mut state.pulls)
        };
        pulls.into_iter().map(|reply| (reply, PullEnd::Disconnected)).collect()
    }

    pub(crate) fn counts(&self) -> QueueCounts {
        let state = self.state.lock();
        let oldest = state.pushed.as_ref().or_else(|| state.events.front()).map(|event| event.received.elapsed());
        QueueCounts {
            queued: state.events.len() + usize::from(state.pushed.is_some()),
            octets: state.octets + state.pushed.as_ref().map_or(0, |event| event.octets),
            lag_ms: oldest.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            delivered: state.delivered,
            dropped: state.dropped,
            failures: state.failures,
        }
    }
}
