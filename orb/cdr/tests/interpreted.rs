//! The interpretive engine agrees with compiled code: types of every kind, each once with code in the form of
//! the compiler's and once with a table. Both agree with the standard's table.
#![forbid(unsafe_code)]

use crate::support;

use std::fmt::Debug;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{
    BoundedString, BoundedVec, ByteOrder, CdrError, Char, Decode, Decoder, Encode, Encoder, FixedSize, Joint,
    LongDouble, decode_fixed_vec, encode_fixed_slice, interpret,
};
use support::{Model, Modelled, check, encoded, order, structs::Sample, wire};

macro_rules! samples {
    ($($type:ty => $strategy:expr;)*) => {
        $(impl Sample for $type {
            fn sample() -> BoxedStrategy<Self> { $strategy.boxed() }
        })*
    };
}

samples! {
    u16 => any::<u16>();
    u32 => any::<u32>();
    i64 => any::<i64>();
    f32 => prop::num::f32::NORMAL;
    String => prop_oneof!["[ -~]{0,9}", "[\u{1}-\u{ff}]{0,5}", "[a-z]{2048,2050}"];
    LongDouble => any::<u128>().prop_map(LongDouble::from_bits);
    BoundedString<5> => "[\u{1}-\u{ff}]{0,5}".prop_map(|text| text.try_into().expect("five"));
}

impl<T: Sample + Debug + 'static> Sample for Vec<T> {
    fn sample() -> BoxedStrategy<Self> {
        prop_oneof![9 => vec(T::sample(), 0..6), 1 => vec(T::sample(), 60..140)].boxed()
    }
}

impl<T: Sample + Debug + 'static> Sample for BoundedVec<T, 4> {
    fn sample() -> BoxedStrategy<Self> {
        vec(T::sample(), 0..5).prop_map(|items| items.try_into().expect("four")).boxed()
    }
}

impl<T: Sample + Debug + 'static, const N: usize> Sample for [T; N] {
    fn sample() -> BoxedStrategy<Self> {
        vec(T::sample(), N).prop_map(|items| items.try_into().expect("N")).boxed()
    }
}

impl Modelled for BoundedString<5> {
    fn model(&self, model: &mut Model) {
        model.string(self);
    }
}

impl<T: Modelled, const N: usize> Modelled for BoundedVec<T, N> {
    fn model(&self, model: &mut Model) {
        model.len(self.len());
        self.iter().for_each(|item| item.model(model));
    }
}

/// Declares structs in the form of the compiled engine.
macro_rules! compiled {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[derive(Clone, Debug, PartialEq)]
            pub(crate) struct $name { $(pub(crate) $field: $type),* }

            impl Encode for $name {
                fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                    $(Encode::encode(&self.$field, out)?;)*
                    Ok(())
                }
            }

            impl Decode for $name {
                const MIN_OCTETS: usize = $(<$type as Decode>::MIN_OCTETS +)* 0;

                fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                    Ok(Self { $($field: Decode::decode(input)?),* })
                }
            }
        )*
    };
}

/// Declares a struct with a table, and creates values of it.
macro_rules! interpreted {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }
        interpret!(struct $name { $($field: $type),* });

        impl Modelled for $name {
            fn model(&self, model: &mut Model) {
                $(self.$field.model(model);)*
            }
        }

        impl Sample for $name {
            fn sample() -> BoxedStrategy<Self> {
                let parts = Just(()).boxed();
                $(let parts = (parts, <$type as Sample>::sample()).boxed();)*
                interpreted!(@nest parts, (_), [$($field)*], [$($field)*])
            }
        }
    };
    // The pattern ((((), a), b), c)
    (@nest $parts:ident, ($pattern:pat), [], [$($field:ident)*]) => {
        $parts.prop_map(|$pattern| Self { $($field),* }).boxed()
    };
    (@nest $parts:ident, ($pattern:pat), [$next:ident $($rest:ident)*], $all:tt) => {
        interpreted!(@nest $parts, (($pattern, $next)), [$($rest)*], $all)
    };
}

macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident $body:tt)*) => {
        mod compiled {
            use super::*;

            compiled! { $($name $body)* }
            colour!();
        }

        mod interpreted {
            use super::*;

            $(interpreted! { $(#[$meta])* $name $body })*
            colour!();
            interpret!(enum Colour { Red, Green, Blue });
        }

        proptest! {
            #![proptest_config(support::config())]

            $(
                #[test]
                #[allow(non_snake_case, reason = "named after types")]
                fn $name(
                    value in interpreted::$name::sample(), items in vec(interpreted::$name::sample(), 0..5),
                    order in order(), octets in vec(any::<u8>(), 0..200), joint in 0..200_usize, alignment_position in 0..8_usize,
                ) {
                    check(&value);
                    check(&items);
                    agree::<interpreted::$name, compiled::$name>(&value, order);
                    agree::<Vec<interpreted::$name>, Vec<compiled::$name>>(&items, order);
                    let joints = [Joint { at: joint, alignment_position }];
                    agree_on::<interpreted::$name, compiled::$name>(&octets, order, &joints)?;
                    let sound = encoded(&items, order, 0).unwrap();
                    agree_on::<Vec<interpreted::$name>, Vec<compiled::$name>>(&sound, order, &joints)?;
                    agree_on::<Vec<interpreted::$name>, Vec<compiled::$name>>(&flipped(&sound, joint), order, &[])?;
                }
            )*
        }
    };
}

macro_rules! colour {
    () => {
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[repr(u32)]
        pub(crate) enum Colour {
            Red,
            Green,
            Blue,
        }
    };
}

impl TryFrom<u32> for compiled::Colour {
    type Error = CdrError;

    fn try_from(value: u32) -> Result<Self, CdrError> {
        [Self::Red, Self::Green, Self::Blue]
            .get(value as usize)
            .copied()
            .ok_or(CdrError::BadEnum { name: "Colour", value })
    }
}

impl Encode for compiled::Colour {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.u32(*self as u32);
        Ok(())
    }

    fn encode_slice<'a>(items: &'a [Self], out: &mut Encoder<'a>) -> Result<(), CdrError> {
        encode_fixed_slice(items, out)
    }
}

