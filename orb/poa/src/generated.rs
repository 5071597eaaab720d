//! The items of adapters that generated code uses, and nothing else. Not a public interface: it changes with the compiler.

#[doc(hidden)]
pub use spandrel_orb::generated::{errors as orb_errors, local_errors as local_orb_errors};

pub use crate::{PoaError, generated_adapter_errors as errors, generated_local_adapter_errors as local_errors};

/// The error enum of an operation, into which the errors of adapters can be converted, too.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_adapter_errors {
    (@conversion $name:ident) => {
        impl rt::From<$crate::PoaError> for $name {
            #[inline]
            fn from(error: $crate::PoaError) -> Self {
                rt::system(error)
            }
        }
    };
    ($name:ident $($rest:tt)*) => {
        $crate::generated::orb_errors! { $name $($rest)* }
        $crate::generated_adapter_errors! { @conversion $name }
    };
}

/// As `generated_adapter_errors`, for local interfaces.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_local_adapter_errors {
    ($name:ident $($rest:tt)*) => {
        $crate::generated::local_orb_errors! { $name $($rest)* }
        $crate::generated_adapter_errors! { @conversion $name }
    };
}
