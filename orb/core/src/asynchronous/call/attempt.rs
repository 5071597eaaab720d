//! Attempts of a call: the next destination, the sending of the request, and the consequences of its reply.

use std::fmt;

use spandrel_cdr::Encoder;
use spandrel_giop::{ServiceContext, SystemException};
use spandrel_sync::Arc;

use super::{AsyncCallProgress, Call, CallLocation, SentRequest};
use crate::{
    client::{
        CallFailure, ClientConnection, Lease, LeaseResult, Peer, Reply, ReplyKind, ReplyReceiver, UnsentKind,
        WriteLimits, not_sent_in_time,
    },
    connection_contexts::ConnectionContexts,
    destination::Destination,
    diagnostics::{CallObserver, ObservedCall},
    invocation::{ProfileSelector, ReplyAction, joined, unexpected_reply_kind},
    scratch,
};

/// The index of the next destination among these.
type NextDestination = (usize, Arc<[Destination]>);

impl Call {
    /// Advances the call until it waits for an event.
    pub(super) fn advance(self: &Arc<Self>, progress: AsyncCallProgress) {
        match &self.watched {
            Some(watched) => watched.in_scope(|| self.advance_in_scope(progress)),
            None => self.advance_in_scope(progress),
        }
    }

    fn advance_in_scope(self: &Arc<Self>, mut progress: AsyncCallProgress) {
        loop {
            let (index, destinations) = match self.begin_attempt(&mut progress) {
                Ok(Some(next)) => next,
                Ok(None) => {
                    progress.selector = None;
                    continue;
                }
                Err(exception) => return self.finish(Err(exception)),
            };
            let destination = &destinations[index];
            let share =
                progress.selector.as_ref().and_then(|(selector, _)| selector.connect_time(self.deadline.as_ref()));
            let keeps_connections = self.request.object.keeps_connections(&progress.retry_state);
            // Before the event can be reported.
            if !self.set_location(CallLocation::Parked(Arc::clone(&destination.peer)), progress) {
                return;
            }
            let adopted = destination.adopted(self.request.object.orb());
            let lease_result = match (adopted, keeps_connections) {
                (Some(adopted), _) => Ok(LeaseResult::Leased(Lease::of(Arc::clone(&destination.peer), adopted))),
                (None, true) => destination.peer.lease_open_async(),
                (None, false) => destination.peer.lease_async(share, &(Arc::clone(self) as Arc<dyn ReplyReceiver>)),
            };
            if matches!(lease_result, Ok(LeaseResult::Parked)) {
                return;
            }
            let Some(mut current_progress) = self.take_progress() else { return };
            match lease_result {
                Ok(LeaseResult::Parked) => return,
                Ok(LeaseResult::Leased(lease)) => match self.send(lease, index, &destinations, current_progress) {
                    Some(unsent) => progress = unsent,
                    None => return,
                },
                Err(failure) => {
                    current_progress.connect_failed(failure);
                    progress = current_progress;
                }
            }
        }
    }

    /// Begins an attempt at the next destination; `None` if an interceptor has forwarded the call.
    fn begin_attempt(&self, progress: &mut AsyncCallProgress) -> Result<Option<NextDestination>, SystemException> {
        let has_expired = self.deadline.as_ref().is_some_and(|deadline| deadline.left_to_send().is_zero());
        let next =
            if has_expired { Err(not_sent_in_time(self.deadline.as_ref())) } else { self.next_destination(progress) };
        match next {
            Ok(next) => {
                Ok(progress.interception.begin(&self.request, &mut progress.retry_state, next.0)?.then_some(next))
            }
            Err(exception) => {
                progress.interception.fail(&self.request, &mut progress.retry_state, exception).map(|()| None)
            }
        }
    }

    /// The next destination, in this attempt or in a retry, if one is permitted.
    fn next_destination(&self, progress: &mut AsyncCallProgress) -> Result<NextDestination, SystemException> {
        loop {
            let (mut selector, destinations) = match progress.selector.take() {
                Some(selector) => selector,
                None => {
                    let destinations = self.request.object.destinations()?;
                    (ProfileSelector::new(&self.request.object, destinations.len()), destinations)
                }
            };
            if let Some(index) = selector.next(&destinations) {
                progress.selector = Some((selector, Arc::clone(&destinations)));
                return Ok((index, destinations));
            }
            self.request.object.may_retry(
                selector.into_failure(),
                &mut progress.retry_state,
                self.deadline.as_ref(),
            )?;
        }
    }

    /// Sends the request on a connection. Returns the progress if the call is to be advanced by this thread.
    fn send(
        self: &Arc<Self>,
        lease: Lease<Arc<Peer>>,
        index: usize,
        destinations: &[Destination],
        progress: AsyncCallProgress,
    ) -> Option<AsyncCallProgress> {
        let destination = &destinations[index];
        let (connection, request_id) = (Arc::clone(&lease), lease.request_id());
        let bounds = destination.peer.bounds();
        let mut contexts = progress.interception.contexts().to_vec();
        contexts.extend_from_slice(self.watched.as_ref().map_or(&[], ObservedCall::contexts));
        // Before the reply can arrive.
        if !self.set_location(CallLocation::SentRequest(SentRequest { lease, request_id, index }), progress) {
            return None;
        }
        let failure = self.write(&connection, destination, (request_id, &contexts), bounds).err()?;
        let (sent, progress) = self.take_sent_request()?;
        self.handle_failure(failure, sent, progress)
    }

