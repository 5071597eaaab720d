//! Generated values, determined by a seed and a role; README.md states the rule for each type.

use std::fmt;

use spandrel::types::{BoundedString, BoundedVec, Char, LongDouble};

use crate::idl::{
    BinStruct, Choice, Colour, Envelope, Grid, Keywords, Kinds, Mismatch, Packed, Point, Price, Record, Rich, Scalars,
    Segment, Tree, Wish,
};

/// Generates a sequence of values: plain ones for the seeds 0 to 2, pseudorandom ones (SplitMix64) for other
/// seeds.
#[derive(Clone, Debug)]
pub struct Generator {
    seed: u32,
    state: u64,
    count: u64,
}

impl Generator {
    /// The generator of value(seed, role).
    #[must_use]
    pub fn new(seed: u32, role: u32) -> Self {
        Self { seed, state: u64::from(seed) << 32 | u64::from(role), count: u64::from(role) * 16 }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn count(&mut self) -> u64 {
        self.count += 1;
        self.count - 1
    }

    /// One of the plain values, or a value computed from the next random number.
    fn pick(&mut self, least: u64, most: u64, counted: impl Fn(u64) -> u64, random: impl Fn(u64) -> u64) -> u64 {
        match self.seed {
            0 => least,
            1 => most,
            2 => counted(self.count()),
            _ => random(self.next()),
        }
    }

    fn length(&mut self, bound: Option<u64>) -> u64 {
        let most = bound.unwrap_or(3);
        match self.seed {
            0 => 0,
            1 => most,
            2 => most.min(2),
            _ => {
                let r = self.next();
                let len = if r % 16 == 15 { 257 } else { r % 9 };
                bound.map_or(len, |bound| len.min(bound))
            }
        }
    }

    fn text(&mut self, bound: Option<u64>) -> String {
        let most = bound.unwrap_or(40);
        let len = self.pick(0, most, |count| most.min(count % 5 + 3), |r| r % (most + 1));
        let character = |r| r % 255 + 1;
        (0..len)
            .map(|_| self.pick(0, 0xff, |count| u64::from(b'a') + count % 26, character))
            .map(|octet| char::from(octet as u8))
            .collect()
    }
}

/// A type whose values can be generated and compared exactly.
pub trait Value: fmt::Debug + Sized {
    /// The generator's next value.
    fn make(generator: &mut Generator) -> Self;

    /// True if the two values are equal bit for bit.
    fn same(&self, other: &Self) -> bool;
}

/// The value of a seed and a role.
#[must_use]
pub fn value<T: Value>(seed: u32, role: u32) -> T {
    T::make(&mut Generator::new(seed, role))
}

/// Compares with the value of a seed and a role.
///
/// # Errors
/// A description of the difference.
pub fn check<T: Value>(what: &str, seen: &T, seed: u32, role: u32) -> Result<(), String> {
    same(what, seen, &value(seed, role))
}

/// Fails as [`check`], with the exception that servants raise.
pub(crate) fn require<T: Value>(what: &str, seen: &T, seed: u32, role: u32) -> Result<(), Mismatch> {
    check(what, seen, seed, role).map_err(|what| Mismatch { what })
}

/// Compares two values exactly.
///
/// # Errors
/// A description of the difference.
pub fn same<T: Value>(what: &str, seen: &T, expected: &T) -> Result<(), String> {
    if seen.same(expected) {
        return Ok(());
    }
    let cut = |value: &T| format!("{value:?}").chars().take(160).collect::<String>();
    Err(format!("{what}: expected {}, saw {}", cut(expected), cut(seen)))
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Value for $type {
            fn make(generator: &mut Generator) -> Self {
                match generator.seed {
                    0 => return Self::MIN,
                    1 => return Self::MAX,
                    2 => return generator.count() as Self,
                    _ => {}
                }
                match generator.next() & 15 {
                    0 => Self::MIN,
                    1 => Self::MAX,
                    2 => 0,
                    3 => 1,
                    4 => !0,
                    _ => generator.next() as Self,
                }
            }

            fn same(&self, other: &Self) -> bool {
                self == other
            }
        }
    )*};
}

integers!(i16 u16 i32 u32 i64 u64);

macro_rules! reals {
    ($($type:ty, $bits:ty;)*) => {$(
        impl Value for $type {
            fn make(generator: &mut Generator) -> Self {
                match generator.seed {
                    0 => return Self::MIN,
                    1 => return Self::MAX,
                    2 => return generator.count() as Self + 0.5,
                    _ => {}
                }
                match generator.next() & 15 {
                    0 => return -0.0,
                    1 => return Self::INFINITY,
                    2 => return Self::NEG_INFINITY,
                    3 => return Self::from_bits(1),
                    4 => return Self::MIN_POSITIVE,
                    _ => {}
                }
                let exponent = Self::INFINITY.to_bits();
                let mut bits = generator.next() as $bits;
                if bits & exponent == exponent {
                    bits &= !(1 << (<$bits>::BITS - 2)); // neither an infinity nor a NaN
                }
                Self::from_bits(bits)
            }

            fn same(&self, other: &Self) -> bool {
                self.to_bits() == other.to_bits()
            }
        }
    )*};
}

reals! {
    f32, u32;
    f64, u64;
}

