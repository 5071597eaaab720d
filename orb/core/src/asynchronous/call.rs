//! One asynchronous call on its way: through destinations, connections, forwardings and retries, to its outcome.
//!
//! At any time one thread takes it further, or it waits for one event: a connection, or the outcome of its request. Whoever brings the
//! event takes it further. Beside that it may be ended from outside at any time: given up, timed out, shut down.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Weak,
    task::{Poll, Waker},
};

use spandrel_cdr::Encoder;
use spandrel_giop::{CompletionStatus, ResponseFlags, ServiceContext, SystemException, minor};
use spandrel_sync::{Arc, Mutex, held};

use super::{
    arguments::Arguments,
    asked::Asked,
    leg::{Leg, elsewhere},
};
use crate::{
    ObjectRef,
    client::{Awaiting, CallFailure, Ending, Kind, Lease, Leasing, Limited, Peer, Reply, ReplyKind, Ticket},
    destination::Destination,
    invocation::{Attempts, Tour, Verdict, joined, mistaken, not_sent_in_time},
    orb::is_a_copy,
    policies::Terms,
    reader::Deadline,
    scratch,
};

/// What a call ends in; no reply for a one-way.
pub(super) type Outcome = Result<Option<Reply>, SystemException>;

/// A request and what has become of it.
#[derive(Debug)]
pub(super) struct Call {
    asked: Asked,
    arguments: Arguments,
    deadline: Option<Deadline>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    progress: Progress,
    place: Place,
    ticket: Option<Ticket>,
    waker: Option<Waker>,
    outcome: Option<Outcome>,
    /// Nothing that happens to it matters any more.
    is_over: bool,
}

/// How far it has come; in the hands of whoever takes it further.
#[derive(Debug, Default)]
struct Progress {
    attempts: Attempts,
    /// What interceptors are told.
    leg: Leg,
    /// The present attempt.
    tour: Option<(Tour, Arc<[Destination]>)>,
    /// It has waited for a connection, which was therefore opened just now.
    has_waited: bool,
}

/// Which of these destinations is next.
type Next = (usize, Arc<[Destination]>);

/// Where it is.
#[derive(Debug, Default)]
enum Place {
    #[default]
    Nowhere,
    /// It waits for a connection to this peer.
    Parked(Arc<Peer>),
    Sent(Sent),
}

/// A request on a connection.
#[derive(Debug)]
struct Sent {
    lease: Lease<Arc<Peer>>,
    request_id: u32,
    /// Of the present attempt's destinations.
    index: usize,
}

impl Call {
    /// Sends a request.
    pub(super) fn start(
        object: &ObjectRef,
        operation: Cow<'static, str>,
        response: ResponseFlags,
        arguments: Arguments,
    ) -> Result<Arc<Self>, SystemException> {
        let Terms { deadline, rebind } = object.terms();
        let asked = Asked { object: object.clone(), operation, response };
        let call = Arc::new(Self { asked, arguments, deadline, state: Mutex::default() });
        let weak = Arc::downgrade(&call);
        let ticket = call.asked.object.orb().station().enter(weak as Weak<dyn Limited>, call.deadline.as_ref())?;
        let mut state = call.state.lock();
        // Its time may be up already.
        let late = if state.is_over { Some(ticket) } else { state.ticket.replace(ticket) };
        let is_over = state.is_over;
        drop(state);
        if let Some(late) = late {
            call.asked.object.orb().station().leave(late);
        }
        if !is_over {
            call.proceed(Progress { attempts: Attempts::new(rebind), ..Progress::default() });
        }
        Ok(call)
    }

    pub(super) fn object(&self) -> &ObjectRef {
        &self.asked.object
    }

    pub(super) fn operation(&self) -> &str {
        &self.asked.operation
    }

