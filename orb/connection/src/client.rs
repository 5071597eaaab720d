//! The half of the side that sends requests and waits for replies.

use crate::{
    CallFailure, ConnectionEnd, RequestLoss, Written,
    call_table::{CallTable, PendingCall},
};

/// With more abandoned requests than this, a connection is not used for further calls.
const MAX_ABANDONED: usize = 256;

/// The calls that wait for replies on one connection, and the reason for its end.
///
/// `W` is the waiter of a call: a thread, a task, or the number of a call in a test. A half keeps each waiter
/// until its reply or its failure is given to it.
///
/// | event | no entry | pending | abandoned |
/// | --- | --- | --- | --- |
/// | [`begin`](Self::begin) | pending | | |
/// | [`reply`](Self::reply) | the reply is dropped | the waiter, to be given the reply | removed, the reply is dropped |
/// | [`abandon`](Self::abandon), request taken back | unknown | removed: not sent | removed: not sent |
/// | [`abandon`](Self::abandon), otherwise | unknown | abandoned: in doubt | unknown |
/// | [`remove`](Self::remove) | nothing | removed | removed |
/// | [`end`](Self::end) | nothing | fails, by how far the request was written | removed |
///
/// After the end, nothing begins, and only the first reason for it counts.
#[derive(Debug)]
pub struct ClientHalf<W> {
    calls: CallTable<W>,
    /// The requests whose replies are dropped when they come.
    abandoned: Vec<u32>,
    /// Whether the peer may send requests, so that messages are awaited without a call.
    accepts_requests: bool,
    end: Option<ConnectionEnd>,
}

/// The entry of a call that waits for its reply, in the table of a connection.
#[derive(Debug)]
pub struct CallEntry<'h, W> {
    calls: &'h mut CallTable<W>,
    end: Option<&'h ConnectionEnd>,
    at: usize,
}

impl<W> CallEntry<'_, W> {
    /// The thread or task that is given the outcome of the call.
    #[inline]
    pub fn waiter(&mut self) -> &mut W {
        &mut self.calls.at_mut(self.at).waiter
    }

    /// Removes the entry, because its waiter was or will be given the outcome.
    #[inline]
    pub fn remove(self) -> W {
        self.calls.remove(self.at).waiter
    }

    /// The failure of the call, if the connection has ended.
    #[must_use]
    pub fn failure(&self) -> Option<CallFailure> {
        self.end.map(|end| end.failure(self.calls.at(self.at).written))
    }
}

/// The result of abandoning a request.
#[derive(Debug, Eq, PartialEq)]
pub enum Abandoned<W> {
    /// The request has no entry: its outcome was given before.
    Unknown,
    /// The peer will never have the whole request.
    NotSent(Option<W>),
    /// The peer may have the request. Its reply will be dropped.
    InDoubt(W),
}

impl<W> Default for ClientHalf<W> {
    fn default() -> Self {
        Self { calls: CallTable::default(), abandoned: Vec::new(), accepts_requests: false, end: None }
    }
}

impl<W> ClientHalf<W> {
    /// The first reason for which the connection has ended; `None` while it is open.
    #[inline]
    #[must_use]
    pub fn ended(&self) -> Option<&ConnectionEnd> {
        self.end.as_ref()
    }

    /// Fails if the connection has ended. No octet of the request was written then.
    ///
    /// # Errors
    /// A failure that lets the request be sent on another connection.
    #[inline]
    pub fn check_open(&self) -> Result<(), CallFailure> {
        match &self.end {
            None => Ok(()),
            Some(end) => Err(not_begun(end)),
        }
    }

