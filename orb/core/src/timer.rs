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
};

/// A future that is ready at a time (true), or when the ORB ends (false).
pub(crate) struct TimerFuture {
    orb: Orb,
    at: Instant,
    alarm: Arc<TimerEntry>,
    call_id: Option<TimedCallId>,
    /// Whether it belongs to a request of a client, and not to a call of this ORB.
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "there are no others"))]
    of_request: bool,
}

#[derive(Default)]
struct TimerEntry(Mutex<State>);

#[derive(Default)]
struct State {
    rung: Option<ExpiryReason>,
    waker: Option<Waker>,
}

impl TimerFuture {
    pub(crate) fn until(orb: &Orb, at: Instant) -> Self {
        Self { orb: orb.clone(), at, alarm: Arc::default(), call_id: None, of_request: false }
    }

    /// A timer for a request of a client.
    #[cfg(feature = "server")]
    pub(crate) fn of_request(orb: &Orb, at: Instant) -> Self {
        let mut delay = Self::until(orb, at);
        delay.of_request = true;
        delay
    }

    fn enter(&self) -> Result<TimedCallId, SystemException> {
        let alarm: Arc<dyn TimedCall> = Arc::clone(&self.alarm) as _;
        let (alarm, left) =
            (Arc::downgrade(&alarm), Deadline::after(self.at.saturating_duration_since(Instant::now())));
        #[cfg(feature = "server")]
        if self.of_request {
            return self.orb.client_reactor().register_request(alarm, &left);
        }
        self.orb.client_reactor().register_call(alarm, Some(&left))
    }
}

impl TimedCall for TimerEntry {
    fn end(self: Arc<Self>, reason: ExpiryReason) {
        let mut state = self.0.lock();
        state.rung = Some(reason);
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
        let mut state = self.alarm.0.lock();
        let rung = state.rung;
        let old = state.waker.replace(waker);
        drop(state);
        drop(old);
        if let Some(reason) = rung {
            return Poll::Ready(reason == ExpiryReason::DeadlinePassed);
        }
        if self.call_id.is_none() {
            match self.enter() {
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
        if let Some(call_id) = self.call_id.take() {
            self.orb.client_reactor().unregister(call_id);
        }
    }
}
