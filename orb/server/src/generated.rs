//! The items of the server that generated code uses, and nothing else. Not a public interface: it changes
//! with the compiler.

use std::borrow::Cow;
pub use std::sync::Arc;

use spandrel_cdr::{ArgumentList, Decoder, Encode};
pub use spandrel_demux::Operations;
use spandrel_giop::SystemException;
use spandrel_orb::UserExceptions;

pub use crate::{
    DeferredCall, Replied, Servant, ServedAsyncBy, ServedBy, ServerCall,
    collocated::direct::{Facet, direct, offer},
    generated_served as served, interpreted,
    upcall::skeleton::{Dispatch, Owned, Shared, Skeleton, inherited, inherited_external},
};

/// The skeletons by which servants serve an interface: its servant trait, and the names of the asynchronous servant trait
/// and skeleton. `direct`: servants in an `Arc` implement the servant trait.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_served {
    (direct $interface:ident, $servant:ident $($asynchronous:tt)*) => {
        impl<__S: $servant + 'static> rt::ServedBy<__S> for $interface {
            type Access = rt::Owned;
        }
        $crate::generated_served!(@asynchronous $interface $($asynchronous)*);
    };
    (@asynchronous $interface:ident $(, $async_servant:ident by $async_skeleton:ident)?) => {
        $(
            impl<__S: $async_servant> rt::ServedAsyncBy<__S> for $interface {
                fn async_skeleton(servant: __S) -> rt::SharedServant {
                    rt::Arc::new($async_skeleton::new(servant))
                }
            }
            impl<__S: $async_servant> rt::ServedAsyncBy<rt::Arc<__S>> for $interface {
                fn async_skeleton(servant: rt::Arc<__S>) -> rt::SharedServant {
                    rt::Arc::new($async_skeleton(servant))
                }
            }
        )?
    };
    ($interface:ident, $servant:ident $($asynchronous:tt)*) => {
        impl<__S: $servant> rt::ServedBy<__S> for $interface {
            type Access = rt::Owned;
        }
        impl<__S: $servant + ?Sized> rt::ServedBy<rt::Arc<__S>> for $interface {
            type Access = rt::Shared;
        }
        $crate::generated_served!(@asynchronous $interface $($asynchronous)*);
    };
}

/// A skeleton with its servant, as adapters hold it.
pub type SharedServant = Arc<dyn Servant>;

/// The result of a skeleton's dispatch: the token of a reply, or the exception to reply with.
pub type Answered = Result<Replied, SystemException>;

/// Replies with what the servant returned, or with the exception that it raised.
///
/// # Errors
/// A system exception of the servant. MARSHAL if a value cannot be encoded. Nothing was sent.
#[inline]
pub fn answer<R: Encode, E: UserExceptions>(call: ServerCall<'_>, outcome: Result<R, E>) -> Answered {
    match &outcome {
        Ok(results) => call.reply(|out| results.encode(out)),
        Err(error) => call.raise(error),
    }
}

/// Reads the arguments of a request, runs `upcall` and replies with its outcome.
///
/// # Errors
/// As [`answer`]. MARSHAL if the arguments cannot be decoded.
#[inline]
pub fn serve<'m, A: ArgumentList<'m>, R: Encode, E: UserExceptions>(
    mut call: ServerCall<'m>,
    upcall: impl FnOnce(&A) -> Result<R, E>,
) -> Answered {
    let arguments = read_arguments(&mut call)?;
    answer(call, upcall(&arguments))
}

/// Reads the arguments of a one-way request and runs `upcall`.
///
/// # Errors
/// The arguments cannot be decoded, or the servant fails. The client gets no reply.
#[inline]
pub fn serve_oneway<'m, A: ArgumentList<'m>>(
    mut call: ServerCall<'m>,
    upcall: impl FnOnce(&A) -> Result<(), SystemException>,
) -> Answered {
    let arguments = read_arguments(&mut call)?;
    upcall(&arguments)?;
    Ok(call.finish_oneway())
}

#[inline]
fn read_arguments<'m, A: ArgumentList<'m>>(call: &mut ServerCall<'m>) -> Result<A, SystemException> {
    let input = &mut call.arguments()?;
    let arguments = A::read_all(input)?;
    end_arguments(input);
    Ok(arguments)
}

/// A text among the arguments of [`serve`], as the servant receives it.
#[inline]
#[must_use]
#[allow(clippy::ptr_arg, reason = "the type of the argument tells that it is lent")]
pub fn text<'a>(argument: &'a Cow<'_, str>) -> &'a str {
    argument
}

/// A sequence among the arguments of [`serve`], as the servant receives it.
#[inline]
#[must_use]
#[allow(clippy::ptr_arg, reason = "the type of the argument tells that it is lent")]
pub fn slice<'a, T: Clone>(argument: &'a Cow<'_, [T]>) -> &'a [T] {
    argument
}

/// Called behind the arguments of a request. Octets that are left tell that the client's IDL differs, and are logged in
/// the span of the request.
#[inline]
pub fn end_arguments(input: &Decoder<'_>) {
    if input.remaining() > 0 {
        report_surplus(input.remaining());
    }
}

#[cold]
#[inline(never)]
fn report_surplus(octets: usize) {
    tracing::debug!(octets, "the request has more octets than the IDL of the server says");
}
