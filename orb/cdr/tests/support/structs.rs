//! Structs written by hand in the form in which generated code has them.

use proptest::prelude::*;
use spandrel_cdr::{CdrError, Char, Decode, Decoder, Encode, Encoder, FixedSize, decode_fixed_vec, encode_fixed_slice};

use super::{Model, Modelled};

/// A struct of fixed layout: its members' offsets from an aligned start, and its padding.
macro_rules! fixed {
    ($name:ident: first $first:literal, align $align:literal, size $size:literal {
        $($field:ident: $type:ty = $at:literal;)*
    } pad $($gap:expr),*) => {
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }

        impl Encode for $name {
            fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                $(Encode::encode(&self.$field, out)?;)*
                Ok(())
            }

            fn encode_slice<'a>(items: &'a [Self], out: &mut Encoder<'a>) -> Result<(), CdrError> {
                encode_fixed_slice(items, out)
            }
        }

        impl Decode for $name {
            const MIN_OCTETS: usize = $(size_of::<$type>() +)* 0;

            fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                Ok(Self { $($field: Decode::decode(input)?),* })
            }

            fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
                decode_fixed_vec(input, len)
            }
        }

        impl FixedSize for $name {
            const FIRST_ALIGN: usize = $first;
            const ALIGN: usize = $align;
            const SIZE: usize = $size;

            #[inline]
            fn put<const SWAP: bool>(&self, out: &mut [u8]) {
                let out: &mut [u8; $size] = out.try_into().expect("SIZE octets");
                $(out[$gap].fill(0);)*
                $(FixedSize::put::<SWAP>(&self.$field, &mut out[$at..$at + <$type as FixedSize>::SIZE]);)*
            }

            #[inline]
            fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError> {
                let input: &[u8; $size] = input.try_into().expect("SIZE octets");
                Ok(Self { $($field: FixedSize::get::<SWAP>(&input[$at..$at + <$type as FixedSize>::SIZE])?),* })
            }
        }

        impl Modelled for $name {
            fn model(&self, model: &mut Model) {
                $(self.$field.model(model);)*
            }
        }

        impl Arbitrary for $name {
            type Parameters = ();
            type Strategy = BoxedStrategy<Self>;

            fn arbitrary_with((): ()) -> Self::Strategy {
                ($(<$type as Sample>::sample(),)*).prop_map(|($($field,)*)| Self { $($field),* }).boxed()
            }
        }
    };
}

/// Values of members; numbers without NaN.
pub(crate) trait Sample: Sized {
    fn sample() -> BoxedStrategy<Self>;
}

macro_rules! sample {
    ($($type:ty => $strategy:expr;)*) => {
        $(impl Sample for $type {
            fn sample() -> BoxedStrategy<Self> { $strategy.boxed() }
        })*
    };
}

sample! {
    i16 => any::<i16>();
    i32 => any::<i32>();
    u64 => any::<u64>();
    u8 => any::<u8>();
    bool => any::<bool>();
    Char => any::<u8>().prop_map(Char);
    f64 => prop::num::f64::NORMAL | prop::num::f64::ZERO;
    BinStruct => any::<BinStruct>();
}

// The papers' struct: every element after an aligned one is aligned.
fixed!(BinStruct: first 2, align 8, size 24 {
    s: i16 = 0; c: Char = 2; l: i32 = 4; o: u8 = 8; d: f64 = 16;
} pad 3..4, 9..16);

// Tail padding: seven octets between elements, none after the last.
fixed!(Tailed: first 8, align 8, size 9 { d: f64 = 0; o: u8 = 8; } pad);

// No element after an aligned one is aligned: coded by field throughout.
fixed!(Ragged: first 1, align 8, size 17 { o: u8 = 0; d: f64 = 8; p: u8 = 16; } pad 1..8);

// Aligned or not, depending on the start.
fixed!(Short: first 2, align 4, size 8 { s: i16 = 0; l: i32 = 4; } pad 2..4);

// Without alignment: a block at any start.
fixed!(Octets: first 1, align 1, size 3 { a: u8 = 0; b: bool = 1; c: Char = 2; } pad);

// A nested struct does not align as a whole: its first member does.
fixed!(Nested: first 1, align 8, size 32 { tag: u8 = 0; inner: Outer = 8; } pad 1..8);

// The content of `Nested`: aligned by its first member.
fixed!(Outer: first 8, align 8, size 24 { id: u64 = 0; l: i32 = 8; s: i16 = 12; o: u8 = 14; q: u64 = 16; } pad 15..16);

impl Sample for Outer {
    fn sample() -> BoxedStrategy<Self> {
        any::<Self>().boxed()
    }
}
