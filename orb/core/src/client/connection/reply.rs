//! The reply to a call.

use spandrel_cdr::{Limits, Wire};
use spandrel_giop::{GiopError, LocateReplyHeader, LocateStatus, Message, MessageType, ReplyHeader, ReplyStatus};

/// A Reply or LocateReply with its header read.
#[derive(Debug)]
pub struct Reply {
    pub(crate) message: Message,
    /// The message type and status.
    pub kind: ReplyKind,
    pub(super) request_id: u32,
    /// Whether it has service contexts.
    pub(crate) has_contexts: bool,
    /// The offset of its body.
    pub(crate) body: usize,
    /// The encoding of the request: the reply has the same code sets.
    pub(crate) wire: Wire,
}

/// The kind and status of a [`Reply`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReplyKind {
    /// The answer to a Request.
    Reply(ReplyStatus),
    /// The answer to a LocateRequest.
    Locate(LocateStatus),
}

impl Reply {
    /// The reply status; `None` for a LocateReply.
    pub fn status(&self) -> Option<ReplyStatus> {
        match self.kind {
            ReplyKind::Reply(status) => Some(status),
            ReplyKind::Locate(_) => None,
        }
    }

    /// Decodes the header of a Reply or a LocateReply.
    ///
    /// # Errors
    /// For another message, or a malformed header.
    // Inlined, so that replies are not moved once more.
    #[inline(always)]
    pub fn parse(message: Message) -> Result<Self, GiopError> {
        let mut input = message.decoder(Limits::default());
        let (request_id, kind, has_contexts) = if message.header.message_type == MessageType::Reply {
            let (request_id, status, contexts) = ReplyHeader::skim(&mut input)?;
            (request_id, ReplyKind::Reply(status), contexts != 0)
        } else {
            let header = LocateReplyHeader::decode(&mut input)?;
            (header.request_id, ReplyKind::Locate(header.status), false)
        };
        let body = input.position();
        Ok(Self { kind, request_id, has_contexts, body, wire: input.wire(), message })
    }
}
