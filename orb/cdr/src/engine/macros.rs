//! Macros that generated code uses instead of marshaling code.

/// Creates the table of a struct or enum from its members, and implements `Encode` and `Decode` with it.
///
/// ```
/// # use spandrel_cdr::{Decode, Encode, interpret};
/// #[derive(Clone)]
/// #[repr(C)] // members in CDR's order are moved in blocks
/// struct Entry {
///     who: String,
///     amount: i64,
/// }
/// interpret!(struct Entry { who: String, amount: i64 });
///
/// #[derive(Clone, Copy)]
/// #[repr(u32)]
/// enum Kind {
///     Current,
///     Savings,
/// }
/// interpret!(enum Kind { Current, Savings });
/// ```
///
/// Members are encoded in the order of the macro. A member of a type without a table uses its own encoding.
/// It does not compile if a member is missing or named twice, if a type is not that of the member, or for a
/// packed struct.
#[macro_export]
macro_rules! interpret {
    (struct $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $crate::interpret!(@table $name { $($field: $type),* });
        $crate::interpret!(@codec $name);
    };
    (enum $name:ident { $($variant:ident),* $(,)? }) => {
        $crate::interpret!(@enumeration $name { $($variant),* });
        $crate::interpret!(@codec $name);
    };
    // Both engines: beside the table, the type implements `engine::Compiled`.
    (adaptive struct $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $crate::interpret!(@table $name { $($field: $type),* });
        impl $crate::engine::Adaptive for $name {
            #[inline]
            fn switch() -> &'static $crate::engine::Switch<Self> {
                static SWITCH: $crate::engine::Switch<$name> = $crate::engine::Switch::new();
                &SWITCH
            }
        }
        $crate::interpret!(@switched $name);
    };
    (@switched $name:ident) => {
        impl $crate::Encode for $name {
            #[inline]
            fn encode<'a>(&'a self, out: &mut $crate::Encoder<'a>) -> ::core::result::Result<(), $crate::CdrError> {
                <$name as $crate::engine::Adaptive>::switch().encode(self, out)
            }
            #[inline]
            fn encode_slice<'a>(
                items: &'a [Self],
                out: &mut $crate::Encoder<'a>,
            ) -> ::core::result::Result<(), $crate::CdrError> {
                <$name as $crate::engine::Adaptive>::switch().encode_slice(items, out)
            }
        }
        impl $crate::Decode for $name {
            const MIN_OCTETS: usize = <$name as $crate::engine::Interpreted>::PROGRAM.min_octets();
            #[inline]
            fn decode(input: &mut $crate::Decoder<'_>) -> ::core::result::Result<Self, $crate::CdrError> {
                <$name as $crate::engine::Adaptive>::switch().decode(input)
            }
            #[inline]
            fn decode_vec(
                input: &mut $crate::Decoder<'_>,
                len: usize,
            ) -> ::core::result::Result<::std::vec::Vec<Self>, $crate::CdrError> {
                <$name as $crate::engine::Adaptive>::switch().decode_vec(input, len)
            }
        }
    };
    (@codec $name:ident) => {
        impl $crate::Encode for $name {
            #[inline]
            fn encode<'a>(&'a self, out: &mut $crate::Encoder<'a>) -> ::core::result::Result<(), $crate::CdrError> {
                $crate::engine::encode(self, out)
            }
            #[inline]
            fn encode_slice<'a>(
                items: &'a [Self],
                out: &mut $crate::Encoder<'a>,
            ) -> ::core::result::Result<(), $crate::CdrError> {
                $crate::engine::encode_slice(items, out)
            }
        }
        impl $crate::Decode for $name {
            const MIN_OCTETS: usize = <$name as $crate::engine::Interpreted>::PROGRAM.min_octets();
            #[inline]
            fn decode(input: &mut $crate::Decoder<'_>) -> ::core::result::Result<Self, $crate::CdrError> {
                $crate::engine::decode(input)
            }
            #[inline]
            fn decode_vec(
                input: &mut $crate::Decoder<'_>,
                len: usize,
            ) -> ::core::result::Result<::std::vec::Vec<Self>, $crate::CdrError> {
                $crate::engine::decode_vec(input, len)
            }
            #[inline]
            fn decode_array<const N: usize>(
                input: &mut $crate::Decoder<'_>,
            ) -> ::core::result::Result<[Self; N], $crate::CdrError> {
                $crate::engine::decode_array(input)
            }
        }
    };
    (@table $name:ident { $($field:ident: $type:ty),* }) => {
        const _: () = {
            #[allow(unused_imports, reason = "only members without a table need it")]
            use $crate::engine::CodesItself as _;
            const FIELDS: &[$crate::engine::Field] = &[$({
                // The field has exactly this type: a raw pointer is not coerced to another type, as a
                // reference is.
                let _: fn(&$name) -> *const $type = |value| {
                    let $name { $field: field, .. } = value;
                    &raw const *field
                };
                $crate::engine::Field {
                    at: ::core::mem::offset_of!($name, $field),
                    program: $crate::engine::Table::<$type>::PROGRAM,
                }
            }),*];
            // Each of its fields, and each once.
            let _: fn(&$name) = |value| {
                let $name { $($field: _),* } = value;
            };
            const MOST: usize = $crate::engine::most_ops(FIELDS);
            const LEN: usize = $crate::engine::assemble::<MOST>(FIELDS).len();
            static OPS: [$crate::engine::Op; LEN] = $crate::engine::assemble::<MOST>(FIELDS).exactly();
            static PROGRAM: $crate::engine::Program = $crate::engine::structure::<$name>(FIELDS, &OPS);
            // SAFETY: the fields are all fields of the struct, at their offsets, with the tables of their
            // types.
            unsafe impl $crate::engine::Interpreted for $name {
                const PROGRAM: &'static $crate::engine::Program = &PROGRAM;
            }
        };
    };
    (@enumeration $name:ident { $($variant:ident),* }) => {
        const _: () = {
            // Each of its enumerators.
            let _: fn($name) = |value| match value {
                $($name::$variant => (),)*
            };
            static TABLE: $crate::engine::EnumTable = $crate::engine::enum_table(
                ::core::stringify!($name),
                // SAFETY: it compiles only for types of four octets, and an enumerator is initialised.
                &[$(unsafe { ::core::mem::transmute::<$name, u32>($name::$variant) }),*],
            );
            static OPS: [$crate::engine::Op; 1] = [$crate::engine::Op::Enum { at: 0, table: &TABLE }];
            static PROGRAM: $crate::engine::Program = $crate::engine::enumeration::<$name>(&OPS);
            // SAFETY: each number below the count is an enumerator, with the same representation in memory.
            unsafe impl $crate::engine::Interpreted for $name {
                const PROGRAM: &'static $crate::engine::Program = &PROGRAM;
            }
        };
    };
}
