//! The outcome of a call: a reply, or the reason for its absence.

use spandrel_cdr::{Limits, Wire};
use spandrel_giop::{
    GiopError, LocateReplyHeader, LocateStatus, Message, MessageType, ReplyHeader, ReplyStatus, SystemException,
};

use super::RequestLoss;

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
    /// A Reply.
    Reply(ReplyStatus),
    /// A LocateReply.
    Locate(LocateStatus),
}

/// The reason why a call got no reply.
#[derive(Clone, Debug)]
pub struct CallFailure {
    /// The exception for the caller.
    pub exception: SystemException,
    /// The fate of the request.
    pub(crate) loss: RequestLoss,
}

impl CallFailure {
    /// Makes a failure whose exception has the right completion status already.
    pub fn new(exception: SystemException) -> Self {
        Self { exception, loss: RequestLoss::Other }
    }

    pub(crate) fn of(loss: RequestLoss, exception: SystemException) -> Self {
        let exception = match loss.consequence().completed {
            Some(completed) => exception.with_completed(completed),
            None => exception,
        };
        Self { exception, loss }
    }

    /// Whether the same request may be sent again on another connection: this one was closed under it.
    pub(crate) fn may_repeat(&self) -> bool {
        self.loss.consequence().repeats
    }
}

impl Reply {
    /// The reply status; `None` for a LocateReply.
    pub(crate) fn status(&self) -> Option<ReplyStatus> {
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