    /// Whether one call may write its request and read its reply without an entry: no other message is
    /// awaited.
    #[inline]
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.calls.is_empty() && self.abandoned.is_empty() && !self.accepts_requests
    }

    /// Adds the entry of a request, before anything of it is written. The transport may accept it at any time
    /// from now on, unless [`set_written`](Self::set_written) says otherwise.
    ///
    /// # Errors
    /// The waiter, if the connection has ended.
    pub fn begin(&mut self, request_id: u32, waiter: W) -> Result<(), W> {
        self.begin_written(request_id, waiter, Written::Whole)
    }

    /// As [`begin`](Self::begin), of a request that the transport has accepted so far.
    ///
    /// # Errors
    /// The waiter, if the connection has ended.
    pub fn begin_written(&mut self, request_id: u32, waiter: W, written: Written) -> Result<(), W> {
        if self.end.is_some() {
            return Err(waiter);
        }
        self.calls.push(PendingCall { request_id, written, waiter });
        Ok(())
    }

    /// Records how far the transport has accepted a request.
    pub fn set_written(&mut self, request_id: u32, written: Written) {
        if let Some(at) = self.find(request_id) {
            self.calls.at_mut(at).written = written;
        }
    }

    /// The number of requests without a reply, abandoned ones included.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.calls.len() + self.abandoned.len()
    }

    /// Accepts requests of the peer from now on, unless the connection has ended (9.8).
    pub fn accept_requests(&mut self) {
        self.accepts_requests = self.end.is_none();
    }

    /// Whether messages are awaited that no waiter reads for itself: requests of the peer, replies that were
    /// given up, or those of waiters for which `reads` is false.
    pub fn needs_reader(&self, reads: impl Fn(&W) -> bool) -> bool {
        self.accepts_requests || !self.abandoned.is_empty() || !self.waiters().all(reads)
    }

    /// The request ids and the waiters of all calls.
    pub fn calls(&self) -> impl Iterator<Item = (u32, &W)> {
        self.calls.iter().map(|call| (call.request_id, &call.waiter))
    }

    /// The waiters of all calls without a reply, in no order.
    pub fn waiters(&self) -> impl Iterator<Item = &W> {
        self.calls.iter().map(|call| &call.waiter)
    }

    /// The entry of the call with this request id, if it still waits.
    #[inline]
    pub fn call(&mut self, request_id: u32) -> Option<CallEntry<'_, W>> {
        let at = self.find(request_id)?;
        Some(CallEntry { calls: &mut self.calls, end: self.end.as_ref(), at })
    }

    /// The entry of the call that a reply is for; `None` for a reply that is to be dropped.
    pub fn reply(&mut self, request_id: u32) -> Option<CallEntry<'_, W>> {
        if !self.abandoned.is_empty() {
            self.abandoned.retain(|abandoned| *abandoned != request_id);
        }
        self.call(request_id)
    }

    /// Removes the entry of a request. Returns its waiter, unless the request was abandoned.
    pub fn remove(&mut self, request_id: u32) -> Option<W> {
        self.reply(request_id).map(CallEntry::remove)
    }

    /// Stops waiting for a reply. `is_taken_back`: the request was withdrawn before its last octet was
    /// written, and never will be written.
    pub fn abandon(&mut self, request_id: u32, is_taken_back: bool) -> Abandoned<W> {
        let Some(at) = self.find(request_id) else {
            let before = self.abandoned.len();
            self.abandoned.retain(|abandoned| !(is_taken_back && *abandoned == request_id));
            return if self.abandoned.len() < before { Abandoned::NotSent(None) } else { Abandoned::Unknown };
        };
        let PendingCall { waiter, .. } = self.calls.remove(at);
        if is_taken_back {
            return Abandoned::NotSent(Some(waiter));
        }
        self.abandoned.push(request_id);
        Abandoned::InDoubt(waiter)
    }

    /// Whether so many requests were abandoned without a reply that no further one is to be sent.
    #[must_use]
    pub fn has_too_many_abandoned(&self) -> bool {
        self.abandoned.len() > MAX_ABANDONED
    }

    /// Removes the requests that cannot be written to their end, because this side has given up writing.
    /// Their calls may be repeated with the returned loss. `stays`: whether a waiter keeps its entry, because
    /// it finds out itself.
    pub fn fail_unwritten(
        &mut self,
        is_lost: impl Fn(u32) -> bool,
        stays: impl Fn(&W) -> bool,
    ) -> (Vec<W>, RequestLoss) {
        self.abandoned.retain(|request_id| !is_lost(*request_id));
        let lost = self.calls.extract(|call| is_lost(call.request_id) && !stays(&call.waiter));
        let waiters = lost.into_iter().map(|call| call.waiter).collect();
        let loss = match &self.end {
            None => RequestLoss::ConnectionAbandoned,
            Some(end) => end.cause.loss(Written::Partly),
        };
        (waiters, loss)
    }

    /// Ends the connection: no reply will come. Returns the waiters of the calls, each with its failure, for
    /// notification without a lock. `stays`: whether a waiter keeps its entry, because it reads its
    /// [failure](CallEntry::failure) itself.
    pub fn end(&mut self, end: ConnectionEnd, stays: impl Fn(&W) -> bool) -> Vec<(W, CallFailure)> {
        let end = self.end.get_or_insert(end);
        self.accepts_requests = false;
        self.abandoned = Vec::new();
        let ended_calls = self.calls.extract(|call| !stays(&call.waiter));
        ended_calls.into_iter().map(|call| (call.waiter, end.failure(call.written))).collect()
    }

    #[inline]
    fn find(&self, request_id: u32) -> Option<usize> {
        self.calls.find(request_id)
    }
}

