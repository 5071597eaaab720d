//! Straight-line code of fixed-size structs against the same values coded member by member.

use std::fmt::Debug;

use spandrel::types::Char;
use spandrel_cdr::{ByteOrder, Decode, Decoder, Encode, Encoder, FixedSize, Wire};

use super::corners::sizes::{Leaf, Mixed, Sixty, SixtyFive, SixtyFour};
use super::idl::mapping::{BinStruct, Colour, Point, Price, Priced, Segment};
use super::padded::padded;

/// Encodes and decodes sequences at every offset: the slice form gives the same octets as its elements one by
/// one, and the same values back.
#[track_caller]
fn check<T: Encode + Decode + Debug + PartialEq>(value: impl Fn(u8) -> T) {
    let values: Vec<T> = (1..6).map(value).collect();
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let wire = Wire { order, ..Wire::default() };
        for start in 0..16 {
            let mut slice = Encoder::new(wire);
            let mut single = Encoder::new(wire);
            for out in [&mut slice, &mut single] {
                out.octets(&vec![0xaa; start]);
            }
            values.encode(&mut slice).expect("a sequence");
            single.len(values.len()).expect("a length");
            values.iter().try_for_each(|value| value.encode(&mut single)).expect("elements");
            let octets = slice.to_vec();
            assert_eq!(octets, single.to_vec(), "{order:?} from {start}");

            let mut input = Decoder::new(&octets, wire);
            input.take(start).expect("the octets before");
            assert_eq!(
                Vec::<T>::decode(&mut input),
                Ok(values.iter().map(Clone::clone).collect()),
                "{order:?} from {start}"
            );
            assert_eq!(input.remaining(), 0);
        }
    }
}

fn leaf(n: u8) -> Leaf {
    Leaf { a: n, b: i16::from(n) * -300 }
}

fn sixty_four(n: u8) -> SixtyFour {
    SixtyFour {
        s: Sixty { pairs: std::array::from_fn(|at| leaf(n.wrapping_add(at as u8))) },
        two: [leaf(n), leaf(n + 1)],
    }
}

#[test]
fn both_codecs_agree_at_every_offset() {
    check(|n| BinStruct { s: -i16::from(n), c: Char(n), l: i32::from(n) << 20, o: n, d: f64::from(n) / 7.0 });
    check(|n| Point { x: i16::from(n) << 7, y: -f64::from(n) });
    check(|n| Segment {
        lead: n,
        ends: [Point { x: i16::from(n), y: 0.1 }, Point { x: -2, y: f64::from(n) }],
        hue: Colour::UltraViolet,
        open: n % 2 == 0,
    });
    check(leaf);
    check(sixty_four);
    check(|n| SixtyFive { s: sixty_four(n), last: n });
    check(|n| Mixed { g: [[leaf(n), leaf(n + 1)], [leaf(n + 2), leaf(n + 3)]], b: true, d: f64::from(n), c: Char(n) });
    check(|n| Priced {
        lead: n,
        asked: Price::from_unscaled(i128::from(n) * -101),
        more: [Price::MAX, Price::from_unscaled(n.into())],
        weight: f64::from(n),
    });
    check(|n| if n % 2 == 0 { Colour::Green } else { Colour::Red });
}

#[test]
fn padding_is_zero_at_every_offset() {
    let mut octets = [0xff; BinStruct::SIZE];
    BinStruct { s: -1, c: Char(0xff), l: -1, o: 0xff, d: f64::from_bits(u64::MAX) }.put::<false>(&mut octets);
    let zeros: Vec<usize> = (0..octets.len()).filter(|&at| octets[at] == 0).collect();
    assert_eq!(zeros, [3, 9, 10, 11, 12, 13, 14, 15]);
}

#[test]
fn an_unknown_enumerator_is_rejected_by_both_codecs() {
    let segment = Segment { hue: Colour::UltraViolet, ..Segment::default() };
    let mut octets = vec![0; Segment::SIZE];
    segment.put::<false>(&mut octets);
    assert_eq!(Segment::get::<false>(&octets), Ok(segment));
    let hue = octets.iter().rposition(|&octet| octet == 2).expect("the ordinal");
    octets[hue] = 3;
    assert!(Segment::get::<false>(&octets).is_err());
    assert!(Segment::decode(&mut Decoder::new(&octets, Wire::default())).is_err());
}

#[test]
fn only_small_structs_have_straight_line_code() {
    fn size<T: FixedSize>() -> usize {
        T::SIZE
    }
    assert_eq!(size::<SixtyFour>(), 128);
    assert_eq!(size::<Priced>(), 1 + 3 * 4 + 3 + 8);
    // `SixtyFive` has none: this would not compile.
    assert_eq!(SixtyFive::MIN_OCTETS, SixtyFour::MIN_OCTETS + 1);
}

#[test]
fn structs_with_explicit_padding_are_coded_like_those_without() {
    check(|n| padded::BinStruct {
        s: i16::from(n) * -7,
        c: Char(n),
        l: i32::from(n) << 20,
        o: n,
        d: f64::from(n) / 3.0,
        ..Default::default()
    });
    let hue = |n: u8| padded::Hue::try_from(u32::from(n) % 3).expect("one of three");
    let inner = |n: u8| padded::Inner { first: f64::from(n), paint: hue(n), ..Default::default() };
    check(inner);
    check(|n| padded::Outer { core: inner(n), is_set: n.is_multiple_of(2), numbers: [n.into(), -i32::from(n)] });
    check(|n| padded::Loose { first: n, second: i32::from(n) << 9, last: !n });
}

#[test]
fn long_sequences_with_explicit_padding_are_lent_both_ways() {
    let values: Vec<padded::BinStruct> =
        (0..500).map(|n| padded::BinStruct { s: n, c: Char(3), d: f64::from(n), ..Default::default() }).collect();
    let mut out = Encoder::new(Wire::default());
    out.octets(&[0; 4]);
    values.encode(&mut out).expect("a sequence");
    assert_eq!(out.parts()[1].as_ptr(), values.as_ptr().cast());
    let octets = out.to_vec();
    // Aligned memory, like a message's body.
    let mut words = vec![0u64; octets.len().div_ceil(8)];
    words.iter_mut().zip(octets.chunks(8)).for_each(|(word, octets)| {
        let mut filled = [0; 8];
        filled[..octets.len()].copy_from_slice(octets);
        *word = u64::from_ne_bytes(filled);
    });
    let memory: &[u8] = spandrel_cdr::zerocopy::IntoBytes::as_bytes(words.as_slice());
    let mut input = Decoder::new(memory, Wire::default()).at(4);
    let lent = padded::BinStruct::lend(&mut input).expect("the encoded slice");
    assert_eq!(*lent, *values);
    assert!(matches!(lent, std::borrow::Cow::Borrowed(_)));
}
