//! A collocated caller whose request is deferred, and answered by another thread.

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{Message, SystemException};
use spandrel_orb::{
    CancelReason, Orb,
    internal::{
        CallFailure, WeakOrb,
        cancellation::CancellationSource,
        nesting::{NestedWait, NestedWork},
    },
};
use spandrel_sync::{Arc, Condition, Mutex, Weak, time::Instant};
use spandrel_transport::{Address, Deadline};

use super::delivery::{deliver, read, too_late, unanswered};
use crate::{
    resources::ServerResources,
    upcall::origin::{AnswerKind, RequestKey, RequestOrigin, UnusedSource, UpcallServices},
};

/// A collocated caller that waits for a reply from another thread.
#[derive(Debug)]
pub(super) struct CollocatedReply {
    orb: Orb,
    resources: Arc<ServerResources>,
    wire: Wire,
    weak_self: Weak<Self>,
    state: Mutex<CollocatedWaiters>,
    changed: Condition,
}

#[derive(Debug, Default)]
struct CollocatedWaiters {
    /// The outcome of the call, once it is known.
    outcome: Option<Result<Message, CallFailure>>,
    /// The deferred entries on the servant's side. A request may be deferred again before its first entry
    /// ends.
    deferred: Vec<(u64, Arc<CancellationSource>)>,
    /// The key of the next entry.
    next: u64,
    /// The pool whose requests the waiting thread runs meanwhile.
    others: Option<Arc<dyn NestedWork>>,
    /// Whether no caller waits any more.
    is_given_up: bool,
}

impl CollocatedWaiters {
    /// Sets the outcome, unless one is set, and wakes the waiting thread if it serves its pool.
    fn end(&mut self, outcome: Result<Message, CallFailure>) {
        self.outcome.get_or_insert(outcome);
        if let Some(others) = &self.others {
            others.wake();
        }
    }
}

impl CollocatedReply {
    pub(super) fn new(orb: Orb, resources: Arc<ServerResources>, wire: Wire) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condition::new());
        Arc::new_cyclic(|weak_self| Self { orb, resources, wire, weak_self: Weak::clone(weak_self), state, changed })
    }

    pub(super) fn wait(&self, deadline: Option<&Deadline>) -> Result<Message, CallFailure> {
        // A thread of a pool runs other requests meanwhile; one that may not nest any deeper sleeps.
        if let Some(nested) = NestedWait::begin().ok().flatten() {
            self.state.lock().others = Some(nested.pool());
            nested.serve_until(deadline.map(Deadline::remaining), || self.state.lock().outcome.is_some());
        }
        let mut state = self.state.lock();
        loop {
            if let Some(outcome) = state.outcome.take() {
                return outcome;
            }
            match deadline.map(Deadline::remaining) {
                None => self.changed.wait(&mut state),
                Some(remaining) if remaining.is_zero() => {
                    drop(state);
                    self.give_up(None);
                    return Err(CallFailure::new(too_late()));
                }
                Some(remaining) => {
                    self.changed.wait_for(&mut state, remaining);
                }
            }
        }
    }

    /// Cancels the deferred entries. With `why`, also ends the wait of the caller.
    pub(super) fn give_up(&self, why: Option<SystemException>) {
        let mut state = self.state.lock();
        state.is_given_up = true;
        let is_shutdown = why.is_some();
        if let Some(why) = why {
            state.end(Err(CallFailure::new(why)));
        }
        let deferred = std::mem::take(&mut state.deferred);
        self.changed.notify_all();
        drop(state);
        let reason = if is_shutdown { CancelReason::ShuttingDown } else { CancelReason::ClientCancelled };
        deferred.iter().for_each(|(_, cancellation)| cancellation.cancel(reason));
    }

    fn end(&self, outcome: Result<Message, CallFailure>) {
        self.state.lock().end(outcome);
        self.changed.notify_all();
    }
}

impl RequestOrigin for CollocatedReply {
    fn orb(&self) -> &Orb {
        &self.orb
    }

    fn services(&self) -> &dyn UpcallServices {
        &*self.resources
    }

    fn name(&self) -> &str {
        "this ORB"
    }

    fn peer_address(&self) -> Option<&Arc<Address>> {
        None
    }

    fn wire(&self, version: GiopVersion) -> Wire {
        Wire { version, ..self.wire }
    }

    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        read(&self.orb, self.wire, message)
    }

    fn send(&self, answer: &Encoder<'_>, _kind: AnswerKind) -> Result<(), SystemException> {
        self.end(deliver(answer));
        Ok(())
    }

    fn shared(&self) -> Arc<dyn RequestOrigin> {
        self.weak_self.upgrade().expect("a caller in use is owned by an Arc")
    }

    fn cancellation_source(&self, _request_key: RequestKey, deadline: Option<Instant>) -> Arc<CancellationSource> {
        CancellationSource::new(WeakOrb::of(&self.orb), deadline)
    }

    fn enter_deferred(
        &self,
        _request_key: RequestKey,
        _octets: usize,
        unused: UnusedSource,
    ) -> Result<(u64, Arc<CancellationSource>), SystemException> {
        let cancellation = CancellationSource::new(WeakOrb::of(&self.orb), unused.deadline);
        let mut state = self.state.lock();
        let key = state.next;
        state.next += 1;
        state.deferred.push((key, Arc::clone(&cancellation)));
        let is_given_up = state.is_given_up;
        drop(state);
        if is_given_up {
            cancellation.cancel(CancelReason::ClientCancelled);
        }
        Ok((key, cancellation))
    }

    fn leave_deferred(&self, key: u64) {
        let mut state = self.state.lock();
        let left = state.deferred.iter().position(|(known, _)| *known == key).map(|at| state.deferred.swap_remove(at));
        let was_last = state.deferred.is_empty();
        drop(state);
        drop(left);
        if was_last {
            // Without effect if the request was answered.
            self.end(Err(CallFailure::new(unanswered())));
        }
    }
}
