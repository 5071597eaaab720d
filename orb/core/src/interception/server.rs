//! The server's interception points and their information (16.3.8 to 16.3.10, 16.3.12, 16.3.14).

pub(crate) mod flow;

use std::borrow::Cow;

use spandrel_cdr::{Any, TypeCode};
use spandrel_giop::{CompletionStatus, RequestHeader, ResponseFlags, ServiceContext, SystemException, minor};

use spandrel_transport::Address;

use super::{
    Interceptor, Interruption, InvalidSlot, RaisedException, ReplyStatus, RequestOutcome, SlotId, SlotTable,
    contexts::{IfPresent, add_context, find_context, no_context},
    no_description, not_available, sync_scope,
};
use crate::{ObjectRef, Orb, Policy, PolicyType, SupportedInterfaces, Target, policy::SyncScopePolicy};

/// An interceptor of the requests to an ORB's servants, and of the replies (16.3.8).
///
/// The default of each point does nothing. Each request that has passed the starting point,
/// `receive_request_service_contexts`, has exactly one ending point called, in the reverse order of
/// registration: `send_reply`, `send_exception` or `send_other`. One-ways end in `send_reply`, too, without a
/// reply.
///
/// A servant locator's `preinvoke` comes between the starting and the intermediate points, and its
/// `postinvoke` between the servant and the ending points (16.3.10.2).
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; }
/// use spandrel::interception::{Interceptor, Interruption, ServerRequestInfo, ServerRequestInterceptor};
/// use spandrel::{CompletionStatus, Orb, SystemException};
///
/// /// Refuses all requests but those of a given operation.
/// struct Gate(&'static str);
///
/// impl Interceptor for Gate {
///     fn name(&self) -> &str {
///         "gate"
///     }
/// }
///
/// impl ServerRequestInterceptor for Gate {
///     fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
///         if info.operation() == self.0 {
///             return Ok(());
///         }
///         Err(SystemException::no_permission(0, CompletionStatus::No).into())
///     }
/// }
///
/// let orb = Orb::builder().server_request_interceptor(Gate("deposit"))?.build()?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ServerRequestInterceptor: Interceptor {
    /// Called when a request has arrived, before its adapter is called (16.3.9.1). Services move data from
    /// its contexts into slots.
    ///
    /// # Errors
    /// An exception to reply with (COMPLETED_NO), or an object to which the client is forwarded.
    fn receive_request_service_contexts(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }

    /// Called after the servant was found, by the thread that will call it (16.3.9.2).
    ///
    /// # Errors
    /// As [`receive_request_service_contexts`](Self::receive_request_service_contexts).
    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }

    /// Called when a LocateRequest has arrived, before its adapter is called. The standard has no point for it;
    /// a service that decides about access needs one.
    ///
    /// # Errors
    /// An exception to reply with (COMPLETED_NO).
    fn receive_locate_request(&self, info: &LocateRequestInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }

    /// Called before results are sent (16.3.9.3).
    ///
    /// # Errors
    /// An exception to reply with instead (COMPLETED_YES).
    fn send_reply(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        let _ = info;
        Ok(())
    }

    /// Called before an exception is sent (16.3.9.4).
    ///
    /// # Errors
    /// Another exception, with the same completion status; or, after COMPLETED_NO, an object to which the
    /// client is forwarded.
    fn send_exception(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }

    /// Called before the client is forwarded to another object (16.3.9.5).
    ///
    /// # Errors
    /// An exception to reply with instead (COMPLETED_NO), or another object.
    fn send_other(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let _ = info;
        Ok(())
    }
}

/// The interception points of a server's request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Point {
    ReceiveServiceContexts,
    ReceiveRequest,
    SendReply,
    SendException,
    SendOther,
}

/// A request to this ORB's servants at an interception point (16.3.12, 16.3.14).
pub struct ServerRequestInfo<'r> {
    point: Point,
    orb: &'r Orb,
    header: &'r RequestHeader<'r>,
    response: ResponseFlags,
    target: Option<&'r dyn Target>,
    peer: Option<&'r Address>,
    servant: Option<&'r dyn SupportedInterfaces>,
    record: RequestRecord,
    ending: RequestOutcome,
}

/// A LocateRequest as interceptors see it: it has neither operation nor contexts.
#[derive(Clone, Copy, Debug)]
pub struct LocateRequestInfo<'r> {
    orb: &'r Orb,
    key: &'r [u8],
    peer: Option<&'r Address>,
}

impl<'r> LocateRequestInfo<'r> {
    /// The ORB that received the LocateRequest, for calls and references of the interceptor.
    #[must_use]
    pub fn orb(&self) -> &'r Orb {
        self.orb
    }

    /// The object key of the request, which names the adapter and the object within this server.
    #[must_use]
    pub fn object_key(&self) -> &'r [u8] {
        self.key
    }

    /// The address of the client; `None` for a caller in this ORB.
    #[must_use]
    pub fn peer_address(&self) -> Option<&'r Address> {
        self.peer
    }
}

