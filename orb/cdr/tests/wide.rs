//! Wide characters and the code sets of narrow ones, in each protocol version.
//!
//! The octets marked as omniORB's were printed by a program over omniORB 4.2.5 (`marshalWString`,
//! `marshalWChar` with its UTF-16 code set, into a `cdrMemoryStream`).

use crate::support;

use proptest::prelude::*;
use spandrel_cdr::{
    BoundedWString, ByteOrder, CdrError, CharSet, Decode, Decoder, Encode, Encoder, GiopVersion, OverBound, WString,
    WcharSet, Wide, Wire,
};
use support::ORDERS;

const BIG: ByteOrder = ByteOrder::Big;
const LITTLE: ByteOrder = ByteOrder::Little;

fn octets<T: Encode + ?Sized>(value: &T, wire: Wire) -> Result<Vec<u8>, CdrError> {
    let mut out = Encoder::new(wire);
    value.encode(&mut out)?;
    Ok(out.to_vec())
}

fn read<T: Decode>(octets: &[u8], wire: Wire) -> Result<T, CdrError> {
    let mut input = Decoder::new(octets, wire);
    let value = T::decode(&mut input)?;
    assert_eq!(input.remaining(), 0, "all octets belong to the value");
    Ok(value)
}

#[track_caller]
fn both_ways<T: Encode + Decode + PartialEq + std::fmt::Debug>(value: T, wire: Wire, expected: &[u8]) {
    assert_eq!(octets(&value, wire).unwrap(), expected);
    assert_eq!(read::<T>(expected, wire).unwrap(), value);
}

#[test]
fn a_wide_string_in_1_2_is_encoded_as_by_omniorb() {
    let wire = |order| Wire::new(order, GiopVersion::V1_2);
    both_ways(WString::from("xé€"), wire(LITTLE), &[8, 0, 0, 0, 0xff, 0xfe, 0x78, 0, 0xe9, 0, 0xac, 0x20]);
    both_ways(WString::from("xé€"), wire(BIG), &[0, 0, 0, 8, 0xfe, 0xff, 0, 0x78, 0, 0xe9, 0x20, 0xac]);
    both_ways(WString::new(), wire(LITTLE), &[0, 0, 0, 0]);
    // A text that begins with a mark needs one of its own.
    both_ways(WString::from("\u{feff}a"), wire(LITTLE), &[6, 0, 0, 0, 0xff, 0xfe, 0xff, 0xfe, 0x61, 0]);
}

#[test]
fn a_byte_order_mark_decides_and_the_default_is_big_endian() {
    for order in ORDERS {
        let wire = Wire::new(order, GiopVersion::V1_2);
        let with = |content: &[u8]| {
            let mut out = Encoder::new(wire);
            out.octet_sequence(content).unwrap();
            read::<WString>(&out.to_vec(), wire)
        };
        assert_eq!(with(&[0x20, 0xac]).unwrap(), "€");
        assert_eq!(with(&[0xfe, 0xff, 0x20, 0xac]).unwrap(), "€");
        assert_eq!(with(&[0xff, 0xfe, 0xac, 0x20]).unwrap(), "€");
        assert_eq!(with(&[0xfe, 0xff]).unwrap(), "", "a mark before nothing");
        assert_eq!(with(&[0xd8, 0x3d, 0xde, 0x00]).unwrap(), "😀");
        assert_eq!(with(&[0xd8, 0x3d]), Err(CdrError::NotText("UTF-16")), "half a pair");
        assert_eq!(
            with(&[0x20, 0xac, 0]),
            Err(CdrError::Malformed("wide text of two octets per character has an odd length"))
        );
        assert_eq!(with(&[0, 0x61, 0, 0]), Err(CdrError::StrayNul));
    }
}

#[test]
fn a_wide_string_in_1_1_counts_code_units_and_ends_with_nul() {
    let wire = Wire::new(BIG, GiopVersion::V1_1);
    both_ways(WString::from("x€"), wire, &[0, 0, 0, 3, 0, 0x78, 0x20, 0xac, 0, 0]);
    both_ways(WString::from("x"), Wire::new(LITTLE, GiopVersion::V1_1), &[2, 0, 0, 0, 0x78, 0, 0, 0]);
    assert_eq!(read::<WString>(&[0, 0, 0, 1, 0, 0x78], wire), Err(CdrError::UnterminatedString));
    assert_eq!(read::<WString>(&[0, 0, 0, 2, 0, 0, 0, 0], wire), Err(CdrError::StrayNul));
    assert_eq!(read::<WString>(&[0, 0, 0, 0], wire).unwrap(), "");
    let beyond = read::<WString>(&[0, 0, 0, 2, 0, 0x78, 0], wire);
    assert_eq!(beyond, Err(CdrError::LengthBeyondInput { len: 2, remaining: 3 }));
}

