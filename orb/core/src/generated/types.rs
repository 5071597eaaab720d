//! Macros for generated types: their codecs, type codes and conversions.
//!
//! Where a macro is used, the IDL may define `Result` or `Ok`. So names of the prelude are those of this module,
//! which the block around the implementations calls `__rt`.

use spandrel_cdr::TypeCode;

/// `Typed`, from the expression that makes the type code; with the repository id, members may refer to the type.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_typed {
    ($type:ty $(, $id:literal)? => $made:expr) => {
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_typed!(@implementation $type $(, $id)? => $made);
        };
    };
    (@implementation $type:ty $(, $id:literal)? => $made:expr) => {
        impl __rt::Typed for $type {
            fn type_code() -> __rt::TypeCode {
                static TYPE: __rt::Defining = __rt::Defining::new();
                $crate::generated_typed!(@made TYPE $(, $id)? => $made)
            }
        }
    };
    (@made $defining:ident => $made:expr) => {
        $defining.type_code(|| $made)
    };
    (@made $defining:ident, $id:literal => $made:expr) => {
        $defining.recursive($id, || $made)
    };
}

/// `Typed`, from data: the name of the constructor in `TypeDefinition`, and its arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_type_definition {
    ($name:ident $kind:ident($($contents:expr),*)) => {
        impl __rt::Typed for $name {
            fn type_code() -> __rt::TypeCode {
                static TYPE: __rt::TypeDefinition = __rt::TypeDefinition::$kind($($contents),*);
                TYPE.type_code()
            }
        }
    };
}

/// The function with the type code of a member: that of its Rust type, unless the IDL type is an alias or has no type
/// in Rust.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_type_code {
    ($type:ty) => {
        <$type as $crate::generated::Typed>::type_code
    };
    ($type:ty, $code:expr) => {
        $code
    };
}

/// `Typed` of a struct or an exception: the name of the constructor in `TypeDefinition`, then the members.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_typed_members {
    ($kind:ident $name:ident, $id:literal, $idl:literal $(, $type:ty as $member:literal $(= $code:expr)?)*) => {
        $crate::generated_type_definition!(
            $name $kind($id, $idl, &[$(($member, $crate::generated_type_code!($type $(, $code)?))),*])
        );
    };
}

/// `Encode` and `Decode` of the members in their order. `fixed`: the type implements `FixedSize`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_codec {
    ($(#[$inline:ident])? $($fixed:ident)?; $name:ident $(, $field:ident: $type:ty)*) => {
        impl __rt::Encode for $name {
            $(#[$inline])?
            fn encode<'a>(
                &'a self,
                _out: &mut __rt::Encoder<'a>,
            ) -> __rt::Encoded {
                $(__rt::Encode::encode(&self.$field, _out)?;)*
                __rt::Ok(())
            }
            $($crate::generated_encode_slice!($fixed);)?
        }
        impl __rt::Decode for $name {
            const MIN_OCTETS: usize =
                __rt::min_octets(&[$(<$type as __rt::Decode>::MIN_OCTETS),*]);
            $(#[$inline])?
            fn decode(
                _input: &mut __rt::Decoder<'_>,
            ) -> __rt::Decoded<Self> {
                __rt::Ok(Self { $($field: __rt::Decode::decode(_input)?),* })
            }
            $($crate::generated_decode_vec!($fixed);)?
        }
    };
}

/// `encode_slice` of a type that implements `FixedSize`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_encode_slice {
    (fixed) => {
        #[inline]
        fn encode_slice<'a>(items: &'a [Self], out: &mut __rt::Encoder<'a>) -> __rt::Encoded {
            __rt::encode_fixed_slice(items, out)
        }
    };
}

/// `decode_vec` of a type that implements `FixedSize`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_decode_vec {
    (fixed) => {
        #[inline]
        fn decode_vec(input: &mut __rt::Decoder<'_>, len: usize) -> __rt::Decoded<__rt::Vec<Self>> {
            __rt::decode_fixed_vec(input, len)
        }
    };
}

