//! Static invocation: marshals, sends and waits, and repeats this where the protocol permits it.

#[cfg(feature = "asynchronous")]
pub(crate) mod await_reply;
mod exception_details;
mod exchange;
mod forward_history;
mod forwarding;
mod intercepted;
mod profile_selector;

use std::time::Duration;

use spandrel_cdr::{CdrError, Decode, Decoder, Encoder, Ior};
use spandrel_giop::{CompletionStatus, LocateStatus, ReplyStatus, ResponseFlags, SystemException, minor};
use spandrel_transport::Deadline;

use crate::diagnostics::{CallObserver, ObservedCall};
#[cfg(feature = "server")]
use crate::server::collocated;
use crate::{
    Located, ObjectRef, UserExceptions,
    client::{CallFailure, Lease, Peer, Reply, ReplyKind, no_reconnecting, not_sent_in_time},
    destination::Destination,
    policies::{RebindPolicy, SyncScopePolicy},
};

use crate::object::{CallKind, Marshal};
use exchange::exchange;
#[cfg(feature = "server")]
use exchange::exchange_here;
#[cfg(feature = "asynchronous")]
pub(crate) use exchange::{joined, unexpected_reply_kind};
pub(crate) use forward_history::ForwardHistory;
pub(crate) use profile_selector::ProfileSelector;

/// Stores the members of the exception with this repository id; `None` if the operation does not raise it.
pub(crate) type Raise<'f> = &'f mut dyn FnMut(&str, &mut Decoder<'_>) -> Option<Result<(), CdrError>>;

/// The state that decides whether a failed attempt may be repeated.
#[derive(Debug, Default)]
pub(crate) struct RetryState {
    rebind: RebindPolicy,
    /// The forwardings of this call.
    pub(crate) history: ForwardHistory,
    resent: bool,
    has_dropped_forward: bool,
}

/// The effect of a reply on its call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReplyAction {
    Answer,
    /// The request is sent again: the object was forwarded, or is addressed otherwise.
    Resend,
}

impl ObjectRef {
    /// Invokes a two-way operation.
    ///
    /// `encode` writes the arguments, possibly more than once: the request is sent again if the object was
    /// forwarded, or if the connection turns out to have been closed before the peer could see the request.
    /// `decode` reads the results.
    ///
    /// # Errors
    /// The exception of the operation, or the system exception that ended the call.
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

    /// Decodes the result or the exception of an operation.
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

    /// [`ObjectRef::invoke`] without the operation's types. `results` and `raised` store the decoded values;
    /// `raised` returns `None` if the operation does not raise the exception with this repository id. If it
    /// stored one, the returned error has no meaning.
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

    /// Invokes a one-way operation. Returns once the transport has accepted the request, or later if the
    /// [sync scope](crate::policies::SyncScopePolicy) requires it.
    ///
    /// # Errors
    /// The system exception that prevented the sending, COMPLETED_NO. With the sync scopes WITH_SERVER and
    /// WITH_TARGET also the exception in the server's reply.
    #[inline]
    pub fn send_oneway<'a>(
        &self,
        operation: &str,
        encode: impl Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<(), SystemException> {
        let response = self.oneway_response();
        let call_kind = CallKind::Request {
            operation,
            response,
            is_one_way: true,
            marshal: &encode,
            contexts: &[],
            #[cfg(feature = "asynchronous")]
            buffering: self.buffering(),
            observer: None,
        };
        self.invoke_with_retries(&call_kind).map(drop)
    }

    /// Locates the object by a LocateRequest, which runs no servant.
    ///
    /// # Errors
    /// The system exception that ended the LocateRequest.
    pub fn locate(&self) -> Result<Located, SystemException> {
        let Some(reply) = self.invoke_with_retries(&CallKind::Locate)? else {
            return Err(SystemException::internal(0, CompletionStatus::No));
        };
        match reply.kind {
            ReplyKind::Locate(LocateStatus::ObjectHere) => Ok(Located::Here),
            ReplyKind::Locate(status @ (LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm)) => {
                let is_permanent = status == LocateStatus::ObjectForwardPerm;
                let located = if is_permanent { Located::ForwardPermanently } else { Located::Forward };
                let ior = Ior::decode(&mut self.results(&reply));
                ior.map(located).map_err(|error| unreadable("LocateRequest", error, CompletionStatus::No))
            }
            ReplyKind::Locate(LocateStatus::LocSystemException) => Err(self.system_exception(&reply)),
            _ => Ok(Located::Unknown),
        }
    }

    /// Makes a two-way call, independent of the operation's types.
    pub(crate) fn call(&self, operation: &str, marshal: Marshal<'_, '_>) -> Result<Reply, SystemException> {
        let call_kind = CallKind::Request {
            operation,
            response: ResponseFlags::TWO_WAY,
            is_one_way: false,
            marshal,
            contexts: &[],
            #[cfg(feature = "asynchronous")]
            buffering: None,
            observer: None,
        };
        self.invoke_with_retries(&call_kind)?.ok_or_else(|| SystemException::internal(0, CompletionStatus::Maybe))
    }

