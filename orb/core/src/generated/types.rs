//! Macros for generated types: their codecs, type codes and conversions.
//!
//! Names of the prelude are full paths: the IDL may define `Result` or `Ok` where a macro is used.

/// `Typed`, from the expression that makes the type code; with the repository id, members may refer to the type.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_typed {
    ($type:ty => $made:expr) => {
        impl $crate::generated::Typed for $type {
            fn type_code() -> $crate::generated::TypeCode {
                static TYPE: $crate::generated::Defining = $crate::generated::Defining::new();
                TYPE.type_code(|| $made)
            }
        }
    };
    ($type:ty, $id:literal => $made:expr) => {
        impl $crate::generated::Typed for $type {
            fn type_code() -> $crate::generated::TypeCode {
                static TYPE: $crate::generated::Defining = $crate::generated::Defining::new();
                TYPE.recursive($id, || $made)
            }
        }
    };
}

/// The type code of a member: that of its Rust type, unless the IDL type is an alias or has no type in Rust.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_type_code {
    ($type:ty) => {
        <$type as $crate::generated::Typed>::type_code()
    };
    ($type:ty, $code:expr) => {
        $code
    };
}

/// `Typed` of a struct or an exception: the name of the constructor in `TypeCode`, then the members.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_typed_members {
    ($kind:ident $name:ident, $id:literal, $idl:literal $(, $type:ty as $member:literal $(= $code:expr)?)*) => {
        $crate::generated_typed!($name, $id => $crate::generated::TypeCode::$kind(
            $id,
            $idl,
            &[$(($member, $crate::generated_type_code!($type $(, $code)?))),*] as &[(&str, $crate::generated::TypeCode)],
        ));
    };
}

