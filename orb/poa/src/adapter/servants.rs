//! Values that servant managers return (CORBA 3.3 Part 1, 15.3.5 to 15.3.7).

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use spandrel_orb::{ObjectRef, SystemException};

/// Drops an object of the application's. A panic in its destructor is logged, so that waiting threads are not
/// affected.
pub(crate) fn drop_logged<T>(value: T) {
    if catch_unwind(AssertUnwindSafe(|| drop(value))).is_err() {
        tracing::error!("a servant panicked when it was dropped");
    }
}

/// The reason for which a servant manager supplies no servant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Incarnation {
    /// The request goes to another object (LOCATION_FORWARD).
    ForwardRequest(ObjectRef),
    /// As `ForwardRequest`, permanently: the original reference is invalid from now on
    /// (LOCATION_FORWARD_PERM). Clients of GIOP 1.0 and 1.1 receive LOCATION_FORWARD.
    ForwardPermanently(ObjectRef),
    /// The request is answered with this exception.
    System(SystemException),
}

impl From<SystemException> for Incarnation {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// The data that a servant locator attaches to a request, from its beginning to its end.
pub type Cookie = Box<dyn Any + Send>;
