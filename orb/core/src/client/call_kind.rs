//! The calls on an object, independent of their destination and transport.

use std::borrow::Cow;

use spandrel_cdr::{CdrError, Encoder};
use spandrel_giop::{ResponseFlags, ServiceContext};

use crate::{client::Buffering, diagnostics::CallObserver};

/// Encodes the arguments; called for each attempt.
pub(crate) type Marshal<'f, 'a> = &'f dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>;

/// A call on an object: a Request or a LocateRequest.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it has functions")]
pub enum CallKind<'f, 'a> {
    /// A Request message: a call of an operation.
    Request {
        /// The name of the operation as it is sent.
        operation: &'f str,
        /// The point up to which the reply is awaited.
        response: ResponseFlags,
        /// Whether the operation is `oneway`. With a sync scope that awaits the server, it has a reply all the same.
        is_one_way: bool,
        /// Encodes the arguments, for each attempt anew.
        marshal: Marshal<'f, 'a>,
        /// The service contexts besides those of the connection.
        contexts: &'f [ServiceContext],
        /// The buffering of a one-way that may be written later.
        buffering: Option<Buffering>,
        /// The diagnostics of the call, if it is observed.
        observer: Option<&'f dyn CallObserver>,
    },
    /// A LocateRequest message, which asks for the object's location and runs no operation.
    Locate,
}

impl CallKind<'_, '_> {
    /// The operation's name, for interceptors and error texts.
    pub(crate) fn operation(&self) -> &str {
        match self {
            Self::Request { operation, .. } => operation,
            Self::Locate => "LocateRequest",
        }
    }
}

/// Joins the service contexts of the connection and of the request; usually there are none of either.
#[inline]
pub(crate) fn joined<'c>(sent: &'c [ServiceContext], added: &'c [ServiceContext]) -> Cow<'c, [ServiceContext]> {
    match (sent, added) {
        (one, []) | ([], one) => Cow::Borrowed(one),
        _ => Cow::Owned([sent, added].concat()),
    }
}
