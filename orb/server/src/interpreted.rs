//! Skeletons of the interpretive engine: code that does not depend on the operation's types exists once.

use spandrel_cdr::engine::{self, Arguments, Held, Returned, Upcall, Value};
use spandrel_giop::SystemException;
use spandrel_orb::UserExceptions;

use crate::{Replied, ServerCall, generated::end_arguments};

/// Serves a two-way operation: decodes the arguments, runs `upcall`, and replies with its result.
///
/// # Errors
/// The system exception to reply with instead.
#[inline]
pub fn serve<'m, A: Arguments<'m>, R: Returned, E: UserExceptions>(
    call: &ServerCall<'m>,
    upcall: impl Fn(&mut A) -> Result<R, E>,
) -> Result<Replied, SystemException> {
    engine::upcall(|arguments: &mut A| answer(call, upcall(arguments)), |upcall| run_upcall(call, upcall))
}

/// One instance for all operations with the same result and error types. It takes the outcome by value, so
/// that it is dropped only here.
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
/// The system exception to reply with instead.
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
fn run_upcall<'m>(
    call: &ServerCall<'m>,
    upcall: &Upcall<'_, 'm, Result<Replied, SystemException>>,
) -> Result<Replied, SystemException> {
    let mut input = call.unread().clone();
    let outcome = upcall.run(&mut input)?;
    end_arguments(&input);
    outcome
}

fn reply(call: &ServerCall<'_>, results: &[Value<'_>]) -> Result<Replied, SystemException> {
    call.again().reply(|out| results.iter().try_for_each(|value| value.encode(out)))
}

#[inline(never)]
fn raise_exception<E: UserExceptions>(call: &ServerCall<'_>, error: &E) -> Result<Replied, SystemException> {
    call.again().raise(error)
}

/// Decodes the arguments of a one-way operation and runs it.
///
/// # Errors
/// The arguments cannot be decoded, or the servant fails. The client gets no reply.
#[inline]
pub fn serve_oneway<'m, A: Arguments<'m>>(
    call: &ServerCall<'m>,
    upcall: impl Fn(&mut A) -> Result<(), SystemException>,
) -> Result<Replied, SystemException> {
    let serve = |arguments: &mut A| upcall(arguments).map(|()| call.again().finish_oneway());
    engine::upcall(serve, |upcall| run_upcall(call, upcall))
}
