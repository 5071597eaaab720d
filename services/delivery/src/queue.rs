//! The queue of a consumer: bounded in events and octets, without a supplier that waits.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Instant;

use spandrel::net::sync::{Arc, Mutex};
use spandrel::services::cos_event_comm::Disconnected;

use crate::event::Event;
use crate::pulls::{EndedPull, PullEnd, WaitingPull};
use crate::schedule::{DiscardOrder, Lifetime, QueueOrder, Schedule};

/// The bounds on a consumer's queue, and the orders in which events are delivered and discarded.
#[derive(Clone, Copy, Debug)]
pub struct QueueBounds {
    /// The events in the queue; further ones are discarded.
    pub events: usize,
    /// The octets of the events in the queue. An event that exceeds them alone is kept.
    pub octets: usize,
    /// The most calls of `pull` that wait for an event at the same time.
    pub waiting_pulls: usize,
    /// The event that is delivered next.
    pub order: QueueOrder,
    /// The event that is discarded when a further one exceeds the bounds.
    pub discard: DiscardOrder,
    /// Whether failed pushes are repeated until the consumer has the events, disconnects or does not exist.
    pub keeps_failed: bool,
}

/// The state of a consumer's queue, for diagnostics and metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueCounts {
    /// The events in the queue and in the push in progress.
    pub queued: usize,
    /// The octets of the events in `queued`.
    pub octets: usize,
    /// The age of the event that is being pushed or comes next, in milliseconds.
    pub lag_ms: u64,
    /// The events that the consumer has got.
    pub delivered: u64,
    /// The events that it did not get: beyond the bounds, or in failed pushes.
    pub dropped: u64,
    /// The events that it did not get because their life had ended.
    pub expired: u64,
    /// The failed calls since the last successful one.
    pub failures: u32,
}

/// The events that a consumer has not yet got.
#[derive(Debug)]
pub struct EventQueue<W: WaitingPull>(Mutex<QueueState<W>>);

#[derive(Debug)]
struct QueueState<W: WaitingPull> {
    bounds: QueueBounds,
    events: Schedule<Arc<Event<W::Value>>>,
    octets: usize,
    pushed: PushInProgress,
    pulls: VecDeque<W>,
    /// The task that pushes events, and the number of events for which it waits.
    waker: Option<Waker>,
    wake_at: usize,
    is_closed: bool,
    is_suspended: bool,
    delivered: u64,
    dropped: u64,
    expired: u64,
    failures: u32,
}

/// The events that a consumer is being called with; the task has them.
#[derive(Debug, Default)]
struct PushInProgress {
    events: usize,
    octets: usize,
    /// The receipt of the first one.
    received: Option<Instant>,
}

impl<W: WaitingPull> QueueState<W> {
    /// The next event whose life has not ended, of those for which the function is true.
    fn pop(&mut self, accepts: impl Fn(&W::Value) -> bool) -> Option<Arc<Event<W::Value>>> {
        while let Some((event, lifetime)) = self.events.pop(|event| accepts(&event.value)) {
            self.octets -= event.octets;
            if lifetime.expires.is_none_or(|end| end > Instant::now()) {
                return Some(event);
            }
            self.expired += 1;
        }
        None
    }

    fn take(&mut self, how_many: usize, accepts: impl Fn(&W::Value) -> bool) -> Vec<Arc<Event<W::Value>>> {
        let events: Vec<_> = std::iter::from_fn(|| self.pop(&accepts)).take(how_many).collect();
        self.delivered += count(events.len());
        events
    }

    /// The `pull` that waits for an event with this content.
    fn next_pull(&mut self, content: &W::Value) -> Option<W> {
        while let Some(index) = self.pulls.iter().position(|pull| pull.is_cancelled() || pull.accepts(content)) {
            if let Some(reply) = self.pulls.remove(index).filter(|reply| !reply.is_cancelled()) {
                return Some(reply);
            }
        }
        None
    }

    /// Discards one event. Returns whether there was one.
    fn discard(&mut self) -> bool {
        let Some(event) = self.events.discard() else { return false };
        self.octets -= event.octets;
        self.dropped += 1;
        true
    }

