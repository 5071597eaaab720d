//! Forwarding of calls: to another reference (LOCATION_FORWARD), or to the same object by another addressing
//! disposition (NEEDS_ADDRESSING_MODE; CORBA 3.3 Part 2, 9.4.3.1 and 9.6).
//!
//! A reference (`object`) stores its forwarding, and drops it when the object is not found there any more; a permanent
//! one is kept. Retries after a failed connection belong to the parent module.

use spandrel_cdr::{Decode, Ior};
use spandrel_giop::{
    AddressingDisposition, CompletionStatus, LocateStatus, ReplyStatus, SystemException, SystemExceptionKind, ids,
};

use super::{Invocation, Verdict, exception_details::describe_target, unreadable};
use crate::{
    ObjectRef,
    client::{CallFailure, Reply, ReplyKind, destination::Destination},
    policy::RebindPolicy,
    reference::object::ForwardKind,
};

impl Invocation<'_> {
    /// Handles a reply that is neither a result nor an exception of its operation.
    #[cold]
    pub(super) fn evaluate_unusual_reply(&mut self, reply: &Reply) -> Result<Verdict, SystemException> {
        match reply.kind {
            ReplyKind::Reply(ReplyStatus::LocationForward) => self.follow(reply, ForwardKind::Temporary),
            ReplyKind::Reply(ReplyStatus::LocationForwardPerm) => self.follow(reply, ForwardKind::Permanent),
            ReplyKind::Reply(ReplyStatus::SystemException) => {
                let exception = self.object.system_exception(self.operation, reply);
                // A forwarded object that does not exist may have moved again: the original reference leads
                // to it.
                if is_object_not_exist(&exception) && self.drop_forward_once() {
                    Ok(self.end_round(Verdict::Resend))
                } else {
                    Err(exception)
                }
            }
            ReplyKind::Reply(ReplyStatus::NeedsAddressingMode)
            | ReplyKind::Locate(LocateStatus::LocNeedsAddressingMode) => self.readdress_as_requested(reply),
            _ => Ok(Verdict::Done),
        }
    }

    /// Decides on the reply to a LocateRequest that was sent before a request, which the reference named no code
    /// sets for (`failure`).
    ///
    /// # Errors
    /// The failure, if the object is not forwarded; OBJECT_NOT_EXIST if there is none; an exception of the server.
    #[cold]
    pub(crate) fn located(
        &mut self,
        reply: Option<&Reply>,
        failure: CallFailure,
        destination: &Destination,
    ) -> Result<Verdict, SystemException> {
        let failure = match reply.map(|reply| (reply, reply.kind)) {
            Some((reply, ReplyKind::Locate(LocateStatus::ObjectForward))) => {
                return self.follow(reply, ForwardKind::Temporary);
            }
            Some((reply, ReplyKind::Locate(LocateStatus::ObjectForwardPerm))) => {
                return self.follow(reply, ForwardKind::Permanent);
            }
            Some((reply, ReplyKind::Locate(LocateStatus::LocNeedsAddressingMode))) => {
                return self.readdress_as_requested(reply);
            }
            Some((reply, ReplyKind::Locate(LocateStatus::LocSystemException))) => {
                CallFailure::new(self.object.system_exception(self.operation, reply))
            }
            Some((_, ReplyKind::Locate(LocateStatus::UnknownObject))) => CallFailure::new(unknown_object()),
            _ => failure,
        };
        self.failed(failure, destination)
    }

    fn follow(&mut self, reply: &Reply, kind: ForwardKind) -> Result<Verdict, SystemException> {
        self.may_rebind()?;
        let ior = Ior::decode(&mut self.object.results(reply))
            .map_err(|error| unreadable("LOCATION_FORWARD", error, CompletionStatus::No))?;
        self.forward_to(&ior, kind)?;
        self.object.orb().statistics().forwarded();
        Ok(self.end_round(Verdict::Forwarded))
    }

    /// Forwards the call, unless this completes a loop.
    pub(super) fn forward_to(&mut self, ior: &Ior, kind: ForwardKind) -> Result<(), SystemException> {
        self.object.forward_along(ior, kind, &mut self.state.history)
    }

    /// Uses the addressing disposition that the server demands, from now on.
    fn readdress_as_requested(&mut self, reply: &Reply) -> Result<Verdict, SystemException> {
        let disposition = AddressingDisposition::decode(&mut self.object.results(reply))
            .map_err(|error| unreadable("NEEDS_ADDRESSING_MODE", error, CompletionStatus::No))?;
        if !self.state.history.readdress() || !self.object.readdress(disposition)? {
            return Err(SystemException::comm_failure(ids::COMM_FAILURE_PROTOCOL, CompletionStatus::No).with_detail(
                || format!("the server repeatedly demands another addressing disposition, at last {disposition}"),
            ));
        }
        tracing::debug!(%disposition, "changing the addressing disposition as the server demands");
        Ok(self.end_round(Verdict::Resend))
    }

    /// Drops a temporary forwarding, once per call; false if there was none.
    pub(super) fn drop_forward_once(&mut self) -> bool {
        let is_dropped = self.may_rebind().is_ok()
            && self.object.drop_forward()
            && !std::mem::replace(&mut self.state.has_dropped_forward, true);
        if is_dropped {
            self.object.orb().statistics().rebound();
        }
        is_dropped
    }

    /// REBIND if the policy forbids a bound reference to be forwarded (17.2.1.2).
    fn may_rebind(&self) -> Result<(), SystemException> {
        if self.state.rebind == RebindPolicy::Transparent || !self.object.is_bound() {
            return Ok(());
        }
        Err(SystemException::rebind(0, CompletionStatus::No).with_detail(
            "the server forwards the object, and the rebind policy forbids that (validate_connection binds it again)",
        ))
    }
}

