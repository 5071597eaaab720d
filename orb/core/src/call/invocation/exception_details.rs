//! Details of exceptions that replies carry or cause: the server's description, malformed replies, and the limits on a
//! reply's service contexts.

use spandrel_cdr::{CdrError, Decoder, Limits};
use spandrel_giop::{
    CONTEXT_EXCEPTION_DETAIL, CompletionStatus, ContextLimits, MessageType, ReplyHeader, ReplyStatus, SystemException,
    read_exception_detail,
};

use crate::client::Reply;

/// The exception with the description in its reply. `rest` is the reply after the exception.
pub(super) fn with_server_description(
    exception: SystemException,
    reply: &Reply,
    rest: &mut Decoder<'_>,
) -> SystemException {
    let description = context_description(reply).or_else(|| appended_description(rest));
    let Some(description) = description.filter(|description| !description.is_empty()) else {
        return exception;
    };
    let own_detail = exception.detail().map(|detail| format!("{detail}; ")).unwrap_or_default();
    exception.with_detail(format!("{own_detail}the server says: {description}"))
}

/// MARSHAL for a malformed reply.
pub(crate) fn unreadable(operation: &str, error: CdrError, completed: CompletionStatus) -> SystemException {
    let cause = error.clone();
    SystemException::from(error)
        .with_completed(completed)
        .with_detail(move || format!("the reply to `{operation}` cannot be read: {cause}"))
}

/// Rejects a reply whose service contexts exceed the limits.
///
/// # Errors
/// IMP_LIMIT, with the completion status that the reply implies.
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

/// The description in the standard's service context.
fn context_description(reply: &Reply) -> Option<String> {
    if reply.message.header.message_type != MessageType::Reply {
        return None;
    }
    let header = ReplyHeader::decode(&mut reply.message.decoder(Limits::default())).ok()?;
    read_exception_detail(header.service_contexts.find(CONTEXT_EXCEPTION_DETAIL)?).ok()
}

/// The description that JacORB appends to the exception as a string.
fn appended_description(rest: &mut Decoder<'_>) -> Option<String> {
    if rest.remaining() == 0 {
        return None;
    }
    rest.str().ok().map(|text| text.trim_end().to_owned())
}