/// The data of a request between its points.
#[derive(Debug, Default)]
struct RequestRecord {
    request_id: u32,
    /// The number of interceptors on the flow stack.
    height: usize,
    slots: SlotTable,
    /// Whether the thread that runs the servant has the slots at present.
    is_in_thread: bool,
    reply_contexts: Vec<ServiceContext>,
    object: Option<ObjectInfo>,
}

/// The adapter's information on the object, for later points.
#[derive(Debug)]
struct ObjectInfo {
    object_id: Vec<u8>,
    adapter_id: Vec<u8>,
    adapter_name: Vec<String>,
}

impl ServerRequestInfo<'_> {
    /// A number that no other pending request of this ORB has.
    #[must_use]
    pub fn request_id(&self) -> u32 {
        self.record.request_id
    }

    /// The operation's name; attributes are `_get_` and `_set_` with their name.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.header.operation
    }

    /// The ORB that received the request, for calls and references of the interceptor.
    #[must_use]
    pub fn orb(&self) -> &Orb {
        self.orb
    }

    /// The key of the object. `None` if the request has a form of address without one.
    #[must_use]
    pub fn object_key(&self) -> Option<Cow<'_, [u8]>> {
        self.header.target.object_key()
    }

    /// The address of the peer that has sent the request: `iiop://10.0.0.7:41234`. `None` for a call from this ORB
    /// itself. The sender of a datagram (`diop`) can forge its address.
    #[must_use]
    pub fn peer_address(&self) -> Option<&Address> {
        self.peer
    }

    /// The arguments of the request.
    ///
    /// # Errors
    /// NO_RESOURCES: compiled skeletons have no list of them; BAD_INV_ORDER except in `receive_request` and
    /// `send_reply`.
    pub fn arguments(&self) -> Result<Vec<Any>, SystemException> {
        self.only_at(&[Point::ReceiveRequest, Point::SendReply])?;
        Err(no_description())
    }

    /// The types of the exceptions that the operation raises.
    ///
    /// # Errors
    /// NO_RESOURCES: compiled skeletons have no list of them; BAD_INV_ORDER in
    /// `receive_request_service_contexts`.
    pub fn exceptions(&self) -> Result<Vec<TypeCode>, SystemException> {
        self.not_before_adapter()?;
        Err(no_description())
    }

    /// The names of the operation's `context` clause.
    ///
    /// # Errors
    /// As [`exceptions`](Self::exceptions).
    pub fn contexts(&self) -> Result<Vec<String>, SystemException> {
        self.not_before_adapter()?;
        Err(no_description())
    }

    /// The IDL context that the client has sent.
    ///
    /// # Errors
    /// As [`arguments`](Self::arguments).
    pub fn operation_context(&self) -> Result<crate::Context, SystemException> {
        self.only_at(&[Point::ReceiveRequest, Point::SendReply])?;
        Err(no_description())
    }

    /// The return value of the operation.
    ///
    /// # Errors
    /// NO_RESOURCES: compiled skeletons do not have it; BAD_INV_ORDER except in `send_reply`.
    pub fn result(&self) -> Result<Any, SystemException> {
        self.only_at(&[Point::SendReply])?;
        Err(no_description())
    }

    /// Whether the client waits for a reply.
    #[must_use]
    pub fn response_expected(&self) -> bool {
        self.response.is_expected()
    }

    /// The sync scope of a one-way; without a meaning for other operations.
    #[must_use]
    pub fn sync_scope(&self) -> SyncScopePolicy {
        sync_scope(self.response)
    }

    /// The status with which the request ends, as its client will see it.
    ///
    /// # Errors
    /// BAD_INV_ORDER before the ending points.
    pub fn reply_status(&self) -> Result<ReplyStatus, SystemException> {
        self.at_end()?;
        Ok(self.ending.status())
    }

    /// The object to which the client is forwarded.
    ///
    /// # Errors
    /// BAD_INV_ORDER unless it is forwarded.
    pub fn forward_reference(&self) -> Result<ObjectRef, SystemException> {
        match (&self.ending, self.point) {
            (RequestOutcome::Other(_, Some(forward)), Point::SendOther) => Ok(forward.clone()),
            _ => Err(not_available()),
        }
    }

    /// The value of a slot for the time of the request; an empty `any` if none was set.
    ///
    /// # Errors
    /// A slot that was not allocated.
    pub fn slot(&self, id: SlotId) -> Result<Any, InvalidSlot> {
        self.record.slots.get(id)
    }

    /// Sets a slot of the request. The thread that runs the servant has those that are set before the adapter
    /// is called (16.4.4.2).
    ///
    /// # Errors
    /// A slot that was not allocated.
    pub fn set_slot(&mut self, id: SlotId, data: Any) -> Result<(), InvalidSlot> {
        self.record.slots.set(id, data)
    }

    /// The context of the request with this id.
    ///
    /// # Errors
    /// BAD_PARAM if none has this id.
    pub fn request_service_context(&self, id: u32) -> Result<ServiceContext, SystemException> {
        let data = self.header.service_contexts.find(id);
        data.map(|data| ServiceContext { id, data: data.to_vec() }).ok_or_else(|| no_context(id))
    }

    /// The context of the reply with this id, if an interceptor or the servant has added one.
    ///
    /// # Errors
    /// BAD_PARAM if none has this id; BAD_INV_ORDER before there is a reply.
    pub fn reply_service_context(&self, id: u32) -> Result<ServiceContext, SystemException> {
        self.at_end()?;
        find_context(&self.record.reply_contexts, id)
    }

    /// Adds a context to the reply; `if_present` decides about one with its id.
    ///
    /// # Errors
    /// BAD_INV_ORDER if there is one, with [`IfPresent::Fail`].
    pub fn add_reply_service_context(
        &mut self,
        context: ServiceContext,
        if_present: IfPresent,
    ) -> Result<(), SystemException> {
        add_context(&mut self.record.reply_contexts, context, if_present)
    }

    /// The exception that is about to be sent. One that the operation raises can be [extracted](RaisedException::extract).
    ///
    /// # Errors
    /// BAD_INV_ORDER except in `send_exception`.
    pub fn sending_exception(&self) -> Result<&RaisedException, SystemException> {
        match (&self.ending, self.point) {
            (RequestOutcome::Exception(exception), Point::SendException) => Ok(exception),
            _ => Err(not_available()),
        }
    }

    /// The object's id within its adapter.
    ///
    /// # Errors
    /// BAD_INV_ORDER before the adapter is called; NO_RESOURCES if it has found no servant.
    pub fn object_id(&self) -> Result<&[u8], SystemException> {
        self.object().map(|object| &*object.object_id)
    }

    /// The adapter's id, unique within its ORB.
    ///
    /// # Errors
    /// As [`object_id`](Self::object_id).
    pub fn adapter_id(&self) -> Result<&[u8], SystemException> {
        self.object().map(|object| &*object.adapter_id)
    }

    /// The names of the adapters from the root to the object's own.
    ///
    /// # Errors
    /// As [`object_id`](Self::object_id).
    pub fn adapter_name(&self) -> Result<&[String], SystemException> {
        self.object().map(|object| &*object.adapter_name)
    }

    /// The server's name (`-ORBServerId`); empty by default.
    ///
    /// # Errors
    /// BAD_INV_ORDER before the adapter is called.
    pub fn server_id(&self) -> Result<&str, SystemException> {
        self.not_before_adapter()?;
        Ok(self.orb.server_id())
    }

    /// The ORB's name (`-ORBId`); empty by default.
    ///
    /// # Errors
    /// BAD_INV_ORDER before the adapter is called.
    pub fn orb_id(&self) -> Result<&str, SystemException> {
        self.not_before_adapter()?;
        Ok(self.orb.id())
    }

    /// The repository id of the servant's most derived interface.
    ///
    /// # Errors
    /// BAD_INV_ORDER except in `receive_request`.
    pub fn target_most_derived_interface(&self) -> Result<&str, SystemException> {
        self.servant().map(SupportedInterfaces::repository_id)
    }

    /// Whether the servant supports the interface with this repository id.
    ///
    /// # Errors
    /// BAD_INV_ORDER except in `receive_request`.
    pub fn target_is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        Ok(repository_id == crate::reference::object::OBJECT_ID || self.servant()?.is_a(repository_id))
    }

    /// The adapter's policy of this type.
    ///
    /// # Errors
    /// INV_POLICY if it has none; NO_RESOURCES before the adapter is called, and after the end of the upcall.
    pub fn server_policy(&self, policy_type: PolicyType) -> Result<Policy, SystemException> {
        let target =
            self.target.ok_or_else(|| unknown_object("the adapter is not available at this interception point"))?;
        target.policy(policy_type).ok_or_else(|| {
            SystemException::inv_policy(minor::UNKNOWN_POLICY_TYPE, CompletionStatus::No)
                .with_detail(|| format!("the adapter has no policy of type {policy_type}"))
        })
    }

    fn servant(&self) -> Result<&dyn SupportedInterfaces, SystemException> {
        self.servant.filter(|_| self.point == Point::ReceiveRequest).ok_or_else(not_available)
    }

    fn object(&self) -> Result<&ObjectInfo, SystemException> {
        self.not_before_adapter()?;
        self.record.object.as_ref().ok_or_else(|| unknown_object("the adapter has found no servant"))
    }

    fn only_at(&self, points: &[Point]) -> Result<(), SystemException> {
        if points.contains(&self.point) { Ok(()) } else { Err(not_available()) }
    }

    fn not_before_adapter(&self) -> Result<(), SystemException> {
        if self.point == Point::ReceiveServiceContexts { Err(not_available()) } else { Ok(()) }
    }

    fn at_end(&self) -> Result<(), SystemException> {
        self.only_at(&[Point::SendReply, Point::SendException, Point::SendOther])
    }
}

impl std::fmt::Debug for ServerRequestInfo<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerRequestInfo")
            .field("point", &self.point)
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

/// NO_RESOURCES for an unknown object or adapter (16.3.14, note 3 of the table).
fn unknown_object(reason: &'static str) -> SystemException {
    SystemException::no_resources(minor::PORTABLE_INTERCEPTOR_UNSUPPORTED, CompletionStatus::No).with_detail(reason)
}
