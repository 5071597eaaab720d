//! Calls of the repository's operations.

use spandrel_cdr::{Decode, Encode};
use spandrel_giop::{SystemException, SystemExceptionKind};
use spandrel_orb::ObjectRef;

/// Calls an operation with these arguments.
pub(super) fn call<T: Decode>(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[&dyn Encode],
) -> Result<T, SystemException> {
    object.invoke(operation, |out| arguments.iter().try_for_each(|it| it.encode(out)), T::decode)
}

/// Calls an operation without a result.
pub(super) fn send(
    object: &ObjectRef,
    operation: &'static str,
    arguments: &[&dyn Encode],
) -> Result<(), SystemException> {
    object.invoke(operation, |out| arguments.iter().try_for_each(|it| it.encode(out)), |_| Ok(()))
}

/// Whether the object lacks an operation.
pub(super) fn is_unknown_operation(error: &SystemException) -> bool {
    matches!(error.kind(), SystemExceptionKind::BadOperation | SystemExceptionKind::NoImplement)
}