/// Fails a request that was to be sent after the end of the connection.
#[cold]
fn not_begun(end: &ConnectionEnd) -> CallFailure {
    CallFailure::of(RequestLoss::NotWritten, end.exception.clone())
}

#[cfg(test)]
mod tests {
    use spandrel_giop::{
        CompletionStatus::{self, Maybe, No},
        SystemException,
    };

    use super::*;
    use crate::EndCause;

    fn half_with(calls: &[u32]) -> ClientHalf<u32> {
        let mut half = ClientHalf::default();
        calls.iter().for_each(|id| half.begin(*id, id + 100).expect("it is open"));
        half
    }

    fn end_by(cause: EndCause) -> ConnectionEnd {
        ConnectionEnd { cause, exception: SystemException::comm_failure(0, Maybe) }
    }

    fn end(half: &mut ClientHalf<u32>, cause: EndCause) -> Vec<(u32, CompletionStatus, bool)> {
        let lost = half.end(end_by(cause), |_| false);
        lost.into_iter()
            .map(|(waiter, failure)| (waiter, failure.exception.completed(), failure.may_repeat()))
            .collect()
    }

    #[test]
    fn a_reply_finds_its_waiter_in_any_order() {
        let mut half = half_with(&[2, 4, 6]);
        for id in [4, 6, 2] {
            assert_eq!(*half.reply(id).expect("it waits").waiter(), id + 100);
            assert_eq!(half.remove(id), Some(id + 100));
            assert!(half.reply(id).is_none(), "a second reply is dropped");
        }
        assert!(half.is_free());
    }

    #[test]
    fn a_call_is_free_to_go_alone_only_where_nothing_else_is_awaited() {
        let mut half = half_with(&[2]);
        assert!(!half.is_free());
        half.remove(2);
        assert!(half.is_free());
        half.accept_requests();
        assert!(!half.is_free());
        assert!(half.needs_reader(|_| true));
    }

    #[test]
    fn an_abandoned_request_awaits_its_reply_and_drops_it() {
        let mut half = half_with(&[2, 4]);
        assert_eq!(half.abandon(2, false), Abandoned::InDoubt(102));
        assert_eq!(half.abandon(2, false), Abandoned::Unknown);
        assert_eq!(half.pending(), 2);
        assert!(half.needs_reader(|_| true), "the reply has to be read");
        assert!(half.reply(2).is_none());
        assert_eq!(half.pending(), 1);
        assert!(!half.needs_reader(|_| true));
    }

    #[test]
    fn a_request_that_is_taken_back_leaves_nothing() {
        let mut half = half_with(&[2, 4]);
        assert_eq!(half.abandon(2, true), Abandoned::NotSent(Some(102)));
        assert_eq!(half.abandon(2, true), Abandoned::Unknown);
        assert_eq!(half.abandon(4, false), Abandoned::InDoubt(104));
        assert_eq!(half.abandon(4, true), Abandoned::NotSent(None));
        assert!(half.is_free());
    }

    #[test]
    fn a_connection_with_many_abandoned_requests_is_not_used_further() {
        let mut half = ClientHalf::default();
        for id in 0..=MAX_ABANDONED as u32 {
            assert!(!half.has_too_many_abandoned());
            half.begin(id, id).expect("it is open");
            assert_eq!(half.abandon(id, false), Abandoned::InDoubt(id));
        }
        assert!(half.has_too_many_abandoned());
    }