impl ObjectRef {
    /// Follows a forwarding, unless it completes a loop.
    fn forward_along(&self, ior: &Ior, kind: ForwardKind, history: &mut ForwardHistory) -> Result<(), SystemException> {
        history.record_forward(|| self.ior(), ior)?;
        self.forward(ior, kind)
    }

    /// Binds the reference regardless of its rebind policy (`_validate_connection`, 8.3.10): locates the
    /// object and follows forwardings. Returns whether calls are possible under the policies in force, and
    /// the policies that conflict with the server's. Only those that [an optional part](crate::BindingPolicies) of the
    /// ORB obeys can conflict.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if there is no such object; the system exception that ended the LocateRequest.
    pub fn validate_connection(&self) -> Result<(bool, Vec<crate::Policy>), SystemException> {
        match self.orb().binding_policies() {
            Some(binding) => binding.validate(self),
            None => self.locate_and_bind().map(|()| (true, Vec::new())),
        }
    }

    /// Binds the reference regardless of its rebind policy, by LocateRequests: the connection that its first call needs
    /// is open then.
    ///
    /// # Errors
    /// As [`validate_connection`](Self::validate_connection).
    pub fn locate_and_bind(&self) -> Result<(), SystemException> {
        self.set_bound(false);
        let mut history = ForwardHistory::default();
        loop {
            match self.locate()? {
                crate::Located::Here => return Ok(()),
                crate::Located::Forward(ior) => self.forward_along(&ior, ForwardKind::Temporary, &mut history)?,
                crate::Located::ForwardPermanently(ior) => {
                    self.forward_along(&ior, ForwardKind::Permanent, &mut history)?;
                }
                // The object does not exist at the forwarded location; the original reference leads to a new
                // one.
                crate::Located::Unknown if self.drop_forward() => {}
                crate::Located::Unknown => {
                    return Err(unknown_object());
                }
            }
        }
    }
}

/// OBJECT_NOT_EXIST for UNKNOWN_OBJECT in a LocateReply.
fn unknown_object() -> SystemException {
    SystemException::object_not_exist(0, CompletionStatus::No)
        .with_detail("the server reports that the object does not exist")
}

/// Whether the object does not exist at this location.
fn is_object_not_exist(exception: &SystemException) -> bool {
    exception.kind() == SystemExceptionKind::ObjectNotExist && exception.completed() == CompletionStatus::No
}

/// The maximum number of forwardings of a call, beyond which they count as a loop.
const MAX_FORWARDS: usize = 16;

/// The maximum number of visits of one target: a moved object may move back once.
const MAX_VISITS: usize = 2;

/// The maximum number of NEEDS_ADDRESSING_MODE replies: there are three dispositions.
const MAX_READDRESSINGS: u32 = 3;

/// The forwardings of one call. Most calls are never forwarded, and store nothing.
#[derive(Debug, Default)]
pub(crate) struct ForwardHistory(Option<Box<ForwardSteps>>);