    /// Discards events beyond the bounds. One event stays, also if it alone exceeds the octets.
    fn shrink(&mut self) {
        while self.events.len() > self.bounds.events || (self.octets > self.bounds.octets && self.events.len() > 1) {
            self.discard();
        }
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

impl<W: WaitingPull> EventQueue<W> {
    /// A queue without events and pulls.
    #[must_use]
    pub fn new(bounds: QueueBounds) -> Self {
        Self(Mutex::new(QueueState {
            bounds,
            events: Schedule::new(bounds.order, bounds.discard),
            octets: 0,
            pushed: PushInProgress::default(),
            pulls: VecDeque::new(),
            waker: None,
            wake_at: 0,
            is_closed: false,
            is_suspended: false,
            delivered: 0,
            dropped: 0,
            expired: 0,
            failures: 0,
        }))
    }

    /// Changes the bounds and orders. Events beyond the new bounds are discarded.
    pub fn set_bounds(&self, bounds: QueueBounds) {
        let mut state = self.0.lock();
        state.bounds = bounds;
        state.events.set_orders(bounds.order, bounds.discard);
        state.shrink();
    }

    /// Adds events in their order, and discards events beyond the bounds. The calls of `pull` that get events in place of the
    /// queue are pushed to `ended`.
    pub fn add(
        &self,
        events: impl IntoIterator<Item = (Arc<Event<W::Value>>, Lifetime)>,
        ended: &mut Vec<EndedPull<W>>,
    ) {
        let waker = {
            let mut state = self.0.lock();
            if state.is_closed {
                return;
            }
            for (event, lifetime) in events {
                match state.next_pull(&event.value) {
                    Some(reply) => {
                        state.delivered += 1;
                        ended.push((reply, PullEnd::Events(vec![event])));
                    }
                    None => {
                        state.octets += event.octets;
                        state.events.insert(event, lifetime);
                        state.shrink();
                    }
                }
            }
            if state.events.len() >= state.wake_at { state.waker.take() } else { None }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Discards the event that the order of discarding selects. Returns false if the queue is empty.
    pub fn shed(&self) -> bool {
        self.0.lock().discard()
    }

    /// The next events, at most this many, for a consumer that pulls; none if there are none.
    ///
    /// # Errors
    /// `Disconnected` after the end of the connection.
    pub fn take(&self, how_many: usize) -> Result<Vec<Arc<Event<W::Value>>>, Disconnected> {
        let mut state = self.0.lock();
        if state.is_closed { Err(Disconnected {}) } else { Ok(state.take(how_many, |_| true)) }
    }

    /// The next event for which the function is true.
    ///
    /// # Errors
    /// `Disconnected` after the end of the connection.
    pub fn take_if(&self, accepts: impl Fn(&W::Value) -> bool) -> Result<Option<Arc<Event<W::Value>>>, Disconnected> {
        let mut state = self.0.lock();
        if state.is_closed { Err(Disconnected {}) } else { Ok(state.take(1, accepts).pop()) }
    }

    /// Lets a `pull` wait, or returns its end: the next events, or a refusal if too many wait.
    pub fn wait(&self, reply: W) -> Option<EndedPull<W>> {
        let mut state = self.0.lock();
        if state.is_closed {
            return Some((reply, PullEnd::Disconnected));
        }
        let events = state.take(reply.how_many(), |event| reply.accepts(event));
        if !events.is_empty() {
            return Some((reply, PullEnd::Events(events)));
        }
        if state.pulls.len() >= state.bounds.waiting_pulls {
            state.pulls.retain(|waiting| !waiting.is_cancelled());
        }
        if state.pulls.len() >= state.bounds.waiting_pulls {
            return Some((reply, PullEnd::Refused));
        }
        state.pulls.push_back(reply);
        None
    }

    /// Waits until the queue is not suspended and has this many events; some of them may have expired.
    pub(crate) async fn wait_for(&self, how_many: usize) {
        poll_fn(|context| {
            let mut state = self.0.lock();
            if !state.is_suspended && state.events.len() >= how_many {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            state.wake_at = how_many;
            Poll::Pending
        })
        .await;
    }

    /// Moves the next events to push into `events`. They count as queued until [`end_push`](Self::end_push).
    pub(crate) fn begin_push(&self, how_many: usize, events: &mut Vec<Arc<Event<W::Value>>>) {
        events.clear();
        let mut state = self.0.lock();
        events.extend(std::iter::from_fn(|| state.pop(|_| true)).take(how_many));
        state.pushed = PushInProgress {
            events: events.len(),
            octets: events.iter().map(|event| event.octets).sum(),
            received: events.first().map(|event| event.received),
        };
    }

    /// Counts the events of [`begin_push`](Self::begin_push) as delivered or dropped.
    pub(crate) fn end_push(&self, is_delivered: bool) {
        let mut state = self.0.lock();
        let events = count(std::mem::take(&mut state.pushed).events);
        if is_delivered {
            state.delivered += events;
            state.failures = 0;
        } else {
            state.dropped += events;
        }
    }

    /// Counts a success of a call that delivers no event.
    pub(crate) fn count_success(&self) {
        self.0.lock().failures = 0;
    }

    /// Counts a failed call. Returns the failures after the last success.
    pub(crate) fn count_failure(&self) -> u32 {
        let mut state = self.0.lock();
        state.failures += 1;
        state.failures
    }

    pub(crate) fn keeps_failed(&self) -> bool {
        self.0.lock().bounds.keeps_failed
    }

    /// Stops or continues the task that serves the peer. Returns whether this changes anything.
    pub fn set_suspended(&self, is_suspended: bool) -> bool {
        let waker = {
            let mut state = self.0.lock();
            if state.is_suspended == is_suspended {
                return false;
            }
            state.is_suspended = is_suspended;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Closes the queue. Its events are dropped, and the waiting pulls are returned, to end in `Disconnected`.
    pub fn close(&self) -> Vec<EndedPull<W>> {
        let pulls = {
            let mut state = self.0.lock();
            state.is_closed = true;
            state.dropped += count(state.events.len() + std::mem::take(&mut state.pushed).events);
            state.events.clear();
            state.octets = 0;
            state.waker = None;
            std::mem::take(&mut state.pulls)
        };
        pulls.into_iter().map(|reply| (reply, PullEnd::Disconnected)).collect()
    }

    /// The counts since the creation, and the present length.
    #[must_use]
    pub fn counts(&self) -> QueueCounts {
        let state = self.0.lock();
        let next = state.pushed.received.or_else(|| Some(state.events.first()?.received));
        let next = next.map(|received| received.elapsed());
        QueueCounts {
            queued: state.events.len() + state.pushed.events,
            octets: state.octets + state.pushed.octets,
            lag_ms: next.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            delivered: state.delivered,
            dropped: state.dropped,
            expired: state.expired,
            failures: state.failures,
        }
    }
}