#[test]
fn a_wide_character_in_1_2_is_encoded_as_by_omniorb() {
    for order in ORDERS {
        let wire = Wire::new(order, GiopVersion::V1_2);
        both_ways('é', wire, &[2, 0, 0xe9]);
        both_ways('€', wire, &[2, 0x20, 0xac]);
        both_ways('\u{feff}', wire, &[2, 0xfe, 0xff]);
        // A character beyond the basic plane, which omniORB lacks, is a pair.
        both_ways('😀', wire, &[4, 0xd8, 0x3d, 0xde, 0x00]);
        assert_eq!(read::<char>(&[4, 0xff, 0xfe, 0xac, 0x20], wire), Ok('€'), "after a mark");
        assert_eq!(read::<char>(&[6, 0xff, 0xfe, 0x3d, 0xd8, 0x00, 0xde], wire), Ok('😀'));
        for hostile in
            [&[0][..], &[1, 0x61], &[3, 0, 0, 0x61], &[4, 0, 0x61, 0, 0x62], &[8, 0, 0x61, 0, 0x61, 0, 0x61, 0, 0x61]]
        {
            assert!(matches!(read::<char>(hostile, wire), Err(CdrError::Malformed(_))), "{hostile:02x?}");
        }
        for hostile in [&[2, 0xd8, 0x3d][..], &[4, 0xde, 0x00, 0xd8, 0x3d]] {
            assert_eq!(read::<char>(hostile, wire), Err(CdrError::NotText("UTF-16")), "{hostile:02x?}");
        }
        assert!(matches!(read::<char>(&[2, 0], wire), Err(CdrError::Truncated { .. })));
    }
}

#[test]
fn a_wide_character_in_1_1_is_one_code_unit() {
    both_ways('€', Wire::new(BIG, GiopVersion::V1_1), &[0x20, 0xac]);
    both_ways('€', Wire::new(LITTLE, GiopVersion::V1_1), &[0xac, 0x20]);
    both_ways(['a', 'b'], Wire::new(BIG, GiopVersion::V1_1), &[0, 0x61, 0, 0x62]);
    assert_eq!(
        octets(&'😀', Wire::new(BIG, GiopVersion::V1_1)),
        Err(CdrError::NotRepresentable { character: '😀', code_set: "UTF-16" })
    );
    assert_eq!(read::<char>(&[0xd8, 0x3d], Wire::new(BIG, GiopVersion::V1_1)), Err(CdrError::NotText("UTF-16")));
}

#[test]
fn without_negotiation_there_are_no_wide_characters() {
    let old = Wire::new(BIG, GiopVersion::V1_0);
    let silent = Wire { wchar_set: WcharSet::Unknown, ..Wire::new(BIG, GiopVersion::V1_2) };
    for (wire, error) in [(old, CdrError::WideInGiop10), (silent, CdrError::NoWcharSet)] {
        assert_eq!(octets(&WString::from("a"), wire), Err(error.clone()));
        assert_eq!(octets(&'a', wire), Err(error.clone()));
        assert_eq!(read::<WString>(&[0, 0, 0, 0], wire), Err(error.clone()));
        assert_eq!(read::<char>(&[2, 0, 0x61], wire), Err(error));
    }
}

#[test]
fn bounds_count_characters() {
    let wire = Wire::default();
    let text: BoundedWString<2> = "😀é".try_into().unwrap();
    assert_eq!(read::<BoundedWString<2>>(&octets(&text, wire).unwrap(), wire).unwrap(), text);
    assert_eq!(BoundedWString::<2>::try_from("abc"), Err(OverBound { len: 3, bound: 2 }));
    let long = octets(&Wide("abc"), wire).unwrap();
    assert_eq!(read::<BoundedWString<2>>(&long, wire), Err(CdrError::OverBound { len: 3, bound: 2 }));
    assert_eq!(octets(&Wide("a\0b"), wire), Err(CdrError::NulInString));
}

#[test]
fn narrow_strings_follow_the_negotiated_code_set() {
    let latin1 = Wire::new(BIG, GiopVersion::V1_2);
    let utf8 = Wire { char_set: CharSet::Utf8, ..latin1 };
    both_ways("é".to_owned(), latin1, &[0, 0, 0, 2, 0xe9, 0]);
    both_ways("é".to_owned(), utf8, &[0, 0, 0, 3, 0xc3, 0xa9, 0]);
    both_ways("€".to_owned(), utf8, &[0, 0, 0, 4, 0xe2, 0x82, 0xac, 0]);
    assert_eq!(octets("€", latin1), Err(CdrError::NotRepresentable { character: '€', code_set: "ISO 8859-1" }));
    assert_eq!(octets("é\0", utf8), Err(CdrError::NulInString));
    assert_eq!(read::<String>(&[0, 0, 0, 3, 0xc3, 0x28, 0], utf8), Err(CdrError::NotText("UTF-8")));
    assert_eq!(read::<String>(&[0, 0, 0, 4, 0xc3, 0xa9, 0, 0], utf8), Err(CdrError::StrayNul));
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn any_text_survives_as_wstring(text in "[^\0]{0,20}", order in support::order(), later: bool) {
        let wire = Wire::new(order, if later { GiopVersion::V1_2 } else { GiopVersion::V1_1 });
        let written = octets(&WString::from(text.as_str()), wire).unwrap();
        prop_assert_eq!(&written, &octets(&Wide(&text), wire).unwrap());
        prop_assert_eq!(read::<WString>(&written, wire).unwrap(), text.as_str());
        for len in 0..written.len() {
            prop_assert!(WString::decode(&mut Decoder::new(&written[..len], wire)).is_err());
        }
    }

    #[test]
    fn any_text_survives_as_utf8(text in "[^\0]{0,20}", order in support::order()) {
        let wire = Wire { char_set: CharSet::Utf8, ..support::wire(order) };
        prop_assert_eq!(read::<String>(&octets(&text, wire).unwrap(), wire).unwrap(), text);
    }

    #[test]
    fn any_character_survives_as_wchar(value: char, order in support::order()) {
        let wire = support::wire(order);
        prop_assert_eq!(read::<char>(&octets(&value, wire).unwrap(), wire), Ok(value));
    }
}
