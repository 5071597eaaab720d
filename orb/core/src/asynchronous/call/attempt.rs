//! The way of a call: which destination is next, how the request gets there, and what follows from what comes back.

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
    invocation::{ProfileSelector, ReplyAction, joined, mistaken},
    scratch,
};

/// The index of the next destination, and all destinations.
type NextDestination = (usize, Arc<[Destination]>);

impl Call {
    /// Takes it further until it waits for something.
    pub(super) fn proceed(self: &Arc<Self>, progress: AsyncCallProgress) {
        match &self.watched {
            Some(watched) => watched.in_scope(|| self.advance(progress)),
            None => self.advance(progress),
        }
    }

    fn advance(self: &Arc<Self>, mut progress: AsyncCallProgress) {
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
            let share = progress.selector.as_ref().and_then(|(selector, _)| selector.share_of(self.deadline.as_ref()));
            let keeps_connections = self.request.object.keeps_connections(&progress.attempts);
            // Before anybody could want it to go on.
            if !self.put(CallLocation::Parked(Arc::clone(&destination.peer)), progress) {
                return;
            }
            #[cfg(feature = "server")]
            let adopted = destination.adopted(self.request.object.orb().bidirectional());
            #[cfg(not(feature = "server"))]
            let adopted = None;
            let leased = match (adopted, keeps_connections) {
                (Some(adopted), _) => Ok(LeaseResult::Leased(Lease::of(Arc::clone(&destination.peer), adopted))),
                (None, true) => destination.peer.lease_open_async(),
                (None, false) => destination.peer.lease_async(share, &(Arc::clone(self) as Arc<dyn ReplyReceiver>)),
            };
            if matches!(leased, Ok(LeaseResult::Parked)) {
                return;
            }
            let Some(mut retaken) = self.take_progress() else { return };
            match leased {
                Ok(LeaseResult::Parked) => return,
                Ok(LeaseResult::Leased(lease)) => match self.send(lease, index, &destinations, retaken) {
                    Some(unsent) => progress = unsent,
                    None => return,
                },
                Err(refused) => {
                    retaken.refused(refused);
                    progress = retaken;
                }
            }
        }
    }

    /// Where it is sent next; nowhere if that is to be asked once more.
    fn begin_attempt(&self, progress: &mut AsyncCallProgress) -> Result<Option<NextDestination>, SystemException> {
        let is_late = self.deadline.as_ref().is_some_and(|deadline| deadline.left_to_send().is_zero());
        let next =
            if is_late { Err(not_sent_in_time(self.deadline.as_ref())) } else { self.next_destination(progress) };
        match next {
            Ok(next) => Ok(progress.interception.begin(&self.request, &mut progress.attempts, next.0)?.then_some(next)),
            Err(exception) => {
                progress.interception.fail(&self.request, &mut progress.attempts, exception).map(|()| None)
            }
        }
    }

    /// The destination to be tried next, in this attempt or in the next one, if there may be one.
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
            self.request.object.may_repeat(selector.into_failure(), &mut progress.attempts, self.deadline.as_ref())?;
        }
    }

    /// Sends the request on a connection. What comes back goes on elsewhere.
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
        // Before the reply could come.
        if !self.put(CallLocation::SentRequest(SentRequest { lease, request_id, index }), progress) {
            return None;
        }
        let failure = self.write(&connection, destination, (request_id, &contexts), bounds).err()?;
        let (sent, progress) = self.take_sent()?;
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
        let introduction = (!connection.has_sent_contexts())
            .then(|| ConnectionContexts::new(self.request.object.orb(), connection, destination));
        let sent = introduction.as_ref().map_or(&[][..], |introduction| &introduction.contexts);
        let contexts = &*joined(sent, contexts);
        let made = self.arguments.request(
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
        let sent = made.and_then(|()| connection.send_async(request_id, &out, kind, receiver, bounds));
        if let (Some(introduction), Ok(())) = (&introduction, &sent) {
            introduction.mark_listen_points_sent(connection);
        }
        scratch::give(out.into_scratch());
        sent
    }

    /// The request failed: what goes on, if the call does.
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
        progress.interception.lose();
        match selector.failed(failure, fresh, &destinations[index]) {
            Ok(()) => progress.selector = Some((selector, destinations)),
            Err(failure) => {
                let AsyncCallProgress { attempts, interception, .. } = &mut progress;
                let repeats = self.request.object.may_repeat(failure, attempts, self.deadline.as_ref());
                if let Err(exception) =
                    repeats.or_else(|exception| interception.fail(&self.request, attempts, exception))
                {
                    self.finish(Err(exception));
                    return None;
                }
            }
        }
        Some(progress)
    }

    /// A reply has come: the outcome, or what goes on.
    fn handle_reply(
        self: &Arc<Self>,
        mut reply: Reply,
        sent: SentRequest,
        mut progress: AsyncCallProgress,
    ) -> Option<AsyncCallProgress> {
        if !matches!(reply.kind, ReplyKind::Reply(_)) {
            let failure = mistaken(&sent.lease);
            return self.handle_failure(failure, sent, progress);
        }
        // The request that it answers said it, if none before did.
        sent.lease.mark_code_sets_received();
        let index = sent.index;
        drop(sent);
        if let Some((mut selector, destinations)) = progress.selector.take() {
            reply.wire = destinations[index].template.wire();
            if selector.goes_on_after(&reply, &self.request.object) {
                progress.interception.lose();
                progress.selector = Some((selector, destinations));
                return Some(AsyncCallProgress { has_waited: false, ..progress });
            }
            selector.arrived(&self.request.object);
        }
        let judged = self.request.object.judge(&reply, &mut progress.attempts);
        match progress.interception.judge(&self.request, &mut progress.attempts, &reply, judged) {
            Ok(ReplyAction::AskAgain) => Some(AsyncCallProgress { has_waited: false, ..progress }),
            Ok(ReplyAction::Answer) => {
                self.request.object.note_answer(&reply);
                self.finish(Ok(Some(reply)));
                None
            }
            Err(exception) => {
                self.finish(Err(exception));
                None
            }
        }
    }

    /// Continues the call with the outcome of its request.
    pub(super) fn arrived(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let Some((sent, progress)) = self.take_sent() else { return };
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
            self.proceed(progress);
        }
    }

    /// A connection has been opened, or not.
    pub(super) fn connected(self: Arc<Self>, outcome: Result<(), CallFailure>, is_new: bool) {
        let Some(mut progress) = self.take_progress() else { return };
        match outcome {
            Ok(()) => progress.has_waited = is_new,
            Err(refused) => progress.refused(refused),
        }
        self.proceed(progress);
    }
}

impl AsyncCallProgress {
    fn refused(&mut self, failure: CallFailure) {
        self.has_waited = false;
        self.interception.lose();
        if let Some((selector, _)) = &mut self.selector {
            selector.refused(failure);
        }
    }
}
