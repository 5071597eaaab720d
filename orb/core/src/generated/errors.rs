//! Macros for the error enums of operations.

/// The conversions, `Display`, `Debug`, `Error` and the codec of an error enum.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_errors {
    ($name:ident $(, $variant:ident($type:ty))*) => {
        $crate::generated_errors!(@codec $crate::generated::decode_exception; $name $(, $variant($type))*);
    };
    // One instance of the decoder for all operations that raise an exception.
    (interpreted $name:ident $(, $variant:ident($type:ty))*) => {
        $crate::generated_errors!(@codec $crate::interpreted::exception; $name $(, $variant($type))*);
    };
    (@codec $decode:path; $name:ident $(, $variant:ident($type:ty))*) => {
        $crate::generated_local_errors!($name $(, $variant($type))*);
        impl $crate::generated::UserExceptions for $name {
            fn decode(
                id: &str,
                input: &mut $crate::generated::Decoder<'_>,
            ) -> ::core::option::Option<::core::result::Result<Self, $crate::generated::CdrError>> {
                match id {
                    $(<$type as $crate::generated::UserException>::REPOSITORY_ID => {
                        ::core::option::Option::Some($decode(input).map($name::$variant))
                    })*
                    _ => ::core::option::Option::None,
                }
            }
            fn members(
                &self,
            ) -> ::core::result::Result<
                (&'static str, $crate::generated::Value<'_>),
                $crate::generated::SystemException,
            > {
                match self {
                    $($name::$variant(exception) => $crate::generated::raised(exception),)*
                    $name::System(exception) => ::core::result::Result::Err(exception.clone()),
                }
            }
        }
    };
}

/// The conversions, `Display`, `Debug` and `Error` of an error enum.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_local_errors {
    ($name:ident $(, $variant:ident($type:ty))*) => {
        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    $($name::$variant(exception) => ::core::fmt::Display::fmt(exception, f),)*
                    $name::System(exception) => ::core::fmt::Display::fmt(exception, f),
                }
            }
        }
        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    $name::System(exception) => ::core::fmt::Debug::fmt(exception, f),
                    raised => ::core::fmt::Display::fmt(raised, f),
                }
            }
        }
        impl ::core::error::Error for $name {
            fn source(&self) -> ::core::option::Option<&(dyn ::core::error::Error + 'static)> {
                match self {
                    $name::System(exception) => ::core::error::Error::source(exception),
                    _ => ::core::option::Option::None,
                }
            }
        }
        $(
            impl ::core::convert::From<$type> for $name {
                fn from(exception: $type) -> Self {
                    $name::$variant(exception)
                }
            }
        )*
        impl ::core::convert::From<$crate::generated::SystemException> for $name {
            fn from(exception: $crate::generated::SystemException) -> Self {
                $name::System(exception)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use spandrel_giop::CompletionStatus;

    use crate::generated as rt;

    #[derive(Clone, Debug)]
    struct Over {
        max_weight: i32,
        unit: String,
    }
    rt::exception! { members Over, "IDL:Over:1.0", "Over", max_weight: i32 as "maxWeight", unit: String as "unit" }

    #[derive(Clone, Debug)]
    struct Failed {
        reason: String,
    }
    rt::exception! { text Failed, "IDL:Failed:1.0", "Failed", reason: String as "reason" }

    #[derive(Clone, Debug)]
    struct Empty {}
    rt::exception! { members Empty, "IDL:Empty:1.0", "Empty" }

    #[derive(Clone)]
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
