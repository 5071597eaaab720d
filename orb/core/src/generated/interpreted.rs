//! Stubs of the interpretive engine: each operation is a list of its values and one call.
//!
//! Code that does not depend on the operation's types exists once, in this module. [`call`] adds
//! the part that does: the storage of received values. The tables of the values belong to `spandrel-cdr`.

use spandrel_cdr::{
    CdrError, Decoder, Encoder,
    engine::{self, Filled, Place, Results, Value},
};
use spandrel_giop::SystemException;

use crate::{ObjectRef, UserExceptions, call::invocation::Raise};

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
    engine::receive(|storage| invoke_with_room(object, operation, arguments, storage))
}

/// One instance for all operations with the same error type.
#[inline(never)]
fn invoke_with_room<'p, E: UserExceptions>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[Value<'_>],
    storage: Place<'p>,
) -> Result<Filled<'p>, E> {
    let mut exception = None;
    let raised = &mut |id: &str, input: &mut Decoder<'_>| {
        E::decode(id, input).map(|read| read.map(|raised| exception = Some(raised)))
    };
    match invoke_values(object, operation, arguments, storage, raised) {
        Ok(filled) => Ok(filled),
        Err(system) => Err(exception.unwrap_or_else(|| system.into())),
    }
}

/// One instance for all operations. If `raised` stored an exception, the error has no meaning.
fn invoke_values<'p>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[Value<'_>],
    storage: Place<'p>,
    raised: Raise<'_>,
) -> Result<Filled<'p>, SystemException> {
    let (mut storage, mut filled) = (Some(storage), None);
    let results = &mut |input: &mut Decoder<'_>| {
        let storage = storage.take().expect("results are read once");
        storage.fill(input).map(|proof| filled = Some(proof))
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
