//! The client's interception points and their information (16.3.5 to 16.3.7, 16.3.12, 16.3.13).

pub(super) mod flow;

use spandrel_cdr::{Any, TaggedComponent, TaggedProfile, TypeCode};
use spandrel_giop::{CompletionStatus, IiopProfile, ResponseFlags, ServiceContext, SystemException, minor};
use spandrel_sync::Arc;

use super::contexts::{IfPresent, add_context, find_context};
use super::{
    DynamicRequest, Interceptor, Interruption, InvalidSlot, Parameter, RaisedException, ReplyStatus, RequestOutcome,
    SlotId, SlotTable, dynamic::UndecodedResult, no_description, not_available, sync_scope,
};
use crate::{ObjectRef, Policy, PolicyType, policy::SyncScopePolicy, reference::object::EffectiveReference};

/// An interceptor of an ORB's requests on their way to the servers, and of the replies (16.3.5).
///
/// The default of each point does nothing. Each request that has passed the starting point has exactly one
/// ending point called, in the reverse order of registration: `receive_reply`, `receive_exception` or
/// `receive_other`. A request that is sent again, because its object was forwarded or a connection was
/// closed, is another request.
///
/// An asynchronous request is two (16.3.7.2): `send_request` is followed by `receive_other` before control
/// returns to the client. Once there is an outcome, `send_poll` and an ending point are called by the thread
/// that completes the client's tasks. They must not wait.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; }
/// use spandrel::Orb;
/// use spandrel::interception::{
///     ClientRequestInfo, ClientRequestInterceptor, IfPresent, Interceptor, Interruption, ServiceContext,
/// };
///
/// /// Adds a service context to each request.
/// struct Sender;
///
/// impl Interceptor for Sender {
///     fn name(&self) -> &str {
///         "sender"
///     }
/// }
///
/// impl ClientRequestInterceptor for Sender {
///     fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
///         let context = ServiceContext { id: 0x4241_4e01, data: b"ada".to_vec() };
///         Ok(info.add_request_service_context(context, IfPresent::Replace)?)
///     }
/// }
///
/// let orb = Orb::builder().client_request_interceptor(Sender)?.build()?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ClientRequestInterceptor: Interceptor {
    /// Called before a request is sent. Service contexts may be added (16.3.6.1).
    ///
    /// # Errors
    /// An exception that the request ends with (COMPLETED_NO), or an object that it is sent to instead.
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }

    /// Called for the outcome of an asynchronous request (16.3.6.2).
    ///
    /// # Errors
    /// An exception that replaces the outcome.
    fn send_poll(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }

    /// Called when a reply with results has come (16.3.6.3).
    ///
    /// # Errors
    /// An exception that replaces the results (COMPLETED_YES).
    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }

    /// Called when a reply has an exception, or this side raises one (16.3.6.4).
    ///
    /// # Errors
    /// Another exception, with the same completion status; or an object that is tried instead, after
    /// COMPLETED_NO.
    fn receive_exception(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }

    /// Called for other ends: a one-way or asynchronous request was sent, or the request is sent again
    /// (16.3.6.5).
    ///
    /// # Errors
    /// An exception that the request ends with, or an object that it is sent to instead.
    fn receive_other(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }
}

/// The response that the client waits for, and whether its request is a one-way.
pub(crate) type ResponseRequest = (ResponseFlags, bool);

/// The data of a request besides its arguments.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingContexts {
    pub(super) request_id: u32,
    pub(super) contexts: Vec<ServiceContext>,
    pub(super) slots: SlotTable,
    /// The typed arguments, exceptions and contexts, for a dynamic request.
    pub(super) description: Option<Arc<DynamicRequest>>,
}

/// The interception points of a client's request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Point {
    SendRequest,
    SendPoll,
    ReceiveReply,
    ReceiveException,
    ReceiveOther,
}

/// A client's request at an interception point (16.3.12, 16.3.13).
#[derive(Debug)]
pub struct ClientRequestInfo<'r> {
    point: Point,
    operation: &'r str,
    response_request: ResponseRequest,
    target: &'r ObjectRef,
    /// The reference that the object was forwarded to.
    effective: EffectiveReference,
    /// The index of the IIOP profile that is tried.
    profile: usize,
    outgoing: OutgoingContexts,
    /// The contexts of the reply.
    reply_contexts: Vec<ServiceContext>,
    /// The results of a dynamic request.
    returned: Option<UndecodedResult>,
    ending: RequestOutcome,
}

impl<'r> ClientRequestInfo<'r> {
    /// A number that no other pending request of this ORB has.
    #[must_use]
    pub fn request_id(&self) -> u32 {
        self.outgoing.request_id
    }

