//! Reference types of interfaces: a macro for their traits, and the calls of their methods.

use spandrel_cdr::{Decode, Encode};
use spandrel_giop::SystemException;

use crate::{ObjectRef, UserExceptions};

/// The traits and conversions of a reference type. A reference of an interface with bases wraps that of the first
/// one, and has its methods (`Deref`); further entries are all bases. `async` has the name of the asynchronous
/// `narrow`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_reference {
    ($kind:ident $name:ident, $id:literal, $idl:literal $(, async $narrow:ident)?) => {
        $crate::generated_reference!(@common $kind $name, $id, $idl $(, async $narrow)?);
    };
    ($kind:ident $name:ident: $first:ty, $id:literal, $idl:literal $(, async $narrow:ident)? $(, $base:ty)*) => {
        $crate::generated_reference!(@common $kind $name, $id, $idl $(, async $narrow)?);
        const _: () = {
            use $crate::generated as __rt;
            impl __rt::Deref for $name {
                type Target = $first;
                #[inline]
                fn deref(&self) -> &$first {
                    &self.0
                }
            }
            $(impl __rt::From<$name> for $base {
                fn from(reference: $name) -> Self {
                    __rt::Interface::from_object(reference.0.into())
                }
            })*
        };
    };
    (@common $kind:ident $name:ident, $id:literal, $idl:literal $(, async $narrow:ident)?) => {
        const _: () = {
            use $crate::generated as __rt;
            impl __rt::Interface for $name {
                const REPOSITORY_ID: &'static str = $id;
                #[inline]
                fn from_object(object: __rt::ObjectRef) -> Self {
                    Self(__rt::Interface::from_object(object))
                }
                #[inline]
                fn as_object(&self) -> &__rt::ObjectRef {
                    __rt::Interface::as_object(&self.0)
                }
            }
            impl __rt::Reference for $name {
                #[inline]
                fn ior(&self) -> &__rt::Ior {
                    __rt::Reference::ior(&self.0)
                }
            }
            impl __rt::FromBound for $name {
                fn from_bound(
                    bound: __rt::Bound,
                ) -> __rt::Decoded<Self> {
                    __rt::FromBound::from_bound(bound).map(Self)
                }
            }
            impl __rt::From<$name> for __rt::ObjectRef {
                fn from(reference: $name) -> Self {
                    reference.0.into()
                }
            }
            $crate::generated_typed!(@implementation $name => __rt::TypeCode::$kind($id, $idl));
        };
        impl $name {
            /// Narrows a reference; calls the object unless the reference names this interface. BAD_PARAM if the
            /// object lacks it.
            pub fn narrow(
                object: &$crate::generated::ObjectRef,
            ) -> ::core::result::Result<Self, $crate::generated::SystemException> {
                object.narrow()
            }
            /// Narrows a reference without a check that the object has this interface.
            pub fn unchecked_narrow(object: &$crate::generated::ObjectRef) -> Self {
                object.unchecked_narrow()
            }
            /// The untyped reference.
            #[inline]
            pub fn as_object(&self) -> &$crate::generated::ObjectRef {
                $crate::generated::Interface::as_object(&self.0)
            }
            $(
                /// As `narrow`, without waiting: the request is sent before this returns.
                #[inline]
                pub fn $narrow(
                    object: &$crate::generated::ObjectRef,
                ) -> impl ::core::future::Future<
                    Output = ::core::result::Result<Self, $crate::generated::SystemException>,
                > + ::core::marker::Send + 'static + use<> {
                    object.narrow_async()
                }
            )?
        }
    };
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
