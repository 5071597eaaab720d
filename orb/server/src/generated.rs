//! The items of the server that generated code uses, and nothing else. Not a public interface: it changes
//! with the compiler.

pub use std::sync::Arc;

use spandrel_cdr::{Decoder, Encode};
pub use spandrel_demux::Operations;
use spandrel_giop::SystemException;
use spandrel_orb::UserExceptions;

pub use crate::{
    DeferredCall, Replied, Servant, ServedAsyncBy, ServedBy, ServerCall,
    collocated::direct::{Facet, direct, offer},
    generated_served as served, interpreted,
};

/// The skeletons by which servants serve an interface: the names of its servant trait and skeleton, and those of the
/// asynchronous forms.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_served {
    ($interface:ident, $servant:ident by $skeleton:ident $(, $async_servant:ident by $async_skeleton:ident)?) => {
        impl<__S: $servant + 'static> rt::ServedBy<__S> for $interface {
            fn skeleton(servant: __S) -> rt::SharedServant {
                rt::Arc::new($skeleton(servant))
            }
        }
        impl<__S> rt::Debug for $skeleton<__S> {
            fn fmt(&self, f: &mut rt::Formatter<'_>) -> rt::Formatted {
                f.write_str(::core::stringify!($skeleton))
            }
        }
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