    /// The operation's name; attributes are `_get_` and `_set_` with their name.
    #[must_use]
    pub fn operation(&self) -> &'r str {
        self.operation
    }

    /// The parameters of a dynamic request; in `receive_reply` with the returned values.
    ///
    /// # Errors
    /// NO_RESOURCES for requests of compiled stubs, which have no description; BAD_INV_ORDER except in
    /// `send_request` and `receive_reply`.
    pub fn arguments(&self) -> Result<Vec<Parameter>, SystemException> {
        self.only_at(&[Point::SendRequest, Point::ReceiveReply])?;
        let description = self.description()?;
        match &self.returned {
            Some(returned) => returned.read(self.target.orb(), description).map(|(_, arguments)| arguments),
            None => Ok(description.arguments.clone()),
        }
    }

    /// The types of the exceptions that the operation raises.
    ///
    /// # Errors
    /// NO_RESOURCES for requests of compiled stubs, which have no description; BAD_INV_ORDER in `send_poll`.
    pub fn exceptions(&self) -> Result<Vec<TypeCode>, SystemException> {
        self.not_at_poll()?;
        Ok(self.description()?.exceptions.clone())
    }

    /// The names of the operation's `context` clause.
    ///
    /// # Errors
    /// As [`exceptions`](Self::exceptions).
    pub fn contexts(&self) -> Result<Vec<String>, SystemException> {
        self.not_at_poll()?;
        Ok(self.description()?.contexts.clone())
    }

    /// The IDL context that is sent with the request.
    ///
    /// # Errors
    /// As [`exceptions`](Self::exceptions).
    pub fn operation_context(&self) -> Result<crate::Context, SystemException> {
        self.not_at_poll()?;
        Ok(self.description()?.operation_context.clone())
    }

    /// The return value of a dynamic request.
    ///
    /// # Errors
    /// NO_RESOURCES for requests of compiled stubs, which have no description; BAD_INV_ORDER except in
    /// `receive_reply`.
    pub fn result(&self) -> Result<Any, SystemException> {
        self.only_at(&[Point::ReceiveReply])?;
        let (description, returned) = (self.description()?, self.returned.as_ref().ok_or_else(no_description)?);
        returned.read(self.target.orb(), description).map(|(result, _)| result)
    }

    /// Whether the operation is two-way. False for a one-way with any sync scope.
    #[must_use]
    pub fn response_expected(&self) -> bool {
        !self.response_request.1
    }

    /// The sync scope of a one-way; without a meaning where a response is expected.
    ///
    /// # Errors
    /// BAD_INV_ORDER in `send_poll`.
    pub fn sync_scope(&self) -> Result<SyncScopePolicy, SystemException> {
        self.not_at_poll()?;
        Ok(sync_scope(self.response_request.0))
    }

    /// The status with which the request has ended, also without a reply.
    ///
    /// # Errors
    /// BAD_INV_ORDER at the starting points.
    pub fn reply_status(&self) -> Result<ReplyStatus, SystemException> {
        self.at_end()?;
        Ok(self.ending.status())
    }

    /// The reference that the request is forwarded to.
    ///
    /// # Errors
    /// BAD_INV_ORDER unless it is forwarded.
    pub fn forward_reference(&self) -> Result<ObjectRef, SystemException> {
        match (&self.ending, self.point) {
            (RequestOutcome::Other(_, Some(forward)), Point::ReceiveOther) => Ok(forward.clone()),
            _ => Err(not_available()),
        }
    }

    /// The value of a slot: that of the client's thread when it made the request.
    ///
    /// # Errors
    /// A slot that was not allocated.
    pub fn slot(&self, id: SlotId) -> Result<Any, InvalidSlot> {
        self.outgoing.slots.get(id)
    }

    /// A context that interceptors added to the request.
    ///
    /// # Errors
    /// BAD_PARAM if none has this id; BAD_INV_ORDER in `send_poll`.
    pub fn request_service_context(&self, id: u32) -> Result<ServiceContext, SystemException> {
        self.not_at_poll()?;
        find_context(&self.outgoing.contexts, id)
    }

    /// The context of the reply with this id.
    ///
    /// # Errors
    /// BAD_PARAM if none has this id; BAD_INV_ORDER before there is a reply.
    pub fn reply_service_context(&self, id: u32) -> Result<ServiceContext, SystemException> {
        self.at_end()?;
        find_context(&self.reply_contexts, id)
    }

    /// The reference that the client invoked.
    #[must_use]
    pub fn target(&self) -> &'r ObjectRef {
        self.target
    }

    /// The reference that the request is sent to: another one if the object was forwarded.
    #[must_use]
    pub fn effective_target(&self) -> ObjectRef {
        match &self.effective {
            Some(ior) => self.target.orb().reference((**ior).clone()),
            None => self.target.clone(),
        }
    }

    /// The profile of the effective target to whose address the request is sent.
    ///
    /// # Errors
    /// INV_OBJREF if it cannot be decoded; a reference that can be invoked has one that can.
    pub fn effective_profile(&self) -> Result<TaggedProfile, SystemException> {
        self.find_profile().map(|(tagged, _)| tagged.clone())
    }

    /// The first component of the effective profile with this id.
    ///
    /// # Errors
    /// BAD_PARAM if there is none; BAD_INV_ORDER in `send_poll`.
    pub fn effective_component(&self, id: u32) -> Result<TaggedComponent, SystemException> {
        self.effective_components(id).map(|mut components| components.swap_remove(0))
    }

    /// The components of the effective profile with this id, at least one.
    ///
    /// # Errors
    /// As [`effective_component`](Self::effective_component).
    pub fn effective_components(&self, id: u32) -> Result<Vec<TaggedComponent>, SystemException> {
        self.not_at_poll()?;
        let (_, mut profile) = self.find_profile()?;
        profile.components.retain(|component| component.tag == id);
        match profile.components {
            none if none.is_empty() => Err(SystemException::bad_param(minor::NO_SUCH_COMPONENT, CompletionStatus::No)
                .with_detail(|| format!("the profile has no component {id:#x}"))),
            value => Ok(value),
        }
    }

    /// The policy of this type that is in force for the request, from the reference, the thread or the ORB.
    ///
    /// # Errors
    /// INV_POLICY if no policy of this type is in force; BAD_INV_ORDER in `send_poll`.
    pub fn request_policy(&self, policy_type: PolicyType) -> Result<Policy, SystemException> {
        self.not_at_poll()?;
        let policy = self.target.policy(policy_type)?;
        policy.ok_or_else(|| {
            SystemException::inv_policy(minor::UNKNOWN_POLICY_TYPE, CompletionStatus::No)
                .with_detail(|| format!("no policy of type {policy_type} is in force"))
        })
    }

    /// The exception that the request ends with. One that the operation raises can be [extracted](RaisedException::extract).
    ///
    /// # Errors
    /// BAD_INV_ORDER except in `receive_exception`.
    pub fn received_exception(&self) -> Result<&RaisedException, SystemException> {
        match (&self.ending, self.point) {
            (RequestOutcome::Exception(exception), Point::ReceiveException) => Ok(exception),
            _ => Err(not_available()),
        }
    }

    /// The repository id of the exception, which need not be decoded for that.
    ///
    /// # Errors
    /// BAD_INV_ORDER except in `receive_exception`.
    pub fn received_exception_id(&self) -> Result<&str, SystemException> {
        self.received_exception().map(RaisedException::repository_id)
    }

    /// Adds a context to the request; `if_present` decides about one with its id.
    ///
    /// # Errors
    /// BAD_INV_ORDER if there is one, with [`IfPresent::Fail`], and except in `send_request`.
    pub fn add_request_service_context(
        &mut self,
        context: ServiceContext,
        if_present: IfPresent,
    ) -> Result<(), SystemException> {
        self.only_at(&[Point::SendRequest])?;
        add_context(&mut self.outgoing.contexts, context, if_present)
    }

    fn description(&self) -> Result<&DynamicRequest, SystemException> {
        self.outgoing.description.as_deref().ok_or_else(no_description)
    }

    fn find_profile(&self) -> Result<(&TaggedProfile, IiopProfile), SystemException> {
        let ior = self.effective.as_deref().unwrap_or(self.target.ior());
        let mut read = ior.profiles.iter().filter_map(|tagged| Some((tagged, IiopProfile::decode(tagged).ok()??)));
        read.nth(self.profile).ok_or_else(|| SystemException::inv_objref(0, CompletionStatus::No))
    }

    fn only_at(&self, points: &[Point]) -> Result<(), SystemException> {
        if points.contains(&self.point) { Ok(()) } else { Err(not_available()) }
    }

    fn not_at_poll(&self) -> Result<(), SystemException> {
        if self.point == Point::SendPoll { Err(not_available()) } else { Ok(()) }
    }

    fn at_end(&self) -> Result<(), SystemException> {
        self.only_at(&[Point::ReceiveReply, Point::ReceiveException, Point::ReceiveOther])
    }
}
