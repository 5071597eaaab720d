//! Macros for the error enums of operations.

use std::{error::Error, fmt};

use crate::reference::exceptions::{ErrorEnum, SystemVariant};

/// The conversions, `Clone`, `Display`, `Debug`, `Error`, `PartialEq` and the codec of an error enum.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_errors {
    ($name:ident $(, $variant:ident($type:ty))*) => {
        impl rt::ErrorEnum for $name {
            const VARIANTS: rt::Variants<Self> = (Self::System, &[$(rt::variant(Self::$variant)),*]);
            fn exception(&self) -> &dyn rt::Raised {
                match self {
                    $(Self::$variant(raised) => raised,)*
                    Self::System(raised) => raised,
                }
            }
        }
        impl rt::Clone for $name {
            #[inline]
            fn clone(&self) -> Self {
                rt::clone_error(self)
            }
        }
        impl rt::Display for $name {
            #[inline]
            fn fmt(&self, f: rt::Format) -> rt::Formatted {
                rt::display_error(self, f)
            }
        }
        impl rt::Debug for $name {
            #[inline]
            fn fmt(&self, f: rt::Format) -> rt::Formatted {
                rt::debug_error(self, f)
            }
        }
        impl rt::Error for $name {
            #[inline]
            fn source(&self) -> rt::Cause<'_> {
                rt::error_source(self)
            }
        }
        impl rt::PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                rt::equal_errors(self, other)
            }
        }
        $crate::generated_local_errors!(@conversions $name $(, $variant($type))*);
    };
}

/// The conversions, `Display`, `Debug` and `Error` of an error enum whose exceptions are not encoded.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_local_errors {
    (@conversions $name:ident $(, $variant:ident($type:ty))*) => {
        impl<__C: rt::IntoError<$name>> rt::From<__C> for $name {
            fn from(cause: __C) -> Self {
                cause.into_error()
            }
        }
        $(
            impl rt::IntoError<$name> for $type {
                fn into_error(self) -> $name {
                    $name::$variant(self)
                }
            }
        )*
    };
    ($name:ident $(, $variant:ident($type:ty))*) => {
        impl rt::SystemVariant for $name {
            fn from_system(exception: rt::SystemException) -> Self {
                Self::System(exception)
            }
        }
        impl rt::Display for $name {
            fn fmt(&self, f: rt::Format) -> rt::Formatted {
                match self {
                    $(Self::$variant(exception) => rt::Display::fmt(exception, f),)*
                    Self::System(exception) => rt::Display::fmt(exception, f),
                }
            }
        }
        impl rt::Debug for $name {
            fn fmt(&self, f: rt::Format) -> rt::Formatted {
                match self {
                    Self::System(exception) => rt::Debug::fmt(exception, f),
                    raised => rt::Display::fmt(raised, f),
                }
            }
        }
        impl rt::Error for $name {
            fn source(&self) -> rt::Cause<'_> {
                match self {
                    Self::System(exception) => rt::Error::source(exception),
                    _ => rt::None,
                }
            }
        }
        $crate::generated_local_errors!(@conversions $name $(, $variant($type))*);
    };
}

/// A copy of an error enum and of its exception.
///
/// # Panics
/// If the enum holds an exception that is not among its variants.
pub fn clone_error<E: ErrorEnum>(error: &E) -> E {
    let exception = error.exception();
    if let Some(system) = exception.system() {
        return E::from_system(system.clone());
    }
    let copy = E::VARIANTS.1.iter().find_map(|variant| variant.copy(exception));
    copy.expect("there is a variant for each exception of the enum")
}

/// Writes the exception of an error enum.
///
/// # Errors
/// Those of the formatter.
pub fn display_error<E: ErrorEnum>(error: &E, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    error.exception().fmt(f)
}

/// Writes a user exception of an error enum as [`display_error`] does, and a system exception with its causes.
///
/// # Errors
/// Those of the formatter.
pub fn debug_error<E: ErrorEnum>(error: &E, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let exception = error.exception();
    match exception.system() {
        Some(system) => fmt::Debug::fmt(system, f),
        None => exception.fmt(f),
    }
}

