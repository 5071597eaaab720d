//! One attempt: the destinations of a reference, one after the other, until one can be connected to.

use std::time::Duration;

use spandrel_giop::{CompletionStatus, LocateStatus, ReplyStatus, SystemException, SystemExceptionKind, minor};
use spandrel_sync::atomic::Ordering;
use spandrel_transport::Deadline;

use crate::{
    ObjectRef,
    client::{CallFailure, Reply, ReplyKind, RequestLoss},
    destination::Destination,
};

/// How long connecting may take while others have not been tried (as in RFC 8305, section 5); four times as long in each further round.
const STAGGER: Duration = Duration::from_millis(250);
/// After so many rounds each has all the time that there is.
const ROUNDS: u32 = 4;

/// Which destination is tried now. One that takes long to connect to is put off, so that a dead address delays a call for a moment only;
/// those that were put off are tried again, with more patience, once nobody else is left.
#[derive(Debug)]
pub(crate) struct ProfileSelector {
    destinations: usize,
    preferred: usize,
    turn: usize,
    /// Those that are tried again in this round, as bits.
    waiting: u64,
    /// Those that were put off to the next one.
    put_off: u64,
    round: u32,
    failure: Option<CallFailure>,
    /// That is what a server said, which counts for more than that others cannot be connected to.
    was_said: bool,
}

impl ProfileSelector {
    pub(crate) fn new(object: &ObjectRef, destinations: usize) -> Self {
        let preferred = if destinations > 1 { object.preferred().load(Ordering::Relaxed) % destinations } else { 0 };
        Self { destinations, preferred, turn: 0, waiting: 0, put_off: 0, round: 0, failure: None, was_said: false }
    }

    /// The destination to be tried; none once all have been. Those that have kept somebody waiting of late are put off at once.
    #[inline]
    pub(crate) fn next(&mut self, destinations: &[Destination]) -> Option<usize> {
        if self.destinations > 1 { self.next_of_several(destinations) } else { self.index() }
    }

    fn next_of_several(&mut self, destinations: &[Destination]) -> Option<usize> {
        loop {
            let index = self.index()?;
            if self.round > 0 || self.patience().is_none() || !destinations[index].peer.is_unreachable() {
                return Some(index);
            }
            self.put_off |= 1 << index;
            self.go_on();
        }
    }

    fn index(&self) -> Option<usize> {
        if self.turn < self.destinations {
            return Some((self.preferred + self.turn) % self.destinations);
        }
        (self.waiting != 0).then(|| self.waiting.trailing_zeros() as usize)
    }

    /// How many may be tried yet, with this one.
    fn left(&self) -> u32 {
        let untried = u32::try_from(self.destinations.saturating_sub(self.turn)).unwrap_or(u32::MAX);
        untried.saturating_add(self.waiting.count_ones() + self.put_off.count_ones())
    }

    /// How long connecting to this one may take before it is put off; none if it cannot be.
    fn patience(&self) -> Option<Duration> {
        let can_be = self.left() > 1 && self.round < ROUNDS && self.index()? < u64::BITS as usize;
        can_be.then(|| STAGGER * 4_u32.pow(self.round))
    }

    /// How long connecting to it may take: those that may have to be tried after it get their share of the time.
    #[inline]
    pub(crate) fn share_of(&self, deadline: Option<&Deadline>) -> Option<Duration> {
        if self.destinations > 1 {
            return self.share_of_several(deadline);
        }
        deadline.map(|deadline| deadline.left_to_connect(1))
    }

    fn share_of_several(&self, deadline: Option<&Deadline>) -> Option<Duration> {
        let share = deadline.map(|deadline| deadline.left_to_connect(self.left()));
        share.into_iter().chain(self.patience()).min()
    }