impl Value for LongDouble {
    fn make(generator: &mut Generator) -> Self {
        let (whole, power, negative) = match generator.seed {
            0 => (u64::MAX, 16320, true),
            1 => (u64::MAX, 16320, false),
            2 => (2 * generator.count() + 1, -1, false),
            _ => {
                let whole = generator.next() | 1 << 63;
                let power = (generator.next() % 32001) as i64 - 16000;
                (whole, power, generator.next() & 1 == 1)
            }
        };
        // whole * 2^power with the leading one made implicit: 112 bits of fraction (IEEE 754 binary128).
        let top = 63 - i64::from(whole.leading_zeros());
        let exponent = (power + top + 16383) as u128;
        let fraction = (u128::from(whole) << (112 - top)) & ((1 << 112) - 1);
        Self::from_bits(u128::from(negative) << 127 | exponent << 112 | fraction)
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Value for bool {
    fn make(generator: &mut Generator) -> Self {
        generator.pick(0, 1, |count| count & 1, |r| r & 1) == 1
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

/// An octet is generated like a character: the peers in C++ use one type for both.
impl Value for u8 {
    fn make(generator: &mut Generator) -> Self {
        generator.pick(0, 0xff, |count| u64::from(b'A') + count % 26, |r| r) as u8
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Value for Char {
    fn make(generator: &mut Generator) -> Self {
        Self(u8::make(generator))
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Value for Colour {
    fn make(generator: &mut Generator) -> Self {
        const ALL: [Colour; 4] = [Colour::Red, Colour::Green, Colour::Blue, Colour::UltraViolet];
        ALL[generator.pick(0, 3, |count| count % 4, |r| r % 4) as usize]
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Value for String {
    fn make(generator: &mut Generator) -> Self {
        generator.text(None)
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl<const N: usize> Value for BoundedString<N> {
    fn make(generator: &mut Generator) -> Self {
        generator.text(Some(N as u64)).try_into().expect("the length is within the bound")
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl<T: Value> Value for Vec<T> {
    fn make(generator: &mut Generator) -> Self {
        (0..generator.length(None)).map(|_| T::make(generator)).collect()
    }

    fn same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(a, b)| a.same(b))
    }
}

impl<T: Value, const N: usize> Value for BoundedVec<T, N> {
    fn make(generator: &mut Generator) -> Self {
        let items: Vec<T> = (0..generator.length(Some(N as u64))).map(|_| T::make(generator)).collect();
        items.try_into().expect("the length is within the bound")
    }

    fn same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a.same(b))
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    fn make(generator: &mut Generator) -> Self {
        std::array::from_fn(|_| T::make(generator))
    }

    fn same(&self, other: &Self) -> bool {
        self.iter().zip(other).all(|(a, b)| a.same(b))
    }
}

macro_rules! structs {
    ($($type:ident { $($member:ident)* })*) => {$(
        impl Value for $type {
            fn make(generator: &mut Generator) -> Self {
                Self { $($member: Value::make(generator)),* }
            }

            fn same(&self, other: &Self) -> bool {
                $(self.$member.same(&other.$member))&&*
            }
        }
    )*};
}

structs! {
    BinStruct { s c l o d }
    Point { x y }
    Packed { a b c d e }
    Segment { lead from to hue open }
    Scalars { s us l ul ll ull f d b c o e h }
    Grid { lead hash cells tail corners }
    Record { who tall nickname hue blob stretch remarks aliases few tail }
    Envelope { stamp entry copies table }
    Keywords { r#type r#fn r#match r#impl self_ interface }
    Kinds { lead first cost second third costs }
    Rich { lead entry numbers hue }
}

impl Value for Price {
    fn make(generator: &mut Generator) -> Self {
        Self::from_unscaled((i32::make(generator) % 1_000_000_000).into())
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Value for Choice {
    fn make(generator: &mut Generator) -> Self {
        match Colour::make(generator) {
            Colour::Red => Self::Number(Value::make(generator)),
            discriminator @ (Colour::Green | Colour::Blue) => {
                Self::Place { discriminator, value: Value::make(generator) }
            }
            other => Self::Unlisted(other),
        }
    }

    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one.same(other),
            (Self::Place { value: one, .. }, Self::Place { value: two, .. }) => {
                self.discriminator() == other.discriminator() && one.same(two)
            }
            _ => self == other,
        }
    }
}

impl Value for Wish {
    fn make(generator: &mut Generator) -> Self {
        match u8::make(generator) & 3 {
            0 => Self::Word(Value::make(generator)),
            1 => Self::Words { discriminator: 2, value: Value::make(generator) },
            2 => Self::Words { discriminator: 3, value: Value::make(generator) },
            _ => Self::Rest { discriminator: 1000, value: Value::make(generator) },
        }
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

/// One leaf, or two levels with at most three leaves.
impl Value for Tree {
    fn make(generator: &mut Generator) -> Self {
        let leaf = |generator: &mut Generator| Self::Leaf(Value::make(generator));
        let shape = u8::make(generator);
        if shape & 1 == 1 {
            return leaf(generator);
        }
        let leaves = (0..shape >> 1 & 3).map(|_| leaf(generator)).collect();
        Self::Below(vec![Self::Below(leaves), leaf(generator)])
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}
