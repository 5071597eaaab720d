//! The reply to a call.

use spandrel_cdr::{Limits, Wire};
use spandrel_giop::{GiopError, LocateReplyHeader, LocateStatus, Message, MessageType, ReplyHeader, ReplyStatus};

/// A Reply or LocateReply with its header read.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) message: Message,
    pub(crate) kind: ReplyKind,
    pub(super) request_id: u32,
    /// Whether it has service contexts.
    #[cfg(feature = "details")]
    pub(crate) has_contexts: bool,
    /// The offset of its body.
    pub(crate) body: usize,
    /// The encoding of the request: the reply has the same code sets.
    pub(crate) wire: Wire,
}

/// The kind and status of a [`Reply`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReplyKind {
    Reply(ReplyStatus),
    Locate(LocateStatus),
}

impl Reply {
    /// The reply status; `None` for a LocateReply.
    pub(crate) fn status(&self) -> Option<ReplyStatus> {
        match self.kind {
            ReplyKind::Reply(status) => Some(status),
            ReplyKind::Locate(_) => None,
        }
    }

    // Where it is not inlined, each reply is moved once more.
    #[inline(always)]
    pub(crate) fn parse(message: Message) -> Result<Self, GiopError> {
        let mut input = message.decoder(Limits::default());
        #[cfg(feature = "details")]
        let mut has_contexts = false;
        let (request_id, kind) = if message.header.message_type == MessageType::Reply {
            let (request_id, status, contexts) = ReplyHeader::skim(&mut input)?;
            #[cfg(feature = "details")]
            {
                has_contexts = contexts != 0;
            }
            #[cfg(not(feature = "details"))]
            let _ = contexts;
            (request_id, ReplyKind::Reply(status))
        } else {
            let header = LocateReplyHeader::decode(&mut input)?;
            (header.request_id, ReplyKind::Locate(header.status))
        };
        let body = input.position();
        Ok(Self {
            kind,
            request_id,
            #[cfg(feature = "details")]
            has_contexts,
            body,
            wire: input.wire(),
            message,
        })
    }
}
