//! Reference types of interfaces: a macro for their traits, and the calls of their methods.

use std::fmt;

use spandrel_cdr::{Decode, Encode};
use spandrel_giop::SystemException;

use crate::{Interface, ObjectRef, UserExceptions};

/// The traits and conversions of a reference type, which wraps `inner`: the reference of the first base interface, or
/// an untyped one. It has the methods of that (`Deref`). Further entries are all bases.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_reference {
    ($kind:ident $name:ident($inner:ty), $id:literal, $idl:literal $(, $base:ty)*) => {
        impl $name {
            /// Narrows a reference; calls the object unless the reference names this interface. BAD_PARAM if the
            /// object lacks it.
            pub fn narrow(object: &rt::ObjectRef) -> rt::Result<Self, rt::SystemException> {
                object.narrow()
            }
            /// Narrows a reference without a check that the object has this interface.
            pub fn unchecked_narrow(object: &rt::ObjectRef) -> Self {
                object.unchecked_narrow()
            }
        }
        impl rt::Clone for $name {
            #[inline]
            fn clone(&self) -> Self {
                Self(rt::clone(&self.0))
            }
        }
        impl rt::PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }
        impl rt::Eq for $name {}
        impl rt::Debug for $name {
            fn fmt(&self, f: rt::Format) -> rt::Formatted {
                rt::debug_reference(::core::stringify!($name), &self.0, f)
            }
        }
        impl rt::Display for $name {
            fn fmt(&self, f: rt::Format) -> rt::Formatted {
                rt::Display::fmt(&self.0, f)
            }
        }
        impl rt::Deref for $name {
            type Target = $inner;
            #[inline]
            fn deref(&self) -> &$inner {
                &self.0
            }
        }
        impl rt::ReferencePointer for $name {}
        impl rt::TypedReference for $name {
            const REPOSITORY_ID: &'static str = $id;
            fn wrap(inner: $inner) -> Self {
                Self(inner)
            }
        }
        $crate::generated_type_definition!($name $kind($id, $idl));
        $(impl rt::From<$name> for $base {
            fn from(reference: $name) -> Self {
                rt::widen(reference)
            }
        })*
    };
}

/// The reference of a base interface. A reference has the interface of all bases, so nothing is checked.
#[inline]
pub fn widen<R: Interface, B: Interface>(reference: R) -> B {
    B::from_object(reference.as_object().clone())
}

/// Writes a typed reference as a derived `Debug` does.
///
/// # Errors
/// As [`fmt::Debug::fmt`].
pub fn debug_reference(name: &str, inner: &dyn fmt::Debug, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_tuple(name).field(inner).finish()
}

/// Invokes an operation. Arguments and several results are tuples.
///
/// # Errors
/// As [`ObjectRef::invoke`].
#[inline]
pub fn call<A: Encode, R: Decode, E: UserExceptions>(
    object: &ObjectRef,
    operation: &str,
    arguments: &A,
) -> Result<R, E> {
    object.invoke(operation, |out| arguments.encode(out), R::decode)
}

/// Invokes a one-way operation with a tuple of arguments.
///
/// # Errors
/// As [`ObjectRef::send_oneway`].
#[inline]
pub fn call_oneway<A: Encode>(object: &ObjectRef, operation: &str, arguments: &A) -> Result<(), SystemException> {
    object.send_oneway(operation, |out| arguments.encode(out))
}
