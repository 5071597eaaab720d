//! The calls on an object, before a profile and a connection are selected.

use spandrel_cdr::{CdrError, Encoder};
use spandrel_giop::{ResponseFlags, ServiceContext, SystemException};

use super::ObjectRef;
#[cfg(feature = "asynchronous")]
use crate::client::Buffering;
use crate::{client::Reply, diagnostics::CallObserver};

/// Makes a call. An optional part of the ORB puts its own function in the place of the plain one.
pub(crate) type Ask =
    for<'o, 'q, 'f, 'a> fn(&'o ObjectRef, &'q CallKind<'f, 'a>) -> Result<Option<Reply>, SystemException>;

/// Writes the arguments; called again for each attempt.
pub(crate) type Marshal<'f, 'a> = &'f dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>;

/// A call on an object, by the message that it sends.
#[derive(Clone, Copy)]
pub(crate) enum CallKind<'f, 'a> {
    /// A Request message.
    Request {
        operation: &'f str,
        response: ResponseFlags,
        is_one_way: bool,
        marshal: Marshal<'f, 'a>,
        /// Service contexts besides those that are sent once per connection.
        contexts: &'f [ServiceContext],
        /// The limits of buffering, if the call returns before the request is written.
        #[cfg(feature = "asynchronous")]
        buffering: Option<Buffering>,
        /// The diagnostics of the call, if it is observed.
        observer: Option<&'f dyn CallObserver>,
    },
    /// A LocateRequest message.
    Locate,
}