    /// Its outcome, once.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<Outcome> {
        if self.asked.object.orb().is_copied() {
            return Poll::Ready(Err(is_a_copy().with_completed(CompletionStatus::Maybe)));
        }
        if !self.has_ended(waker) {
            return Poll::Pending;
        }
        let outcome = self.state.lock().outcome.take();
        outcome.map_or(Poll::Pending, Poll::Ready)
    }

    /// True if there is an outcome now; if not, `waker` will be woken when there is.
    pub(super) fn has_ended(&self, waker: &Waker) -> bool {
        if self.asked.object.orb().is_copied() {
            return true;
        }
        let state = self.state.lock();
        if state.outcome.is_some() {
            return true;
        }
        if state.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
            return false;
        }
        drop(state);
        // Made, and the old one dropped, outside of the lock, since both are anybody's code.
        let waker = waker.clone();
        let mut state = self.state.lock();
        let has_ended = state.outcome.is_some();
        let unused = if has_ended { Some(waker) } else { state.waker.replace(waker) };
        drop(state);
        drop(unused);
        has_ended
    }

    /// Nobody is interested any more.
    pub(super) fn abandon(self: &Arc<Self>) {
        if self.asked.object.orb().is_copied() {
            // The original waits for it.
            return std::mem::forget(Arc::clone(self));
        }
        let Some((_, mut progress)) = self.cut_short(false) else { return };
        let cancelled = SystemException::transient(minor::REQUEST_CANCELLED, CompletionStatus::Maybe);
        let _ = progress.leg.fail(&self.asked, &mut progress.attempts, cancelled);
    }

    /// Takes it further until it waits for something.
    fn proceed(self: &Arc<Self>, mut progress: Progress) {
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
            let leased = match keeps_connections {
                true => destination.peer.lease_open_soon(),
                false => destination.peer.lease_soon(share, &(Arc::clone(self) as Arc<dyn Awaiting>)),
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
        let is_late = self.deadline.as_ref().is_some_and(|deadline| deadline.to_send().remaining().is_zero());
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
            let (tour, destinations) = match progress.tour.take() {
                Some(tour) => tour,
                None => {
                    let destinations = self.asked.object.destinations()?;
                    (Tour::new(&self.asked.object, destinations.len()), destinations)
                }
            };
            if let Some(index) = tour.index() {
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
        let limit = destination.peer.max_pending();
        let contexts = progress.leg.contexts().to_vec();
        // Before the reply could come.
        if !self.put(Place::Sent(Sent { lease, request_id, index }), progress) {
            return None;
        }
        let failure = self.write(&connection, destination, (request_id, &contexts), limit).err()?;
        let (sent, progress) = self.take_sent()?;
        self.after_failure(failure, sent, progress)
    }

    fn write(
        self: &Arc<Self>,
        connection: &Arc<crate::client::ClientConnection>,
        destination: &Destination,
        (request_id, contexts): (u32, &[ServiceContext]),
        limit: usize,
    ) -> Result<(), CallFailure> {
        self.asked.object.orb().station().seat(connection).map_err(CallFailure::new)?;
        let mut out = Encoder::reusing(scratch::take(), destination.template.wire());
        let kind = if self.asked.response.is_expected() { Kind::TwoWay } else { Kind::OneWay };
        let told = Arc::clone(self) as Arc<dyn Awaiting>;
        let contexts = &*joined(destination.contexts(connection.has_said_code_sets()), contexts);
        let made = self.arguments.request(
            &mut out,
            destination,
            contexts,
            request_id,
            self.asked.response,
            &self.asked.operation,
        );
        let sent = made.and_then(|()| connection.send_soon(request_id, &out, kind, told, limit));
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
        if let Some((tour, destinations)) = progress.tour.take() {
            reply.wire = destinations[index].template.wire();
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

    /// Says where it is from now on; false if it is over.
    fn put(&self, place: Place, progress: Progress) -> bool {
        let mut state = self.state.lock();
        if state.is_over {
            return false;
        }
        state.progress = progress;
        let before = std::mem::replace(&mut state.place, place);
        drop(state);
        debug_assert!(!matches!(before, Place::Sent(_)), "a call is at one place");
        true
    }

    /// Takes the call out of its place to go on; nothing if it is over.
    fn take(&self) -> Option<(Place, Progress)> {
        let mut state = self.state.lock();
        (!state.is_over).then(|| (std::mem::take(&mut state.place), std::mem::take(&mut state.progress)))
    }

    fn take_progress(&self) -> Option<Progress> {
        self.take().map(|(_, progress)| progress)
    }

    fn take_sent(&self) -> Option<(Sent, Progress)> {
        match self.take()? {
            (Place::Sent(sent), progress) => Some((sent, progress)),
            _ => None,
        }
    }

    fn finish(&self, outcome: Outcome) {
        let mut state = self.state.lock();
        if state.is_over {
            return;
        }
        state.is_over = true;
        drop(state);
        self.tell(outcome);
    }

    /// It is over; whoever waits learns of it.
    fn tell(&self, outcome: Outcome) {
        let mut state = self.state.lock();
        state.outcome = Some(outcome);
        let (waker, ticket) = (state.waker.take(), state.ticket.take());
        drop(state);
        if let Some(ticket) = ticket {
            self.asked.object.orb().station().leave(ticket);
        }
        if let Some(waker) = waker {
            held::assert_none("a waker");
            // It is an executor's code, and this thread may be reading for others.
            let woken = catch_unwind(AssertUnwindSafe(|| waker.wake()));
            if woken.is_err() {
                tracing::error!(operation = &*self.asked.operation, "a waker panicked");
            }
        }
    }

    /// Ends it where it is; whether the server may have the request. Nothing if it was over.
    fn cut_short(self: &Arc<Self>, retires: bool) -> Option<(bool, Progress)> {
        let mut state = self.state.lock();
        if state.is_over {
            return None;
        }
        state.is_over = true;
        let (place, ticket) = (std::mem::take(&mut state.place), state.ticket.take());
        let progress = std::mem::take(&mut state.progress);
        drop(state);
        if let Some(ticket) = ticket {
            self.asked.object.orb().station().leave(ticket);
        }
        let may_have_arrived = match place {
            Place::Nowhere => false,
            Place::Parked(peer) => {
                peer.unpark(&(Arc::clone(self) as Arc<dyn Awaiting>));
                false
            }
            Place::Sent(Sent { lease, request_id, index }) => {
                let destination = progress.tour.as_ref().map(|(_, destinations)| &destinations[index]);
                // A server hears of it only where that is known to do no harm: omniORB 4.2 may read a CancelRequest for ever, and
                // nothing after it on that connection.
                let tells = destination.filter(|destination| destination.is_ours);
                lease.abandon(request_id, tells.map(|destination| destination.template.wire()), retires)
            }
        };
        Some((may_have_arrived, progress))
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

impl Awaiting for Call {
    fn done(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
        elsewhere(&self.asked, &self, |call| call.arrived(outcome));
    }

    fn opened(self: Arc<Self>, outcome: Result<(), CallFailure>) {
        elsewhere(&self.asked, &self, |call| call.connected(outcome));
    }
}

impl Call {
    /// What became of the request is known.
    fn arrived(self: Arc<Self>, outcome: Result<Option<Reply>, CallFailure>) {
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
    fn connected(self: Arc<Self>, outcome: Result<(), CallFailure>) {
        let Some(mut progress) = self.take_progress() else { return };
        match outcome {
            Ok(()) => progress.has_waited = true,
            Err(refused) => progress.refused(refused),
        }
        self.proceed(progress);
    }
}

impl Limited for Call {
    fn end(self: Arc<Self>, why: Ending) {
        let Some((may_have_arrived, mut progress)) = self.cut_short(why == Ending::TimeUp) else { return };
        let exception = why.exception(may_have_arrived);
        if !progress.leg.is_open() {
            return self.tell(Err(exception));
        }
        elsewhere(&self.asked, &self, move |call| {
            // That an interceptor would go elsewhere comes too late.
            let Progress { leg, attempts, .. } = &mut progress;
            let told = leg.fail(&call.asked, attempts, exception.clone()).err().unwrap_or(exception);
            call.tell(Err(told));
        });
    }
}
