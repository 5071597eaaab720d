//! Static invocation: marshal, send, wait, and do it again where the protocol says that this is safe.

#[cfg(feature = "interceptors")]
mod intercepted;

use std::{borrow::Cow, time::Duration};

use spandrel_cdr::{CdrError, Decode, Decoder, Encoder, Ior};
use spandrel_giop::{
    CompletionStatus, LocateStatus, ReplyStatus, ResponseFlags, ServiceContext, SystemException, SystemExceptionKind,
    ids, locate_request, minor,
};
use spandrel_sync::{Arc, atomic::Ordering};

#[cfg(feature = "asynchronous")]
use crate::asynchronous::waiting;
#[cfg(feature = "server")]
use crate::server::local;
use crate::{
    Located, ObjectRef, Orb, UserExceptions,
    client::{CallFailure, ClientConnection, Reply, ReplyKind},
    destination::Destination,
    policies::{RebindPolicy, SyncScopePolicy, Terms},
    reader::Deadline,
    scratch,
};

/// Forwardings in a row before a call gives up: a circle, or as good as one.
pub(crate) const MAX_FORWARDS: u32 = 16;

/// Writes the arguments; called again for each attempt.
type Marshal<'f, 'a> = &'f dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>;

/// Keeps the members of the exception with this repository id, if it is one that the operation raises.
pub(crate) type Raise<'f> = &'f mut dyn FnMut(&str, &mut Decoder<'_>) -> Option<Result<(), CdrError>>;

/// What is being asked of the object.
#[derive(Clone, Copy)]
enum Question<'f, 'a> {
    Request {
        operation: &'f str,
        response: ResponseFlags,
        #[cfg(feature = "interceptors")]
        is_one_way: bool,
        marshal: Marshal<'f, 'a>,
        /// What goes with it besides what its connection needs.
        contexts: &'f [ServiceContext],
    },
    Locate,
}

/// What decides whether a failed attempt may be repeated.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    rebind: RebindPolicy,
    forwards: u32,
    resent: bool,
    went_home: bool,
}

/// One attempt: which destination is tried now, until one can be connected to.
#[derive(Debug)]
pub(crate) struct Tour {
    destinations: usize,
    preferred: usize,
    turn: usize,
    failure: Option<CallFailure>,
}

/// What a reply means for its call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Answer,
    /// The object is elsewhere.
    AskAgain,
}

