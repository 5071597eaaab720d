//! The bulk patterns: long data whose elements follow from the seed and the index.

use spandrel::types::Char;

use crate::idl::BinStruct;

/// Data of any length, computed from a seed.
pub trait Pattern: Sized {
    /// `len` elements or characters.
    fn pattern(seed: u32, len: usize) -> Self;
}

impl Pattern for Vec<u8> {
    fn pattern(seed: u32, len: usize) -> Self {
        let octet = |i: u32| seed.wrapping_mul(31).wrapping_add(i.wrapping_mul(7)).wrapping_add(i >> 8) as u8;
        (0..len as u32).map(octet).collect()
    }
}

impl Pattern for Vec<f64> {
    fn pattern(seed: u32, len: usize) -> Self {
        (0..len).map(|i| f64::from(seed) + i as f64 * 0.25).collect()
    }
}

impl Pattern for Vec<BinStruct> {
    fn pattern(seed: u32, len: usize) -> Self {
        (0..len as u32)
            .map(|i| BinStruct {
                s: i as i16,
                c: Char(i as u8),
                l: seed.wrapping_mul(1000).wrapping_add(i) as i32,
                o: (i >> 3) as u8,
                d: f64::from(i) / 8.0,
            })
            .collect()
    }
}

impl Pattern for Vec<String> {
    fn pattern(seed: u32, len: usize) -> Self {
        (0..len).map(|i| format!("s{i}-{seed}")).collect()
    }
}

impl Pattern for String {
    fn pattern(seed: u32, len: usize) -> Self {
        let letter = |i: u64| if i % 97 == 96 { 'ä' } else { char::from(b'a' + ((u64::from(seed) + i) % 26) as u8) };
        (0..len as u64).map(letter).collect()
    }
}
