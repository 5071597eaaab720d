//! Macros for the error enums of operations.

/// The conversions, `Display`, `Debug`, `Error` and the codec of an error enum.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_errors {
    ($name:ident $(, $variant:ident($type:ty))*) => {
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_errors!(@codec __rt::decode_exception; $name $(, $variant($type))*);
        };
    };
    // One instance of the decoder for all operations that raise an exception.
    (interpreted $name:ident $(, $variant:ident($type:ty))*) => {
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_errors!(@codec __rt::interpreted::exception; $name $(, $variant($type))*);
        };
    };
    (@codec $decode:path; $name:ident $(, $variant:ident($type:ty))*) => {
        $crate::generated_local_errors!(@implementation $name $(, $variant($type))*);
        impl __rt::UserExceptions for $name {
            fn decode(
                id: &str,
                input: &mut __rt::Decoder<'_>,
            ) -> __rt::Option<__rt::Decoded<Self>> {
                match id {
                    $(<$type as __rt::UserException>::REPOSITORY_ID => {
                        __rt::Some($decode(input).map($name::$variant))
                    })*
                    _ => __rt::None,
                }
            }
            fn members(
                &self,
            ) -> __rt::Result<
                (&'static str, __rt::Value<'_>),
                __rt::SystemException,
            > {
                match self {
                    $($name::$variant(exception) => __rt::raised(exception),)*
                    $name::System(exception) => __rt::Err(exception.clone()),
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
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_local_errors!(@implementation $name $(, $variant($type))*);
        };
    };
    (@implementation $name:ident $(, $variant:ident($type:ty))*) => {
        impl __rt::fmt::Display for $name {
            fn fmt(&self, f: &mut __rt::fmt::Formatter<'_>) -> __rt::fmt::Result {
                match self {
                    $($name::$variant(exception) => __rt::fmt::Display::fmt(exception, f),)*
                    $name::System(exception) => __rt::fmt::Display::fmt(exception, f),
                }
            }
        }
        impl __rt::fmt::Debug for $name {
            fn fmt(&self, f: &mut __rt::fmt::Formatter<'_>) -> __rt::fmt::Result {
                match self {
                    $name::System(exception) => __rt::fmt::Debug::fmt(exception, f),
                    raised => __rt::fmt::Display::fmt(raised, f),
                }
            }
        }
        impl __rt::Error for $name {
            fn source(&self) -> __rt::Option<&(dyn __rt::Error + 'static)> {
                match self {
                    $name::System(exception) => __rt::Error::source(exception),
                    _ => __rt::None,
                }
            }
        }
        $(
            impl __rt::From<$type> for $name {
                fn from(exception: $type) -> Self {
                    $name::$variant(exception)
                }
            }
        )*
        impl __rt::From<__rt::SystemException> for $name {
            fn from(exception: __rt::SystemException) -> Self {
                $name::System(exception)
            }
        }
        impl __rt::From<__rt::CdrError> for $name {
            fn from(error: __rt::CdrError) -> Self {
                $name::System(__rt::From::from(error))
            }
        }
        impl __rt::From<__rt::ExtractError> for $name {
            fn from(error: __rt::ExtractError) -> Self {
                $name::System(__rt::From::from(error))
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
