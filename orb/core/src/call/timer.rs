//! A time that asynchronous calls wait for.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use spandrel_giop::SystemException;
use spandrel_sync::{Arc, Mutex, time::Instant};
use spandrel_transport::Deadline;

use crate::{
    Orb,
    client::{ExpiryReason, TimedCall, TimedCallId},
    orb::WeakOrb,
};

/// A future that is ready at a time (true), or when the ORB ends (false). It does not keep the ORB alive.
#[derive(Debug)]
pub struct TimerFuture {
    orb: WeakOrb,
    at: Instant,
    entry: Arc<TimerEntry>,
    call_id: Option<TimedCallId>,
    /// Whether it belongs to a request of a client, and not to a call of this ORB.
    of_request: bool,
}

#[derive(Debug, Default)]
struct TimerEntry(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    end_reason: Option<ExpiryReason>,
    waker: Option<Waker>,
}

impl TimerFuture {
    pub(crate) fn until(orb: &Orb, at: Instant) -> Self {
        Self { orb: WeakOrb::of(orb), at, entry: Arc::default(), call_id: None, of_request: false }
    }

    /// A timer of a request that a client waits for, not of a call within this ORB.
    pub fn of_request(orb: &Orb, at: Instant) -> Self {
        let mut delay = Self::until(orb, at);
        delay.of_request = true;
        delay
    }

    fn enter(&self, orb: &Orb) -> Result<TimedCallId, SystemException> {
        let entry: Arc<dyn TimedCall> = Arc::clone(&self.entry) as _;
        let (entry, left) =
            (Arc::downgrade(&entry), Deadline::after(self.at.saturating_duration_since(Instant::now())));
        if self.of_request {
            return orb.client_reactor().register_request(entry, &left);
        }
        orb.client_reactor().register_call(entry, Some(&left))
    }
}

impl TimedCall for TimerEntry {
    fn end(self: Arc<Self>, reason: ExpiryReason) {
        let mut state = self.0.lock();
        state.end_reason = Some(reason);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Future for TimerFuture {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let waker = cx.waker().clone();
        let mut state = self.entry.0.lock();
        let end_reason = state.end_reason;
        let old = state.waker.replace(waker);
        drop(state);
        drop(old);
        if let Some(reason) = end_reason {
            return Poll::Ready(reason == ExpiryReason::DeadlinePassed);
        }
        if self.call_id.is_none() {
            let Some(orb) = self.orb.upgrade() else { return Poll::Ready(false) };
            match self.enter(&orb) {
                Ok(call_id) => self.call_id = Some(call_id),
                Err(error) => {
                    tracing::debug!(%error, "the timer of a call cannot be set");
                    return Poll::Ready(false);
                }
            }
        }
        Poll::Pending
    }
}

impl Drop for TimerFuture {
    fn drop(&mut self) {
        if let Some(call_id) = self.call_id.take()
            && let Some(orb) = self.orb.upgrade()
        {
            orb.client_reactor().unregister(call_id);
        }
    }
}