impl ObjectRef {
    /// Invokes a two-way operation.
    ///
    /// `encode` writes the arguments, possibly more than once: a request is sent again if the object was forwarded or if
    /// a connection turns out to be closed before the peer can have seen the request. `decode` reads the results.
    ///
    /// # Errors
    /// What the operation raises, or the system exception that ended the call.
    #[inline]
    pub fn invoke<'a, R, E: UserExceptions>(
        &self,
        operation: &str,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<R, CdrError>,
    ) -> Result<R, E> {
        let reply = self.call(operation, &encode)?;
        self.read_answer(operation, &reply, decode)
    }

    /// Reads what an operation returned or raised.
    #[inline]
    pub(crate) fn read_answer<R, E: UserExceptions>(
        &self,
        operation: &str,
        reply: &Reply,
        decode: impl FnOnce(&mut Decoder<'_>) -> Result<R, CdrError>,
    ) -> Result<R, E> {
        let mut input = self.results(reply);
        if reply.kind == ReplyKind::Reply(ReplyStatus::NoException) {
            return decode(&mut input).map_err(|error| unreadable(operation, error, CompletionStatus::Yes).into());
        }
        let repository_id = input.str().map_err(|error| unreadable(operation, error, CompletionStatus::Yes))?;
        match E::decode(&repository_id, &mut input) {
            Some(Ok(raised)) => Err(raised),
            Some(Err(error)) => Err(unreadable(operation, error, CompletionStatus::Yes).into()),
            None => Err(unlisted(operation, &repository_id).into()),
        }
    }

    /// [`ObjectRef::invoke`] without the operation's types: `results` and `raised` keep what they read, the latter if the
    /// operation raises the exception with this repository id. Then the error says nothing.
    pub(crate) fn invoke_erased(
        &self,
        operation: &str,
        encode: Marshal<'_, '_>,
        results: &mut dyn FnMut(&mut Decoder<'_>) -> Result<(), CdrError>,
        raised: Raise<'_>,
    ) -> Result<(), SystemException> {
        let reply = self.call(operation, encode)?;
        let mut input = self.results(&reply);
        let unreadable = |error| unreadable(operation, error, CompletionStatus::Yes);
        if reply.kind == ReplyKind::Reply(ReplyStatus::NoException) {
            return results(&mut input).map_err(unreadable);
        }
        let repository_id = input.str().map_err(unreadable)?;
        Err(match raised(&repository_id, &mut input) {
            Some(Ok(())) => SystemException::unknown(minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes),
            Some(Err(error)) => unreadable(error),
            None => unlisted(operation, &repository_id),
        })
    }

    /// Invokes a one-way operation: returns once the transport has taken the request, or as late as the
    /// [sync scope](crate::policies::SyncScopePolicy) says.
    ///
    /// # Errors
    /// The system exception that kept it from being sent, COMPLETED_NO; with the sync scopes WITH_SERVER and WITH_TARGET also what
    /// the server answered.
    #[inline]
    pub fn send_oneway<'a>(
        &self,
        operation: &str,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<(), SystemException> {
        let response = self.oneway_response();
        let question = Question::Request {
            operation,
            response,
            #[cfg(feature = "interceptors")]
            is_one_way: true,
            marshal: &encode,
            contexts: &[],
        };
        self.ask(&question).map(drop)
    }

    /// Asks the server where the object is, without running anything on it (LocateRequest).
    ///
    /// # Errors
    /// The system exception that ended the question.
    pub fn locate(&self) -> Result<Located, SystemException> {
        let Some(reply) = self.ask(&Question::Locate)? else {
            return Err(SystemException::internal(0, CompletionStatus::No));
        };
        match reply.kind {
            ReplyKind::Locate(LocateStatus::ObjectHere) => Ok(Located::Here),
            ReplyKind::Locate(LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm) => {
                let ior = Ior::decode(&mut self.results(&reply));
                ior.map(Located::Forward).map_err(|error| unreadable("LocateRequest", error, CompletionStatus::No))
            }
            ReplyKind::Locate(LocateStatus::LocSystemException) => Err(self.system_exception(&reply)),
            _ => Ok(Located::Unknown),
        }
    }

    /// A two-way call as far as it does not depend on the operation's types.
    pub(crate) fn call(&self, operation: &str, marshal: Marshal<'_, '_>) -> Result<Reply, SystemException> {
        let question = Question::Request {
            operation,
            response: ResponseFlags::TWO_WAY,
            #[cfg(feature = "interceptors")]
            is_one_way: false,
            marshal,
            contexts: &[],
        };
        self.ask(&question)?.ok_or_else(|| SystemException::internal(0, CompletionStatus::Maybe))
    }

    /// Sends until an answer comes that is no forwarding, or until sending again would be unsafe or pointless.
    fn ask(&self, question: &Question<'_, '_>) -> Result<Option<Reply>, SystemException> {
        self.orb().check_running()?;
        #[cfg(feature = "interceptors")]
        if self.orb().has_client_interceptors()
            && let Question::Request { operation, response, is_one_way, marshal, .. } = *question
        {
            return self.ask_intercepted(operation, (response, is_one_way), marshal);
        }
        let Terms { deadline, rebind } = self.terms();
        let mut attempts = Attempts::new(rebind);
        loop {
            if deadline.as_ref().is_some_and(|deadline| deadline.to_send().remaining().is_zero()) {
                return Err(not_sent_in_time(deadline.as_ref()));
            }
            let forwarded = self.forwarded();
            let destinations = match &forwarded {
                Some(forwarded) => forwarded,
                None => self.home()?,
            };
            match self.attempt(destinations, question, &attempts, deadline.as_ref()) {
                Ok(Some(reply)) => {
                    if self.judge(&reply, &mut attempts)? == Verdict::Answer {
                        self.note_answer(&reply);
                        return Ok(Some(reply));
                    }
                }
                Ok(None) => return Ok(None),
                Err(failure) => self.may_repeat(failure, &mut attempts, deadline.as_ref())?,
            }
        }
    }

    /// Whether a reply answers the call, or leads elsewhere.
    #[inline]
    pub(crate) fn judge(&self, reply: &Reply, attempts: &mut Attempts) -> Result<Verdict, SystemException> {
        match reply.kind {
            ReplyKind::Reply(ReplyStatus::NoException | ReplyStatus::UserException) => Ok(Verdict::Answer),
            _ => self.judge_unusual(reply, attempts),
        }
    }

    #[cold]
    fn judge_unusual(&self, reply: &Reply, attempts: &mut Attempts) -> Result<Verdict, SystemException> {
        match reply.kind {
            ReplyKind::Reply(ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm) => {
                self.may_rebind(attempts)?;
                attempts.note_forward()?;
                self.follow(reply)?;
                Ok(Verdict::AskAgain)
            }
            ReplyKind::Reply(ReplyStatus::SystemException) => {
                let exception = self.system_exception(reply);
                // A forwarded object that is gone may have moved again: its home knows.
                if gone(&exception) && self.go_home(attempts) { Ok(Verdict::AskAgain) } else { Err(exception) }
            }
            ReplyKind::Reply(ReplyStatus::NeedsAddressingMode) => {
                Err(SystemException::no_implement(0, CompletionStatus::No)
                    .with_detail("the server wants another addressing disposition than the object key"))
            }
            _ => Ok(Verdict::Answer),
        }
    }

    /// Tries each destination in turn until one can be connected to.
    fn attempt(
        &self,
        destinations: &[Destination],
        question: &Question<'_, '_>,
        attempts: &Attempts,
        deadline: Option<&Deadline>,
    ) -> Result<Option<Reply>, CallFailure> {
        let mut tour = Tour::new(self, destinations.len());
        while let Some(index) = tour.index() {
            let destination = &destinations[index];
            #[cfg(feature = "server")]
            if destination.is_here {
                if !question.waits() {
                    local::note_one_way(self.orb());
                } else if local::settle(self.orb()) {
                    return exchange_here(self.orb(), destination, question, deadline).map(Some);
                }
            }
            let leased = match self.keeps_connections(attempts) {
                true => destination.peer.lease_open(),
                false => destination.peer.lease(tour.share_of(deadline)),
            };
            let lease = match leased {
                Ok(lease) => lease,
                Err(refused) => {
                    tour.refused(refused);
                    continue;
                }
            };
            let fresh = lease.fresh;
            match exchange(self.orb(), &lease, destination, question, deadline) {
                Err(failure) => tour.failed(failure, fresh, destination)?,
                answered => {
                    tour.arrived(self);
                    return answered;
                }
            }
        }
        Err(tour.into_failure())
    }

    /// Ok if the request certainly was not acted on and has not been sent again yet.
    pub(crate) fn may_repeat(
        &self,
        failure: CallFailure,
        attempts: &mut Attempts,
        deadline: Option<&Deadline>,
    ) -> Result<(), SystemException> {
        let CallFailure { exception, stale, .. } = failure;
        let in_time = deadline.is_none_or(|deadline| !deadline.to_send().remaining().is_zero());
        let safe = exception.completed() == CompletionStatus::No && in_time;
        if safe && self.go_home(attempts) {
            return Ok(());
        }
        if safe && stale && self.keeps_connections(attempts) {
            return Err(no_reconnecting().with_source(exception));
        }
        if safe && stale && !std::mem::replace(&mut attempts.resent, true) {
            tracing::debug!(%exception, "sending again on another connection");
            return Ok(());
        }
        Err(exception)
    }

    /// Forgets a forwarding, once per call; false if there was none to forget.
    fn go_home(&self, attempts: &mut Attempts) -> bool {
        self.may_rebind(attempts).is_ok() && self.forget_forward() && !std::mem::replace(&mut attempts.went_home, true)
    }

    /// How long the server is asked to hold the answer to a one-way back, if it is to answer at all.
    #[inline]
    pub(crate) fn oneway_response(&self) -> ResponseFlags {
        if !self.has_policies() {
            return ResponseFlags::NONE;
        }
        match self.quality().sync_scope() {
            SyncScopePolicy::None | SyncScopePolicy::WithTransport => ResponseFlags::NONE,
            SyncScopePolicy::WithServer => ResponseFlags::WITH_SERVER,
            SyncScopePolicy::WithTarget => ResponseFlags::WITH_TARGET,
        }
    }

    /// REBIND if requests of a bound reference must not go anywhere else (17.2.1.2).
    fn may_rebind(&self, attempts: &Attempts) -> Result<(), SystemException> {
        if cfg!(not(feature = "policies")) || attempts.rebind == RebindPolicy::Transparent || !self.is_bound() {
            return Ok(());
        }
        Err(SystemException::rebind(0, CompletionStatus::No).with_detail(
            "the object has moved, and the rebind policy forbids to follow it (validate_connection would)",
        ))
    }

    /// True if only connections that are open already may be used.
    #[inline]
    pub(crate) fn keeps_connections(&self, attempts: &Attempts) -> bool {
        cfg!(feature = "policies") && attempts.rebind == RebindPolicy::NoReconnect && self.is_bound()
    }

    /// The object has answered, so that the reference is bound.
    #[inline]
    pub(crate) fn note_answer(&self, reply: &Reply) {
        let is_here = matches!(reply.kind, ReplyKind::Reply(_) | ReplyKind::Locate(LocateStatus::ObjectHere));
        if cfg!(feature = "policies") && is_here {
            self.note_bound(true);
        }
    }

    fn follow(&self, reply: &Reply) -> Result<(), SystemException> {
        let ior = Ior::decode(&mut self.results(reply))
            .map_err(|error| unreadable("LOCATION_FORWARD", error, CompletionStatus::No))?;
        self.forward(&ior)
    }

    fn system_exception(&self, reply: &Reply) -> SystemException {
        let mut input = self.results(reply);
        let read = input.str().and_then(|id| SystemException::decode(&id, &mut input));
        read.unwrap_or_else(|error| unreadable("SYSTEM_EXCEPTION", error, CompletionStatus::Maybe))
    }

    pub(crate) fn results<'r>(&'r self, reply: &'r Reply) -> Decoder<'r> {
        let input = reply.message.decoder(self.orb().settings().wire.limits).with_binder(self.orb());
        input.with_code_sets(reply.wire.char_set, reply.wire.wchar_set).at(reply.body)
    }
}

impl Attempts {
    pub(crate) fn new(rebind: RebindPolicy) -> Self {
        Self { rebind, ..Self::default() }
    }

    /// One more forwarding.
    ///
    /// # Errors
    /// TRANSIENT if there were too many.
    fn note_forward(&mut self) -> Result<(), SystemException> {
        self.forwards += 1;
        if self.forwards > MAX_FORWARDS { Err(forwarded_too_often()) } else { Ok(()) }
    }
}

impl Tour {
    pub(crate) fn new(object: &ObjectRef, destinations: usize) -> Self {
        let preferred = object.preferred().load(Ordering::Relaxed) % destinations;
        Self { destinations, preferred, turn: 0, failure: None }
    }

    /// The destination to be tried; none once all have been.
    pub(crate) fn index(&self) -> Option<usize> {
        (self.turn < self.destinations).then(|| (self.preferred + self.turn) % self.destinations)
    }

    /// How long connecting to it may take: those that may have to be tried after it get their share of the time.
    #[inline]
    pub(crate) fn share_of(&self, deadline: Option<&Deadline>) -> Option<Duration> {
        let deadline = deadline?;
        let left = u32::try_from(self.destinations - self.turn).unwrap_or(u32::MAX);
        Some(deadline.to_send().remaining() / left)
    }

    /// It cannot be connected to.
    pub(crate) fn refused(&mut self, failure: CallFailure) {
        self.failure = Some(failure);
        self.turn += 1;
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
        if failure.stale && fresh {
            // A server that takes connections only to close them is full, or about to end.
            self.refused(full(failure));
            return Ok(());
        }
        if failure.stale {
            // The others that lay idle were most likely closed with it.
            destination.peer.drop_idle();
        }
        Err(failure)
    }

    /// It has answered, and is tried first from now on.
    pub(crate) fn arrived(&self, object: &ObjectRef) {
        if let (Some(index), true) = (self.index(), self.turn > 0) {
            object.preferred().store(index, Ordering::Relaxed);
        }
    }

    /// Why none could be connected to, once all have been tried.
    #[cfg(feature = "interceptors")]
    fn take_failure(&mut self) -> Option<CallFailure> {
        if self.index().is_some() { None } else { self.failure.take() }
    }

    /// Why none could be connected to.
    pub(crate) fn into_failure(self) -> CallFailure {
        self.failure.expect("a reference has at least one destination")
    }
}

/// One request on one connection.
fn exchange(
    orb: &Orb,
    connection: &Arc<ClientConnection>,
    destination: &Destination,
    question: &Question<'_, '_>,
    deadline: Option<&Deadline>,
) -> Result<Option<Reply>, CallFailure> {
    let mut out = Encoder::reusing(scratch::take(), destination.template.wire());
    let request_id = connection.request_id();
    let two_way = |out: &Encoder<'_>| {
        #[cfg(feature = "asynchronous")]
        if waiting::is_due(orb) {
            return waiting::two_way(orb, connection, request_id, out, deadline, destination.peer.max_pending());
        }
        #[cfg(not(feature = "asynchronous"))]
        let _ = orb;
        connection.two_way(request_id, out, deadline)
    };
    let said = destination.contexts(connection.has_said_code_sets());
    let sent = question.write(&mut out, destination, request_id, said).and_then(|()| match question {
        Question::Request { response, .. } if !response.is_expected() => {
            connection.one_way(&out, deadline).map(|()| None)
        }
        _ => two_way(&out).map(Some),
    });
    if !said.is_empty() && sent.is_ok() && matches!(question, Question::Request { .. }) {
        connection.note_code_sets_said();
    }
    scratch::give(out.into_scratch());
    match sent {
        Ok(Some(mut reply)) if reply.kind.answers(question) => {
            reply.wire = destination.template.wire();
            Ok(Some(reply))
        }
        Ok(Some(_)) => Err(mistaken(connection)),
        outcome => outcome,
    }
}

