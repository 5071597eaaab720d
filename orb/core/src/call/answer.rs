//! Replies to calls whose types only the program knows.
//!
//! Generated stubs decode replies themselves ([`ObjectRef::invoke`]). Requests built at run time belong to
//! `spandrel-dynamic`.

use std::fmt;

use spandrel_cdr::Decoder;
use spandrel_giop::ReplyStatus;

use crate::{
    ObjectRef,
    client::{Reply, ReplyKind},
};

/// An undecoded reply: results, or a user exception.
///
/// It keeps the buffer in which it was received: while it lives, the connection receives into another one.
pub struct Answer {
    object: ObjectRef,
    reply: Reply,
}

impl Answer {
    pub(crate) fn new(object: ObjectRef, reply: Reply) -> Self {
        Self { object, reply }
    }

    /// Whether the operation raised a user exception. The body then begins with its repository id, followed
    /// by its members.
    #[must_use]
    pub fn is_exception(&self) -> bool {
        self.reply.kind != ReplyKind::Reply(ReplyStatus::NoException)
    }

    /// A decoder of the body: the return value, then the `inout` and `out` parameters in the order of their
    /// declaration.
    #[must_use]
    pub fn body(&self) -> Decoder<'_> {
        self.object.results(&self.reply)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("is_exception", &self.is_exception()).finish_non_exhaustive()
    }
}
