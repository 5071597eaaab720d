//! The server's interception points, and what they are told (16.3.8 to 16.3.10, 16.3.12, 16.3.14).

mod flow;

use spandrel_cdr::{Any, TypeCode};
use spandrel_giop::{CompletionStatus, RequestHeader, ServiceContext, SystemException, minor};

use super::{
    Interceptor, Interruption, InvalidSlot, RaisedException, ReplyStatus, RequestOutcome, SlotId, SlotTable,
    contexts::{add_context, find_context, no_context},
    not_here, not_kept, sync_scope,
};
use crate::{ObjectRef, Orb, Policy, PolicyType, Servant, Target, policies::SyncScopePolicy};
pub(crate) use flow::{LentSlots, RequestView, ServerFlow};

/// An interceptor that the requests to the servants of an ORB pass, and their answers (16.3.8).
///
/// Each point does nothing unless it is implemented. Of the ending points, `send_reply`, `send_exception` and `send_other`, exactly one
/// is called for each request that has passed the starting point, `receive_request_service_contexts`, in the reverse order of
/// registration. One-ways end in `send_reply`, too, which nobody is sent.
///
/// The answer of a servant is sent before a servant locator's `postinvoke` is called, and so are the ending points; the standard has them
/// the other way round (16.3.10.2).
pub trait ServerRequestInterceptor: Interceptor {
    /// A request has come, and the adapter has not been asked yet (16.3.9.1): services take what they need from its contexts and put it
    /// into slots.
    ///
    /// # Errors
    /// An exception to answer with (COMPLETED_NO), or an object that the client is to ask instead.
    fn receive_request_service_contexts(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }

    /// The servant has been found, and is about to be called by this thread (16.3.9.2).
    ///
    /// # Errors
    /// As [`receive_request_service_contexts`](Self::receive_request_service_contexts).
    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }

    /// Results are about to be sent (16.3.9.3).
    ///
    /// # Errors
    /// An exception to answer with instead (COMPLETED_YES).
    fn send_reply(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }

    /// An exception is about to be sent (16.3.9.4).
    ///
    /// # Errors
    /// Another exception, which keeps the completion status; or an object that the client is to ask instead, if the exception said
    /// COMPLETED_NO.
    fn send_exception(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }

    /// The client is about to be told to ask another object (16.3.9.5).
    ///
    /// # Errors
    /// An exception to answer with instead (COMPLETED_NO), or yet another object.
    fn send_other(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }
}

/// Where on a request's way an interceptor is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Point {
    ReceiveServiceContexts,
    ReceiveRequest,
    SendReply,
    SendException,
    SendOther,
}

/// What a request to this ORB's servants is, as far as it can be known at an interception point (16.3.12, 16.3.14).
pub struct ServerRequestInfo<'r> {
    point: Point,
    orb: &'r Orb,
    header: &'r RequestHeader<'r>,
    target: Option<&'r dyn Target>,
    servant: Option<&'r dyn Servant>,
    kept: RequestRecord,
    ending: RequestOutcome,
}

/// What is kept of a request from point to point.
#[derive(Debug, Default)]
struct RequestRecord {
    request_id: u32,
    /// How many interceptors are on the flow stack.
    height: usize,
    slots: SlotTable,
    /// The thread that runs the servant has the slots now.
    is_lent: bool,
    reply_contexts: Vec<ServiceContext>,
    found: Option<ObjectInfo>,
}

/// What the adapter said of the object, for when it is not there any more.
#[derive(Debug)]
struct ObjectInfo {
    object_id: Vec<u8>,
    adapter_id: Vec<u8>,
    adapter_name: Vec<String>,
}

