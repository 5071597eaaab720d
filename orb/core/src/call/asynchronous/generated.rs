//! The asynchronous calls of generated references.

use spandrel_cdr::{Decode, Encode};
use spandrel_giop::SystemException;

use crate::{AsyncReply, ObjectRef, UserExceptions};

/// As [`call`](crate::generated::call), without waiting.
#[inline]
pub fn call_async<A: Encode, R: Decode, E: UserExceptions>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &A,
) -> AsyncReply<R, E> {
    object.invoke_async(operation, |out| arguments.encode(out), R::decode)
}

/// As [`call_oneway`](crate::generated::call_oneway), without waiting.
#[inline]
pub fn call_oneway_async<A: Encode>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &A,
) -> AsyncReply<(), SystemException> {
    object.send_oneway_async(operation, |out| arguments.encode(out))
}
