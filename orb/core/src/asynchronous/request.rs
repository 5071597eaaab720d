//! The part of an asynchronous request that is the same in each attempt.

use std::borrow::Cow;

use spandrel_giop::ResponseFlags;

use crate::ObjectRef;

/// The target, operation and response flags of a call.
#[derive(Debug)]
pub(super) struct AsyncRequest {
    pub(super) object: ObjectRef,
    pub(super) operation: Cow<'static, str>,
    pub(super) response: ResponseFlags,
}
