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
    position: usize,
    /// Those that are tried again in this round, as bits.
    pending: u64,
    /// Those that were put off to the next one.
    postponed: u64,
    round: u32,
    failure: Option<CallFailure>,
    /// That is what a server said, which counts for more than that others cannot be connected to.
    is_from_server: bool,
}

impl ProfileSelector {
    pub(crate) fn new(object: &ObjectRef, destinations: usize) -> Self {
        let preferred = if destinations > 1 { object.preferred().load(Ordering::Relaxed) % destinations } else { 0 };
        Self { destinations, preferred, position: 0, pending: 0, postponed: 0, round: 0, failure: None, is_from_server: false }
    }

    /// The destination to be tried; none once all have been. Those that have kept somebody waiting of late are put off at once.
    #[inline]
    pub(crate) fn next(&mut self, destinations: &[Destination]) -> Option<usize> {
        if self.destinations > 1 { self.next_of_several(destinations) } else { self.index() }
    }

    fn next_of_several(&mut self, destinations: &[Destination]) -> Option<usize> {
        loop {
            let index = self.index()?;
            if self.round > 0 || self.connect_limit().is_none() || !destinations[index].peer.is_unreachable() {
                return Some(index);
            }
            self.postponed |= 1 << index;
            self.advance();
        }
    }

    fn index(&self) -> Option<usize> {
        if self.position < self.destinations {
            return Some((self.preferred + self.position) % self.destinations);
        }
        (self.pending != 0).then(|| self.pending.trailing_zeros() as usize)
    }

    /// How many may be tried yet, with this one.
    fn destinations_left(&self) -> u32 {
        let untried = u32::try_from(self.destinations.saturating_sub(self.position)).unwrap_or(u32::MAX);
        untried.saturating_add(self.pending.count_ones() + self.postponed.count_ones())
    }

    /// How long connecting to this one may take before it is put off; none if it cannot be.
    fn connect_limit(&self) -> Option<Duration> {
        let can_be = self.destinations_left() > 1 && self.round < ROUNDS && self.index()? < u64::BITS as usize;
        can_be.then(|| STAGGER * 4_u32.pow(self.round))
    }

    /// How long connecting to it may take: those that may have to be tried after it get their share of the time.
    #[inline]
    pub(crate) fn connect_time(&self, deadline: Option<&Deadline>) -> Option<Duration> {
        if self.destinations > 1 {
            return self.connect_time_of_several(deadline);
        }
        deadline.map(|deadline| deadline.left_to_connect(1))
    }

    fn connect_time_of_several(&self, deadline: Option<&Deadline>) -> Option<Duration> {
        let share = deadline.map(|deadline| deadline.left_to_connect(self.destinations_left()));
        share.into_iter().chain(self.connect_limit()).min()
    }

    /// It cannot be connected to.
    pub(crate) fn connect_failed(&mut self, failure: CallFailure) {
        let took_long = failure.exception.kind() == SystemExceptionKind::Timeout;
        if let (Some(index), Some(_), true) = (self.index(), self.connect_limit(), took_long) {
            self.postponed |= 1 << index;
        }
        if !self.is_from_server {
            self.failure = Some(failure);
        }
        self.advance();
    }

    fn advance(&mut self) {
        if self.position < self.destinations {
            self.position += 1;
        } else {
            self.pending &= self.pending.wrapping_sub(1);
        }
        if self.position >= self.destinations && self.pending == 0 {
            self.pending = std::mem::take(&mut self.postponed);
            self.round += 1;
        }
    }

    /// A request to it failed.
    ///
    /// # Errors
    /// The failure, unless the next one is to be tried.
    pub(crate) fn request_failed(
        &mut self,
        failure: CallFailure,
        fresh: bool,
        destination: &Destination,
    ) -> Result<(), CallFailure> {
        if failure.loss == RequestLoss::GivenUp {
            // Another call has ended the connection, not the peer: of that nothing is known that it would not say again.
            return Err(failure);
        }
        if failure.may_repeat() && fresh {
            self.connect_failed(ended_at_once(failure));
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
    pub(crate) fn continues_after(&mut self, reply: &Reply, object: &ObjectRef) -> bool {
        let is_exception = matches!(
            reply.kind,
            ReplyKind::Reply(ReplyStatus::SystemException) | ReplyKind::Locate(LocateStatus::LocSystemException)
        );
        self.destinations > 1 && is_exception && self.destinations_left() > 1 && self.rejected_by_server(reply, object)
    }

    #[cold]
    fn rejected_by_server(&mut self, reply: &Reply, object: &ObjectRef) -> bool {
        let exception = object.system_exception(reply);
        let is_rejected = exception.completed() == CompletionStatus::No
            && matches!(exception.kind(), SystemExceptionKind::Transient | SystemExceptionKind::CommFailure);
        if is_rejected {
            object.orb().statistics().retried();
            tracing::debug!(%exception, "asking at the next address of the reference");
            (self.failure, self.is_from_server) = (Some(CallFailure::new(exception)), true);
            self.advance();
        }
        is_rejected
    }

    /// It has answered, and is tried first from now on.
    pub(crate) fn mark_preferred(&self, object: &ObjectRef) {
        if self.position > 0
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
    let detail = match ended.loss {
        // Who takes connections only to close them has enough of them.
        RequestLoss::ClosedInOrder => {
            "the server took the connection and closed it without an answer: it accepts no more, or is about to end"
        }
        _ => "a new connection ended before the request was written",
    };
    let exception = SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No);
    CallFailure::new(exception.with_detail(detail).with_source(ended.exception))
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
        assert!(receiver(RequestLoss::ClosedInOrder).contains("accepts no more"));
        for loss in [RequestLoss::NotWritten, RequestLoss::CutOff] {
            assert!(receiver(loss).contains("before the request was written"), "{}", receiver(loss));
        }
    }
}
