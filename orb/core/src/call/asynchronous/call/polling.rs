//! The polling driver of a call: each event advances it through the states of
//! [`invocation`](crate::call::invocation) until it waits for the next event.

use std::fmt;

use spandrel_cdr::Encoder;
use spandrel_connection::{RequestLoss, SentContexts};
use spandrel_giop::{ServiceContext, SystemException};
use spandrel_sync::Arc;

use super::{AsyncCallProgress, AwaitedEvent, Call, SentRequest};
use crate::{
    call::{
        connection_contexts::ConnectionContexts,
        invocation::{Verdict, unexpected_reply_kind},
        scratch,
    },
    client::{
        CallFailure, ClientConnection, Lease, LeaseResult, Peer, Reply, ReplyKind, ReplyReceiver, UnsentKind,
        WriteLimits, call_kind::joined, destination::Destination, urgency::UrgencyScope,
    },
    diagnostics::{CallObserver, ObservedCall},
    reference::object::Forward,
};

impl Call {
    /// Advances the call until it waits for an event.
    pub(super) fn advance(self: &Arc<Self>, progress: AsyncCallProgress) {
        let _urgency = (self.urgency > 0).then(|| UrgencyScope::enter(self.urgency));
        match &self.observed {
            Some(observed) => observed.in_scope(|| self.advance_in_scope(progress)),
            None => self.advance_in_scope(progress),
        }
    }

    fn advance_in_scope(self: &Arc<Self>, progress: AsyncCallProgress) {
        let mut next = Some(progress);
        while let Some(mut progress) = next {
            next = match self.select(&mut progress) {
                Ok(()) => self.attempt(progress),
                Err(exception) => {
                    self.finish(Err(exception));
                    None
                }
            };
        }
    }

    /// Select: the destination of the next attempt, unless the call has waited for a connection to it.
    fn select(&self, progress: &mut AsyncCallProgress) -> Result<(), SystemException> {
        while progress.selected.is_none() {
            let mut invocation = self.invocation(&mut progress.invocation);
            let destinations = self.object.destinations(progress.forward.as_deref())?;
            let Some(index) = invocation.select(destinations) else {
                progress.forward = self.object.forwarded();
                invocation.begin_round(self.object.destinations(progress.forward.as_deref())?.len());
                continue;
            };
            let is_sent_there = match &mut progress.points {
                Some(points) => points.begin_request(&mut invocation, progress.forward.as_deref(), index)?,
                None => true,
            };
            progress.selected = is_sent_there.then_some(index);
        }
        Ok(())
    }

    /// Lease and Send. Returns the progress if the call is to be advanced by this thread.
    fn attempt(self: &Arc<Self>, mut progress: AsyncCallProgress) -> Option<AsyncCallProgress> {
        let mut invocation = self.invocation(&mut progress.invocation);
        if let Err(failure) = invocation.begin_attempt() {
            return self.handle_failure(failure, progress);
        }
        let (connect_time, keeps_connections) = (invocation.begin_lease(), invocation.keeps_connections());
        let destination = self.destination(progress.forward.as_deref(), progress.selected);
        let leased = match (invocation.adopted(destination), keeps_connections) {
            (Some(adopted), _) => Ok(Some(Lease::of(Arc::clone(&destination.peer), adopted))),
            (None, true) => destination.peer.lease_open_async().map(Some),
            (None, false) => Ok(destination.peer.lease_at_once()),
        };
        match leased {
            Ok(Some(lease)) => return self.send(lease, progress),
            Ok(None) => {}
            Err(failure) => return self.handle_failure(failure, progress),
        }
        let peer = Arc::clone(&destination.peer);
        // Before the event can be reported.
        if !self.set_awaited_event(AwaitedEvent::Connection(Arc::clone(&peer)), progress) {
            return None;
        }
        match peer.lease_async(connect_time, &(Arc::clone(self) as Arc<dyn ReplyReceiver>)) {
            Ok(LeaseResult::Parked) => None,
            Ok(LeaseResult::Leased(lease)) => self.send(lease, self.take_progress()?),
            Err(failure) => self.handle_failure(failure, self.take_progress()?),
        }
    }

