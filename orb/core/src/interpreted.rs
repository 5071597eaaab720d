//! Stubs and skeletons of the interpretive engine: each operation is a list of its values and one call.
//!
//! Code that does not depend on the operation's types exists once, in this module. [`call`] and [`serve`] add
//! the parts that do: the storage of received values. The tables of the values belong to `spandrel-cdr`.

#[cfg(feature = "server")]
use spandrel_cdr::engine::{Arguments, Held, Returned, Upcall};
use spandrel_cdr::{
    CdrError, Decoder, Encoder,
    engine::{self, Filled, Place, Results, Value},
};
use spandrel_giop::SystemException;

use crate::{ObjectRef, Replied, ServerCall, UserException, UserExceptions, invocation::Raise};

/// Invokes a two-way operation and returns its result, then its `inout` and `out` parameters.
///
/// # Errors
/// The exception of the operation, or the system exception that ended the call.
#[inline]
pub fn call<R: Results, E: UserExceptions>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[Value<'_>],
) -> Result<R, E> {
    engine::receive(|place| invoke_with_room(object, operation, arguments, place))
}

/// One instance for all operations with the same error type.
#[inline(never)]
fn invoke_with_room<'p, E: UserExceptions>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[Value<'_>],
    place: Place<'p>,
) -> Result<Filled<'p>, E> {
    let mut exception = None;
    let raised = &mut |id: &str, input: &mut Decoder<'_>| {
        E::decode(id, input).map(|read| read.map(|raised| exception = Some(raised)))
    };
    match invoke_values(object, operation, arguments, place, raised) {
        Ok(filled) => Ok(filled),
        Err(system) => Err(exception.unwrap_or_else(|| system.into())),
    }
}

/// One instance for all operations. If `raised` stored an exception, the error has no meaning.
fn invoke_values<'p>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[Value<'_>],
    place: Place<'p>,
    raised: Raise<'_>,
) -> Result<Filled<'p>, SystemException> {
    let (mut place, mut filled) = (Some(place), None);
    let results = &mut |input: &mut Decoder<'_>| {
        let place = place.take().expect("results are read once");
        place.fill(input).map(|proof| filled = Some(proof))
    };
    object.invoke_erased(operation, &|out| encode(arguments, out), results, raised)?;
    Ok(filled.expect("results were read"))
}

fn encode<'a>(values: &[Value<'a>], out: &mut Encoder<'a>) -> Result<(), CdrError> {
    values.iter().try_for_each(|value| value.encode(out))
}

/// Invokes a one-way operation.
///
/// # Errors
/// The system exception that prevented the sending; COMPLETED_NO.
pub fn send_oneway(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[Value<'_>],
) -> Result<(), SystemException> {
    object.send_oneway(operation, |out| encode(arguments, out))
}

/// Decodes the members of an exception: one instance for all operations that raise it.
///
/// # Errors
/// As [`Decode::decode`](spandrel_cdr::Decode::decode).
#[inline(never)]
pub fn exception<X: UserException>(input: &mut Decoder<'_>) -> Result<X, CdrError> {
    X::decode(input)
}

/// Serves a two-way operation: decodes the arguments, runs `upcall`, and replies with its result.
///
/// # Errors
/// The system exception to answer with instead.
#[cfg(feature = "server")]
#[inline]
pub fn serve<'m, A: Arguments<'m>, R: Returned, E: UserExceptions>(
    call: &ServerCall<'m>,
    upcall: impl Fn(&mut A) -> Result<R, E>,
) -> Result<Replied, SystemException> {
    engine::upcall(|arguments: &mut A| answer(call, upcall(arguments)), |upcall| run_upcall(call, upcall))
}

/// One instance for all operations with the same result and error types. It takes the outcome by value, so
/// that it is dropped only here.
#[cfg(feature = "server")]
#[inline(never)]
fn answer<R: Returned, E: UserExceptions>(
    call: &ServerCall<'_>,
    outcome: Result<R, E>,
) -> Result<Replied, SystemException> {
    match &outcome {
        Ok(returned) => reply(call, &[Value::returned(returned)]),
        Err(error) => call.again().raise(error),
    }
}

/// Serves a two-way operation with `inout` parameters, which are part of the reply: `results` lists its
/// values.
///
/// # Errors
/// The system exception to answer with instead.
#[cfg(feature = "server")]
#[inline]
pub fn serve_inout<'m, A: Arguments<'m>, R, E: UserExceptions, const N: usize>(
    call: &ServerCall<'m>,
    upcall: impl Fn(&mut A) -> Result<R, E>,
    results: impl for<'r> Fn(&'r R, &'r A) -> [Value<'r>; N],
) -> Result<Replied, SystemException> {
    let serve = |arguments: &mut A| match &*Held::new(upcall(arguments)) {
        Ok(returned) => reply(call, &results(returned, arguments)),
        Err(error) => raise_exception(call, error),
    };
    engine::upcall(serve, |upcall| run_upcall(call, upcall))
}

/// One instance for all operations.
#[cfg(feature = "server")]
fn run_upcall<'m>(
    call: &ServerCall<'m>,
    upcall: &Upcall<'_, 'm, Result<Replied, SystemException>>,
) -> Result<Replied, SystemException> {
    upcall.run(call.unread())?
}

#[cfg(feature = "server")]
fn reply(call: &ServerCall<'_>, results: &[Value<'_>]) -> Result<Replied, SystemException> {
    call.again().reply(|out| encode(results, out))
}

#[cfg(feature = "server")]
#[inline(never)]
fn raise_exception<E: UserExceptions>(call: &ServerCall<'_>, error: &E) -> Result<Replied, SystemException> {
    call.again().raise(error)
}

/// Serves a one-way operation.
///
/// # Errors
/// If the arguments cannot be decoded, or the servant fails; the client gets no reply.
#[cfg(feature = "server")]
#[inline]
pub fn serve_oneway<'m, A: Arguments<'m>>(
    call: &ServerCall<'m>,
    upcall: impl Fn(&mut A) -> Result<(), SystemException>,
) -> Result<Replied, SystemException> {
    let serve = |arguments: &mut A| upcall(arguments).map(|()| call.again().finish_oneway());
    engine::upcall(serve, |upcall| run_upcall(call, upcall))
}
