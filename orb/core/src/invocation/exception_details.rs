//! What a server says of the exception that it raises, for people.

use spandrel_cdr::{Decoder, Limits};
use spandrel_giop::{
    CONTEXT_EXCEPTION_DETAIL, CompletionStatus, ContextLimits, MessageType, ReplyHeader, ReplyStatus, SystemException,
    printable_text, read_exception_detail,
};

use crate::client::Reply;

/// The exception, with the words that came with it. `rest` stands behind it.
pub(super) fn by_server(exception: SystemException, reply: &Reply, rest: &mut Decoder<'_>) -> SystemException {
    let Some(sent) = in_context(reply).or_else(|| behind(rest)).filter(|sent| !sent.is_empty()) else {
        return exception;
    };
    let known = exception.detail().map(|detail| format!("{detail}; ")).unwrap_or_default();
    exception.with_detail(format!("{known}the server says: {sent}"))
}

/// Refuses a reply with more contexts, or longer ones, than this side wants to look at.
///
/// # Errors
/// IMP_LIMIT, with what the reply says of the request's completion.
#[cold]
pub(super) fn check_contexts(reply: &Reply, limits: ContextLimits) -> Result<(), SystemException> {
    let Ok(header) = ReplyHeader::decode(&mut reply.message.decoder(Limits::default())) else { return Ok(()) };
    header.service_contexts.check(limits).map_err(|exception| {
        exception.with_completed(match header.status {
            ReplyStatus::NoException | ReplyStatus::UserException => CompletionStatus::Yes,
            ReplyStatus::SystemException => CompletionStatus::Maybe,
            _ => CompletionStatus::No,
        })
    })
}

/// As the standard has it.
fn in_context(reply: &Reply) -> Option<String> {
    if reply.message.header.message_type != MessageType::Reply {
        return None;
    }
    let header = ReplyHeader::decode(&mut reply.message.decoder(Limits::default())).ok()?;
    read_exception_detail(header.service_contexts.find(CONTEXT_EXCEPTION_DETAIL)?).ok()
}

/// As JacORB writes it: a string that the exception does not have.
fn behind(rest: &mut Decoder<'_>) -> Option<String> {
    if rest.remaining() == 0 {
        return None;
    }
    rest.str().ok().map(|text| printable_text(&text))
}