#[derive(Debug, Default)]
struct ForwardSteps {
    /// The first entry is the original reference. References are not stored: a server decides on their
    /// length.
    visited: Vec<VisitedProfile>,
    readdressings: u32,
}

/// A reference that the call was sent to.
#[derive(Debug)]
struct VisitedProfile {
    /// The hash of the reference's profiles.
    digest: u64,
    /// The description for error texts; empty if exceptions do not keep them.
    description: String,
}

impl VisitedProfile {
    fn of(ior: &Ior) -> Self {
        let description = if SystemException::KEEPS_DETAIL { describe_target(ior) } else { String::new() };
        Self { digest: digest(ior), description }
    }
}

impl ForwardHistory {
    /// Records a forwarding; `from` is the original reference.
    ///
    /// # Errors
    /// TRANSIENT for a forwarding loop, or too many forwardings.
    pub(crate) fn record_forward<'i>(
        &mut self,
        from: impl FnOnce() -> &'i Ior,
        to: &Ior,
    ) -> Result<(), SystemException> {
        let visited = &mut self.0.get_or_insert_default().visited;
        if visited.is_empty() {
            visited.push(VisitedProfile::of(from()));
        }
        let to = VisitedProfile::of(to);
        let visits = visited.iter().filter(|visit| visit.digest == to.digest).count();
        visited.push(to);
        let is_circle = visits >= MAX_VISITS;
        if !is_circle && visited.len() <= MAX_FORWARDS + 1 {
            return Ok(());
        }
        let exception = SystemException::transient(ids::TRANSIENT_FORWARD_LOOP, CompletionStatus::No);
        Err(exception.with_detail(|| {
            let route: Vec<&str> = visited.iter().map(|profile| &*profile.description).collect();
            let reason = match is_circle {
                true => "forwarding loop".to_owned(),
                false => format!("forwarded {MAX_FORWARDS} times in a row"),
            };
            format!("{reason}: {}", route.join(" → "))
        }))
    }

    /// Records a NEEDS_ADDRESSING_MODE reply; false if there were too many.
    pub(super) fn readdress(&mut self) -> bool {
        let readdressings = &mut self.0.get_or_insert_default().readdressings;
        *readdressings += 1;
        *readdressings <= MAX_READDRESSINGS
    }
}

/// The FNV-1a hash of a reference's profiles. A server that forges equal ones only ends calls to itself.
fn digest(ior: &Ior) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let octets = ior.profiles.iter().flat_map(|profile| profile.data.iter());
    octets.fold(OFFSET, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(PRIME))
}

#[cfg(all(test, feature = "details"))]
mod tests {
    use spandrel_cdr::GiopVersion;
    use spandrel_giop::IiopProfile;

    use super::*;

    fn at(port: u16) -> Ior {
        let profile = IiopProfile {
            version: GiopVersion::V1_2,
            host: "host".into(),
            port,
            object_key: vec![b'k'; if port == 9 { 50 } else { 2 }],
            components: Vec::new(),
        };
        Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] }
    }

    fn follow(ports: impl IntoIterator<Item = u16>) -> Result<(), SystemException> {
        let (mut history, home) = (ForwardHistory::default(), at(1));
        ports.into_iter().try_for_each(|port| history.record_forward(|| &home, &at(port)))
    }

    #[test]
    fn one_forwarding_back_is_not_a_loop() {
        assert!(follow([2, 3, 4, 2, 3, 4]).is_ok());
        assert!(follow([1, 2]).is_ok(), "a call that is forwarded to its original reference may be forwarded again");
    }

    #[test]
    fn a_forwarding_loop_is_described_step_by_step() {
        let error = follow([2, 1, 2, 1]).unwrap_err();
        assert_eq!(error.minor(), ids::TRANSIENT_FORWARD_LOOP);
        let detail = error.detail().unwrap_or_default();
        let chain = "host:1/kk → host:2/kk → host:1/kk → host:2/kk → host:1/kk";
        assert_eq!(detail, format!("forwarding loop: {chain}"));
    }

    #[test]
    fn the_number_of_forwardings_is_limited() {
        let error = follow(2..100).unwrap_err();
        let detail = error.detail().unwrap_or_default();
        assert!(detail.starts_with("forwarded 16 times in a row: host:1/kk → host:2/kk"), "{detail}");
        assert!(
            detail.contains(&format!("host:9/{}… →", "k".repeat(40))) && detail.ends_with("host:18/kk"),
            "{detail}"
        );
    }
}