/// The codec and the type code of a struct.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_structure {
    (
        $(#[$inline:ident])? $name:ident, $id:literal, $idl:literal
        $(, $field:ident: $type:ty as $member:literal $(= $code:expr)?)* $(; $fixed:ident)?
    ) => {
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_codec!($(#[$inline])? $($fixed)?; $name $(, $field: $type)*);
            $crate::generated_typed_members!(structure $name, $id, $idl $(, $type as $member $(= $code)?)*);
        };
    };
}

/// The type code of a struct without a codec, or with one beside it.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_local_structure {
    ($name:ident, $id:literal, $idl:literal $(, $field:ident: $type:ty as $member:literal $(= $code:expr)?)*) => {
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_typed_members!(structure $name, $id, $idl $(, $type as $member $(= $code)?)*);
        };
    };
}

/// The codec, the type code, `Display` and `Error` of an exception. `generated_description_and_type` has the forms.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_exception {
    (
        $(#[$inline:ident])? $form:ident $name:ident, $id:literal, $idl:literal
        $(, $field:ident: $type:ty as $member:literal $(= $code:expr)?)*
    ) => {
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_codec!($(#[$inline])?; $name $(, $field: $type)*);
            impl __rt::UserException for $name {
                const REPOSITORY_ID: &'static str = $id;
            }
            $crate::generated_description_and_type!(
                $form $name, $id, $idl $(, $field: $type as $member $(= $code)?)*
            );
        };
    };
}

/// The type code, `Display` and `Error` of an exception. Its text lists the `members`, or is the only member, a
/// `text`, or is the name of an `opaque` exception, which has members without `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_description_and_type {
    (
        $form:ident $name:ident, $id:literal, $idl:literal
        $(, $field:ident: $type:ty as $member:literal $(= $code:expr)?)*
    ) => {
        impl __rt::fmt::Display for $name {
            fn fmt(&self, f: &mut __rt::fmt::Formatter<'_>) -> __rt::fmt::Result {
                $crate::generated_description!($form self, f, $idl $(, $field $member)*)
            }
        }
        impl __rt::Error for $name {}
        $crate::generated_typed_members!(exception $name, $id, $idl $(, $type as $member $(= $code)?)*);
    };
}

/// `generated_exception` without a codec, or with one beside it.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_local_exception {
    ($($contents:tt)*) => {
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_description_and_type!($($contents)*);
        };
    };
}

/// Writes an exception in its form.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_description {
    (members $exception:expr, $f:expr, $idl:literal $(, $field:ident $member:literal)*) => {
        __rt::describe_exception($f, $idl, &[$(($member, &$exception.$field)),*])
    };
    (text $exception:expr, $f:expr, $idl:literal, $field:ident $member:literal) => {
        __rt::describe_exception_text($f, $idl, &$exception.$field)
    };
    (opaque $exception:expr, $f:expr, $idl:literal $(, $field:ident $member:literal)*) => {
        $f.write_str($idl)
    };
}

/// The conversion from a number, the codec and the type code of an enum.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_enumeration {
    ($name:ident, $id:literal, $idl:literal $(, $variant:ident = $ordinal:literal $enumerator:literal)*) => {
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_number!($name, $id, $idl $(, $variant = $ordinal $enumerator)*);
            impl __rt::Encode for $name {
                #[inline]
                fn encode<'a>(
                    &'a self,
                    out: &mut __rt::Encoder<'a>,
                ) -> __rt::Encoded {
                    out.u32(*self as u32);
                    __rt::Ok(())
                }
                $crate::generated_encode_slice!(fixed);
            }
            impl __rt::Decode for $name {
                const MIN_OCTETS: usize = 4;
                #[inline]
                fn decode(
                    input: &mut __rt::Decoder<'_>,
                ) -> __rt::Decoded<Self> {
                    <Self as __rt::TryFrom<u32>>::try_from(input.u32()?)
                }
                $crate::generated_decode_vec!(fixed);
            }
        };
    };
}

