//! Macros for generated types: their codecs, type codes and conversions.
//!
//! Where a macro is used, the IDL may define `Result` or `Ok`. So names of the prelude are those of the runtime, which
//! each generated module imports as `rt`, a name that no definition has.

use std::cmp::Ordering;

use spandrel_cdr::{CdrError, Decode, Decoder, Encode, Encoder, Enumeration, TypeCode};

/// `Typed`, from the expression that makes the type code; with the repository id, members may refer to the type.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_typed {
    ($type:ty $(, $id:literal)? => $made:expr) => {
        $crate::generated_typed!(@implementation $type $(, $id)? => $made);
    };
    (@implementation $type:ty $(, $id:literal)? => $made:expr) => {
        impl rt::Typed for $type {
            fn type_code() -> rt::TypeCode {
                static TYPE: rt::Defining = rt::Defining::new();
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

/// `Typed`, from data: the name of the constructor of the `TypeDefinition`, and its arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_type_definition {
    ($name:ident $kind:ident($($contents:expr),*)) => {
        impl rt::Typed for $name {
            fn type_code() -> rt::TypeCode {
                static TYPE: rt::TypeDefinition = rt::$kind($($contents),*);
                TYPE.type_code()
            }
        }
    };
}

/// The function with the type code of a member: that of its Rust type by the trait `Typed`, unless the IDL type is an
/// alias or has no type in Rust.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_type_code {
    ($typed:path; $type:ty) => {
        <$type as $typed>::type_code
    };
    ($typed:path; $type:ty, $code:expr) => {
        $code
    };
}

/// `Typed` of a struct or an exception: the name of the constructor of the `TypeDefinition`, then the members.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_typed_members {
    ($kind:ident $name:ident, $id:literal, $idl:literal $(, $type:ty as $member:literal $(= $code:expr)?)*) => {
        $crate::generated_type_definition!(
            $name $kind($id, $idl, &[$(($member, $crate::generated_type_code!(rt::Typed; $type $(, $code)?))),*])
        );
    };
}

