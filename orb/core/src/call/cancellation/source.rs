//! The state that a request shares with the sources of its cancellation.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
    time::Duration,
};

use spandrel_sync::{
    Arc, Condition, Mutex, Weak,
    atomic::{AtomicU8, AtomicU64, Ordering},
    held,
    time::{self, Instant},
};
use spandrel_transport::{Address, Deadline, ReactorTransport};

use crate::{
    client::{ExpiryReason, TimedCall, TimedCallId},
    diagnostics::statistics::Event,
    orb::WeakOrb,
};

/// The reason why the reply to a request is no longer needed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
#[repr(u8)]
pub enum CancelReason {
    /// The client has sent CancelRequest: its deadline has passed, or the caller gave up.
    ClientCancelled = 1,
    /// The deadline that came with the request has passed.
    DeadlineElapsed = 2,
    /// The client's end of the connection was closed, or cannot be reached.
    ConnectionLost = 3,
    /// The ORB was shut down, and its time limit for running requests has passed.
    ShuttingDown = 4,
    /// The servant took longer than the executor of its adapter allows, and the client got an exception in
    /// place of the reply.
    TimeExceeded = 5,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClientCancelled => "the client has cancelled the request",
            Self::DeadlineElapsed => "the client's deadline has passed",
            Self::ConnectionLost => "the client's connection is lost",
            Self::ShuttingDown => "the ORB shuts down",
            Self::TimeExceeded => "the servant has exceeded its time",
        })
    }
}

/// The state of a request that is not cancelled.
const OPEN: u8 = 0;
/// The state of an answered request, which cannot be cancelled.
const ANSWERED: u8 = u8::MAX;
/// The state of a request whose reply is being sent, but whose servant may go on. Only the end of the ORB cancels it.
const REPLYING: u8 = u8::MAX - 1;
/// The key of the future that serves the request.
pub const SERVING: u64 = 0;

/// Moves a value into the memory of an unused one, or into new memory if that is still referred to.
pub fn renew<T>(unused: Option<Arc<T>>, value: T) -> Arc<T> {
    if let Some(mut unused) = unused
        && let Some(content) = Arc::get_mut(&mut unused)
    {
        *content = value;
        return unused;
    }
    Arc::new(value)
}

/// Whether the reply to a request is still needed, and the tasks that wait for its cancellation.
pub struct CancellationSource {
    /// [`OPEN`], [`REPLYING`], [`ANSWERED`], or a [`CancelReason`].
    state: AtomicU8,
    /// The time at which it cancels itself.
    deadline: Option<Instant>,
    /// The ORB that counts the cancellation and has the timer. `None` without a request.
    orb: Option<WeakOrb>,
    /// The transport of the request, if it is known; it is not kept open.
    transport: Option<Weak<dyn ReactorTransport>>,
    /// The address of the request's peer, if there is one.
    peer: Option<Arc<Address>>,
    waiters: Mutex<CancellationWaiters>,
    changed: Condition,
    keys: AtomicU64,
}

#[derive(Default)]
struct CancellationWaiters {
    wakers: Vec<(u64, Waker)>,
    timer: CancellationTimer,
}

/// The timer that wakes the waiters at the deadline.
#[derive(Default)]
enum CancellationTimer {
    #[default]
    None,
    /// A thread is setting it.
    Arming,
    Set(TimedCallId),
}

impl CancellationSource {
    /// The source of a request whose reply is not needed after `deadline`.
    pub fn new(orb: WeakOrb, deadline: Option<Instant>) -> Arc<Self> {
        Arc::new(Self::with(Some(orb), deadline, None, None))
    }

    /// The source of a request that this peer has sent, over this transport unless that is shared with other peers.
    pub fn of_peer(
        peer: &Arc<Address>,
        transport: Option<&Arc<dyn ReactorTransport>>,
        orb: WeakOrb,
        deadline: Option<Instant>,
    ) -> Arc<Self> {
        Self::renew_of_peer(None, peer, transport, || orb, deadline)
    }

    /// As [`of_peer`](Self::of_peer), in the memory of an unused source unless that is still referred to. The address of a
    /// peer belongs to one transport and one ORB.
    pub fn renew_of_peer(
        unused: Option<Arc<Self>>,
        peer: &Arc<Address>,
        transport: Option<&Arc<dyn ReactorTransport>>,
        orb: impl FnOnce() -> WeakOrb,
        deadline: Option<Instant>,
    ) -> Arc<Self> {
        let source = || Self::with(Some(orb()), deadline, transport.map(Arc::downgrade), Some(Arc::clone(peer)));
        let Some(mut unused) = unused else { return Arc::new(source()) };
        let Some(content) = Arc::get_mut(&mut unused) else { return Arc::new(source()) };
        if content.is_unused_of(peer) {
            content.reopen(deadline);
        } else {
            *content = source();
        }
        unused
    }