    /// Sends the request until the reply is no forwarding, or until sending it again would be unsafe or
    /// useless.
    fn invoke_with_retries(&self, call_kind: &CallKind<'_, '_>) -> Result<Option<Reply>, SystemException> {
        if let CallKind::Request { observer: None, .. } = call_kind
            && let Some(invoke_observed) = self.orb().diagnostics().invoke_fn()
        {
            return invoke_observed(self, call_kind);
        }
        self.orb().check_running()?;
        if let CallKind::Request { .. } = call_kind
            && let Some(invoke_intercepted) = self.orb().interception().invoke_fn()
        {
            return invoke_intercepted(self, call_kind);
        }
        let call_policies = self.call_policies();
        if let Some(start_times) = &call_policies.start_times {
            start_times.hold_request(self.orb(), call_policies.deadline.as_ref())?;
        }
        let deadline = &call_policies.deadline;
        let mut retry_state = RetryState::new(call_policies.rebind);
        loop {
            if deadline.as_ref().is_some_and(|deadline| deadline.left_to_send().is_zero()) {
                return Err(not_sent_in_time(deadline.as_ref()));
            }
            let forwarded = self.forwarded();
            let destinations = match &forwarded {
                Some(forwarded) => forwarded,
                None => self.profile_destinations()?,
            };
            match self.attempt(destinations, call_kind, &retry_state, deadline.as_ref()) {
                Ok(Some(reply)) => {
                    if self.evaluate_reply(&reply, &mut retry_state)? == ReplyAction::Answer {
                        self.mark_answered(&reply);
                        if let Some(start_times) = &call_policies.start_times {
                            start_times.hold_reply(self.orb())?;
                        }
                        return Ok(Some(reply));
                    }
                }
                Ok(None) => return Ok(None),
                Err(failure) => self.may_retry(failure, &mut retry_state, deadline.as_ref())?,
            }
        }
    }

    /// As `invoke_with_retries`, observed by diagnostics.
    #[cold]
    pub(crate) fn invoke_observed(&self, call_kind: &CallKind<'_, '_>) -> Result<Option<Reply>, SystemException> {
        let CallKind::Request { operation, .. } = *call_kind else { return self.invoke_with_retries(call_kind) };
        let call = ObservedCall::begin(self.orb().diagnostics(), self.interface_label(), operation);
        let mut call_kind = *call_kind;
        let joined;
        if let CallKind::Request { contexts, observer, .. } = &mut call_kind {
            joined = [*contexts, call.contexts()].concat();
            (*contexts, *observer) = (&joined, Some(&call as &dyn CallObserver));
        }
        let outcome = call.in_scope(|| self.invoke_with_retries(&call_kind));
        let interface = self.interface_label();
        call.end(interface, operation, outcome.as_ref().map(|reply| reply.as_ref().and_then(Reply::status)));
        outcome
    }

    /// Decides whether a reply completes the call, or the request is sent again.
    #[inline]
    pub(crate) fn evaluate_reply(
        &self,
        reply: &Reply,
        retry_state: &mut RetryState,
    ) -> Result<ReplyAction, SystemException> {
        if reply.has_contexts {
            exception_details::check_contexts(reply, self.orb().settings().context_limits)?;
        }
        match reply.kind {
            ReplyKind::Reply(ReplyStatus::NoException | ReplyStatus::UserException) => Ok(ReplyAction::Answer),
            _ => self.evaluate_unusual_reply(reply, retry_state),
        }
    }

    /// Tries the destinations in turn until one of them can be connected to.
    fn attempt(
        &self,
        destinations: &[Destination],
        call_kind: &CallKind<'_, '_>,
        retry_state: &RetryState,
        deadline: Option<&Deadline>,
    ) -> Result<Option<Reply>, CallFailure> {
        let mut selector = ProfileSelector::new(self, destinations.len());
        while let Some(index) = selector.next(destinations) {
            let destination = &destinations[index];
            #[cfg(feature = "server")]
            if destination.is_collocated {
                if !call_kind.waits() {
                    collocated::note_one_way(self.orb());
                } else if collocated::settle(self.orb()) {
                    return exchange_here(self.orb(), destination, call_kind, deadline).map(Some);
                }
            }
            #[cfg(feature = "server")]
            if call_kind.send_datagram(self.orb(), destination, deadline)? {
                return Ok(None);
            }
            let lease = match self.lease(destination, call_kind, retry_state, selector.connect_time(deadline)) {
                Ok(lease) => lease,
                Err(failure) => {
                    selector.connect_failed(failure);
                    continue;
                }
            };
            let fresh = lease.fresh;
            let answered = exchange(self.orb(), &lease, destination, call_kind, deadline);
            match &answered {
                Ok(Some(reply)) if selector.continues_after(reply, self) => continue,
                Ok(_) => {
                    selector.mark_preferred(self);
                    return answered;
                }
                Err(_) => {}
            }
            if let Err(failure) = answered {
                selector.request_failed(failure, fresh, destination)?;
            }
        }
        Err(selector.into_failure())
    }

