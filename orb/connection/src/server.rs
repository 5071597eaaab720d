//! The half of the side that runs requests: the requests that are known one by one, and agreements for all.

use std::collections::VecDeque;

use slab::Slab;
use spandrel_giop::{
    CONTEXT_CODE_SETS, CompletionStatus, ServiceContexts, SystemException, TransmissionCodeSets, minor,
};

use crate::UpcallNumber;

/// The maximum number of CancelRequests that are kept for servants that may still ask for their cancellation:
/// as many as requests run concurrently by default.
const MAX_KEPT: usize = 64;
/// The number of deferred requests for which memory stays when there are none.
const RETAINED: usize = 128;

/// The identity of a request on its connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestKey {
    /// The id that the client gave the request.
    pub request_id: u32,
    /// Whether no client waits for the reply of its servant.
    pub is_one_way: bool,
    /// The number of its upcall, where upcalls are counted: a client may use an id again once the request has
    /// been answered.
    pub upcall: UpcallNumber,
}

/// The requests of a connection to which a cancellation applies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CancelledRequests {
    /// The request of a CancelRequest.
    Request(u32),
    /// All requests whose client waited for a reply, and has gone.
    Awaited,
    /// All requests of the connection.
    All,
}

impl CancelledRequests {
    /// No client waits for the reply to a one-way: its end says nothing about the request.
    fn contains(self, key: RequestKey) -> bool {
        match self {
            Self::Request(request_id) => !key.is_one_way && key.request_id == request_id,
            Self::Awaited => !key.is_one_way,
            Self::All => true,
        }
    }
}

/// The requests of an accepted connection that are known one by one: deferred ones, and running ones whose
/// servants have asked for their cancellation.
///
/// `C` cancels a request. A CancelRequest that was read before its servant asks is kept until then, for the
/// last few of them.
///
/// | event | unknown, running | cancellable | deferred |
/// | --- | --- | --- | --- |
/// | [`register_cancellation`](Self::register_cancellation) | cancellable; cancelled if a CancelRequest was kept | the same | |
/// | [`defer`](Self::defer) | deferred | deferred | |
/// | [`cancel`](Self::cancel) | kept | cancelled | cancelled |
/// | [`end_upcall`](Self::end_upcall) | | removed | stays |
/// | [`end_deferred`](Self::end_deferred) | | | removed |
#[derive(Debug)]
pub struct ServerHalf<C> {
    /// A request's number is its key, which is used again after its end.
    deferred: Slab<DeferredRequest<C>>,
    /// The deferred requests that are being answered.
    replying: usize,
    cancellable: Vec<(RequestKey, C)>,
    /// CancelRequests that were read while upcalls ran: the request, and the first upcall that they did not
    /// mean.
    kept: VecDeque<(u32, UpcallNumber)>,
}

#[derive(Debug)]
struct DeferredRequest<C> {
    key: RequestKey,
    octets: usize,
    /// Whether its answer has begun.
    is_replying: bool,
    cancellation: C,
}

impl<C> Default for ServerHalf<C> {
    fn default() -> Self {
        Self { deferred: Slab::new(), replying: 0, cancellable: Vec::new(), kept: VecDeque::new() }
    }
}

impl<C: Clone> ServerHalf<C> {
    /// The cancellation of a running request, if its servant has asked.
    #[must_use]
    pub fn cancellable(&self, upcall: UpcallNumber) -> Option<&C> {
        self.cancellable.iter().find(|(key, _)| key.upcall == upcall).map(|(_, cancellation)| cancellation)
    }

    /// The servant of a running request asks for its cancellation. Returns whether a CancelRequest for it was
    /// read before.
    #[must_use]
    pub fn register_cancellation(&mut self, key: RequestKey, cancellation: C) -> bool {
        self.cancellable.push((key, cancellation));
        self.was_cancelled(key)
    }

    /// Whether a CancelRequest for a running request was read.
    #[must_use]
    pub fn was_cancelled(&self, key: RequestKey) -> bool {
        !key.is_one_way && self.kept.iter().any(|(id, before)| *id == key.request_id && key.upcall < *before)
    }

    /// An upcall has ended. Returns the cancellation, if its servant had asked for it and the request is not
    /// deferred.
    pub fn end_upcall(&mut self, upcall: UpcallNumber) -> Option<C> {
        let at = self.cancellable.iter().position(|(key, _)| key.upcall == upcall)?;
        Some(self.cancellable.swap_remove(at).1)
    }

    /// The number of deferred requests.
    #[must_use]
    pub fn deferred(&self) -> usize {
        self.deferred.len()
    }

    /// A running request will be answered later. Returns its number, which no other deferred request has before this one
    /// [ends](Self::end_deferred), and whether it was cancellable.
    pub fn defer(&mut self, key: RequestKey, octets: usize, cancellation: C) -> (u64, bool) {
        let number = self.deferred.insert(DeferredRequest { key, octets, is_replying: false, cancellation });
        (number as u64, self.end_upcall(key.upcall).is_some())
    }