    /// Sends the request on a connection. Returns the progress if the call is to be advanced by this thread.
    fn send(self: &Arc<Self>, lease: Lease<Arc<Peer>>, mut progress: AsyncCallProgress) -> Option<AsyncCallProgress> {
        let is_fresh = lease.fresh || std::mem::take(&mut progress.has_waited);
        self.invocation(&mut progress.invocation).leased(is_fresh);
        let (connection, request_id) = (Arc::clone(&lease), lease.request_id());
        let forward = progress.forward.clone();
        let destination = self.destination(forward.as_deref(), progress.selected);
        let bounds = destination.peer.settings.write_limits;
        let mut contexts = progress.points.as_ref().map_or(&[][..], |points| points.contexts()).to_vec();
        contexts.extend_from_slice(self.observed.as_ref().map_or(&[], ObservedCall::contexts));
        // Before the reply can arrive.
        if !self.set_awaited_event(AwaitedEvent::Reply(SentRequest { lease, request_id, located_for: None }), progress)
        {
            return None;
        }
        let failure = self.write(&connection, destination, (request_id, &contexts), bounds).err()?;
        let (sent, progress) = self.take_sent_request()?;
        if failure.loss == RequestLoss::CodeSetsUnknown {
            return self.locate(sent, failure, destination, progress);
        }
        drop(sent);
        self.handle_failure(failure, progress)
    }

    /// Sends a LocateRequest in place of a request that lacks code sets, as the blocking driver does. Returns the progress
    /// if the call is to be advanced by this thread.
    #[cold]
    fn locate(
        self: &Arc<Self>,
        mut sent: SentRequest,
        failure: CallFailure,
        destination: &Destination,
        progress: AsyncCallProgress,
    ) -> Option<AsyncCallProgress> {
        let (connection, request_id) = (Arc::clone(&sent.lease), sent.request_id);
        sent.located_for = Some(Box::new(failure));
        if !self.set_awaited_event(AwaitedEvent::Reply(sent), progress) {
            return None;
        }
        let mut out = Encoder::reusing(scratch::take(), destination.template.wire());
        let written = destination.locate(&mut out, request_id).map_err(|error| CallFailure::new(error.into()));
        let receiver = Arc::clone(self) as Arc<dyn ReplyReceiver>;
        let bounds = destination.peer.settings.write_limits;
        let written =
            written.and_then(|()| connection.send_async(request_id, &out, UnsentKind::TwoWay, receiver, bounds));
        scratch::give(out);
        let failure = written.err()?;
        let (sent, progress) = self.take_sent_request()?;
        drop(sent);
        self.handle_failure(failure, progress)
    }

    fn write(
        self: &Arc<Self>,
        connection: &Arc<ClientConnection>,
        destination: &Destination,
        (request_id, contexts): (u32, &[ServiceContext]),
        bounds: WriteLimits,
    ) -> Result<(), CallFailure> {
        let orb = self.object.orb();
        orb.client_reactor().register_connection(connection).map_err(CallFailure::new)?;
        let mut out = Encoder::reusing(scratch::take(), destination.template.wire());
        let kind = if self.response.is_expected() { UnsentKind::TwoWay } else { UnsentKind::OneWay };
        let receiver = Arc::clone(self) as Arc<dyn ReplyReceiver>;
        let connection_contexts =
            (!connection.has_sent_contexts()).then(|| ConnectionContexts::new(orb, connection, destination));
        let sent = connection_contexts.as_ref().map_or(&[][..], |connection_contexts| &connection_contexts.contexts);
        let contexts = &*joined(sent, contexts);
        let encoded = self.arguments.request(
            &mut out,
            destination,
            (contexts, self.deadline.as_ref()),
            request_id,
            self.response,
            &self.operation,
        );
        if let Some(observed) = &self.observed {
            let connection = (connection.metrics(), connection.peer() as &dyn fmt::Display);
            observed.sent(Some(connection), &destination.object_key, request_id, out.position());
        }
        let sent = encoded.and_then(|()| connection.send_async(request_id, &out, kind, receiver, bounds));
        if let (Some(connection_contexts), Ok(())) = (&connection_contexts, &sent) {
            // The server has to know the code sets before it reads a request without them.
            connection.mark_sent(connection_contexts.sent.without(SentContexts::CODE_SETS));
        }
        scratch::give(out);
        sent
    }

