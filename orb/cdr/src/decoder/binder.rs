//! What a decoder asks about references and values: the ORB's knowledge, and factories of values.

use std::{any::Any, sync::Arc};

use crate::encoder::values::Entry;
use crate::{CdrError, Decoder, Ior, TypeCode};

/// Makes live references from plain ones; implemented by the ORB.
pub trait Binder: Send + Sync {
    /// A reference that can be invoked, in the form that the ORB's reference type downcasts.
    ///
    /// # Errors
    /// A reference that this ORB cannot use at all.
    fn bind(&self, ior: Ior) -> Result<Arc<dyn Any + Send + Sync>, CdrError>;

    /// The same binder, to be kept by what is decoded later than the message: an [`Any`](crate::Any).
    fn share(&self) -> Arc<dyn Binder>;

    /// What is registered to make received values of the type with this id.
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        let _ = repository_id;
        None
    }

    /// The type code of the value type with this id, where it is known. A value of a type that its position does not declare is read
    /// by it where there is no Rust type: within an [`Any`](crate::Any).
    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        let _ = repository_id;
        None
    }
}

/// Makes values of one type from their state on the wire.
///
/// A decoder asks its [`Binder`] for the one that is registered for a repository id, then generated code,
/// which makes values without operations by itself.
pub trait ValueFactory: Send + Sync {
    /// Reads the state of a value and makes the value. Other values that it refers to may not be there yet: their references
    /// can be kept, not looked into.
    ///
    /// # Errors
    /// Octets that are no such state.
    fn read(&self, input: &mut Decoder<'_>) -> Result<Entry, CdrError>;
}
