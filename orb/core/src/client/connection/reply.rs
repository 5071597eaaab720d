//! What a call ends with: a reply, or the reason for which there is none.

use spandrel_cdr::{Limits, Wire};
use spandrel_giop::{
    GiopError, LocateReplyHeader, LocateStatus, Message, MessageType, ReplyHeader, ReplyStatus, SystemException,
};

/// A Reply or LocateReply with its header read.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) message: Message,
    pub(crate) kind: ReplyKind,
    pub(super) request_id: u32,
    /// Where its body begins.
    pub(crate) body: usize,
    /// How the request was written: its code sets are those of the reply.
    pub(crate) wire: Wire,
}

/// What a [`Reply`] says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReplyKind {
    Reply(ReplyStatus),
    Locate(LocateStatus),
}

/// Why a call got no reply.
#[derive(Clone, Debug)]
pub(crate) struct CallFailure {
    pub(crate) exception: SystemException,
    /// True if the same request may be sent again on another connection, because this one was closed under it.
    pub(crate) stale: bool,
    /// True if the peer said why.
    pub(crate) is_explained: bool,
}

impl CallFailure {
    pub(crate) fn new(exception: SystemException) -> Self {
        Self { exception, stale: false, is_explained: false }
    }

    pub(super) fn stale(exception: SystemException) -> Self {
        Self { exception, stale: true, is_explained: false }
    }
}

impl Reply {
    #[inline]
    pub(crate) fn parse(message: Message) -> Result<Self, GiopError> {
        let mut input = message.decoder(Limits::default());
        let (request_id, kind) = if message.header.message_type == MessageType::Reply {
            let header = ReplyHeader::decode(&mut input)?;
            (header.request_id, ReplyKind::Reply(header.status))
        } else {
            let header = LocateReplyHeader::decode(&mut input)?;
            (header.request_id, ReplyKind::Locate(header.status))
        };
        let body = input.position();
        Ok(Self { kind, request_id, body, wire: input.wire(), message })
    }
}