    /// Judges a failed attempt; returns the progress if the call continues.
    fn handle_failure(
        self: &Arc<Self>,
        failure: CallFailure,
        mut progress: AsyncCallProgress,
    ) -> Option<AsyncCallProgress> {
        let destination = self.destination(progress.forward.as_deref(), progress.selected);
        let verdict = self.invocation(&mut progress.invocation).failed(failure, destination);
        self.end_attempt(verdict, None, progress)
    }

    /// Judges a reply; returns the progress if the call continues.
    fn handle_reply(
        self: &Arc<Self>,
        mut reply: Reply,
        sent: SentRequest,
        mut progress: AsyncCallProgress,
    ) -> Option<AsyncCallProgress> {
        if let (Some(failure), ReplyKind::Locate(_)) = (&sent.located_for, reply.kind) {
            let failure = CallFailure::clone(failure);
            drop(sent);
            let destination = self.destination(progress.forward.as_deref(), progress.selected);
            reply.wire = destination.template.wire();
            let verdict = self.invocation(&mut progress.invocation).located(Some(&reply), failure, destination);
            return self.end_attempt(verdict, None, progress);
        }
        if sent.located_for.is_some() || !matches!(reply.kind, ReplyKind::Reply(_)) {
            let failure = unexpected_reply_kind(&sent.lease);
            drop(sent);
            return self.handle_failure(failure, progress);
        }
        // The request of this reply carried the code sets, unless an earlier one did.
        sent.lease.mark_code_sets_received();
        drop(sent);
        reply.wire = self.destination(progress.forward.as_deref(), progress.selected).template.wire();
        let verdict = self.invocation(&mut progress.invocation).replied(Some(&reply));
        self.end_attempt(verdict, Some(reply), progress)
    }

    /// Ends an attempt with a verdict, which interceptors may change.
    fn end_attempt(
        self: &Arc<Self>,
        mut verdict: Result<Verdict, SystemException>,
        reply: Option<Reply>,
        mut progress: AsyncCallProgress,
    ) -> Option<AsyncCallProgress> {
        if let Some(points) = &mut progress.points {
            let mut invocation = self.invocation(&mut progress.invocation);
            verdict = points.end_request(&mut invocation, verdict, reply.as_ref());
        }
        match verdict {
            Ok(Verdict::Done) => self.finish(Ok(reply)),
            Err(exception) => self.finish(Err(exception)),
            Ok(_) => return Some(AsyncCallProgress { selected: None, has_waited: false, ..progress }),
        }
        None
    }

    /// The destination of the current attempt.
    pub(super) fn destination<'c>(&'c self, forward: Option<&'c Forward>, selected: Option<usize>) -> &'c Destination {
        let destinations = self.object.destinations(forward).expect("resolved by the round");
        &destinations[selected.expect("an attempt has a destination")]
    }

    /// Handles the outcome of the request.
    pub(super) fn handle_outcome(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let Some((sent, mut progress)) = self.take_sent_request() else { return };
        let next = match outcome {
            Ok(Some(reply)) => self.handle_reply(reply, sent, progress),
            Ok(None) => {
                drop(sent);
                let verdict = self.invocation(&mut progress.invocation).replied(None);
                self.end_attempt(verdict, None, progress)
            }
            Err(failure) => {
                drop(sent);
                self.handle_failure(failure, progress)
            }
        };
        if let Some(progress) = next {
            self.advance(progress);
        }
    }

    /// Handles the outcome of opening a connection.
    pub(super) fn handle_connection(self: Arc<Self>, outcome: Result<(), CallFailure>, is_new: bool) {
        let Some(mut progress) = self.take_progress() else { return };
        let next = match outcome {
            Ok(()) => {
                progress.has_waited = is_new;
                Some(progress)
            }
            Err(failure) => self.handle_failure(failure, progress),
        };
        if let Some(progress) = next {
            self.advance(progress);
        }
    }
}
