//! What is asked of whom: what stays the same however often a call is sent.

use std::borrow::Cow;

use spandrel_giop::ResponseFlags;

use crate::ObjectRef;

/// What a call asks for.
#[derive(Debug)]
pub(super) struct AsyncRequest {
    pub(super) object: ObjectRef,
    pub(super) operation: Cow<'static, str>,
    pub(super) response: ResponseFlags,
}