    /// The connection for one attempt.
    #[inline]
    fn lease<'d>(
        &self,
        destination: &'d Destination,
        call_kind: &CallKind<'_, '_>,
        retry_state: &RetryState,
        share: Option<Duration>,
    ) -> Result<Lease<&'d Peer>, CallFailure> {
        let _ = call_kind;
        #[cfg(feature = "server")]
        if let Some(adopted) = destination.adopted(self.orb().bidirectional()) {
            return Ok(Lease::of(&*destination.peer, adopted));
        }
        if self.keeps_connections(retry_state) {
            return destination.peer.lease_open();
        }
        #[cfg(feature = "asynchronous")]
        if matches!(call_kind, CallKind::Request { buffering: Some(_), .. }) {
            return destination.peer.lease_first(share);
        }
        destination.peer.lease(share)
    }

    /// Permits a retry if the server certainly has not acted on the request and it was not repeated before.
    pub(crate) fn may_retry(
        &self,
        failure: CallFailure,
        retry_state: &mut RetryState,
        deadline: Option<&Deadline>,
    ) -> Result<(), SystemException> {
        let (may_repeat, exception) = (failure.may_repeat(), failure.exception);
        let in_time = deadline.is_none_or(|deadline| !deadline.left_to_send().is_zero());
        let safe = exception.completed() == CompletionStatus::No && in_time;
        if safe && self.drop_forward_once(retry_state) {
            return Ok(());
        }
        if safe && may_repeat && self.keeps_connections(retry_state) {
            return Err(no_reconnecting().with_source(exception));
        }
        if safe && may_repeat && !std::mem::replace(&mut retry_state.resent, true) {
            self.orb().statistics().retried();
            tracing::debug!(%exception, "sending again on another connection");
            return Ok(());
        }
        Err(exception)
    }

    /// The response flags of a one-way: the event on the server that its reply waits for, if it gets a reply.
    #[inline]
    pub(crate) fn oneway_response(&self) -> ResponseFlags {
        if !self.has_policies() {
            return ResponseFlags::NONE;
        }
        match self.policy_values().sync_scope() {
            SyncScopePolicy::None | SyncScopePolicy::WithTransport => ResponseFlags::NONE,
            SyncScopePolicy::WithServer => ResponseFlags::WITH_SERVER,
            SyncScopePolicy::WithTarget => ResponseFlags::WITH_TARGET,
        }
    }

    /// REBIND if the policy forbids a bound reference to be forwarded (17.2.1.2).
    fn may_rebind(&self, retry_state: &RetryState) -> Result<(), SystemException> {
        if retry_state.rebind == RebindPolicy::Transparent || !self.is_bound() {
            return Ok(());
        }
        Err(SystemException::rebind(0, CompletionStatus::No).with_detail(
            "the object has moved, and the rebind policy forbids forwarding (validate_connection binds it again)",
        ))
    }

    /// Whether only open connections may be used.
    #[inline]
    pub(crate) fn keeps_connections(&self, retry_state: &RetryState) -> bool {
        retry_state.rebind == RebindPolicy::NoReconnect && self.is_bound()
    }

    /// Marks the reference as bound: the object has answered.
    #[inline]
    pub(crate) fn mark_answered(&self, reply: &Reply) {
        let is_collocated = matches!(reply.kind, ReplyKind::Reply(_) | ReplyKind::Locate(LocateStatus::ObjectHere));
        if is_collocated {
            self.set_bound(true);
        }
    }

    pub(crate) fn system_exception(&self, reply: &Reply) -> SystemException {
        let mut input = self.results(reply);
        let read = input.str().and_then(|id| SystemException::decode(&id, &mut input));
        let exception = read.unwrap_or_else(|error| unreadable("SYSTEM_EXCEPTION", error, CompletionStatus::Maybe));
        if SystemException::KEEPS_DETAIL {
            return exception_details::with_server_description(exception, reply, &mut input);
        }
        exception
    }

    pub(crate) fn results<'r>(&'r self, reply: &'r Reply) -> Decoder<'r> {
        let input = reply.message.decoder(self.orb().settings().wire.limits).with_binder(self.orb());
        input.with_code_sets(reply.wire.char_set, reply.wire.wchar_set).at(reply.body)
    }
}

impl RetryState {
    pub(crate) fn new(rebind: RebindPolicy) -> Self {
        Self { rebind, ..Self::default() }
    }
}

/// UNKNOWN for an exception outside of the operation's `raises` clause.
fn unlisted(operation: &str, repository_id: &str) -> SystemException {
    SystemException::unknown(minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes)
        .with_detail(|| format!("`{operation}` raised `{repository_id}`, which its IDL does not list"))
}

/// MARSHAL for a malformed reply.
pub(crate) fn unreadable(operation: &str, error: CdrError, completed: CompletionStatus) -> SystemException {
    let cause = error.clone();
    SystemException::from(error)
        .with_completed(completed)
        .with_detail(move || format!("the reply to `{operation}` cannot be read: {cause}"))
}