/// The conversion from a number and the type code of an enum.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_number {
    ($name:ident, $id:literal, $idl:literal $(, $variant:ident = $ordinal:literal $enumerator:literal)*) => {
        impl __rt::TryFrom<u32> for $name {
            type Error = __rt::CdrError;
            #[inline]
            fn try_from(value: u32) -> __rt::Decoded<Self> {
                match value {
                    $($ordinal => __rt::Ok($name::$variant),)*
                    value => __rt::Err(__rt::CdrError::BadEnum {
                        name: ::core::stringify!($name),
                        value,
                    }),
                }
            }
        }
        impl __rt::FixedSize for $name {
            const FIRST_ALIGN: usize = 4;
            const ALIGN: usize = 4;
            const SIZE: usize = 4;
            #[inline]
            fn put<const SWAP: bool>(&self, out: &mut [u8]) {
                <u32 as __rt::FixedSize>::put::<SWAP>(&(*self as u32), out);
            }
            #[inline]
            fn get<const SWAP: bool>(
                input: &[u8],
            ) -> __rt::Decoded<Self> {
                let value = <u32 as __rt::FixedSize>::get::<SWAP>(input)?;
                <Self as __rt::TryFrom<u32>>::try_from(value)
            }
        }
        $crate::generated_type_definition!($name enumeration($id, $idl, &[$($enumerator),*]));
    };
}

/// `generated_enumeration` of an enum whose codec is a table.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_interpreted_enumeration {
    ($($contents:tt)*) => {
        const _: () = {
            use $crate::generated as __rt;
            $crate::generated_number!($($contents)*);
        };
    };
}

/// The type code of an alias, and an `any` of it.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_alias {
    ($function:ident, $($any:ident($value:ty),)? $id:literal, $idl:literal, $type:ty $(= $code:expr)?) => {
        #[doc = ::core::concat!(" The type code of the alias `", $idl, "`, distinct from that of the aliased type.")]
        pub fn $function() -> $crate::generated::TypeCode {
            static TYPE: $crate::generated::TypeDefinition =
                $crate::generated::TypeDefinition::alias($id, $idl, $crate::generated_type_code!($type $(, $code)?));
            TYPE.type_code()
        }
        $(
            #[doc = ::core::concat!(" An `any` with a copy of the value, whose type is the alias `", $idl, "`.")]
            pub fn $any(value: $value) -> $crate::generated::Result<$crate::generated::Any, $crate::generated::CdrError> {
                $crate::generated::Any::with_type($function(), value)
            }
        )?
    };
}

/// The type code of a sequence.
///
/// # Panics
/// If the element is a type without values.
#[must_use]
pub fn sequence_code(element: &TypeCode, bound: u32) -> TypeCode {
    TypeCode::sequence(element, bound).expect(ALLOWED)
}

/// The type code of an array.
///
/// # Panics
/// If the element is a type without values, or there is no element.
#[must_use]
pub fn array_code(element: &TypeCode, len: u32) -> TypeCode {
    TypeCode::array(element, len).expect(ALLOWED)
}

/// The type code of a native type.
///
/// # Panics
/// If the repository id or the name is invalid.
#[must_use]
pub fn native_code(id: &'static str, name: &'static str) -> TypeCode {
    TypeCode::native(id, name).expect(ALLOWED)
}

/// The compiler refuses IDL with others.
const ALLOWED: &str = "a type that IDL allows";

/// The minimum encoded size of a struct in octets: the sum of its members' sizes. An empty struct is counted as one
/// octet, since it is an element of sequences too.
#[must_use]
pub const fn min_octets(members: &[usize]) -> usize {
    let (mut sum, mut member) = (0, 0);
    while member < members.len() {
        sum += members[member];
        member += 1;
    }
    if members.is_empty() { 1 } else { sum }
}