/// `Encode` and `Decode` of the members in their order. `fixed`: the type implements `FixedSize`. An `exception` is no
/// element of sequences, so that its smallest size need not be computed.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_codec {
    ($(#[$inline:ident])? exception; $name:ident $(, $field:ident: $type:ty)*) => {
        $crate::generated_codec!(
            @implementations ($(#[$inline])?); $name $(, $field)*;
            {};
            { const MIN_OCTETS: usize = 1; }
        );
    };
    ($(#[$inline:ident])? $($fixed:ident)?; $name:ident $(, $field:ident: $type:ty)*) => {
        $crate::generated_codec!(
            @implementations ($(#[$inline])?); $name $(, $field)*;
            { $($crate::generated_encode_slice!($fixed);)? };
            {
                const MIN_OCTETS: usize = $crate::generated_min_octets!($($type),*);
                $($crate::generated_decode_vec!($fixed);)?
            }
        );
    };
    (
        @implementations ($(#[$inline:ident])?); $name:ident $(, $field:ident)*;
        { $($encode:tt)* }; { $($decode:tt)* }
    ) => {
        impl rt::Encode for $name {
            $(#[$inline])?
            fn encode<'a>(&'a self, _out: &mut rt::Encoder<'a>) -> rt::Encoded {
                $(rt::encode(&self.$field, _out)?;)*
                rt::Ok(())
            }
            $($encode)*
        }
        impl rt::Decode for $name {
            $(#[$inline])?
            fn decode(_input: rt::Input) -> rt::Decoded<Self> {
                rt::Ok(Self { $($field: rt::decode(_input)?),* })
            }
            $($decode)*
        }
    };
}

/// The smallest size of a struct with members of these types, of which a tuple has eight at most.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_min_octets {
    (
        $a:ty $(, $b:ty $(, $c:ty $(, $d:ty $(, $e:ty $(, $f:ty $(, $g:ty $(, $h:ty)?)?)?)?)?)?)?
    ) => {
        <($a, $($b, $($c, $($d, $($e, $($f, $($g, $($h,)?)?)?)?)?)?)?) as rt::Decode>::MIN_OCTETS
    };
    ($($type:ty),*) => {
        rt::min_octets(&[$(<$type as rt::Decode>::MIN_OCTETS),*])
    };
}

/// `encode_slice` of a type that implements `FixedSize`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_encode_slice {
    (fixed) => {
        #[inline]
        fn encode_slice<'a>(items: &'a [Self], out: &mut rt::Encoder<'a>) -> rt::Encoded {
            rt::encode_fixed_slice(items, out)
        }
    };
}

/// `decode_vec` of a type that implements `FixedSize`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_decode_vec {
    (fixed) => {
        #[inline]
        fn decode_vec(input: rt::Input, len: usize) -> rt::Decoded<rt::Vec<Self>> {
            rt::decode_fixed_vec(input, len)
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
        $crate::generated_codec!($(#[$inline])? $($fixed)?; $name $(, $field: $type)*);
        $crate::generated_typed_members!(structure $name, $id, $idl $(, $type as $member $(= $code)?)*);
    };
}

/// The type code of a struct without a codec, or with one beside it.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_local_structure {
    ($name:ident, $id:literal, $idl:literal $(, $field:ident: $type:ty as $member:literal $(= $code:expr)?)*) => {
        $crate::generated_typed_members!(structure $name, $id, $idl $(, $type as $member $(= $code)?)*);
    };
}

/// The codec, the type code, `Clone`, `PartialEq`, `Debug`, `Display` and `Error` of an exception.
/// `generated_description_and_type` has the forms.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_exception {
    (
        $(#[$inline:ident])? $form:ident $name:ident, $id:literal, $idl:literal
        $(, $field:ident: $type:ty as $member:literal $(= $code:expr)?)*
    ) => {
        $crate::generated_codec!($(#[$inline])? exception; $name $(, $field: $type)*);
        impl rt::Clone for $name {
            #[inline]
            fn clone(&self) -> Self {
                Self { $($field: rt::clone(&self.$field)),* }
            }
        }
        impl rt::PartialEq for $name {
            #[inline]
            fn eq(&self, _other: &Self) -> bool {
                true $(&& self.$field == _other.$field)*
            }
        }
        $crate::generated_exception_debug!($form $name $(, $field)*);
        impl rt::UserException for $name {
            const REPOSITORY_ID: &'static str = $id;
        }
        $crate::generated_description_and_type!(
            $form $name, $id, $idl $(, $field: $type as $member $(= $code)?)*
        );
    };
}

/// `Debug` of an exception, unless it has members without.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_exception_debug {
    (opaque $name:ident $(, $field:ident)*) => {};
    ($form:ident $name:ident $(, $field:ident)*) => {
        impl rt::Debug for $name {
            #[inline]
            fn fmt(&self, f: rt::Format) -> rt::Formatted {
                rt::debug_exception(f, ::core::stringify!($name), &[$((::core::stringify!($field), &self.$field)),*])
            }
        }
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
        impl rt::Display for $name {
            fn fmt(&self, f: rt::Format) -> rt::Formatted {
                $crate::generated_description!($form self, f, $idl $(, $field $member)*)
            }
        }
        impl rt::Error for $name {}
        $crate::generated_typed_members!(exception $name, $id, $idl $(, $type as $member $(= $code)?)*);
    };
}

/// `generated_exception` without a codec, or with one beside it.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_local_exception {
    ($($contents:tt)*) => {
        $crate::generated_description_and_type!($($contents)*);
    };
}

/// Writes an exception in its form.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_description {
    (members $exception:expr, $f:expr, $idl:literal $(, $field:ident $member:literal)*) => {
        rt::describe_exception($f, $idl, &[$(($member, &$exception.$field)),*])
    };
    (text $exception:expr, $f:expr, $idl:literal, $field:ident $member:literal) => {
        rt::describe_exception_text($f, $idl, &$exception.$field)
    };
    (opaque $exception:expr, $f:expr, $idl:literal $(, $field:ident $member:literal)*) => {
        $f.write_str($idl)
    };
}

/// The conversion from a number, the order, the codec and the type code of an enum.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_enumeration {
    ($name:ident, $id:literal, $idl:literal $(, $variant:ident = $ordinal:literal $enumerator:literal)*) => {
        $crate::generated_number!($name, $id, $idl $(, $variant = $ordinal $enumerator)*);
        impl rt::Encode for $name {
            #[inline]
            fn encode<'a>(&'a self, out: &mut rt::Encoder<'a>) -> rt::Encoded {
                rt::encode_enumerator(*self, out)
            }
            $crate::generated_encode_slice!(fixed);
        }
        impl rt::CompiledEnumeration for $name {}
    };
}

/// The conversion from a number, the order and the type code of an enum.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_number {
    ($name:ident, $id:literal, $idl:literal $(, $variant:ident = $ordinal:literal $enumerator:literal)*) => {
        impl rt::Enumeration for $name {
            const NAME: &'static str = ::core::stringify!($name);
            #[inline]
            fn ordinal(self) -> u32 {
                self as u32
            }
            #[inline]
            fn from_ordinal(ordinal: u32) -> rt::Option<Self> {
                rt::Some(match ordinal {
                    $($ordinal => Self::$variant,)*
                    _ => return rt::None,
                })
            }
        }
        $crate::generated_partial_order!($name);
        impl rt::Ord for $name {
            #[inline]
            fn cmp(&self, other: &Self) -> rt::Ordering {
                rt::compare_enumerators(*self, *other)
            }
        }
        impl rt::TryFrom<u32> for $name {
            type Error = rt::CdrError;
            #[inline]
            fn try_from(value: u32) -> rt::Decoded<Self> {
                rt::enumerator(value)
            }
        }
        $crate::generated_type_definition!($name enumeration($id, $idl, &[$($enumerator),*]));
    };
}

/// `Eq` of a type whose `PartialEq` compares all members.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_equal {
    ($name:ident) => {
        impl rt::Eq for $name {}
    };
}

/// `Eq`, `PartialOrd` and `Ord` by these members, of which there are at most twelve.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_ordered {
    ($name:ident $(, $field:ident)*) => {
        $crate::generated_partial_order!($name);
        impl rt::Ord for $name {
            #[inline]
            fn cmp(&self, _other: &Self) -> rt::Ordering {
                rt::Ord::cmp(&($(&self.$field,)*), &($(&_other.$field,)*))
            }
        }
    };
}

