//! The calls that can be made on an object, before it is decided where and how.

use spandrel_cdr::{CdrError, Encoder};
use spandrel_giop::{ResponseFlags, ServiceContext, SystemException};

use super::ObjectRef;
#[cfg(feature = "asynchronous")]
use crate::client::Buffering;
use crate::{client::Reply, diagnostics::CallObserver};

/// Makes a call: [`ObjectRef`]'s plain way, or one that an optional part of the ORB has put in its place.
pub(crate) type InvokeFn =
    for<'o, 'q, 'f, 'a> fn(&'o ObjectRef, &'q CallKind<'f, 'a>) -> Result<Option<Reply>, SystemException>;

/// Writes the arguments; called again for each attempt.
pub(crate) type Marshal<'f, 'a> = &'f dyn Fn(&mut Encoder<'a>) -> Result<(), CdrError>;

/// A call on an object: a request, or the question where the object is.
#[derive(Clone, Copy)]
pub(crate) enum CallKind<'f, 'a> {
    Request {
        operation: &'f str,
        response: ResponseFlags,
        is_one_way: bool,
        marshal: Marshal<'f, 'a>,
        /// What goes with it besides what its connection needs.
        contexts: &'f [ServiceContext],
        /// How it is buffered, if nobody waits until it is written.
        #[cfg(feature = "asynchronous")]
        buffering: Option<Buffering>,
        /// The diagnostics of the call, if it is observed.
        observer: Option<&'f dyn CallObserver>,
    },
    Locate,
}
