//! Details of exceptions: the operation and the object, the server's description, malformed replies, the limits on a
//! reply's service contexts, and addresses that cannot be reached.

use std::{error::Error, io};

use spandrel_cdr::{CdrError, Decoder, Ior, Limits};
use spandrel_error::excerpt;
use spandrel_giop::{
    CONTEXT_EXCEPTION_DETAIL, CompletionStatus, ContextLimits, IiopProfile, MessageType, ReplyHeader, ReplyStatus,
    SystemException, SystemExceptionKind, ids, read_exception_detail,
};

use crate::{
    ObjectRef,
    client::{CallFailure, Reply},
};

/// The maximum number of characters of a host, or octets of an object key, in an error text.
const MAX_PRINTED: usize = 40;

/// The exception with the operation and the object that it ended, and the description in its reply. `rest` is the
/// reply after the exception.
pub(super) fn explain(
    exception: SystemException,
    (object, operation): (&ObjectRef, &str),
    reply: &Reply,
    rest: &mut Decoder<'_>,
) -> SystemException {
    let mut detail = format!("`{operation}` of {}", describe_target(object.ior()));
    if let Some(own) = exception.detail() {
        detail = format!("{detail}: {own}");
    }
    // The server has not begun the operation: it could not read the arguments.
    let is_truncated = (exception.kind(), exception.minor()) == (SystemExceptionKind::Marshal, ids::MARSHAL_TRUNCATED);
    if is_truncated && exception.completed() == CompletionStatus::No {
        detail = format!("{detail}: its arguments are shorter than the IDL of the server says");
    }
    let description = context_description(reply).or_else(|| appended_description(rest));
    if let Some(description) = description.filter(|description| !description.is_empty()) {
        detail = format!("{detail}; the server says: {description}");
    }
    exception.with_detail(detail)
}

/// The failure with whose address it was, if a connection could not be opened in time: a server behind address translation
/// or in a container publishes addresses that its clients cannot reach, unless it is told others.
pub(super) fn explain_address(failure: CallFailure, object: &ObjectRef) -> CallFailure {
    let forward = object.forwarded();
    let ior = forward.as_ref().map_or(object.ior(), |forward| &forward.ior);
    let cause = failure.exception.source().and_then(|source| source.downcast_ref::<io::Error>());
    let is_unreachable = cause.is_some_and(|cause| {
        matches!(
            cause.kind(),
            io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable
        )
    });
    // A URL has no type, and its address is the user's own.
    if !is_unreachable || ior.type_id.is_empty() {
        return failure;
    }
    let own = failure.exception.detail().unwrap_or_default();
    let text = format!(
        "{own}, an address that the server of this `{}` has published in its reference (-ORBPublish at the server names another)",
        excerpt(&ior.type_id)
    );
    CallFailure { exception: failure.exception.with_detail(text), ..failure }
}

/// MARSHAL for a reply that is malformed, or one of another IDL.
pub(crate) fn unreadable(operation: &str, error: CdrError, completed: CompletionStatus) -> SystemException {
    let cause = error.clone();
    SystemException::from(error).with_completed(completed).with_detail(move || match cause {
        CdrError::Truncated { needed, remaining } => format!(
            "the reply of `{operation}` has at least {} octets fewer than this IDL says",
            needed.saturating_sub(remaining)
        ),
        _ => format!("the reply of `{operation}` does not fit this IDL: {cause}"),
    })
}

/// Called behind the results in a reply. Octets that are left tell that the server's IDL differs, and are logged.
#[inline]
pub(super) fn end_results(operation: &str, input: &Decoder<'_>) {
    if SystemException::KEEPS_DETAIL && input.remaining() > 0 {
        report_surplus(operation, input.remaining());
    }
}

#[cold]
#[inline(never)]
fn report_surplus(operation: &str, octets: usize) {
    tracing::debug!("the reply of `{operation}` has {octets} octets more than this IDL says");
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

/// The address and the object key of a reference, for error texts.
pub(super) fn describe_target(ior: &Ior) -> String {
    let profile = ior.profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten());
    let Some(IiopProfile { host, port, object_key, .. }) = profile else {
        return "a reference without an IIOP profile".to_owned();
    };
    let mut host: String = host.chars().take(MAX_PRINTED).collect();
    if host.contains(':') {
        host = format!("[{host}]");
    }
    let (key, rest) = object_key.split_at(object_key.len().min(MAX_PRINTED));
    // A server without a plain port, such as one with TLS alone, publishes port 0.
    let port = if port == 0 { String::new() } else { format!(":{port}") };
    format!("{host}{port}/{}{}", key.escape_ascii(), if rest.is_empty() { "" } else { "…" })
}
