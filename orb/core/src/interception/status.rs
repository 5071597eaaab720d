//! The outcome of a request, and the sync scope of one-ways, in the terms of interceptors.

use spandrel_giop::ResponseFlags;

use crate::policies::SyncScopePolicy;

/// The outcome of a request (`PortableInterceptor::ReplyStatus`, 16.3.12.10).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum ReplyStatus {
    /// Results; for one-way and asynchronous requests, a completed sending.
    Successful = 0,
    /// A system exception.
    SystemException = 1,
    /// An exception that the operation raises.
    UserException = 2,
    /// A forwarding: the request is sent to another object.
    LocationForward = 3,
    /// A retry: the request is sent again, to the same object over another connection.
    TransportRetry = 4,
    /// An outcome that this side cannot know.
    Unknown = 5,
}

/// The sync scope that a one-way's request has (16.3.12.9).
pub(crate) fn sync_scope(response: ResponseFlags) -> SyncScopePolicy {
    match response {
        ResponseFlags::WITH_TARGET => SyncScopePolicy::WithTarget,
        ResponseFlags::WITH_SERVER => SyncScopePolicy::WithServer,
        _ => SyncScopePolicy::WithTransport,
    }
}