impl ServerRequestInfo<'_> {
    /// A number that no other request has that is under way.
    #[must_use]
    pub fn request_id(&self) -> u32 {
        self.kept.request_id
    }

    /// The operation's name; attributes are `_get_` and `_set_` with their name.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.header.operation
    }

    /// The arguments, as a dynamic skeleton has them.
    ///
    /// # Errors
    /// NO_RESOURCES: compiled skeletons keep none; BAD_INV_ORDER but in `receive_request` and `send_reply`.
    pub fn arguments(&self) -> Result<Vec<Any>, SystemException> {
        self.only_at(&[Point::ReceiveRequest, Point::SendReply])?;
        Err(not_kept())
    }

    /// The types of the exceptions that the operation raises.
    ///
    /// # Errors
    /// NO_RESOURCES: compiled skeletons keep none; BAD_INV_ORDER in `receive_request_service_contexts`.
    pub fn exceptions(&self) -> Result<Vec<TypeCode>, SystemException> {
        self.not_before_adapter()?;
        Err(not_kept())
    }

    /// The names of the operation's `context` clause.
    ///
    /// # Errors
    /// As [`exceptions`](Self::exceptions).
    pub fn contexts(&self) -> Result<Vec<String>, SystemException> {
        self.not_before_adapter()?;
        Err(not_kept())
    }

    /// The context that came with the request.
    ///
    /// # Errors
    /// As [`arguments`](Self::arguments).
    pub fn operation_context(&self) -> Result<crate::Context, SystemException> {
        self.only_at(&[Point::ReceiveRequest, Point::SendReply])?;
        Err(not_kept())
    }

    /// What the operation returned.
    ///
    /// # Errors
    /// NO_RESOURCES: compiled skeletons keep none; BAD_INV_ORDER but in `send_reply`.
    pub fn result(&self) -> Result<Any, SystemException> {
        self.only_at(&[Point::SendReply])?;
        Err(not_kept())
    }

    /// True if the client waits for an answer.
    #[must_use]
    pub fn response_expected(&self) -> bool {
        self.header.response.is_expected()
    }

    /// How long the client of a one-way waits; nothing that counts for other operations.
    #[must_use]
    pub fn sync_scope(&self) -> SyncScopePolicy {
        sync_scope(self.header.response)
    }

    /// What the request has come to.
    ///
    /// # Errors
    /// BAD_INV_ORDER before it has.
    pub fn reply_status(&self) -> Result<ReplyStatus, SystemException> {
        self.at_end()?;
        Ok(self.ending.status())
    }

    /// What the client is to ask instead.
    ///
    /// # Errors
    /// BAD_INV_ORDER unless it is to.
    pub fn forward_reference(&self) -> Result<ObjectRef, SystemException> {
        match (&self.ending, self.point) {
            (RequestOutcome::Other(_, Some(forward)), Point::SendOther) => Ok(forward.clone()),
            _ => Err(not_here()),
        }
    }

    /// What the request has in a slot.
    ///
    /// # Errors
    /// A slot that was not allocated.
    pub fn slot(&self, id: SlotId) -> Result<Any, InvalidSlot> {
        self.kept.slots.get(id)
    }

    /// Sets a slot of the request. The thread that runs the servant has those that are set before the adapter is asked (16.4.4.2).
    ///
    /// # Errors
    /// A slot that was not allocated.
    pub fn set_slot(&mut self, id: SlotId, data: Any) -> Result<(), InvalidSlot> {
        self.kept.slots.set(id, data)
    }

    /// A context that came with the request.
    ///
    /// # Errors
    /// BAD_PARAM if none has this id.
    pub fn request_service_context(&self, id: u32) -> Result<ServiceContext, SystemException> {
        let found = self.header.service_contexts.find(id);
        found.map(|data| ServiceContext { id, data: data.to_vec() }).ok_or_else(|| no_context(id))
    }

    /// A context that will go with the reply.
    ///
    /// # Errors
    /// BAD_PARAM if none has this id; BAD_INV_ORDER before there is a reply.
    pub fn reply_service_context(&self, id: u32) -> Result<ServiceContext, SystemException> {
        self.at_end()?;
        find_context(&self.kept.reply_contexts, id)
    }

    /// Adds a context to the reply; `replace` one that has its id.
    ///
    /// # Errors
    /// BAD_INV_ORDER if there is one and it is not to be replaced.
    pub fn add_reply_service_context(&mut self, context: ServiceContext, replace: bool) -> Result<(), SystemException> {
        add_context(&mut self.kept.reply_contexts, context, replace)
    }

    /// The exception that is about to be sent. One that the operation raises can be [extracted](RaisedException::extract).
    ///
    /// # Errors
    /// BAD_INV_ORDER but in `send_exception`.
    pub fn sending_exception(&self) -> Result<&RaisedException, SystemException> {
        match (&self.ending, self.point) {
            (RequestOutcome::Exception(exception), Point::SendException) => Ok(exception),
            _ => Err(not_here()),
        }
    }

    /// The object's id within its adapter.
    ///
    /// # Errors
    /// BAD_INV_ORDER before the adapter is asked; NO_RESOURCES if it has found no servant.
    pub fn object_id(&self) -> Result<&[u8], SystemException> {
        self.found().map(|found| &*found.object_id)
    }

    /// The adapter's id, unique within its ORB.
    ///
    /// # Errors
    /// As [`object_id`](Self::object_id).
    pub fn adapter_id(&self) -> Result<&[u8], SystemException> {
        self.found().map(|found| &*found.adapter_id)
    }

    /// The names of the adapters from the root to the object's own.
    ///
    /// # Errors
    /// As [`object_id`](Self::object_id).
    pub fn adapter_name(&self) -> Result<&[String], SystemException> {
        self.found().map(|found| &*found.adapter_name)
    }

    /// The server's name (`-ORBServerId`); empty unless it was given one.
    ///
    /// # Errors
    /// BAD_INV_ORDER before the adapter is asked.
    pub fn server_id(&self) -> Result<&str, SystemException> {
        self.not_before_adapter()?;
        Ok(self.orb.server_id())
    }

    /// The ORB's name (`-ORBId`); empty unless it was given one.
    ///
    /// # Errors
    /// BAD_INV_ORDER before the adapter is asked.
    pub fn orb_id(&self) -> Result<&str, SystemException> {
        self.not_before_adapter()?;
        Ok(self.orb.id())
    }

    /// The repository id of the servant's most derived interface.
    ///
    /// # Errors
    /// BAD_INV_ORDER but in `receive_request`.
    pub fn target_most_derived_interface(&self) -> Result<&str, SystemException> {
        self.servant().map(Servant::repository_id)
    }

    /// True if the servant supports the interface with this repository id.
    ///
    /// # Errors
    /// BAD_INV_ORDER but in `receive_request`.
    pub fn target_is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        Ok(repository_id == crate::object::OBJECT_ID || self.servant()?.is_a(repository_id))
    }

    /// The adapter's policy of this type.
    ///
    /// # Errors
    /// INV_POLICY if it has none; NO_RESOURCES where the adapter cannot be asked: before it is, and once the upcall has ended.
    pub fn server_policy(&self, policy_type: PolicyType) -> Result<Policy, SystemException> {
        let target = self.target.ok_or_else(|| unknown_object("the adapter cannot be asked here"))?;
        target.policy(policy_type).ok_or_else(|| {
            SystemException::inv_policy(minor::UNKNOWN_POLICY_TYPE, CompletionStatus::No)
                .with_detail(|| format!("the adapter has no policy of type {policy_type}"))
        })
    }

    fn servant(&self) -> Result<&dyn Servant, SystemException> {
        self.servant.filter(|_| self.point == Point::ReceiveRequest).ok_or_else(not_here)
    }

    fn found(&self) -> Result<&ObjectInfo, SystemException> {
        self.not_before_adapter()?;
        self.kept.found.as_ref().ok_or_else(|| unknown_object("the adapter has found no servant"))
    }

    fn only_at(&self, points: &[Point]) -> Result<(), SystemException> {
        if points.contains(&self.point) { Ok(()) } else { Err(not_here()) }
    }

    fn not_before_adapter(&self) -> Result<(), SystemException> {
        if self.point == Point::ReceiveServiceContexts { Err(not_here()) } else { Ok(()) }
    }

    fn at_end(&self) -> Result<(), SystemException> {
        self.only_at(&[Point::SendReply, Point::SendException, Point::SendOther])
    }
}

impl std::fmt::Debug for ServerRequestInfo<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerRequestInfo")
            .field("point", &self.point)
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}

/// NO_RESOURCES for what the adapter has not said (16.3.14, note 3 of the table).
fn unknown_object(why: &'static str) -> SystemException {
    SystemException::no_resources(minor::PORTABLE_INTERCEPTOR_UNSUPPORTED, CompletionStatus::No).with_detail(why)
}
