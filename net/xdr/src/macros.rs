//! Macros that define types with their encodings.

/// Defines an enum (4.3) of the given constants, with both traits. Other values do not decode.
///
/// ```
/// spandrel_xdr::xdr_enum! {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Color { Red = 2, Yellow = 3, Blue = 5 }
/// }
/// assert_eq!(spandrel_xdr::encode(&Color::Blue).unwrap(), [0, 0, 0, 5]);
/// let error = spandrel_xdr::decode::<Color>(&[0, 0, 0, 4]).unwrap_err();
/// assert_eq!(error.to_string(), "invalid value 4 for enum Color");
/// ```
#[macro_export]
macro_rules! xdr_enum {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$constant_meta:meta])* $constant:ident = $value:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[repr(i32)]
        $vis enum $name { $($(#[$constant_meta])* $constant = $value),+ }

        impl $crate::Encode for $name {
            const FIXED_OCTETS: ::std::option::Option<usize> = Some(4);

            #[inline]
            fn encode(&self, out: &mut $crate::XdrEncoder) -> ::std::result::Result<(), $crate::XdrError> {
                let value: i32 = match self { $(Self::$constant => $value),+ };
                $crate::Encode::encode(&value, out)
            }

            #[inline]
            fn encode_fixed(&self, octets: &mut [u8]) -> ::std::result::Result<(), $crate::XdrError> {
                let value: i32 = match self { $(Self::$constant => $value),+ };
                $crate::Encode::encode_fixed(&value, octets)
            }
        }

        impl $crate::Decode for $name {
            const MIN_OCTETS: usize = 4;
            const FIXED_OCTETS: ::std::option::Option<usize> = Some(4);

            #[inline]
            fn decode(input: &mut $crate::XdrDecoder<'_>) -> ::std::result::Result<Self, $crate::XdrError> {
                let value = <i32 as $crate::Decode>::decode(input)?;
                $(if value == $value {
                    return Ok(Self::$constant);
                })+
                Err($crate::XdrError::Enum { name: stringify!($name), value })
            }
        }
    };
}

/// Defines a struct (4.14) with both traits: its fields, one after another.
///
/// ```
/// spandrel_xdr::xdr_struct! {
///     #[derive(Debug, PartialEq)]
///     pub struct Point { pub x: i32, pub y: f64 }
/// }
/// let octets = spandrel_xdr::encode(&Point { x: -1, y: 2.0 }).unwrap();
/// assert_eq!(octets, [255, 255, 255, 255, 64, 0, 0, 0, 0, 0, 0, 0]);
/// ```
#[macro_export]
macro_rules! xdr_struct {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$field_meta])* $field_vis $field: $type),* }

        impl $crate::Encode for $name {
            const FIXED_OCTETS: ::std::option::Option<usize> =
                $crate::sum_fixed_octets(&[$(<$type as $crate::Encode>::FIXED_OCTETS),*]);

            #[inline]
            #[allow(unused_variables)] // without fields
            fn encode(&self, out: &mut $crate::XdrEncoder) -> ::std::result::Result<(), $crate::XdrError> {
                $($crate::Encode::encode(&self.$field, out)?;)*
                Ok(())
            }

            #[inline]
            #[allow(unused_variables)] // without fields
            fn encode_fixed(&self, octets: &mut [u8]) -> ::std::result::Result<(), $crate::XdrError> {
                $(let (field, octets) =
                    octets.split_at_mut(<$type as $crate::Encode>::FIXED_OCTETS.unwrap_or(0));
                $crate::Encode::encode_fixed(&self.$field, field)?;)*
                Ok(())
            }
        }

        impl $crate::Decode for $name {
            const MIN_OCTETS: usize = 0 $(+ <$type as $crate::Decode>::MIN_OCTETS)*;
            const FIXED_OCTETS: ::std::option::Option<usize> =
                $crate::sum_fixed_octets(&[$(<$type as $crate::Decode>::FIXED_OCTETS),*]);
            const ACCEPTS_ANY: bool = true $(&& <$type as $crate::Decode>::ACCEPTS_ANY)*;

            #[inline]
            #[allow(unused_variables)] // without fields
            fn decode(input: &mut $crate::XdrDecoder<'_>) -> ::std::result::Result<Self, $crate::XdrError> {
                Ok(Self { $($field: <$type as $crate::Decode>::decode(input)?),* })
            }
        }
    };
}