    /// A deferred request is being answered. Returns the octets that it was charged with, once.
    pub fn uncharge_deferred(&mut self, number: u64) -> usize {
        let Some(request) = self.deferred.get_mut(index(number)) else { return 0 };
        self.replying += usize::from(!std::mem::replace(&mut request.is_replying, true));
        std::mem::take(&mut request.octets)
    }

    /// Whether deferred requests are left whose answers have not begun.
    #[must_use]
    pub fn has_unanswered(&self) -> bool {
        self.deferred.len() > self.replying
    }

    /// A deferred request has ended. Returns the octets that it was charged with, and its cancellation.
    pub fn end_deferred(&mut self, number: u64) -> Option<(usize, C)> {
        let ended = self.deferred.try_remove(index(number))?;
        self.replying -= usize::from(ended.is_replying);
        if self.deferred.is_empty() && self.deferred.capacity() > RETAINED {
            self.deferred = Slab::new();
        }
        Some((ended.octets, ended.cancellation))
    }

    /// Returns the cancellations of these requests, to be called without a lock. `next_upcall`: the first upcall
    /// that has not begun, if upcalls run; a CancelRequest is kept for those before.
    pub fn cancel(&mut self, which: CancelledRequests, next_upcall: Option<UpcallNumber>) -> Vec<C> {
        let deferred = self.deferred.iter().map(|(_, request)| (request.key, &request.cancellation));
        let cancellable_requests =
            deferred.chain(self.cancellable.iter().map(|(key, cancellation)| (*key, cancellation)));
        let cancelled =
            cancellable_requests.filter(|(key, _)| which.contains(*key)).map(|(_, cancellation)| cancellation.clone());
        let cancelled = cancelled.collect();
        if let (CancelledRequests::Request(request_id), Some(next_upcall)) = (which, next_upcall) {
            if self.kept.len() >= MAX_KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back((request_id, next_upcall));
        }
        cancelled
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Reads the code sets that a client uses, if a request has them. `agree` records them, and returns those
/// that were recorded first.
///
/// # Errors
/// CODESET_INCOMPATIBLE for unknown code sets; MARSHAL if the client used others before.
pub fn agree_on_code_sets(
    contexts: &ServiceContexts<'_>,
    agree: impl FnOnce(TransmissionCodeSets) -> TransmissionCodeSets,
) -> Result<(), SystemException> {
    let Some(data) = contexts.find(CONTEXT_CODE_SETS) else { return Ok(()) };
    let used = TransmissionCodeSets::from_context(data)?;
    if agree(used) == used {
        return Ok(());
    }
    Err(SystemException::marshal(minor::CODE_SETS_CHANGED, CompletionStatus::No)
        .with_detail("the client changed the code sets of this connection after its first request"))
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::{CharSet, WcharSet};
    use spandrel_giop::{ServiceContext, SystemExceptionKind};

    use super::*;

    fn key(request_id: u32, upcall: u64) -> RequestKey {
        RequestKey { request_id, is_one_way: false, upcall: UpcallNumber(upcall) }
    }

    fn one_way(request_id: u32, upcall: u64) -> RequestKey {
        RequestKey { is_one_way: true, ..key(request_id, upcall) }
    }

    /// A cancellable two-way and one-way, and a deferred one of each.
    fn half() -> ServerHalf<&'static str> {
        let mut half = ServerHalf::default();
        assert!(
            !half.register_cancellation(key(2, 1), "two-way") && !half.register_cancellation(one_way(4, 3), "one-way")
        );
        assert_eq!(half.defer(key(6, 5), 100, "deferred"), (0, false));
        assert_eq!(half.defer(one_way(8, 7), 10, "deferred one-way"), (1, false));
        half
    }

    #[test]
    fn a_cancel_request_means_one_two_way() {
        let mut half = half();
        assert_eq!(half.cancel(CancelledRequests::Request(2), None), ["two-way"]);
        assert_eq!(half.cancel(CancelledRequests::Request(6), None), ["deferred"]);
        for id in [4, 8, 10] {
            assert!(half.cancel(CancelledRequests::Request(id), None).is_empty());
        }
    }

    #[test]
    fn the_end_of_a_client_means_no_one_way() {
        let mut cancelled = half().cancel(CancelledRequests::Awaited, None);
        cancelled.sort_unstable();
        assert_eq!(cancelled, ["deferred", "two-way"]);
        assert_eq!(half().cancel(CancelledRequests::All, None).len(), 4);
    }

    #[test]
    fn a_cancel_request_that_was_read_first_means_the_upcalls_that_had_begun() {
        let mut half = ServerHalf::default();
        assert!(half.cancel(CancelledRequests::Request(2), Some(UpcallNumber(4))).is_empty());
        assert!(half.register_cancellation(key(2, 3), "begun before"));
        assert!(!half.register_cancellation(key(2, 4), "the first that it does not mean"));
        assert!(!half.register_cancellation(key(2, 5), "begun after, with the same id"));
        assert!(!half.register_cancellation(one_way(2, 1), "one-way"));
        assert!(!half.register_cancellation(key(4, 1), "other"));
    }

    #[test]
    fn cancel_requests_are_kept_for_the_last_few() {
        let mut half = ServerHalf::default();
        for id in 0..=MAX_KEPT as u32 {
            half.cancel(CancelledRequests::Request(id), Some(UpcallNumber(1000)));
        }
        assert!(!half.register_cancellation(key(0, 1), "first"));
        assert!(half.register_cancellation(key(1, 3), "second"));
        assert!(half.register_cancellation(key(MAX_KEPT as u32, 5), "last"));
    }

    #[test]
    fn no_cancel_request_is_kept_while_no_upcall_runs() {
        let mut half = ServerHalf::default();
        assert!(half.cancel(CancelledRequests::Request(2), None).is_empty());
        assert!(!half.register_cancellation(key(2, 1), "later"));
    }

    #[test]
    fn an_upcall_that_ends_is_forgotten_unless_it_is_deferred() {
        let mut half = half();
        assert_eq!(half.cancellable(UpcallNumber(1)), Some(&"two-way"));
        assert_eq!(half.end_upcall(UpcallNumber(1)), Some("two-way"));
        assert_eq!((half.end_upcall(UpcallNumber(1)), half.cancellable(UpcallNumber(1))), (None, None));
        assert_eq!(half.defer(key(4, 3), 7, "again"), (2, true));
        assert_eq!(half.end_upcall(UpcallNumber(3)), None);
        assert_eq!(half.deferred(), 3);
    }

    #[test]
    fn a_client_keeps_to_the_code_sets_of_its_first_request() {
        let agreed = |contexts: &[ServiceContext], known: Option<TransmissionCodeSets>| {
            let mut asked = None;
            let outcome = agree_on_code_sets(&ServiceContexts::from(contexts), |used| {
                asked = Some(used);
                known.unwrap_or(used)
            });
            (outcome.map_err(|refused| (refused.kind(), refused.minor(), refused.completed())), asked)
        };
        let sets = TransmissionCodeSets { char_set: CharSet::Utf8, wchar_set: WcharSet::Utf16 };
        let context = sets.to_context();
        assert_eq!(agreed(&[], None), (Ok(()), None), "most requests have none");
        assert_eq!(agreed(std::slice::from_ref(&context), None), (Ok(()), Some(sets)));
        assert_eq!(agreed(std::slice::from_ref(&context), Some(sets)), (Ok(()), Some(sets)));
        let others = TransmissionCodeSets::UNNEGOTIATED;
        let (refused, _) = agreed(std::slice::from_ref(&context), Some(others));
        assert_eq!(refused, Err((SystemExceptionKind::Marshal, minor::CODE_SETS_CHANGED, CompletionStatus::No)));
        let unknown = ServiceContext { data: [&context.data[..4], &[9; 8]].concat(), ..context };
        let (refused, asked) = agreed(&[unknown], None);
        assert_eq!(refused.unwrap_err().0, SystemExceptionKind::CodesetIncompatible);
        assert_eq!(asked, None);
    }

    #[test]
    fn a_deferred_request_is_uncharged_once() {
        let mut half = half();
        assert_eq!((half.uncharge_deferred(0), half.uncharge_deferred(0)), (100, 0));
        assert!(half.has_unanswered(), "the second one");
        assert_eq!(half.end_deferred(0), Some((0, "deferred")));
        assert!(half.has_unanswered());
        assert_eq!(half.end_deferred(1), Some((10, "deferred one-way")));
        assert!(!half.has_unanswered());
        assert_eq!((half.end_deferred(1), half.uncharge_deferred(1), half.deferred()), (None, 0, 0));
    }

    #[test]
    fn the_number_of_a_deferred_request_is_used_again_after_its_end() {
        let mut half = half();
        assert_eq!(half.end_deferred(0), Some((100, "deferred")));
        assert_eq!(half.defer(key(10, 9), 3, "next"), (0, false));
        assert_eq!((half.uncharge_deferred(0), half.deferred()), (3, 2));
        let last = 2 * RETAINED as u64;
        for upcall in 2..=last {
            assert_eq!(half.defer(key(12, 1000 + upcall), 1, "one of many"), (upcall, false));
        }
        assert_eq!(half.cancel(CancelledRequests::Request(12), None).len(), 2 * RETAINED - 1);
        (0..=last).for_each(|number| assert!(half.end_deferred(number).is_some(), "{number}"));
        assert_eq!((half.deferred(), half.end_deferred(last)), (0, None));
        assert_eq!(half.defer(key(14, 9999), 1, "first"), (0, false));
    }
}
