//! What a request has come to, and what its client waits for, in the terms of interceptors.

use spandrel_giop::ResponseFlags;

use crate::policies::SyncScopePolicy;

/// What a request has come to (`PortableInterceptor::ReplyStatus`, 16.3.12.10).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum ReplyStatus {
    /// Results; for one-way and asynchronous requests, that it was sent.
    Successful = 0,
    /// A system exception.
    SystemException = 1,
    /// An exception that the operation raises.
    UserException = 2,
    /// Another object, to which the request goes instead.
    LocationForward = 3,
    /// Nothing: the request is sent again, to the same object by another way.
    TransportRetry = 4,
    /// Something that this side cannot know.
    Unknown = 5,
}

/// How long the client of a one-way waits (16.3.12.9), as far as its request says.
pub(crate) fn sync_scope(response: ResponseFlags) -> SyncScopePolicy {
    match response {
        ResponseFlags::WITH_TARGET => SyncScopePolicy::WithTarget,
        ResponseFlags::WITH_SERVER => SyncScopePolicy::WithServer,
        _ => SyncScopePolicy::WithTransport,
    }
}