/// Defines a discriminated union (4.15) as an enum with both traits.
///
/// The type behind the colon is that of the discriminant: `i32`, `u32`, `bool`, or an enum that can be compared,
/// copied and printed for debugging. An arm has a named declaration, or nothing for void. A default arm, behind a
/// semicolon, keeps its discriminant as its first field. Without one, other discriminants do not decode. Two arms
/// with the same discriminant do not compile.
///
/// ```
/// use spandrel_xdr::{decode, encode, xdr_union};
///
/// xdr_union! {
///     #[derive(Clone, Debug, PartialEq)]
///     pub union Outcome: i32 {
///         Done(octets: u64) = 0,
///         Absent = 2;
///         default Failed(reason: String)
///     }
/// }
/// let failed = Outcome::Failed(13, "denied".to_owned());
/// assert_eq!(decode::<Outcome>(&encode(&failed)?)?, failed);
/// assert_eq!(encode(&Outcome::Absent)?, [0, 0, 0, 2]);
/// assert!(encode(&Outcome::Failed(2, String::new())).is_err(), "this is the discriminant of `Absent`");
/// # Ok::<(), spandrel_xdr::XdrError>(())
/// ```
///
/// ```compile_fail,E0080
/// spandrel_xdr::xdr_union! {
///     pub union Ambiguous: i32 { One = 1, Other = 1 }
/// }
/// ```
#[macro_export]
macro_rules! xdr_union {
    ($(#[$meta:meta])* $vis:vis union $name:ident: $switch:ty {
        $($(#[$arm_meta:meta])* $arm:ident $(($field:ident: $type:ty))? = $value:expr),* $(,)?
    }) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$arm_meta])* $arm $(($type))?),* }

        const _: () = $crate::assert_distinct(&[$($value as i64),*]);

        impl $crate::Encode for $name {
            fn encode(&self, out: &mut $crate::XdrEncoder) -> ::std::result::Result<(), $crate::XdrError> {
                match self {
                    $(Self::$arm $(($field))? => {
                        <$switch as $crate::Encode>::encode(&$value, out)?;
                        $($crate::Encode::encode($field, out)?;)?
                    })*
                }
                Ok(())
            }
        }

        impl $crate::Decode for $name {
            const MIN_OCTETS: usize = 4;

            fn decode(input: &mut $crate::XdrDecoder<'_>) -> ::std::result::Result<Self, $crate::XdrError> {
                let discriminant = <$switch as $crate::Decode>::decode(input)?;
                $(if discriminant == $value {
                    return Ok(Self::$arm $((<$type as $crate::Decode>::decode(input)?))?);
                })*
                let discriminant = format!("{discriminant:?}");
                Err($crate::XdrError::Discriminant { name: stringify!($name), discriminant })
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis union $name:ident: $switch:ty {
        $($(#[$arm_meta:meta])* $arm:ident $(($field:ident: $type:ty))? = $value:expr),*;
        $(#[$default_meta:meta])* default $default:ident $(($default_field:ident: $default_type:ty))? $(,)?
    }) => {
        $(#[$meta])*
        $vis enum $name {
            $($(#[$arm_meta])* $arm $(($type))?,)*
            $(#[$default_meta])* $default($switch $(, $default_type)?)
        }

        const _: () = $crate::assert_distinct(&[$($value as i64),*]);

        impl $crate::Encode for $name {
            fn encode(&self, out: &mut $crate::XdrEncoder) -> ::std::result::Result<(), $crate::XdrError> {
                match self {
                    $(Self::$arm $(($field))? => {
                        <$switch as $crate::Encode>::encode(&$value, out)?;
                        $($crate::Encode::encode($field, out)?;)?
                    })*
                    Self::$default(discriminant $(, $default_field)?) => {
                        if [$($value),*].contains(discriminant) {
                            let discriminant = format!("{discriminant:?}");
                            return Err($crate::XdrError::Discriminant { name: stringify!($name), discriminant });
                        }
                        $crate::Encode::encode(discriminant, out)?;
                        $($crate::Encode::encode($default_field, out)?;)?
                    }
                }
                Ok(())
            }
        }

        impl $crate::Decode for $name {
            const MIN_OCTETS: usize = 4;

            fn decode(input: &mut $crate::XdrDecoder<'_>) -> ::std::result::Result<Self, $crate::XdrError> {
                let discriminant = <$switch as $crate::Decode>::decode(input)?;
                $(if discriminant == $value {
                    return Ok(Self::$arm $((<$type as $crate::Decode>::decode(input)?))?);
                })*
                Ok(Self::$default(discriminant $(, <$default_type as $crate::Decode>::decode(input)?)?))
            }
        }
    };
}

/// Stops compilation if two arms of a union have the same discriminant: the second could not be decoded.
#[doc(hidden)]
pub const fn assert_distinct(discriminants: &[i64]) {
    let mut at = 0;
    while at < discriminants.len() {
        let mut other = at + 1;
        while other < discriminants.len() {
            assert!(discriminants[at] != discriminants[other], "two arms of a union have the same discriminant");
            other += 1;
        }
        at += 1;
    }
}