/// `Eq` and `PartialOrd` of a type with `Ord`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_partial_order {
    ($name:ident) => {
        impl rt::Eq for $name {}
        impl rt::PartialOrd for $name {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> rt::PartialOrdering {
                rt::partial_order(self, other)
            }
        }
    };
}

/// `generated_enumeration` of an enum whose codec is a table.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_interpreted_enumeration {
    ($($contents:tt)*) => {
        $crate::generated_number!($($contents)*);
    };
}

/// The type code of an alias, and an `any` of it.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_alias {
    (
        @definition $runtime:tt $function:ident, $($any:ident($value:ty),)? $id:literal, $idl:literal,
        $type:ty $(= $code:expr)?
    ) => {
        $crate::generated_alias!(@function $runtime $function, $id, $idl, $type $(= $code)?);
        $($crate::generated_alias!(@any $runtime $function, $any($value), $idl);)?
    };
    (@function ($($rt:tt)+) $function:ident, $id:literal, $idl:literal, $type:ty $(= $code:expr)?) => {
        #[doc = ::core::concat!(" The type code of the alias `", $idl, "`, distinct from that of the aliased type.")]
        pub fn $function() -> $($rt)+::TypeCode {
            static TYPE: $($rt)+::TypeDefinition = $($rt)+::alias(
                $id,
                $idl,
                $crate::generated_type_code!($($rt)+::Typed; $type $(, $code)?),
            );
            TYPE.type_code()
        }
    };
    (@any ($($rt:tt)+) $function:ident, $any:ident($value:ty), $idl:literal) => {
        #[doc = ::core::concat!(" An `any` with a copy of the value, whose type is the alias `", $idl, "`.")]
        pub fn $any(value: $value) -> $($rt)+::Result<$($rt)+::Any, $($rt)+::CdrError> {
            $($rt)+::Any::with_type($function(), value)
        }
    };
    ($($contents:tt)*) => {
        $crate::generated_alias!(@definition (rt) $($contents)*);
    };
}

/// `generated_alias` outside of modules, where the runtime is not imported.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_root_alias {
    ($($contents:tt)*) => {
        $crate::generated_alias!(@definition ($crate::generated) $($contents)*);
    };
}

/// Encodes a member.
///
/// # Errors
/// As [`Encode::encode`].
#[inline]
pub fn encode<'a, T: Encode>(value: &'a T, out: &mut Encoder<'a>) -> Result<(), CdrError> {
    value.encode(out)
}

/// Encodes an enum.
///
/// # Errors
/// None.
#[inline]
pub fn encode_enumerator<E: Enumeration>(value: E, out: &mut Encoder<'_>) -> Result<(), CdrError> {
    out.u32(value.ordinal());
    Ok(())
}

/// Decodes a member.
///
/// # Errors
/// As [`Decode::decode`].
#[inline]
pub fn decode<T: Decode>(input: &mut Decoder<'_>) -> Result<T, CdrError> {
    T::decode(input)
}

/// The order of two values, for `PartialOrd`.
#[inline]
pub fn partial_order<T: Ord>(one: &T, other: &T) -> Option<Ordering> {
    Some(one.cmp(other))
}

/// The order of two enumerators by their ordinals.
#[inline]
pub fn compare_enumerators<E: Enumeration>(one: E, other: E) -> Ordering {
    one.ordinal().cmp(&other.ordinal())
}

/// A copy of a member.
#[inline]
pub fn clone<T: Clone>(value: &T) -> T {
    value.clone()
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