    /// Whether it belongs to a request of this peer, and nothing waits for it.
    fn is_unused_of(&mut self, peer: &Arc<Address>) -> bool {
        let waiters = self.waiters.get_mut();
        self.peer.as_ref().is_some_and(|of_request| Arc::ptr_eq(of_request, peer))
            && waiters.wakers.is_empty()
            && matches!(waiters.timer, CancellationTimer::None)
    }

    /// Begins the next request of the same peer.
    fn reopen(&mut self, deadline: Option<Instant>) {
        self.state = AtomicU8::new(OPEN);
        self.deadline = deadline;
        self.keys = AtomicU64::new(SERVING + 1);
    }

    /// A source that is never cancelled, for threads without a request.
    pub fn never() -> Arc<Self> {
        Arc::new(Self::with(None, None, None, None))
    }

    fn with(
        orb: Option<WeakOrb>,
        deadline: Option<Instant>,
        transport: Option<Weak<dyn ReactorTransport>>,
        peer: Option<Arc<Address>>,
    ) -> Self {
        Self {
            state: AtomicU8::new(OPEN),
            deadline,
            orb,
            transport,
            peer,
            waiters: Mutex::default(),
            changed: Condition::new(),
            keys: AtomicU64::new(SERVING + 1),
        }
    }

    /// The transport of the request, if it is known and still open.
    pub fn transport(&self) -> Option<Arc<dyn ReactorTransport>> {
        self.transport.as_ref()?.upgrade()
    }

    /// The address of the request's peer, if there is one.
    pub fn peer(&self) -> Option<&Arc<Address>> {
        self.peer.as_ref()
    }

    /// Cancels the request, and wakes the tasks that wait for it. Only the first reason counts.
    pub fn cancel(&self, reason: CancelReason) {
        self.try_cancel(reason);
    }