/// Contexts of both kinds, of which there is most often neither.
#[inline]
pub(crate) fn joined<'c>(said: &'c [ServiceContext], added: &'c [ServiceContext]) -> Cow<'c, [ServiceContext]> {
    if added.is_empty() { Cow::Borrowed(said) } else { Cow::Owned([said, added].concat()) }
}

/// One request to an object of this ORB, run by this thread.
#[cfg(feature = "server")]
fn exchange_here(
    orb: &Orb,
    destination: &Destination,
    question: &Question<'_, '_>,
    deadline: Option<&Deadline>,
) -> Result<Reply, CallFailure> {
    let wire = destination.template.wire();
    let mut out = Encoder::reusing(scratch::take(), wire);
    // Both sides know already how text is coded.
    let written = question.write(&mut out, destination, orb.locals().request_id(), &[]);
    let message = written.and_then(|()| local::deliver(&out));
    // The servant may need it.
    scratch::give(out.into_scratch());
    let mut reply = local::ask(orb, &message?, wire, deadline)?;
    reply.wire = wire;
    Ok(reply)
}

impl<'a> Question<'_, 'a> {
    /// Whether somebody waits until the servant has done its work.
    #[cfg(feature = "server")]
    fn waits(&self) -> bool {
        match self {
            Self::Request { response, .. } => *response == ResponseFlags::TWO_WAY,
            Self::Locate => true,
        }
    }

    /// Writes the whole message. `said`: what is said of the connection.
    #[inline(always)]
    fn write(
        &self,
        out: &mut Encoder<'a>,
        destination: &Destination,
        request_id: u32,
        said: &[ServiceContext],
    ) -> Result<(), CallFailure> {
        match self {
            Self::Request { operation, response, marshal, contexts: added, .. } => {
                let contexts = joined(said, added);
                let body = destination.begin(out, request_id, *response, operation, &contexts);
                let written = marshal(out).and_then(|()| body.end(out));
                written.map_err(|error| CallFailure::new(destination.unsayable(error)))
            }
            Self::Locate => {
                locate_request(out, request_id, &destination.object_key).map_err(|error| CallFailure::new(error.into()))
            }
        }
    }
}