impl Decode for compiled::Colour {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Self::try_from(input.u32()?)
    }

    fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
        decode_fixed_vec(input, len)
    }
}

impl FixedSize for compiled::Colour {
    const FIRST_ALIGN: usize = 4;
    const ALIGN: usize = 4;
    const SIZE: usize = 4;

    fn put<const SWAP: bool>(&self, out: &mut [u8]) {
        (*self as u32).put::<SWAP>(out);
    }

    fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError> {
        u32::get::<SWAP>(input).and_then(Self::try_from)
    }
}

impl Modelled for interpreted::Colour {
    fn model(&self, model: &mut Model) {
        (*self as u32).model(model);
    }
}

impl Sample for interpreted::Colour {
    fn sample() -> BoxedStrategy<Self> {
        prop::sample::select(&[Self::Red, Self::Green, Self::Blue]).boxed()
    }
}

structures! {
    // The papers' struct, movable in blocks, and with Rust's own member order.
    #[repr(C)] Bin { s: i16, c: Char, l: i32, o: u8, d: f64 }
    Loose { s: i16, c: Char, l: i32, o: u8, d: f64 }
    // Without padding: lent if long.
    #[repr(C)] Dense { x: f64, y: f64, a: [u8; 8] }
    // Tail padding; no alignment after an aligned element; alignment depending on the start; no alignment.
    #[repr(C)] Tail { d: f64, o: u8 }
    #[repr(C)] Uneven { o: u8, d: f64, p: u8 }
    #[repr(C)] Brief { s: i16, l: i32 }
    #[repr(C)] Small { a: u8, b: bool, c: Char }
    // One member.
    #[repr(C)] Lone { l: i64 }
    #[repr(C, align(32))] Wide { l: i32 }
    Arrays { lone: [Lone; 3], pairs: Vec<[i32; 2]>, grid: [[i64; 2]; 2], lones: [[Lone; 2]; 2] }
    // A nested struct begins at its first member, and is shorter in CDR than in memory.
    #[repr(C)] Outer { o: u8, tail: Tail, p: u8, bins: [Bin; 3], lone: Lone }
    // Validated members.
    #[repr(C)] Checked { flag: bool, colour: Colour, flags: [[bool; 2]; 3], colours: [Colour; 5], s: i16 }
    // All kinds together.
    #[repr(C)] Mixed {
        text: String, o: u8, numbers: Vec<i64>, shorts: Vec<i16>, flag: bool, flags: Vec<bool>, octets: Vec<u8>,
        exact: LongDouble, nick: BoundedString<5>, few: BoundedVec<Colour, 4>, grid: [[u16; 3]; 2], texts: Vec<String>,
        pair: [String; 2], float: f32, id: u32,
    }
    Deep { bins: Vec<Bin>, loose: Vec<Loose>, dense: Vec<Dense>, checked: Vec<Checked>, nested: Vec<Vec<Tail>>, outer: Outer, mixed: Vec<Brief> }
}

/// Each engine decodes the other's encoding.
#[track_caller]
fn agree<I: Encode + Decode + Debug, C: Encode + Decode + Debug>(value: &I, order: ByteOrder) {
    for start in 0..8 {
        let octets = encoded(value, order, start).unwrap();
        let read = C::decode(&mut Decoder::new(&octets, wire(order)).at(start)).unwrap();
        assert_eq!(format!("{read:?}"), format!("{value:?}"));
        assert_eq!(encoded(&read, order, start).unwrap(), octets);
    }
}

/// Both decode the same from arbitrary octets, or both fail.
fn agree_on<I: Decode + Debug, C: Decode + Debug>(
    octets: &[u8],
    order: ByteOrder,
    joints: &[Joint],
) -> Result<(), TestCaseError> {
    let decoder = Decoder::new(octets, wire(order)).with_joints(joints);
    let (mut left, mut right) = (decoder.clone(), decoder);
    match (I::decode(&mut left), C::decode(&mut right)) {
        (Ok(interpreted), Ok(compiled)) => {
            prop_assert_eq!(format!("{interpreted:?}"), format!("{compiled:?}"));
            prop_assert_eq!(left.position(), right.position());
        }
        (Err(_), Err(_)) => {}
        (interpreted, compiled) => prop_assert!(false, "{interpreted:?} is not {compiled:?}"),
    }
    Ok(())
}

fn flipped(octets: &[u8], place: usize) -> Vec<u8> {
    let mut flipped = octets.to_vec();
    let len = flipped.len();
    flipped[place % len] ^= 1 << (place % 8);
    flipped
}

#[test]
fn long_sequences_without_padding_are_lent() {
    let items = vec![interpreted::Dense { x: 1.0, y: 2.0, a: [3; 8] }; 100];
    let mut out = Encoder::new(wire(ByteOrder::NATIVE));
    items.encode(&mut out).unwrap();
    assert!(out.contiguous().is_none());
}

#[test]
fn nan_keeps_its_bits() {
    let bits = 0x7ff4_dead_beef_0001;
    let value = interpreted::Tail { d: f64::from_bits(bits), o: 1 };
    for order in support::ORDERS {
        let octets = encoded(&value, order, 0).unwrap();
        let read = interpreted::Tail::decode(&mut Decoder::new(&octets, wire(order))).unwrap();
        assert_eq!(read.d.to_bits(), bits);
    }
}