    /// Cancels the request. False if it was cancelled before, or its reply is being sent or was sent.
    pub fn try_cancel(&self, reason: CancelReason) -> bool {
        let may_cancel = |state| state == OPEN || state == REPLYING && reason == CancelReason::ShuttingDown;
        let cancel = |state| may_cancel(state).then_some(reason as u8);
        if self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, cancel).is_err() {
            return false;
        }
        tracing::debug!(%reason, "a request is cancelled");
        if let Some(orb) = self.orb.as_ref().and_then(WeakOrb::upgrade) {
            orb.statistics().note(match reason {
                CancelReason::ClientCancelled => Event::CancelledByClient,
                CancelReason::DeadlineElapsed => Event::CancelledByDeadline,
                CancelReason::ConnectionLost => Event::CancelledByLoss,
                CancelReason::ShuttingDown => Event::CancelledByShutdown,
                CancelReason::TimeExceeded => Event::CancelledByExecutor,
            });
        }
        // A waiter has checked the state before this lock was taken, or checks it after the lock is released.
        let mut waiters = self.waiters.lock();
        let (wakers, timer) = (std::mem::take(&mut waiters.wakers), std::mem::take(&mut waiters.timer));
        drop(waiters);
        self.changed.notify_all();
        self.stop(timer);
        for (_, waker) in wakers {
            held::assert_none("a waker");
            // It is an executor's code, and this thread may read for other calls.
            if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!("a waker panicked");
            }
        }
        true
    }

    /// Marks the request as one whose reply is about to be sent, so that the end of the connection no longer
    /// cancels it. False if the client has an exception in place of the reply
    /// ([`CancelReason::TimeExceeded`]).
    pub fn mark_replying(&self) -> bool {
        let marked = self.state.compare_exchange(OPEN, REPLYING, Ordering::SeqCst, Ordering::SeqCst);
        marked != Err(CancelReason::TimeExceeded as u8)
    }

    /// Marks the request as answered: nothing cancels it from now on.
    pub fn mark_answered(&self) {
        let answer = |state| matches!(state, OPEN | REPLYING).then_some(ANSWERED);
        let _ = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, answer);
    }

    /// The first reason of cancellation; `None` while the request goes on. A deadline that has passed cancels
    /// the request here.
    pub fn reason(&self) -> Option<CancelReason> {
        if let (OPEN, Some(deadline)) = (self.state.load(Ordering::SeqCst), self.deadline)
            && Instant::now() >= deadline
        {
            self.cancel(CancelReason::DeadlineElapsed);
        }
        match self.state.load(Ordering::SeqCst) {
            1 => Some(CancelReason::ClientCancelled),
            2 => Some(CancelReason::DeadlineElapsed),
            3 => Some(CancelReason::ConnectionLost),
            4 => Some(CancelReason::ShuttingDown),
            5 => Some(CancelReason::TimeExceeded),
            _ => None,
        }
    }

    /// Whether the reply is no longer needed.
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Returns the key of a new waiter.
    pub fn key(&self) -> u64 {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether tasks are registered to be woken, or a timer is set for them.
    pub fn has_waiters(&self) -> bool {
        let waiters = self.waiters.lock();
        !waiters.wakers.is_empty() || !matches!(waiters.timer, CancellationTimer::None)
    }

    /// Returns the reason, or registers the task to be woken, unless the request is answered.
    pub fn poll(self: &Arc<Self>, key: u64, waker: &Waker) -> Option<CancelReason> {
        if self.state.load(Ordering::SeqCst) == ANSWERED {
            return None;
        }
        let is_registered =
            |waiters: &CancellationWaiters| waiters.wakers.iter().any(|(of, old)| *of == key && old.will_wake(waker));
        let is_current = is_registered(&self.waiters.lock());
        if !is_current {
            // The clone and the old waker's drop are code of the executor: both run outside of the lock.
            let waker = waker.clone();
            let mut waiters = self.waiters.lock();
            let position = waiters.wakers.iter().position(|(of, _)| *of == key);
            let old = position.map(|position| waiters.wakers.swap_remove(position));
            waiters.wakers.push((key, waker));
            drop(waiters);
            drop(old);
            self.set_timer();
        }
        // Checked after the registration: a cancellation takes the wakers after it has set the state.
        let reason = self.reason();
        if reason.is_some() {
            self.forget(key);
        }
        reason
    }

    /// Removes the waiter that registered with this key, and drops its waker outside of the lock.
    pub fn forget(&self, key: u64) {
        let mut waiters = self.waiters.lock();
        let position = waiters.wakers.iter().position(|(of, _)| *of == key);
        let waker = position.map(|position| waiters.wakers.swap_remove(position));
        drop(waiters);
        drop(waker);
    }

    /// Waits until the request is cancelled, or the time has passed; returns whether it is cancelled.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        let wait = time::Deadline::after(timeout);
        loop {
            if self.is_cancelled() {
                return true;
            }
            let mut waiters = self.waiters.lock();
            if self.state.load(Ordering::SeqCst) == OPEN || self.state.load(Ordering::SeqCst) == ANSWERED {
                let now = Instant::now();
                let own = self.deadline.map(|deadline| deadline.saturating_duration_since(now));
                self.changed.wait_until(&mut waiters, wait.earlier(time::Deadline::from_begin(now, own)));
            }
            drop(waiters);
            if wait.is_over() {
                return self.is_cancelled();
            }
        }
    }

    /// Sets the timer that wakes tasks at the deadline, once.
    fn set_timer(self: &Arc<Self>) {
        let Some(deadline) = self.deadline else { return };
        let mut waiters = self.waiters.lock();
        if !matches!(waiters.timer, CancellationTimer::None) || self.state.load(Ordering::SeqCst) != OPEN {
            return;
        }
        waiters.timer = CancellationTimer::Arming;
        drop(waiters);
        let Some(orb) = self.orb.as_ref().and_then(WeakOrb::upgrade) else { return };
        let this: Arc<dyn TimedCall> = Arc::clone(self) as _;
        let left = deadline.saturating_duration_since(Instant::now());
        match orb.client_reactor().register_request(Arc::downgrade(&this), &Deadline::after(left)) {
            Ok(call_id) => {
                let mut waiters = self.waiters.lock();
                // Taken away meanwhile if the request is cancelled.
                let late = match waiters.timer {
                    CancellationTimer::Arming => {
                        waiters.timer = CancellationTimer::Set(call_id);
                        None
                    }
                    _ => Some(call_id),
                };
                drop(waiters);
                late.into_iter().for_each(|call_id| self.stop(CancellationTimer::Set(call_id)));
            }
            // The deadline is seen when the token is polled.
            Err(error) => tracing::debug!(%error, "the timer of a request's deadline cannot be set"),
        }
    }

    fn stop(&self, timer: CancellationTimer) {
        if let (CancellationTimer::Set(call_id), Some(orb)) = (timer, self.orb.as_ref().and_then(WeakOrb::upgrade)) {
            orb.client_reactor().unregister(call_id);
        }
    }
}