/// The cause of an error enum's system exception. User exceptions have none.
pub fn error_source<E: ErrorEnum>(error: &E) -> Option<&(dyn Error + 'static)> {
    error.exception().system().and_then(Error::source)
}

/// Whether two error enums hold equal exceptions.
pub fn equal_errors<E: ErrorEnum>(one: &E, other: &E) -> bool {
    one.exception().equals(other.exception())
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use spandrel_giop::CompletionStatus;

    use crate::generated as rt;

    struct Over {
        max_weight: i32,
        unit: String,
    }
    rt::exception! { members Over, "IDL:Over:1.0", "Over", max_weight: i32 as "maxWeight", unit: String as "unit" }

    struct Failed {
        reason: String,
    }
    rt::exception! { text Failed, "IDL:Failed:1.0", "Failed", reason: String as "reason" }

    struct Empty {}
    rt::exception! { members Empty, "IDL:Empty:1.0", "Empty" }

    enum ServeError {
        Over(Over),
        Failed(Failed),
        Empty(Empty),
        System(rt::SystemException),
    }
    rt::errors! { ServeError, Over(Over), Failed(Failed), Empty(Empty) }

    #[test]
    fn the_debug_form_of_an_error_is_its_display_form() {
        let errors: [(ServeError, &str); 3] = [
            (Over { max_weight: 3, unit: "t".to_owned() }.into(), "Over: maxWeight 3, unit \"t\""),
            (Failed { reason: "rain".to_owned() }.into(), "Failed: rain"),
            (Empty {}.into(), "Empty"),
        ];
        for (error, expected) in errors {
            assert_eq!((error.to_string(), format!("{error:?}")), (expected.to_owned(), expected.to_owned()));
            assert!(error.source().is_none());
        }
    }

    #[test]
    fn errors_are_equal_with_equal_members_of_the_same_exception() {
        let over = |max_weight| ServeError::from(Over { max_weight, unit: "t".to_owned() });
        let system = |minor| ServeError::from(rt::SystemException::internal(minor, CompletionStatus::No));
        let errors = [over(3), over(4), Empty {}.into(), system(7), system(8)];
        for (one, first) in errors.iter().enumerate() {
            for (other, second) in errors.iter().enumerate() {
                assert_eq!(first == second, one == other, "{first} {second}");
            }
        }
        assert!(over(3) == over(3) && system(7) == system(7));
    }

    #[test]
    fn a_copy_holds_the_same_exception() {
        let over = Over { max_weight: 3, unit: "t".to_owned() };
        let system = rt::SystemException::internal(7, CompletionStatus::No);
        let errors: [ServeError; 4] =
            [over.into(), Failed { reason: "rain".to_owned() }.into(), Empty {}.into(), system.into()];
        for error in &errors {
            assert_eq!(error.clone(), *error);
        }
        assert!(matches!(errors[1].clone(), ServeError::Failed(Failed { reason }) if reason == "rain"));
    }

    #[test]
    fn the_debug_form_of_an_exception_is_that_of_a_struct() {
        let over = Over { max_weight: 3, unit: "t".to_owned() };
        assert_eq!(format!("{over:?} {:?}", Empty {}), "Over { max_weight: 3, unit: \"t\" } Empty");
    }

    #[test]
    fn a_system_exception_is_described_as_itself() {
        let system = rt::SystemException::internal(7, CompletionStatus::No);
        let error = ServeError::from(system.clone());
        assert_eq!((error.to_string(), format!("{error:?}")), (system.to_string(), format!("{system:?}")));
        let members = rt::UserExceptions::members(&error).map(|(id, _)| id);
        assert!(members.is_err_and(|error| error == system));
        let raised = ServeError::from(Empty {});
        let members = rt::UserExceptions::members(&raised).map(|(id, _)| id);
        assert!(members.is_ok_and(|id| id == "IDL:Empty:1.0"));
    }
}