impl ReplyKind {
    fn answers(self, question: &Question<'_, '_>) -> bool {
        matches!(self, Self::Locate(_)) == matches!(question, Question::Locate)
    }
}

/// COMM_FAILURE for a reply to a question that nobody asked.
pub(crate) fn mistaken(connection: &ClientConnection) -> CallFailure {
    connection.retire();
    let exception = SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::Maybe);
    CallFailure::new(exception.with_detail("the server answered another kind of question"))
}

/// TRANSIENT for a circle of forwardings.
pub(crate) fn forwarded_too_often() -> SystemException {
    SystemException::transient(ids::TRANSIENT_FORWARD_LOOP, CompletionStatus::No)
        .with_detail(|| format!("forwarded {MAX_FORWARDS} times in a row without arriving"))
}

/// REBIND for want of a connection that is open.
pub(crate) fn no_reconnecting() -> SystemException {
    SystemException::rebind(0, CompletionStatus::No)
        .with_detail("no connection is open, and the rebind policy forbids to open one (validate_connection would)")
}

/// TIMEOUT for a request that was not sent.
pub(crate) fn not_sent_in_time(deadline: Option<&Deadline>) -> SystemException {
    let is_for_sending = deadline.is_some_and(Deadline::limits_sending);
    let minor = if is_for_sending { minor::REQUEST_EXPIRED } else { minor::ROUND_TRIP_EXPIRED };
    SystemException::timeout(minor, CompletionStatus::No)
        .with_detail("the time-out passed before the request could be sent")
}

/// True if the object, or the way to it, is no longer where it was.
fn gone(exception: &SystemException) -> bool {
    exception.kind() == SystemExceptionKind::ObjectNotExist && exception.completed() == CompletionStatus::No
}

/// TRANSIENT for a connection that the server closed as soon as it was opened. Nothing ran.
fn full(refused: CallFailure) -> CallFailure {
    let exception = SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No)
        .with_detail("the server accepts no more connections")
        .with_source(refused.exception);
    CallFailure::new(exception)
}

/// UNKNOWN for an exception that the operation does not raise.
fn unlisted(operation: &str, repository_id: &str) -> SystemException {
    SystemException::unknown(minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes)
        .with_detail(|| format!("`{operation}` raised `{repository_id}`, which its IDL does not list"))
}

/// MARSHAL for a reply that is not what it should be.
pub(crate) fn unreadable(operation: &str, error: CdrError, completed: CompletionStatus) -> SystemException {
    SystemException::from(error)
        .with_completed(completed)
        .with_detail(|| format!("the reply to `{operation}` cannot be read"))
}