    /// It cannot be connected to.
    pub(crate) fn refused(&mut self, failure: CallFailure) {
        let took_long = failure.exception.kind() == SystemExceptionKind::Timeout;
        if let (Some(index), Some(_), true) = (self.index(), self.patience(), took_long) {
            self.put_off |= 1 << index;
        }
        if !self.was_said {
            self.failure = Some(failure);
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        if self.turn < self.destinations {
            self.turn += 1;
        } else {
            self.waiting &= self.waiting.wrapping_sub(1);
        }
        if self.turn >= self.destinations && self.waiting == 0 {
            self.waiting = std::mem::take(&mut self.put_off);
            self.round += 1;
        }
    }

    /// A request to it failed.
    ///
    /// # Errors
    /// The failure, unless the next one is to be tried.
    pub(crate) fn failed(
        &mut self,
        failure: CallFailure,
        fresh: bool,
        destination: &Destination,
    ) -> Result<(), CallFailure> {
        if failure.loss == RequestLoss::ConnectionAbandoned {
            // Another call has ended the connection, not the peer: of that nothing is known that it would not say again.
            return Err(failure);
        }
        if failure.may_repeat() && fresh {
            self.refused(ended_at_once(failure));
            return Ok(());
        }
        if failure.may_repeat() {
            // The others that lay idle were most likely closed with it.
            destination.peer.drop_idle();
        }
        Err(failure)
    }

    /// Whether the server says that it can do nothing for the request now, and has done nothing, while others are left who might (design
    /// decision 9): they are tried then.
    #[inline]
    pub(crate) fn goes_on_after(&mut self, reply: &Reply, object: &ObjectRef) -> bool {
        let is_exception = matches!(
            reply.kind,
            ReplyKind::Reply(ReplyStatus::SystemException) | ReplyKind::Locate(LocateStatus::LocSystemException)
        );
        self.destinations > 1 && is_exception && self.left() > 1 && self.leaves_to_others(reply, object)
    }

    #[cold]
    fn leaves_to_others(&mut self, reply: &Reply, object: &ObjectRef) -> bool {
        let exception = object.system_exception(reply);
        let says_no = exception.completed() == CompletionStatus::No
            && matches!(exception.kind(), SystemExceptionKind::Transient | SystemExceptionKind::CommFailure);
        if says_no {
            object.orb().statistics().retried();
            tracing::debug!(%exception, "asking at the next address of the reference");
            (self.failure, self.was_said) = (Some(CallFailure::new(exception)), true);
            self.go_on();
        }
        says_no
    }

    /// It has answered, and is tried first from now on.
    pub(crate) fn arrived(&self, object: &ObjectRef) {
        if self.turn > 0
            && let Some(index) = self.index()
        {
            object.preferred().store(index, Ordering::Relaxed);
        }
    }

    /// Why none could be connected to, once all have been tried.
    pub(super) fn take_failure(&mut self) -> Option<CallFailure> {
        if self.index().is_some() { None } else { self.failure.take() }
    }

    /// Why none could be connected to.
    pub(crate) fn into_failure(self) -> CallFailure {
        self.failure.expect("a reference has at least one destination")
    }
}

/// TRANSIENT for a connection that ended as soon as it was opened. Nothing ran, and the exception below says how it ended.
fn ended_at_once(ended: CallFailure) -> CallFailure {
    let why = match ended.loss {
        // Who takes connections only to close them has enough of them.
        RequestLoss::ClosedOrderly => {
            "the server took the connection and closed it without an answer: it accepts no more, or is about to end"
        }
        _ => "a new connection ended before the request was written",
    };
    let exception = SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No);
    CallFailure::new(exception.with_detail(why).with_source(ended.exception))
}

#[cfg(all(test, feature = "details"))]
mod tests {
    use super::*;

    #[test]
    fn only_an_orderly_close_suggests_a_connection_limit() {
        let receiver = |loss| {
            let below = SystemException::comm_failure(0, CompletionStatus::No).with_detail("how it ended");
            let exception = ended_at_once(CallFailure::of(loss, below)).exception;
            let source = std::error::Error::source(&exception).map(ToString::to_string);
            assert!(source.is_some_and(|source| source.contains("how it ended")));
            exception.to_string()
        };
        assert!(receiver(RequestLoss::ClosedOrderly).contains("accepts no more"));
        for loss in [RequestLoss::NotWritten, RequestLoss::PartiallyWritten] {
            assert!(receiver(loss).contains("before the request was written"), "{}", receiver(loss));
        }
    }
}
