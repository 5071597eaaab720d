//! Calls whose types only the program knows: what came back, for it to read.
//!
//! Generated stubs read replies themselves ([`ObjectRef::invoke`]). Requests made at run time belong to `spandrel-dynamic`.

use std::fmt;

use spandrel_cdr::{CdrError, Decoder, Encoder, Wire};
use spandrel_giop::{ReplyStatus, SystemException};

use spandrel_sync::atomic::Ordering;

use crate::{
    ObjectRef,
    client::{Reply, ReplyKind},
    destination::Destination,
};

/// A reply that has not been read: results, or an exception that the operation raised.
///
/// It keeps the octets where they were received: as long as it lives, the connection receives into another block.
pub struct Answer {
    object: ObjectRef,
    reply: Reply,
}

impl Answer {
    pub(crate) fn new(object: ObjectRef, reply: Reply) -> Self {
        Self { object, reply }
    }

    /// True if the operation raised an exception: its repository id comes first then, and its members after that.
    #[must_use]
    pub fn is_exception(&self) -> bool {
        self.reply.kind != ReplyKind::Reply(ReplyStatus::NoException)
    }

    /// Reads it: the return value and then, in the order of the parameters, what they give back.
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
    /// The agreement under which requests to it are written now; none if the reference leads nowhere.
    #[must_use]
    pub fn wire(&self) -> Option<Wire> {
        let preferred = self.preferred().load(Ordering::Relaxed);
        let wire = |destinations: &[Destination]| {
            destinations.get(preferred % destinations.len().max(1)).map(|it| it.template.wire())
        };
        match self.forwarded() {
            Some(forwarded) => wire(&forwarded),
            None => self.profile_destinations().ok().and_then(wire),
        }
    }

    /// Invokes a two-way operation, and leaves what came back to be read.
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