impl TimedCall for CancellationSource {
    fn end(self: Arc<Self>, reason: ExpiryReason) {
        self.cancel(match reason {
            ExpiryReason::DeadlinePassed => CancelReason::DeadlineElapsed,
            ExpiryReason::Shutdown => CancelReason::ShuttingDown,
            ExpiryReason::Cancelled => CancelReason::ClientCancelled,
        });
    }
}

impl Drop for CancellationSource {
    fn drop(&mut self) {
        let timer = std::mem::take(&mut self.waiters.lock().timer);
        self.stop(timer);
    }
}

impl fmt::Debug for CancellationSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationSource")
            .field("state", &self.state)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering as StdOrdering},
        task::{Poll, Wake},
    };

    use super::*;
    use crate::{CancellationToken, Orb};

    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, StdOrdering::SeqCst);
        }
    }

    fn token(orb: &Orb, deadline: Option<Instant>) -> (Arc<CancellationSource>, CancellationToken) {
        let cancellation = CancellationSource::new(WeakOrb::of(orb), deadline);
        (Arc::clone(&cancellation), CancellationToken::new(cancellation))
    }

    #[test]
    fn the_first_reason_wins_and_each_waiter_wakes_once() {
        let orb = Orb::builder().build().unwrap();
        let (cancellation, token) = token(&orb, None);
        let counting = std::sync::Arc::new(Counting(AtomicUsize::new(0)));
        let waker = Waker::from(std::sync::Arc::clone(&counting));
        let mut cx = std::task::Context::from_waker(&waker);
        let mut futures = [token.cancelled(), token.cancelled(), token.cancelled()];
        for future in &mut futures {
            assert_eq!(std::pin::Pin::new(&mut *future).poll(&mut cx), Poll::Pending);
            assert_eq!(std::pin::Pin::new(&mut *future).poll(&mut cx), Poll::Pending);
        }
        let [one, mut two, three] = futures;
        drop(three);
        assert!(!token.wait_timeout(Duration::ZERO) && token.reason().is_none());
        cancellation.cancel(CancelReason::ConnectionLost);
        cancellation.cancel(CancelReason::ClientCancelled);
        assert_eq!(counting.0.load(StdOrdering::SeqCst), 2, "one has left");
        assert_eq!(std::pin::Pin::new(&mut two).poll(&mut cx), Poll::Ready(CancelReason::ConnectionLost));
        assert!(token.wait_timeout(Duration::MAX));
        drop(one);
        assert_eq!(format!("{token:?}"), "CancellationToken { reason: Some(ConnectionLost) }");
    }

    #[test]
    fn an_answered_request_is_not_cancelled() {
        let orb = Orb::builder().build().unwrap();
        let (cancellation, token) = token(&orb, Some(Instant::now()));
        cancellation.mark_answered();
        cancellation.cancel(CancelReason::ClientCancelled);
        assert!(!token.is_cancelled(), "nor by its deadline");
        let unbound = CancellationToken::current();
        assert!(!unbound.is_cancelled() && !unbound.wait_timeout(Duration::from_millis(1)));
    }

    #[test]
    fn a_deadline_wakes_threads_and_tasks() {
        let orb = Orb::builder().build().unwrap();
        let (_source, waiting) = token(&orb, Some(Instant::now() + Duration::from_millis(20)));
        assert!(waiting.wait_timeout(Duration::MAX));
        assert_eq!(waiting.reason(), Some(CancelReason::DeadlineElapsed));
        let (_source, polled) = token(&orb, Some(Instant::now() + Duration::from_millis(20)));
        let (sender, receiver) = std::sync::mpsc::channel();
        let cancelled = polled.cancelled();
        orb.spawn(async move { sender.send(cancelled.await).unwrap() }).unwrap();
        assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(CancelReason::DeadlineElapsed));
        orb.shutdown().unwrap();
        let (_source, late) = token(&orb, Some(Instant::now()));
        assert!(late.is_cancelled(), "also without a timer");
    }

    #[test]
    fn orb_shutdown_ends_waits_for_a_deadline() {
        let orb = Orb::builder().build().unwrap();
        let (_source, token) = token(&orb, Some(Instant::now() + Duration::from_secs(1000)));
        let mut cancelled = token.cancelled();
        let mut cx = std::task::Context::from_waker(Waker::noop());
        assert_eq!(std::pin::Pin::new(&mut cancelled).poll(&mut cx), Poll::Pending);
        orb.shutdown().unwrap();
        assert_eq!(token.reason(), Some(CancelReason::ShuttingDown));
    }
}
