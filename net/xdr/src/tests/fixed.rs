//! Arrays of elements of a fixed number of octets, which are converted at once: the same as one after another.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;

use super::sample::{Color, Point};
use crate::{
    Bounded, Decode, Encode, FixedOpaque, Opaque, Padding, Quadruple, Settings, XdrDecoder, XdrEncoder, XdrError,
    decode, encode, xdr_struct,
};

/// A value that does not tell its number of octets, so that arrays of it are converted one after another.
#[derive(Debug)]
struct OneByOne<T>(T);

impl<T: Encode> Encode for OneByOne<T> {
    fn encode(&self, out: &mut XdrEncoder) -> Result<(), XdrError> {
        self.0.encode(out)
    }
}

impl<T: Decode> Decode for OneByOne<T> {
    const MIN_OCTETS: usize = T::MIN_OCTETS;

    fn decode(input: &mut XdrDecoder<'_>) -> Result<Self, XdrError> {
        T::decode(input).map(Self)
    }
}

xdr_struct! {
    /// Each of its octets may have any value.
    #[derive(Clone, Debug, PartialEq)]
    struct Plain { signed: i32, words: [u32; 3], long: i64, quadruple: Quadruple, opaque: FixedOpaque<8> }
}

xdr_struct! {
    /// Some octets are no value of it.
    #[derive(Clone, Debug, PartialEq)]
    struct Mixed { point: Option2, flags: [bool; 2], color: Color, nothing: (), opaque: FixedOpaque<5> }
}

xdr_struct! {
    #[derive(Clone, Debug, PartialEq)]
    struct Option2 { is_present: bool, value: u64 }
}

xdr_struct! {
    #[derive(Clone, Debug, PartialEq)]
    struct Variable { number: u32, opaque: Bounded<Opaque, 4> }
}

/// The outcome of decoding, with the octets that remain and the octets that the value has again.
fn outcome<T: Decode + Encode>(octets: &[u8], settings: Settings) -> Result<(usize, Vec<u8>), XdrError> {
    let mut input = XdrDecoder::with_settings(octets, settings);
    let values = Vec::<T>::decode(&mut input)?;
    Ok((input.remaining().len(), encode(&values)?))
}

/// Decodes octets as an array both ways.
#[track_caller]
fn assert_same<T: Decode + Encode + Debug>(octets: &[u8]) {
    assert!(<T as Decode>::FIXED_OCTETS.is_some() && <OneByOne<T> as Decode>::FIXED_OCTETS.is_none());
    let few = Settings { memory_factor: 1, ..Settings::DEFAULT };
    let flat = Settings { depth: 0, ..Settings::DEFAULT };
    for settings in [Settings::DEFAULT, Settings { padding: Padding::Any, ..Settings::DEFAULT }, few, flat] {
        assert_eq!(outcome::<T>(octets, settings), outcome::<OneByOne<T>>(octets, settings), "{settings:?}");
    }
}

#[test]
fn numbers_of_octets_are_those_of_the_fields() {
    fn of<T: Encode + Decode>() -> [Option<usize>; 2] {
        [<T as Encode>::FIXED_OCTETS, <T as Decode>::FIXED_OCTETS]
    }
    assert_eq!(of::<Point>(), [Some(12); 2]);
    assert_eq!(of::<Plain>(), [Some(4 + 12 + 8 + 16 + 8); 2]);
    assert_eq!(of::<Mixed>(), [Some(12 + 8 + 4 + 8); 2]);
    assert_eq!(of::<[Mixed; 3]>(), [Some(96); 2]);
    assert_eq!(of::<Variable>(), [None; 2]);
    assert_eq!([of::<String>(), of::<Option<u32>>(), of::<Vec<u32>>(), of::<Box<u32>>()], [[None; 2]; 4]);
}

#[test]
fn an_invalid_element_is_the_error_of_its_array() {
    let element = |flag: u8| [[0, 0, 0, flag], [0; 4], [0; 4]].concat();
    let octets = [vec![0, 0, 0, 3], element(1), element(2), element(3)].concat();
    assert_eq!(decode::<Vec<Option2>>(&octets).unwrap_err(), XdrError::Bool(2));
    assert_eq!(decode::<Vec<FixedOpaque<3>>>(b"\0\0\0\x02abc\0abc\x01").unwrap_err(), XdrError::Padding);
}

#[test]
fn arrays_without_elements_and_of_void_are_their_length() {
    assert_eq!(encode(&Vec::<Plain>::new()).unwrap(), [0; 4]);
    assert_eq!(decode::<Vec<Plain>>(&[0; 4]).unwrap(), []);
    assert_eq!(encode(&[(), ()][..]).unwrap(), [0, 0, 0, 2]);
}

fn mixed() -> impl Strategy<Value = Mixed> {
    let point = (any::<bool>(), any::<u64>()).prop_map(|(is_present, value)| Option2 { is_present, value });
    let color = prop_oneof![Just(Color::Red), Just(Color::Green), Just(Color::Blue)];
    (point, any::<[bool; 2]>(), color, any::<[u8; 5]>()).prop_map(|(point, flags, color, opaque)| Mixed {
        point,
        flags,
        color,
        nothing: (),
        opaque: FixedOpaque(opaque),
    })
}

proptest! {
    #[test]
    fn arbitrary_octets_decode_to_the_same_arrays(len in 0_u32..12, mut octets in vec(any::<u8>(), 0..400)) {
        octets.splice(..0, len.to_be_bytes());
        assert_same::<u32>(&octets);
        assert_same::<f64>(&octets);
        assert_same::<[i64; 2]>(&octets);
        assert_same::<Point>(&octets);
        assert_same::<Plain>(&octets);
        assert_same::<FixedOpaque<7>>(&octets);
        assert_same::<Mixed>(&octets);
    }

    #[test]
    fn changed_arrays_have_the_same_outcome(
        values in vec(mixed(), 0..20),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut octets = encode(&values).unwrap();
        prop_assert_eq!(&decode::<Vec<Mixed>>(&octets).unwrap(), &values);
        prop_assert_eq!(&octets, &encode(&values.into_iter().map(OneByOne).collect::<Vec<_>>()).unwrap());
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        assert_same::<Mixed>(&octets);
    }
}