    fn write(
        self: &Arc<Self>,
        connection: &Arc<ClientConnection>,
        destination: &Destination,
        (request_id, contexts): (u32, &[ServiceContext]),
        bounds: WriteLimits,
    ) -> Result<(), CallFailure> {
        self.request.object.orb().client_reactor().register_connection(connection).map_err(CallFailure::new)?;
        let mut out = Encoder::reusing(scratch::take(), destination.template.wire());
        let kind = if self.request.response.is_expected() { UnsentKind::TwoWay } else { UnsentKind::OneWay };
        let receiver = Arc::clone(self) as Arc<dyn ReplyReceiver>;
        let connection_contexts = (!connection.has_sent_contexts())
            .then(|| ConnectionContexts::new(self.request.object.orb(), connection, destination));
        let sent = connection_contexts.as_ref().map_or(&[][..], |connection_contexts| &connection_contexts.contexts);
        let contexts = &*joined(sent, contexts);
        let encoded = self.arguments.request(
            &mut out,
            destination,
            (contexts, self.deadline.as_ref()),
            request_id,
            self.request.response,
            &self.request.operation,
        );
        if let Some(watched) = &self.watched {
            let connection = (connection.metrics(), connection.peer() as &dyn fmt::Display);
            watched.sent(Some(connection), &destination.object_key, request_id, out.position());
        }
        let sent = encoded.and_then(|()| connection.send_async(request_id, &out, kind, receiver, bounds));
        if let (Some(connection_contexts), Ok(())) = (&connection_contexts, &sent) {
            connection_contexts.mark_listen_points_sent(connection);
        }
        scratch::give(out.into_scratch());
        sent
    }

    /// Handles a failed request; returns the progress if the call continues.
    fn handle_failure(
        self: &Arc<Self>,
        failure: CallFailure,
        sent: SentRequest,
        mut progress: AsyncCallProgress,
    ) -> Option<AsyncCallProgress> {
        let SentRequest { lease, index, .. } = sent;
        let fresh = lease.fresh || std::mem::take(&mut progress.has_waited);
        drop(lease);
        let (mut selector, destinations) = progress.selector.take().expect("a request is sent by an attempt");
        progress.interception.mark_lost();
        match selector.request_failed(failure, fresh, &destinations[index]) {
            Ok(()) => progress.selector = Some((selector, destinations)),
            Err(failure) => {
                let AsyncCallProgress { retry_state, interception, .. } = &mut progress;
                let retries = self.request.object.may_retry(failure, retry_state, self.deadline.as_ref());
                if let Err(exception) =
                    retries.or_else(|exception| interception.fail(&self.request, retry_state, exception))
                {
                    self.finish(Err(exception));
                    return None;
                }
            }
        }
        Some(progress)
    }

    /// Handles a reply; returns the progress if the call continues.
    fn handle_reply(
        self: &Arc<Self>,
        mut reply: Reply,
        sent: SentRequest,
        mut progress: AsyncCallProgress,
    ) -> Option<AsyncCallProgress> {
        if !matches!(reply.kind, ReplyKind::Reply(_)) {
            let failure = unexpected_reply_kind(&sent.lease);
            return self.handle_failure(failure, sent, progress);
        }
        // The request of this reply carried the code sets, unless an earlier one did.
        sent.lease.mark_code_sets_received();
        let index = sent.index;
        drop(sent);
        if let Some((mut selector, destinations)) = progress.selector.take() {
            reply.wire = destinations[index].template.wire();
            if selector.continues_after(&reply, &self.request.object) {
                progress.interception.mark_lost();
                progress.selector = Some((selector, destinations));
                return Some(AsyncCallProgress { has_waited: false, ..progress });
            }
            selector.mark_preferred(&self.request.object);
        }
        let evaluated = self.request.object.evaluate_reply(&reply, &mut progress.retry_state);
        match progress.interception.evaluate_reply(&self.request, &mut progress.retry_state, &reply, evaluated) {
            Ok(ReplyAction::Resend) => Some(AsyncCallProgress { has_waited: false, ..progress }),
            Ok(ReplyAction::Answer) => {
                self.request.object.mark_answered(&reply);
                self.finish(Ok(Some(reply)));
                None
            }
            Err(exception) => {
                self.finish(Err(exception));
                None
            }
        }
    }

    /// Handles the outcome of the request.
    pub(super) fn handle_outcome(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let Some((sent, progress)) = self.take_sent_request() else { return };
        let goes_on = match outcome {
            Ok(Some(reply)) => self.handle_reply(reply, sent, progress),
            Ok(None) => {
                drop(sent);
                self.finish(Ok(None));
                None
            }
            Err(failure) => self.handle_failure(failure, sent, progress),
        };
        if let Some(progress) = goes_on {
            self.advance(progress);
        }
    }

    /// Handles the outcome of opening a connection.
    pub(super) fn handle_connection(self: Arc<Self>, outcome: Result<(), CallFailure>, is_new: bool) {
        let Some(mut progress) = self.take_progress() else { return };
        match outcome {
            Ok(()) => progress.has_waited = is_new,
            Err(failure) => progress.connect_failed(failure),
        }
        self.advance(progress);
    }
}

impl AsyncCallProgress {
    fn connect_failed(&mut self, failure: CallFailure) {
        self.has_waited = false;
        self.interception.mark_lost();
        if let Some((selector, _)) = &mut self.selector {
            selector.connect_failed(failure);
        }
    }
}
