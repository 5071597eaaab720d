//! Forwarding of calls: to another reference, or to the same object by another addressing disposition (CORBA
//! 3.3 Part 2, 9.4.3.1 and 9.6).
//!
//! A reference stores its forwarding, and drops it when the object is not found there any more; a permanent
//! one is kept. Retries after a failed connection belong to the parent module.

use spandrel_cdr::{Decode, Ior};
use spandrel_giop::{AddressingDisposition, CompletionStatus, ReplyStatus, SystemException, SystemExceptionKind, ids};

use super::{ForwardHistory, ReplyAction, RetryState, unreadable};
use crate::{
    ObjectRef,
    client::{Reply, ReplyKind},
    object::ForwardKind,
};

impl ObjectRef {
    /// Handles a reply that is neither a result nor an exception of its operation.
    #[cold]
    pub(super) fn evaluate_unusual_reply(
        &self,
        reply: &Reply,
        retry_state: &mut RetryState,
    ) -> Result<ReplyAction, SystemException> {
        use spandrel_giop::LocateStatus;
        match reply.kind {
            ReplyKind::Reply(ReplyStatus::LocationForward) => self.follow(reply, ForwardKind::Temporary, retry_state),
            ReplyKind::Reply(ReplyStatus::LocationForwardPerm) => {
                self.follow(reply, ForwardKind::Permanent, retry_state)
            }
            ReplyKind::Reply(ReplyStatus::SystemException) => {
                let exception = self.system_exception(reply);
                // A forwarded object that does not exist may have moved again: the original reference leads
                // to it.
                if is_object_not_exist(&exception) && self.drop_forward_once(retry_state) {
                    Ok(ReplyAction::Resend)
                } else {
                    Err(exception)
                }
            }
            ReplyKind::Reply(ReplyStatus::NeedsAddressingMode)
            | ReplyKind::Locate(LocateStatus::LocNeedsAddressingMode) => {
                self.readdress_as_requested(reply, retry_state)
            }
            _ => Ok(ReplyAction::Answer),
        }
    }

    fn follow(
        &self,
        reply: &Reply,
        kind: ForwardKind,
        retry_state: &mut RetryState,
    ) -> Result<ReplyAction, SystemException> {
        self.may_rebind(retry_state)?;
        let ior = Ior::decode(&mut self.results(reply))
            .map_err(|error| unreadable("LOCATION_FORWARD", error, CompletionStatus::No))?;
        self.forward_along(&ior, kind, &mut retry_state.history)?;
        self.orb().statistics().forwarded();
        Ok(ReplyAction::Resend)
    }

    /// Follows a forwarding by a reply or an interceptor, unless it completes a loop.
    pub(crate) fn forward_along(
        &self,
        ior: &Ior,
        kind: ForwardKind,
        history: &mut ForwardHistory,
    ) -> Result<(), SystemException> {
        history.record_forward(|| self.ior(), ior)?;
        self.forward(ior, kind)
    }

    /// Binds the reference regardless of its rebind policy (`_validate_connection`, 8.3.10): locates the
    /// object and follows forwardings. Returns whether calls are possible under the policies in force, and
    /// the policies that conflict with the server's. None of the policies that this ORB obeys can conflict.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if there is no such object; the system exception that ended the LocateRequest.
    pub fn validate_connection(&self) -> Result<(bool, Vec<crate::Policy>), SystemException> {
        self.set_bound(false);
        let mut history = ForwardHistory::default();
        loop {
            match self.locate()? {
                crate::Located::Here => return Ok((true, Vec::new())),
                crate::Located::Forward(ior) => self.forward_along(&ior, ForwardKind::Temporary, &mut history)?,
                crate::Located::ForwardPermanently(ior) => {
                    self.forward_along(&ior, ForwardKind::Permanent, &mut history)?;
                }
                // The object does not exist at the forwarded location; the original reference leads to a new
                // one.
                crate::Located::Unknown if self.drop_forward() => {}
                crate::Located::Unknown => {
                    return Err(SystemException::object_not_exist(0, CompletionStatus::No)
                        .with_detail("the server reports that the object does not exist"));
                }
            }
        }
    }

    /// Uses the addressing disposition that the server demands, from now on.
    fn readdress_as_requested(
        &self,
        reply: &Reply,
        retry_state: &mut RetryState,
    ) -> Result<ReplyAction, SystemException> {
        let disposition = AddressingDisposition::decode(&mut self.results(reply))
            .map_err(|error| unreadable("NEEDS_ADDRESSING_MODE", error, CompletionStatus::No))?;
        if !retry_state.history.readdress() || !self.readdress(disposition)? {
            return Err(SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::No)
                .with_detail(|| format!("the server repeatedly demands the addressing disposition {disposition}")));
        }
        tracing::debug!(%disposition, "changing the addressing disposition as the server demands");
        Ok(ReplyAction::Resend)
    }

    /// Drops a temporary forwarding, once per call; false if there was none.
    pub(super) fn drop_forward_once(&self, retry_state: &mut RetryState) -> bool {
        let is_dropped = self.may_rebind(retry_state).is_ok()
            && self.drop_forward()
            && !std::mem::replace(&mut retry_state.has_dropped_forward, true);
        if is_dropped {
            self.orb().statistics().rebound();
        }
        is_dropped
    }
}

/// Whether the object does not exist at this location.
fn is_object_not_exist(exception: &SystemException) -> bool {
    exception.kind() == SystemExceptionKind::ObjectNotExist && exception.completed() == CompletionStatus::No
}
