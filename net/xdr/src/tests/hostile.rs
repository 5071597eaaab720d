//! Octets that are no values, and the limits of decoding.

use proptest::collection::vec;
use proptest::prelude::*;

use super::sample::{Sample, samples};
use crate::{
    Decode, FixedOpaque, List, Opaque, Padding, Settings, XdrDecoder, XdrError, decode, encode, xdr_struct, xdr_union,
};

xdr_struct! {
    #[derive(Debug, PartialEq)]
    struct Node { item: u32, next: Option<Box<Node>> }
}

#[test]
fn a_length_beyond_the_input_allocates_nothing() {
    let octets = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let end = |needed| XdrError::End { needed, remaining: 4 };
    assert_eq!(decode::<Vec<u64>>(&octets).unwrap_err(), end(8 * 0xffff_ffff));
    assert_eq!(decode::<Opaque>(&octets).unwrap_err(), end(0xffff_ffff));
    assert_eq!(decode::<String>(&octets).unwrap_err(), end(0xffff_ffff));
}

#[test]
fn residual_octets_are_zero_unless_others_are_permitted() {
    let octets = b"\0\0\0\x01a\0\0\x01";
    assert_eq!(decode::<Opaque>(octets).unwrap_err(), XdrError::Padding);
    let settings = Settings { padding: Padding::Any, ..Settings::DEFAULT };
    let mut input = XdrDecoder::with_settings(octets, settings);
    assert_eq!(Opaque::decode(&mut input).unwrap(), Opaque(b"a".to_vec()));
}

#[test]
fn invalid_bools_and_text_are_errors() {
    assert_eq!(decode::<bool>(&[0, 0, 0, 2]).unwrap_err(), XdrError::Bool(2));
    assert_eq!(decode::<Option<u32>>(&[0, 0, 1, 0]).unwrap_err(), XdrError::Bool(256));
    assert_eq!(decode::<String>(b"\0\0\0\x01\xff\0\0\0").unwrap_err(), XdrError::NotUtf8);
}

xdr_struct! {
    #[derive(Debug, PartialEq)]
    struct Tree { children: Vec<Tree> }
}

fn nodes(count: u32) -> Vec<u8> {
    encode(&List((0..count).collect())).unwrap()[4..].to_vec() // without the bool of the first
}

#[test]
fn nesting_is_bounded_and_a_list_does_not_nest() {
    assert!(decode::<Node>(&nodes(129)).is_ok());
    assert_eq!(decode::<Node>(&nodes(130)).unwrap_err(), XdrError::TooDeep(128));
    let deep = (0..200).fold(None, |next, item| Some(Box::new(Node { item, next })));
    assert_eq!(encode(&deep).unwrap_err(), XdrError::TooDeep(128));
    let list = encode(&List(vec![1_u32; 100_000])).unwrap();
    assert_eq!(decode::<List<u32>>(&list).unwrap().0.len(), 100_000);
}

/// A struct that takes much more memory than octets.
#[derive(Debug)]
struct Wide(#[allow(dead_code)] [u64; 512]);

impl Decode for Wide {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        input.u32().map(|value| Self([u64::from(value); 512]))
    }
}

xdr_union! {
    #[allow(clippy::large_enum_variant)] // its size is the subject of the test
    #[derive(Debug, PartialEq)]
    union Large: bool { Nothing = false, Octets(octets: FixedOpaque<4000>) = true }
}

#[test]
fn few_octets_may_be_a_value_of_a_large_type() {
    let list = List(vec![Some(Box::new(Large::Nothing)), None]);
    let octets = encode(&list).unwrap();
    assert!(octets.len() * Settings::DEFAULT.memory_factor < size_of::<Large>());
    assert_eq!(decode::<List<Option<Box<Large>>>>(&octets).unwrap(), list);
    assert_eq!(decode::<List<Large>>(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap().0, [Large::Nothing]);
}

/// Each level claims as many children as octets remain for.
#[test]
fn nested_lengths_are_charged_once_each() {
    let mut octets = Vec::new();
    while octets.len() < 100 * 4 {
        let children = (1 << 20) - octets.len() as u32 - 4;
        octets.extend((children / 4).to_be_bytes());
    }
    octets.resize(1 << 20, 0);
    assert_eq!(decode::<Tree>(&octets).unwrap_err(), XdrError::TooLarge(64 << 20));
}

#[test]
fn memory_is_bounded_by_the_octets_of_the_input() {
    let octets = encode(&vec![7_u32; 1000]).unwrap();
    assert_eq!(decode::<Vec<Wide>>(&octets).unwrap_err(), XdrError::TooLarge(64 * 4004));
    let list = encode(&List(vec![7_u32; 1000])).unwrap();
    assert_eq!(decode::<List<Wide>>(&list).unwrap_err(), XdrError::TooLarge(64 * 8004));
    let settings = Settings { memory_factor: 1024, ..Settings::DEFAULT };
    let values = Vec::<Wide>::decode(&mut XdrDecoder::with_settings(&octets, settings)).unwrap();
    assert_eq!(values.len(), 1000);
}

proptest! {
    #[test]
    fn arbitrary_octets_never_panic(octets in vec(any::<u8>(), 0..400)) {
        if let Ok(sample) = decode::<Sample>(&octets) {
            prop_assert_eq!(encode(&sample).unwrap(), octets);
        }
    }

    /// With zero padding, a value has one encoding alone.
    #[test]
    fn changed_encodings_are_refused_or_are_other_values(
        sample in samples(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut octets = encode(&sample).unwrap();
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        if let Ok(changed) = decode::<Sample>(&octets) {
            prop_assert_eq!(encode(&changed).unwrap(), octets);
        }
    }
}
