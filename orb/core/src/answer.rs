//! Replies to calls whose types only the program knows.
//!
//! Generated stubs decode replies themselves ([`ObjectRef::invoke`]). Requests built at run time belong to
//! `spandrel-dynamic`.

use std::fmt;

use spandrel_cdr::{CdrError, Decoder, Encoder, Wire};
use spandrel_giop::{ReplyStatus, SystemException};

use spandrel_sync::atomic::Ordering;

use crate::{
    ObjectRef,
    client::{Reply, ReplyKind},
    destination::Destination,
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

impl ObjectRef {
    /// The encoding of requests to this object (GIOP version, byte order, code sets); `None` without a usable
    /// profile.
    #[must_use]
    pub fn wire(&self) -> Option<Wire> {
        let preferred = self.preferred().load(Ordering::Relaxed);
        let wire = |destinations: &[Destination]| {
            destinations.get(preferred % destinations.len().max(1)).map(|it| it.template.wire())
        };
        self.destinations(self.forwarded().as_deref()).ok().and_then(wire)
    }

    /// Invokes a two-way operation, and returns the undecoded reply.
    ///
    /// `encode` writes the arguments, under the conditions of [`ObjectRef::invoke`].
    ///
    /// # Errors
    /// The system exception that ended the call.
    pub fn invoke_raw<'a>(
        &self,
        operation: &str,
        encode: &dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Answer, SystemException> {
        let reply = self.call(operation, encode)?;
        Ok(Answer::new(self.clone(), reply))
    }
}
