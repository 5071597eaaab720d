//! Selection of a destination: an attempt tries the profiles of a reference until one of them can be
//! connected to.
//!
//! The profiles are in the order of their costs (`Destination::all_of` in `destination`).

use std::time::Duration;

use spandrel_giop::{CompletionStatus, LocateStatus, ReplyStatus, SystemException, SystemExceptionKind, minor};
use spandrel_sync::atomic::Ordering;
use spandrel_transport::Deadline;

use crate::{
    ObjectRef,
    client::{CallFailure, Reply, ReplyKind, RequestLoss, destination::Destination},
};

/// The time limit of connecting while other destinations are untried (as in RFC 8305, section 5). Each
/// further round multiplies it by four.
const CONNECT_STAGGER: Duration = Duration::from_millis(250);
/// The number of rounds with such a limit; later ones have all the remaining time.
const STAGGERED_ROUNDS: u32 = 4;

/// The destinations of one round, and the one that is tried now; the default has none.
///
/// A destination that takes long to connect to is postponed, so that an unreachable address delays a call only
/// briefly. Postponed destinations are tried again, with a longer limit, after all others.
#[derive(Debug, Default)]
pub(super) struct ProfileSelector {
    destinations: usize,
    preferred: usize,
    position: usize,
    /// The postponed destinations that are still to be tried in this round, as bits.
    pending: u64,
    /// The destinations postponed to the next round, as bits.
    postponed: u64,
    round: u32,
    /// Boxed, so that a call without failures has little to initialize and to drop.
    failure: Option<Box<CallFailure>>,
    /// Whether `failure` is a server's exception, which takes precedence over failed connections.
    is_from_server: bool,
}

impl ProfileSelector {
    pub(super) fn new(object: &ObjectRef, destinations: usize) -> Self {
        let preferred = if destinations > 1 { object.preferred().load(Ordering::Relaxed) % destinations } else { 0 };
        Self { destinations, preferred, ..Self::default() }
    }

