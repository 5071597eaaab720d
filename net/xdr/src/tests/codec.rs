//! Encodings by the letter of the RFC, and round trips.

use proptest::prelude::*;

use super::sample::{Outcome, Sample, samples};
use crate::{
    Bounded, Decode, Encode, FixedOpaque, List, Opaque, Quadruple, XdrDecoder, XdrEncoder, XdrError, decode, encode,
    xdr_enum, xdr_struct, xdr_union,
};

#[track_caller]
fn assert_encoding<T: Encode + Decode + PartialEq + std::fmt::Debug>(value: &T, octets: &[u8]) {
    assert_eq!(encode(value).unwrap(), octets);
    assert_eq!(decode::<T>(octets).unwrap(), *value);
}

#[test]
fn numbers_are_big_endian_in_twos_complement() {
    assert_encoding(&-2_i32, &[255, 255, 255, 254]);
    assert_encoding(&0x0102_0304_u32, &[1, 2, 3, 4]);
    assert_encoding(&-2_i64, &[255, 255, 255, 255, 255, 255, 255, 254]);
    assert_encoding(&0x0102_0304_0506_0708_u64, &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_encoding(&true, &[0, 0, 0, 1]);
    assert_encoding(&-1.5_f32, &[0xbf, 0xc0, 0, 0]);
    assert_encoding(&-1.5_f64, &[0xbf, 0xf8, 0, 0, 0, 0, 0, 0]);
    assert_encoding(&Quadruple(*b"0123456789abcdef"), b"0123456789abcdef");
    assert_encoding(&(), &[]);
}

#[test]
fn the_bits_of_a_nan_are_kept() {
    let octets = [0x7f, 0xf4, 0, 0, 0, 0, 0, 1];
    assert_eq!(encode(&decode::<f64>(&octets).unwrap()).unwrap(), octets);
}

#[test]
fn octets_and_strings_are_filled_up_to_a_multiple_of_four() {
    assert_encoding(&FixedOpaque(*b"abcde"), b"abcde\0\0\0");
    assert_encoding(&Opaque(b"abcd".to_vec()), b"\0\0\0\x04abcd");
    assert_encoding(&Opaque::default(), &[0; 4]);
    assert_encoding(&"ab".to_owned(), b"\0\0\0\x02ab\0\0");
    assert_eq!(encode("ab").unwrap(), b"\0\0\0\x02ab\0\0");
}

xdr_enum! {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum FileKind { Text = 0, Data = 1, Exec = 2 }
}

xdr_union! {
    #[derive(Debug, PartialEq)]
    union FileType: FileKind {
        Text = FileKind::Text,
        Data(creator: Bounded<String, 255>) = FileKind::Data,
        Exec(interpreter: Bounded<String, 255>) = FileKind::Exec,
    }
}

xdr_struct! {
    #[derive(Debug, PartialEq)]
    struct File {
        filename: Bounded<String, 255>,
        kind: FileType,
        owner: Bounded<String, 32>,
        data: Bounded<Opaque, 65535>,
    }
}

#[test]
fn the_file_of_section_7_has_the_octets_that_are_given_there() {
    let file = File {
        filename: Bounded::new("sillyprog".to_owned()).unwrap(),
        kind: FileType::Exec(Bounded::new("lisp".to_owned()).unwrap()),
        owner: Bounded::new("john".to_owned()).unwrap(),
        data: Bounded::new(Opaque(b"(quit)".to_vec())).unwrap(),
    };
    let octets = b"\0\0\0\x09sillyprog\0\0\0\0\0\0\x02\0\0\0\x04lisp\0\0\0\x04john\0\0\0\x06(quit)\0\0";
    assert_encoding(&file, octets);
}

#[test]
fn a_discriminant_belongs_to_one_arm() {
    let error = |discriminant: &str| XdrError::Discriminant { name: "Outcome", discriminant: discriminant.to_owned() };
    assert_eq!(encode(&Outcome::Failed(2, 1.0)).unwrap_err(), error("2"));
    assert_encoding(&Outcome::Failed(3, 1.0), &[0, 0, 0, 3, 0x3f, 0x80, 0, 0]);
    assert_encoding(&Outcome::Absent, &[0, 0, 0, 2]);
    let unknown = XdrError::Enum { name: "FileKind", value: 3 };
    assert_eq!(decode::<FileType>(&[0, 0, 0, 3]).unwrap_err(), unknown);
}

#[test]
fn arrays_and_optional_data() {
    assert_encoding(&[1_u32, 2], &[0, 0, 0, 1, 0, 0, 0, 2]);
    assert_encoding(&vec!["a".to_owned()], b"\0\0\0\x01\0\0\0\x01a\0\0\0");
    assert_encoding(&Some(7_u32), &[0, 0, 0, 1, 0, 0, 0, 7]);
    assert_encoding(&None::<Box<u32>>, &[0; 4]);
    assert_encoding(&List(vec![7_u32]), &[0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0]);
}

xdr_struct! {
    #[derive(Debug, Default, PartialEq)]
    struct Nothing {}
}

xdr_union! {
    #[derive(Debug, PartialEq)]
    union Maybe: bool { Absent = false, Present(value: Tree) = true }
}

xdr_struct! {
    #[derive(Debug, Default, PartialEq)]
    struct Tree { name: String, children: Vec<Tree>, link: Option<Box<Tree>> }
}

#[test]
fn types_may_be_recursive_and_structs_empty() {
    let leaf = |name: &str| Tree { name: name.to_owned(), ..Tree::default() };
    let root = Tree { children: vec![leaf("b"), leaf("c")], link: Some(Box::new(leaf("d"))), ..leaf("a") };
    let maybe = Maybe::Present(root);
    assert_eq!(decode::<Maybe>(&encode(&maybe).unwrap()).unwrap(), maybe);
    assert_encoding(&Maybe::Absent, &[0; 4]);
    assert_encoding(&Nothing {}, &[]);
}

#[test]
fn a_maximum_holds_on_both_sides() {
    let too_long = XdrError::TooLong { len: 3, max: 2 };
    assert_eq!(Bounded::<Vec<u32>, 2>::new(vec![1, 2, 3]).unwrap_err(), too_long);
    assert_eq!(decode::<Bounded<String, 2>>(b"\0\0\0\x03abc\0").unwrap_err(), too_long);
    assert_eq!(decode::<Bounded<Opaque, 2>>(b"\0\0\0\x03abc\0").unwrap_err(), too_long);
    let list = encode(&List(vec![1_u32, 2, 3])).unwrap();
    assert_eq!(decode::<Bounded<List<u32>, 2>>(&list).unwrap_err(), too_long);
    assert_eq!(XdrEncoder::new().opaque(b"abc", 2).unwrap_err(), too_long);
}

#[test]
fn a_decoder_lends_octets_and_text() {
    let octets = b"\0\0\0\x02ab\0\0\0\0\0\x01c\0\0\0";
    let mut input = XdrDecoder::new(octets);
    assert_eq!(input.str(10).unwrap(), "ab");
    assert_eq!(input.opaque(1).unwrap(), b"c");
    input.finish().unwrap();
}

#[test]
fn an_error_prints_its_message_for_debugging() {
    let error = decode::<u32>(&[0; 5]).unwrap_err();
    assert_eq!(format!("{error:?}"), "1 octets follow the value");
}

proptest! {
    #[test]
    fn a_value_decodes_to_itself(sample in samples()) {
        let octets = encode(&sample).unwrap();
        prop_assert_eq!(octets.len() % 4, 0);
        prop_assert_eq!(decode::<Sample>(&octets).unwrap(), sample);
    }

    #[test]
    fn a_part_of_an_encoding_is_no_value(sample in samples(), end in any::<prop::sample::Index>()) {
        let octets = encode(&sample).unwrap();
        let part = &octets[..end.index(octets.len())];
        let is_end = matches!(decode::<Sample>(part), Err(XdrError::End { .. } | XdrError::TooLarge(_)));
        prop_assert!(is_end);
    }
}
