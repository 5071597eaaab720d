//! Random data of the soak's calls.

use fastrand::Rng;
use spandrel::types::{Any, WString};
use spandrel_cdr::CdrError;

use crate::mechanism::generated::soak::soak::{Colour, Record, Variant};

/// Characters of one to four octets in UTF-8, all of which our ORBs can encode.
const LETTERS: [char; 12] = ['a', 'Z', '0', ' ', '~', 'é', 'ß', 'Ω', 'ж', '中', '€', '𝄞'];

/// A length between 0 and `most`: short ones as often as long ones.
fn len(rng: &mut Rng, most: usize) -> usize {
    let bits = usize::BITS - most.leading_zeros();
    let limit = 1_usize << rng.u32(0..=bits);
    rng.usize(0..=limit.min(most))
}

pub(super) fn octets(rng: &mut Rng, most: usize) -> Vec<u8> {
    let mut octets = vec![0; len(rng, most)];
    rng.fill(&mut octets);
    octets
}

pub(super) fn text(rng: &mut Rng, most: usize) -> String {
    let count = len(rng, most);
    (0..count).map(|_| LETTERS[rng.usize(..LETTERS.len())]).collect()
}

pub(super) fn record(rng: &mut Rng) -> Record {
    Record {
        o: rng.u8(..),
        b: rng.bool(),
        s: rng.i16(..),
        l: rng.i32(..),
        u: rng.u64(..),
        d: rng.f64() * 1e9,
        hue: [Colour::Red, Colour::Green, Colour::Blue][rng.usize(..3)],
        text: text(rng, 40),
        wide: WString::from(text(rng, 40)),
    }
}

pub(super) fn records(rng: &mut Rng, most: usize) -> Vec<Record> {
    let count = len(rng, most);
    (0..count).map(|_| record(rng)).collect()
}

pub(super) fn variant(rng: &mut Rng) -> Variant {
    match rng.u8(..4) {
        0 => Variant::Single(record(rng)),
        1 => Variant::Text(text(rng, 100)),
        2 => Variant::Data(octets(rng, 300)),
        _ => Variant::Number { discriminator: rng.i32(4..), value: rng.f64() },
    }
}

/// A value of a random type, possibly nested.
pub(super) fn any(rng: &mut Rng) -> Result<Any, CdrError> {
    match rng.u8(..7) {
        0 => Any::new(rng.i32(..)),
        1 => Any::new(text(rng, 200)),
        2 => Any::new(records(rng, 20)),
        3 => Any::new(variant(rng)),
        4 => Any::new(octets(rng, 2_000)),
        5 => Any::new(any(rng)?),
        _ => Ok(Any::default()),
    }
}

/// The checksum of the octets of a stream.
pub(super) fn sum(octets: &[u8]) -> u64 {
    octets.iter().map(|octet| u64::from(*octet)).sum()
}