    /// The destination to be tried; `None` after the last. A destination that was unreachable recently is
    /// postponed at once.
    #[inline]
    pub(super) fn next(&mut self, destinations: &[Destination]) -> Option<usize> {
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

    /// The number of destinations left to try, including the current one.
    fn destinations_left(&self) -> u32 {
        let untried = u32::try_from(self.destinations.saturating_sub(self.position)).unwrap_or(u32::MAX);
        untried.saturating_add(self.pending.count_ones() + self.postponed.count_ones())
    }

    /// The time limit of connecting to the current destination before it is postponed; `None` if it cannot be
    /// postponed.
    fn connect_limit(&self) -> Option<Duration> {
        let can_be =
            self.destinations_left() > 1 && self.round < STAGGERED_ROUNDS && self.index()? < u64::BITS as usize;
        can_be.then(|| CONNECT_STAGGER * 4_u32.pow(self.round))
    }

    /// The time limit of connecting to the current destination, which leaves time for the destinations after
    /// it.
    #[inline]
    pub(super) fn connect_time(&self, deadline: Option<&Deadline>) -> Option<Duration> {
        if self.destinations > 1 {
            return self.connect_time_of_several(deadline);
        }
        deadline.map(|deadline| deadline.left_to_connect(1))
    }

    fn connect_time_of_several(&self, deadline: Option<&Deadline>) -> Option<Duration> {
        let share = deadline.map(|deadline| deadline.left_to_connect(self.destinations_left()));
        share.into_iter().chain(self.connect_limit()).min()
    }

    /// Records that the current destination could not be connected to.
    pub(super) fn connect_failed(&mut self, failure: CallFailure) {
        let took_long = failure.exception.kind() == SystemExceptionKind::Timeout;
        if let (Some(index), Some(_), true) = (self.index(), self.connect_limit(), took_long) {
            self.postponed |= 1 << index;
        }
        if !self.is_from_server {
            self.failure = Some(Box::new(failure));
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

    /// Records that the request to the current destination failed.
    ///
    /// # Errors
    /// The failure, unless the next destination is to be tried.
    pub(super) fn request_failed(
        &mut self,
        failure: CallFailure,
        fresh: bool,
        destination: &Destination,
    ) -> Result<(), CallFailure> {
        if failure.loss == RequestLoss::ConnectionAbandoned {
            // Another call has ended the connection, not the peer. The next destination would not change
            // that.
            return Err(failure);
        }
        if failure.may_repeat() && fresh {
            self.connect_failed(ended_at_once(failure));
            return Ok(());
        }
        if failure.may_repeat() {
            // Other idle connections to the peer were most likely closed as well.
            destination.peer.drop_idle();
        }
        Err(failure)
    }

    /// Whether the server rejected the request without acting on it, and other destinations are left, which
    /// are tried then (design decision 9).
    #[inline]
    pub(super) fn continues_after(&mut self, reply: &Reply, call: (&ObjectRef, &str)) -> bool {
        let is_exception = matches!(
            reply.kind,
            ReplyKind::Reply(ReplyStatus::SystemException) | ReplyKind::Locate(LocateStatus::LocSystemException)
        );
        self.destinations > 1 && is_exception && self.destinations_left() > 1 && self.rejected_by_server(reply, call)
    }

    #[cold]
    fn rejected_by_server(&mut self, reply: &Reply, (object, operation): (&ObjectRef, &str)) -> bool {
        let exception = object.system_exception(operation, reply);
        let is_rejected = exception.completed() == CompletionStatus::No
            && matches!(exception.kind(), SystemExceptionKind::Transient | SystemExceptionKind::CommFailure);
        if is_rejected {
            object.orb().statistics().retried();
            tracing::debug!(%exception, "sending to the next address of the reference");
            (self.failure, self.is_from_server) = (Some(Box::new(CallFailure::new(exception))), true);
            self.advance();
        }
        is_rejected
    }

    /// Makes the current destination, which has answered, the first one of further calls.
    pub(super) fn mark_preferred(&self, object: &ObjectRef) {
        if self.position > 0
            && let Some(index) = self.index()
        {
            object.preferred().store(index, Ordering::Relaxed);
        }
    }

    /// The exception of a server that rejected the request, if there is one: it takes precedence over `failure`,
    /// with which the round ends.
    #[cold]
    pub(super) fn server_failure_or(&mut self, failure: CallFailure) -> CallFailure {
        let from_server = if self.is_from_server { self.failure.take() } else { None };
        from_server.map_or(failure, |from_server| *from_server)
    }

    /// The failure of the last destination, once all have been tried. A server's exception takes precedence.
    pub(super) fn take_failure(&mut self) -> Option<CallFailure> {
        if self.index().is_some() { None } else { self.failure.take().map(|failure| *failure) }
    }
}

/// TRANSIENT for a connection that ended directly after it was opened. The server has not acted on the
/// request; the source of the exception describes the end.
fn ended_at_once(ended: CallFailure) -> CallFailure {
    let detail = match ended.loss {
        // A server at its connection limit accepts a connection and closes it at once.
        RequestLoss::ClosedOrderly => {
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
    fn a_servers_exception_takes_precedence_when_the_time_is_over() {
        let transient = || CallFailure::new(SystemException::transient(0, CompletionStatus::No));
        let timeout = || CallFailure::new(SystemException::timeout(0, CompletionStatus::No));
        for (is_from_server, kind) in [(true, SystemExceptionKind::Transient), (false, SystemExceptionKind::Timeout)] {
            let failure = Some(Box::new(transient()));
            let mut selector = ProfileSelector { destinations: 2, failure, is_from_server, ..Default::default() };
            assert_eq!(selector.server_failure_or(timeout()).exception.kind(), kind);
        }
    }

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
