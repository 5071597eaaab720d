//! The synchronous calls on an object reference, and the decoding of replies.

use spandrel_cdr::{CdrError, Decode, Decoder, Encoder, Ior};
use spandrel_giop::{CompletionStatus, LocateStatus, ReplyStatus, ResponseFlags, SystemException, minor};

#[cfg(not(feature = "asynchronous"))]
use std::option::Option::None as ENABLE_BUFFERING;

use super::exception_details::{self, unreadable};
#[cfg(feature = "asynchronous")]
use super::helped_attempt::ENABLE_BUFFERING;
use crate::{
    Answer, Located, ObjectRef, Orb, UserExceptions,
    client::{
        Reply, ReplyKind,
        call_kind::{CallKind, Marshal},
    },
    policy::SyncScopePolicy,
};

/// Stores the members of the exception with this repository id; `None` if the operation does not raise it.
pub(crate) type Raise<'f> = &'f mut dyn FnMut(&str, &mut Decoder<'_>) -> Option<Result<(), CdrError>>;

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
            let results = decode(&mut input).map_err(|error| unreadable(operation, error, CompletionStatus::Yes))?;
            exception_details::end_results(operation, &input);
            return Ok(results);
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
            results(&mut input).map_err(unreadable)?;
            exception_details::end_results(operation, &input);
            return Ok(());
        }
        let repository_id = input.str().map_err(unreadable)?;
        Err(match raised(&repository_id, &mut input) {
            Some(Ok(())) => SystemException::unknown(minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes),
            Some(Err(error)) => unreadable(error),
            None => unlisted(operation, &repository_id),
        })
    }

    /// Invokes a one-way operation. Returns once the transport has accepted the request, or later if the
    /// [sync scope](crate::policy::SyncScopePolicy) requires it.
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
            buffering: ENABLE_BUFFERING.and_then(|enable: fn(&Orb)| self.buffering().inspect(|_| enable(self.orb()))),
            observer: None,
        };
        self.invoke_blocking(&call_kind).map(drop)
    }

    /// Locates the object by a LocateRequest, which runs no servant.
    ///
    /// # Errors
    /// The system exception that ended the LocateRequest.
    pub fn locate(&self) -> Result<Located, SystemException> {
        let Some(reply) = self.invoke_blocking(&CallKind::Locate)? else {
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
            ReplyKind::Locate(LocateStatus::LocSystemException) => Err(self.system_exception("LocateRequest", &reply)),
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
            buffering: None,
            observer: None,
        };
        self.invoke_blocking(&call_kind)?.ok_or_else(|| SystemException::internal(0, CompletionStatus::Maybe))
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
    pub(crate) fn system_exception(&self, operation: &str, reply: &Reply) -> SystemException {
        let mut input = self.results(reply);
        let read = input.str().and_then(|id| SystemException::decode(&id, &mut input));
        let exception = read.unwrap_or_else(|error| unreadable("SYSTEM_EXCEPTION", error, CompletionStatus::Maybe));
        if SystemException::KEEPS_DETAIL {
            return exception_details::explain(exception, (self, operation), reply, &mut input);
        }
        exception
    }

    pub(crate) fn results<'r>(&'r self, reply: &'r Reply) -> Decoder<'r> {
        let input = reply.message.decoder(self.orb().settings().wire.limits).with_binder(self.orb());
        input.with_code_sets(reply.wire.char_set, reply.wire.wchar_set).at(reply.body)
    }

    /// Invokes a two-way operation, and returns the undecoded reply.
    ///
    /// `encode` writes the arguments, under the conditions of [`ObjectRef::invoke`].
    ///
    /// # Errors
    /// The system exception that ended the call.
    pub fn invoke_raw<'a>(
        &self,
        operation: &str,
        encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Answer, SystemException> {
        let reply = self.call(operation, encode)?;
        Ok(Answer::new(self.clone(), reply))
    }
}
/// UNKNOWN for an exception outside of the operation's `raises` clause.
fn unlisted(operation: &str, repository_id: &str) -> SystemException {
    SystemException::unknown(minor::UNLISTED_USER_EXCEPTION, CompletionStatus::Yes)
        .with_detail(|| format!("`{operation}` raised `{repository_id}`, which its IDL does not list"))
}
