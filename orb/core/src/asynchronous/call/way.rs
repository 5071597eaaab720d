//! The way of a call: which destination is next, how the request gets there, and what follows from what comes back.

use std::fmt;

use spandrel_cdr::Encoder;
use spandrel_giop::{ServiceContext, SystemException};
use spandrel_sync::Arc;

use super::{Call, Place, Progress, Sent};
use crate::{
    client::{
        Awaiting, Bounds, CallFailure, ClientConnection, Kind, Lease, Leasing, Peer, Reply, ReplyKind, not_sent_in_time,
    },
    destination::Destination,
    diagnostics::WatchedCall,
    introduction::Introduction,
    invocation::{Tour, Verdict, joined, mistaken},
    scratch,
};

/// Which of these destinations is next.
type Next = (usize, Arc<[Destination]>);

impl Call {
    /// Takes it further until it waits for something.
    pub(super) fn proceed(self: &Arc<Self>, progress: Progress) {
        match &self.watched {
            Some(watched) => watched.in_scope(|| self.go_on(progress)),
            None => self.go_on(progress),
        }
    }

    fn go_on(self: &Arc<Self>, mut progress: Progress) {
        loop {
            let (index, destinations) = match self.next_leg(&mut progress) {
                Ok(Some(next)) => next,
                Ok(None) => {
                    progress.tour = None;
                    continue;
                }
                Err(exception) => return self.finish(Err(exception)),
            };
            let destination = &destinations[index];
            let share = progress.tour.as_ref().and_then(|(tour, _)| tour.share_of(self.deadline.as_ref()));
            let keeps_connections = self.asked.object.keeps_connections(&progress.attempts);
            // Before anybody could want it to go on.
            if !self.put(Place::Parked(Arc::clone(&destination.peer)), progress) {
                return;
            }
            #[cfg(feature = "server")]
            let adopted = destination.adopted(self.asked.object.orb().bidirectional());
            #[cfg(not(feature = "server"))]
            let adopted = None;
            let leased = match (adopted, keeps_connections) {
                (Some(adopted), _) => Ok(Leasing::Leased(Lease::of(Arc::clone(&destination.peer), adopted))),
                (None, true) => destination.peer.lease_open_soon(),
                (None, false) => destination.peer.lease_soon(share, &(Arc::clone(self) as Arc<dyn Awaiting>)),
            };
            if matches!(leased, Ok(Leasing::Parked)) {
                return;
            }
            let Some(mut retaken) = self.take_progress() else { return };
            match leased {
                Ok(Leasing::Parked) => return,
                Ok(Leasing::Leased(lease)) => match self.send(lease, index, &destinations, retaken) {
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
    fn next_leg(&self, progress: &mut Progress) -> Result<Option<Next>, SystemException> {
        let is_late = self.deadline.as_ref().is_some_and(|deadline| deadline.left_to_send().is_zero());
        let next =
            if is_late { Err(not_sent_in_time(self.deadline.as_ref())) } else { self.next_destination(progress) };
        match next {
            Ok(next) => Ok(progress.leg.begin(&self.asked, &mut progress.attempts, next.0)?.then_some(next)),
            Err(exception) => progress.leg.fail(&self.asked, &mut progress.attempts, exception).map(|()| None),
        }
    }

    /// The destination to be tried next, in this attempt or in the next one, if there may be one.
    fn next_destination(&self, progress: &mut Progress) -> Result<Next, SystemException> {
        loop {
            let (mut tour, destinations) = match progress.tour.take() {
                Some(tour) => tour,
                None => {
                    let destinations = self.asked.object.destinations()?;
                    (Tour::new(&self.asked.object, destinations.len()), destinations)
                }
            };
            if let Some(index) = tour.next(&destinations) {
                progress.tour = Some((tour, Arc::clone(&destinations)));
                return Ok((index, destinations));
            }
            self.asked.object.may_repeat(tour.into_failure(), &mut progress.attempts, self.deadline.as_ref())?;
        }
    }

    /// Sends the request on a connection. What comes back goes on elsewhere.
    fn send(
        self: &Arc<Self>,
        lease: Lease<Arc<Peer>>,
        index: usize,
        destinations: &[Destination],
        progress: Progress,
    ) -> Option<Progress> {
        let destination = &destinations[index];
        let (connection, request_id) = (Arc::clone(&lease), lease.request_id());
        let bounds = destination.peer.bounds();
        let mut contexts = progress.leg.contexts().to_vec();
        contexts.extend_from_slice(self.watched.as_ref().map_or(&[], WatchedCall::contexts));
        // Before the reply could come.
        if !self.put(Place::Sent(Sent { lease, request_id, index }), progress) {
            return None;
        }
        let failure = self.write(&connection, destination, (request_id, &contexts), bounds).err()?;
        let (sent, progress) = self.take_sent()?;
        self.after_failure(failure, sent, progress)
    }

    fn write(
        self: &Arc<Self>,
        connection: &Arc<ClientConnection>,
        destination: &Destination,
        (request_id, contexts): (u32, &[ServiceContext]),
        bounds: Bounds,
    ) -> Result<(), CallFailure> {
        self.asked.object.orb().station().seat(connection).map_err(CallFailure::new)?;
        let mut out = Encoder::reusing(scratch::take(), destination.template.wire());
        let kind = if self.asked.response.is_expected() { Kind::TwoWay } else { Kind::OneWay };
        let told = Arc::clone(self) as Arc<dyn Awaiting>;
        let introduction =
            (!connection.is_introduced()).then(|| Introduction::new(self.asked.object.orb(), connection, destination));
        let said = introduction.as_ref().map_or(&[][..], |introduction| &introduction.contexts);
        let contexts = &*joined(said, contexts);
        let made = self.arguments.request(
            &mut out,
            destination,
            (contexts, self.deadline.as_ref()),
            request_id,
            self.asked.response,
            &self.asked.operation,
        );
        if let Some(watched) = &self.watched {
            let connection = (connection.metrics(), connection.peer() as &dyn fmt::Display);
            watched.sent(Some(connection), &destination.object_key, request_id, out.position());
        }
        let sent = made.and_then(|()| connection.send_soon(request_id, &out, kind, told, bounds));
        if let (Some(introduction), Ok(())) = (&introduction, &sent) {
            introduction.note_points_said(connection);
        }
        scratch::give(out.into_scratch());
        sent
    }

    /// The request failed: what goes on, if the call does.
    fn after_failure(self: &Arc<Self>, failure: CallFailure, sent: Sent, mut progress: Progress) -> Option<Progress> {
        let Sent { lease, index, .. } = sent;
        let fresh = lease.fresh || std::mem::take(&mut progress.has_waited);
        drop(lease);
        let (mut tour, destinations) = progress.tour.take().expect("a request is sent by an attempt");
        progress.leg.lose();
        match tour.failed(failure, fresh, &destinations[index]) {
            Ok(()) => progress.tour = Some((tour, destinations)),
            Err(failure) => {
                let Progress { attempts, leg, .. } = &mut progress;
                let repeats = self.asked.object.may_repeat(failure, attempts, self.deadline.as_ref());
                if let Err(exception) = repeats.or_else(|exception| leg.fail(&self.asked, attempts, exception)) {
                    self.finish(Err(exception));
                    return None;
                }
            }
        }
        Some(progress)
    }

    /// A reply has come: the outcome, or what goes on.
    fn after_reply(self: &Arc<Self>, mut reply: Reply, sent: Sent, mut progress: Progress) -> Option<Progress> {
        if !matches!(reply.kind, ReplyKind::Reply(_)) {
            let failure = mistaken(&sent.lease);
            return self.after_failure(failure, sent, progress);
        }
        // The request that it answers said it, if none before did.
        sent.lease.note_code_sets_said();
        let index = sent.index;
        drop(sent);
        if let Some((mut tour, destinations)) = progress.tour.take() {
            reply.wire = destinations[index].template.wire();
            if tour.goes_on_after(&reply, &self.asked.object) {
                progress.leg.lose();
                progress.tour = Some((tour, destinations));
                return Some(Progress { has_waited: false, ..progress });
            }
            tour.arrived(&self.asked.object);
        }
        let judged = self.asked.object.judge(&reply, &mut progress.attempts);
        match progress.leg.judge(&self.asked, &mut progress.attempts, &reply, judged) {
            Ok(Verdict::AskAgain) => Some(Progress { has_waited: false, ..progress }),
            Ok(Verdict::Answer) => {
                self.asked.object.note_answer(&reply);
                self.finish(Ok(Some(reply)));
                None
            }
            Err(exception) => {
                self.finish(Err(exception));
                None
            }
        }
    }

    /// What became of the request is known.
    pub(super) fn arrived(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        let Some((sent, progress)) = self.take_sent() else { return };
        let goes_on = match outcome {
            Ok(Some(reply)) => self.after_reply(reply, sent, progress),
            Ok(None) => {
                drop(sent);
                self.finish(Ok(None));
                None
            }
            Err(failure) => self.after_failure(failure, sent, progress),
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

impl Progress {
    fn refused(&mut self, failure: CallFailure) {
        self.has_waited = false;
        self.leg.lose();
        if let Some((tour, _)) = &mut self.tour {
            tour.refused(failure);
        }
    }
}