    #[test]
    fn the_end_tells_each_call_by_how_far_its_request_was_written() {
        let table = [
            (EndCause::CloseConnection, (No, true), (No, true)),
            (EndCause::MessageError, (Maybe, false), (No, false)),
            (EndCause::Failed, (Maybe, false), (No, true)),
        ];
        for (cause, whole, partly) in table {
            let mut half = half_with(&[2, 4, 6]);
            half.set_written(4, Written::Partly);
            half.abandon(6, false);
            let mut ended_calls = end(&mut half, cause);
            ended_calls.sort_unstable_by_key(|(waiter, ..)| *waiter);
            assert_eq!(ended_calls, [(102, whole.0, whole.1), (104, partly.0, partly.1)], "{cause:?}");
            assert_eq!(half.pending(), 0);
        }
    }

    #[test]
    fn a_waiter_that_stays_asks_for_its_failure() {
        let mut half = half_with(&[2, 4]);
        assert!(half.call(2).expect("it waits").failure().is_none());
        let ended_calls = half.end(end_by(EndCause::CloseConnection), |id| *id == 102);
        assert_eq!(ended_calls.into_iter().map(|(waiter, _)| waiter).collect::<Vec<_>>(), [104]);
        let call = half.call(2).expect("it waits");
        assert_eq!(call.failure().expect("it has ended").loss, RequestLoss::ClosedOrderly);
        assert_eq!(half.remove(2), Some(102));
    }

    #[test]
    fn the_first_reason_for_the_end_holds() {
        let mut half = half_with(&[2]);
        assert!(half.ended().is_none());
        half.end(end_by(EndCause::CloseConnection), |_| true);
        assert_eq!(half.ended().expect("it has ended").cause, EndCause::CloseConnection);
        assert_eq!(end(&mut half, EndCause::Failed), [(102, No, true)]);
        assert_eq!(half.ended().expect("it has ended").cause, EndCause::CloseConnection);
    }

    #[test]
    fn the_waiters_are_those_of_all_calls_and_one_that_does_not_read_needs_a_reader() {
        let mut half = half_with(&[2, 4, 6]);
        half.abandon(4, true);
        let mut waiters: Vec<u32> = half.waiters().copied().collect();
        waiters.sort_unstable();
        assert_eq!(waiters, [102, 106]);
        assert!(!half.needs_reader(|_| true));
        assert!(half.needs_reader(|id| *id != 106));
        assert!(!half_with(&[]).needs_reader(|_| false), "no message is awaited");
    }

    #[test]
    fn nothing_begins_after_the_end() {
        for cause in [EndCause::CloseConnection, EndCause::MessageError, EndCause::Failed] {
            let mut half = half_with(&[]);
            end(&mut half, cause);
            assert_eq!(half.begin(2, 102), Err(102));
            half.accept_requests();
            assert!(half.is_free());
            let failure = half.check_open().expect_err("it has ended");
            assert_eq!((failure.loss, failure.exception.completed()), (RequestLoss::NotWritten, No), "{cause:?}");
        }
    }

    #[test]
    fn requests_that_cannot_be_written_any_more_may_be_repeated() {
        let mut half = half_with(&[2, 4, 6]);
        half.abandon(6, false);
        let (lost, loss) = half.fail_unwritten(|id| id != 2, |_| false);
        assert_eq!((lost, loss), (vec![104], RequestLoss::ConnectionAbandoned));
        assert!(loss.consequence().repeats);
        assert_eq!(half.pending(), 1);
    }

    #[test]
    fn a_waiter_of_a_request_that_cannot_be_written_may_stay() {
        let mut half = half_with(&[2, 4, 6]);
        half.end(end_by(EndCause::MessageError), |_| true);
        let (lost, loss) = half.fail_unwritten(|id| id != 2, |id| *id == 104);
        assert_eq!((lost, loss), (vec![106], RequestLoss::Rejected), "the connection's end decides");
        assert_eq!(half.waiters().copied().collect::<Vec<_>>(), [102, 104]);
    }
}
