//! Callbacks of a decoder for references and values: the ORB's binder, and factories of values.

use std::{any::Any, sync::Arc};

use crate::encoder::values::Entry;
use crate::{CdrError, Decoder, Ior, TypeCode};

/// Converts plain references to live ones; implemented by the ORB.
pub trait Binder: Send + Sync {
    /// A reference that can be invoked, as the ORB's reference type downcasts it.
    ///
    /// # Errors
    /// A reference that this ORB cannot use at all.
    fn bind(&self, ior: Ior) -> Result<Arc<dyn Any + Send + Sync>, CdrError>;

    /// The same binder, for values that are decoded later than the message: an [`Any`](crate::Any).
    fn share(&self) -> Arc<dyn Binder>;

    /// The registered factory for received values of the type with this id.
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        let _ = repository_id;
        None
    }

    /// The type code of the value type with this id, if known. Within an [`Any`](crate::Any), it decodes a
    /// value whose type differs from that of its position and has no Rust type.
    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        let _ = repository_id;
        None
    }
}

/// Creates values of one type from their state on the wire.
///
/// A decoder asks its [`Binder`] for the factory of a repository id, then generated code, which creates
/// values without operations by itself.
pub trait ValueFactory: Send + Sync {
    /// Decodes the state of a value and creates the value. Values that it refers to may be incomplete: their
    /// references may be stored, but not followed.
    ///
    /// # Errors
    /// Octets that are not a valid state.
    fn read(&self, input: &mut Decoder<'_>) -> Result<Entry, CdrError>;
}