/// `Encode` and `Decode` of the members in their order. `fixed`: the type implements `FixedSize`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_codec {
    ($(#[$inline:ident])? $($fixed:ident)?; $name:ident $(, $field:ident: $type:ty)*) => {
        impl $crate::generated::Encode for $name {
            $(#[$inline])?
            fn encode<'a>(
                &'a self,
                _out: &mut $crate::generated::Encoder<'a>,
            ) -> ::core::result::Result<(), $crate::generated::CdrError> {
                $($crate::generated::Encode::encode(&self.$field, _out)?;)*
                ::core::result::Result::Ok(())
            }
            $($crate::generated_encode_slice!($fixed);)?
        }
        impl $crate::generated::Decode for $name {
            const MIN_OCTETS: usize =
                $crate::generated::min_octets(&[$(<$type as $crate::generated::Decode>::MIN_OCTETS),*]);
            $(#[$inline])?
            fn decode(
                _input: &mut $crate::generated::Decoder<'_>,
            ) -> ::core::result::Result<Self, $crate::generated::CdrError> {
                ::core::result::Result::Ok(Self { $($field: $crate::generated::Decode::decode(_input)?),* })
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
        fn encode_slice<'a>(
            items: &'a [Self],
            out: &mut $crate::generated::Encoder<'a>,
        ) -> ::core::result::Result<(), $crate::generated::CdrError> {
            $crate::generated::encode_fixed_slice(items, out)
        }
    };
}

/// `decode_vec` of a type that implements `FixedSize`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_decode_vec {
    (fixed) => {
        #[inline]
        fn decode_vec(
            input: &mut $crate::generated::Decoder<'_>,
            len: usize,
        ) -> ::core::result::Result<::std::vec::Vec<Self>, $crate::generated::CdrError> {
            $crate::generated::decode_fixed_vec(input, len)
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

/// The codec, the type code, `Display` and `Error` of an exception. `generated_local_exception` has the forms.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_exception {
    (
        $(#[$inline:ident])? $form:ident $name:ident, $id:literal, $idl:literal
        $(, $field:ident: $type:ty as $member:literal $(= $code:expr)?)*
    ) => {
        $crate::generated_codec!($(#[$inline])?; $name $(, $field: $type)*);
        impl $crate::generated::UserException for $name {
            const REPOSITORY_ID: &'static str = $id;
        }
        $crate::generated_local_exception!(
            $form $name, $id, $idl $(, $field: $type as $member $(= $code)?)*
        );
    };
}

/// The type code, `Display` and `Error` of an exception. Its text lists the `members`, or is the only member, a
/// `text`, or is the name of an `opaque` exception, which has members without `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_local_exception {
    (
        $form:ident $name:ident, $id:literal, $idl:literal
        $(, $field:ident: $type:ty as $member:literal $(= $code:expr)?)*
    ) => {
        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                $crate::generated_description!($form self, f, $idl $(, $field $member)*)
            }
        }
        impl ::core::error::Error for $name {}
        $crate::generated_typed_members!(exception $name, $id, $idl $(, $type as $member $(= $code)?)*);
    };
}

/// Writes an exception in its form.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_description {
    (members $exception:expr, $f:expr, $idl:literal $(, $field:ident $member:literal)*) => {
        $crate::generated::describe_exception($f, $idl, &[$(($member, &$exception.$field)),*])
    };
    (text $exception:expr, $f:expr, $idl:literal, $field:ident $member:literal) => {
        $crate::generated::describe_exception_text($f, $idl, &$exception.$field)
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
        $crate::generated_interpreted_enumeration!($name, $id, $idl $(, $variant = $ordinal $enumerator)*);
        impl $crate::generated::Encode for $name {
            #[inline]
            fn encode<'a>(
                &'a self,
                out: &mut $crate::generated::Encoder<'a>,
            ) -> ::core::result::Result<(), $crate::generated::CdrError> {
                out.u32(*self as u32);
                ::core::result::Result::Ok(())
            }
            $crate::generated_encode_slice!(fixed);
        }
        impl $crate::generated::Decode for $name {
            const MIN_OCTETS: usize = 4;
            #[inline]
            fn decode(
                input: &mut $crate::generated::Decoder<'_>,
            ) -> ::core::result::Result<Self, $crate::generated::CdrError> {
                <Self as ::core::convert::TryFrom<u32>>::try_from(input.u32()?)
            }
            $crate::generated_decode_vec!(fixed);
        }
    };
}

/// The conversion from a number and the type code of an enum whose codec is a table.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_interpreted_enumeration {
    ($name:ident, $id:literal, $idl:literal $(, $variant:ident = $ordinal:literal $enumerator:literal)*) => {
        impl ::core::convert::TryFrom<u32> for $name {
            type Error = $crate::generated::CdrError;
            #[inline]
            fn try_from(value: u32) -> ::core::result::Result<Self, $crate::generated::CdrError> {
                match value {
                    $($ordinal => ::core::result::Result::Ok($name::$variant),)*
                    value => ::core::result::Result::Err($crate::generated::CdrError::BadEnum {
                        name: ::core::stringify!($name),
                        value,
                    }),
                }
            }
        }
        impl $crate::generated::FixedSize for $name {
            const FIRST_ALIGN: usize = 4;
            const ALIGN: usize = 4;
            const SIZE: usize = 4;
            #[inline]
            fn put<const SWAP: bool>(&self, out: &mut [u8]) {
                <u32 as $crate::generated::FixedSize>::put::<SWAP>(&(*self as u32), out);
            }
            #[inline]
            fn get<const SWAP: bool>(
                input: &[u8],
            ) -> ::core::result::Result<Self, $crate::generated::CdrError> {
                let value = <u32 as $crate::generated::FixedSize>::get::<SWAP>(input)?;
                <Self as ::core::convert::TryFrom<u32>>::try_from(value)
            }
        }
        $crate::generated_typed!($name => $crate::generated::TypeCode::enumeration($id, $idl, &[$($enumerator),*]));
    };
}

/// The type code of an alias, and an `any` of it.
#[doc(hidden)]
#[macro_export]
macro_rules! generated_alias {
    ($function:ident, $($any:ident($value:ty),)? $id:literal, $idl:literal, $type:ty $(= $code:expr)?) => {
        #[doc = ::core::concat!(" The type code of the alias `", $idl, "`, distinct from that of the aliased type.")]
        pub fn $function() -> $crate::generated::TypeCode {
            static TYPE: $crate::generated::Defining = $crate::generated::Defining::new();
            TYPE.type_code(|| {
                $crate::generated::TypeCode::alias($id, $idl, &$crate::generated_type_code!($type $(, $code)?))
            })
        }
        $(
            #[doc = ::core::concat!(" An `any` with a copy of the value, whose type is the alias `", $idl, "`.")]
            #[inline]
            pub fn $any(
                value: $value,
            ) -> ::core::result::Result<$crate::generated::Any, $crate::generated::CdrError> {
                $crate::generated::Any::with_type($function(), value)
            }
        )?
    };
}

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
