//! Structs with explicit padding have the same encoding as those without, and are lent.

use std::borrow::Cow;

use spandrel_cdr::{
    ByteOrder, CdrError, Decode, Decoder, Encode, Encoder, FixedSize, GiopVersion, Pad, Wire, decode_fixed_vec,
    encode_padded_slice, lend_padded,
};
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// A struct in the form of the IDL compiler's output.
#[derive(Clone, Copy, Debug, PartialEq, Immutable, IntoBytes, KnownLayout, TryFromBytes)]
#[repr(C)]
struct Sample {
    number: u64,
    yes: bool,
    pad_9: Pad<1>,
    small: i16,
    pad_12: Pad<4>,
}

impl Encode for Sample {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.number.encode(out)?;
        self.yes.encode(out)?;
        self.small.encode(out)
    }

    fn encode_slice<'a>(items: &'a [Self], out: &mut Encoder<'a>) -> Result<(), CdrError> {
        encode_padded_slice(items, out)
    }
}

impl Decode for Sample {
    const MIN_OCTETS: usize = 11;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self {
            number: Decode::decode(input)?,
            yes: Decode::decode(input)?,
            pad_9: Pad::ZERO,
            small: Decode::decode(input)?,
            pad_12: Pad::ZERO,
        })
    }

    fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
        decode_fixed_vec(input, len)
    }

    fn lend<'m>(input: &mut Decoder<'m>) -> Result<Cow<'m, [Self]>, CdrError> {
        lend_padded(input)
    }
}

impl FixedSize for Sample {
    const FIRST_ALIGN: usize = 8;
    const ALIGN: usize = 8;
    const SIZE: usize = 12;

    fn put<const SWAP: bool>(&self, out: &mut [u8]) {
        self.number.put::<SWAP>(&mut out[0..8]);
        self.yes.put::<SWAP>(&mut out[8..9]);
        out[9..10].fill(0);
        self.small.put::<SWAP>(&mut out[10..12]);
    }

    fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError> {
        Ok(Self {
            number: FixedSize::get::<SWAP>(&input[0..8])?,
            yes: FixedSize::get::<SWAP>(&input[8..9])?,
            pad_9: Pad::ZERO,
            small: FixedSize::get::<SWAP>(&input[10..12])?,
            pad_12: Pad::ZERO,
        })
    }
}

fn samples(count: usize) -> Vec<Sample> {
    let one = |n: usize| Sample {
        number: n as u64 * 7,
        yes: n.is_multiple_of(2),
        pad_9: Pad::ZERO,
        small: n as i16,
        pad_12: Pad::ZERO,
    };
    (0..count).map(one).collect()
}

/// The encoding member by member.
fn by_field(items: &[Sample], before: usize, wire: Wire) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    out.octets(&vec![7; before]);
    out.len(items.len()).unwrap();
    for item in items {
        item.encode(&mut out).unwrap();
    }
    out.to_vec()
}

#[test]
fn the_octets_equal_those_of_coding_by_field_at_every_offset() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let wire = Wire::new(order, GiopVersion::V1_2);
        for (before, count) in (0..9).flat_map(|before| [0, 1, 2, 3, 500].map(|count| (before, count))) {
            let items = samples(count);
            let mut out = Encoder::new(wire);
            out.octets(&vec![7; before]);
            items.encode(&mut out).unwrap();
            let octets = out.to_vec();
            assert_eq!(octets, by_field(&items, before, wire), "{count} after {before} octets, {order:?}");
            let mut input = Decoder::new(&octets, wire).at(before);
            assert_eq!(Sample::lend(&mut input).unwrap(), items, "{count} after {before} octets, {order:?}");
            assert_eq!(input.remaining(), 0);
        }
    }
}

#[test]
fn long_sequences_are_lent_to_the_encoder() {
    let items = samples(500);
    let mut out = Encoder::new(Wire::default());
    out.octets(&[7; 4]);
    items.encode(&mut out).unwrap();
    let lent = out.parts()[1].as_ptr();
    assert_eq!(lent, items.as_bytes().as_ptr());
}

/// Elements after a length at 4, and octets after them, in memory that is aligned to 8.
fn message(items: &[Sample], behind: &[u8]) -> (Vec<u64>, usize) {
    let mut octets = by_field(items, 4, Wire::default());
    octets.extend_from_slice(behind);
    let mut aligned = vec![0u64; octets.len().div_ceil(8)];
    aligned.as_mut_bytes()[..octets.len()].copy_from_slice(&octets);
    (aligned, octets.len())
}

#[test]
fn a_received_sequence_is_lent_if_its_padding_is_present_and_zero() {
    let items = samples(9);
    // Octets after the last element count as its padding only if there are enough.
    for (behind, is_lent) in [(vec![], false), (vec![0; 3], false), (vec![0; 4], true), (vec![0, 5, 0, 0], false)] {
        let (aligned, len) = message(&items, &behind);
        let mut input = Decoder::new(&aligned.as_bytes()[..len], Wire::default()).at(4);
        let lent = Sample::lend(&mut input).unwrap();
        assert_eq!(lent, items);
        assert_eq!(matches!(lent, Cow::Borrowed(_)), is_lent, "{behind:?}");
        assert_eq!(input.remaining(), behind.len(), "the following octets are not consumed");
    }
}

#[test]
fn received_padding_is_ignored_and_never_forwarded() {
    let items = samples(9);
    let (mut aligned, len) = message(&items, &[0; 4]);
    aligned.as_mut_bytes()[8 + 16 + 9] = 0xff;
    let mut input = Decoder::new(&aligned.as_bytes()[..len], Wire::default()).at(4);
    let read = Sample::lend(&mut input).unwrap();
    assert_eq!(read, items);
    assert!(matches!(read, Cow::Owned(_)));
}

#[test]
fn an_invalid_member_is_rejected() {
    let items = samples(9);
    let (mut aligned, len) = message(&items, &[0; 4]);
    aligned.as_mut_bytes()[8 + 16 + 8] = 2;
    let mut input = Decoder::new(&aligned.as_bytes()[..len], Wire::default()).at(4);
    assert_eq!(Sample::lend(&mut input), Err(CdrError::BadBoolean(2)));
}
