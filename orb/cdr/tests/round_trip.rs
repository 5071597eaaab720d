//! Every primitive, string, sequence and array: encoded as in the standard's table, and decoded again.

use crate::support;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{
    BoundedString, BoundedVec, ByteOrder, CdrError, Char, Decode, Decoder, Encode, Encoder, Ior, LongDouble, OverBound,
    TaggedProfile,
};
use support::{Model, Modelled, ORDERS, check, encoded, order, wire};

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn primitives(a: i16, b: u16, c: i32, d: u32, e: i64, f: u64, g: u8, h: bool) {
        check(&a);
        check(&b);
        check(&c);
        check(&d);
        check(&e);
        check(&f);
        check(&g);
        check(&h);
        check(&Char(g));
    }

    #[test]
    fn floating_point_numbers_keep_their_bits(a: u32, b: u64, c: u128, order in order(), start in 0..8_usize) {
        let value = (f32::from_bits(a), f64::from_bits(b), LongDouble::from_bits(c));
        let mut model = Model::new(order, start);
        value.0.model(&mut model);
        value.1.model(&mut model);
        value.2.model(&mut model);
        let mut out = Encoder::new(wire(order));
        out.octets(&[0xee; 8][..start]);
        out.f32(value.0);
        out.f64(value.1);
        value.2.encode(&mut out).unwrap();
        let octets = out.to_vec();
        prop_assert_eq!(&octets, &model.octets);
        let mut input = Decoder::new(&octets, wire(order)).at(start);
        prop_assert_eq!(input.f32().unwrap().to_bits(), a);
        prop_assert_eq!(input.f64().unwrap().to_bits(), b);
        prop_assert_eq!(LongDouble::decode(&mut input).unwrap().to_bits(), c);
    }

    #[test]
    fn sequences_of_primitives(
        a in vec(any::<i16>(), 0..9), b in vec(any::<u32>(), 0..9), c in vec(any::<i64>(), 0..9),
        d in vec(any::<u8>(), 0..9), e in vec(any::<bool>(), 0..9), f in vec(any::<u8>().prop_map(Char), 0..9),
    ) {
        check(&a);
        check(&b);
        check(&c);
        check(&d);
        check(&e);
        check(&f);
        check(&vec![a.clone(), a]);
    }

    #[test]
    fn arrays(a: [i16; 3], b: [u64; 2], c: [u8; 5], d: [[i32; 2]; 3], e: [bool; 3], f in any::<[u8; 2]>().prop_map(|f| f.map(Char))) {
        check(&a);
        check(&b);
        check(&c);
        check(&d);
        check(&e);
        check(&f);
        check(&vec![a, a]);
    }

    #[test]
    fn strings(a in "[\u{1}-\u{ff}]{0,20}", b in vec("[ -~]{0,9}", 0..5)) {
        check(&a);
        check(&b);
        check(&[a.clone(), a]);
    }

    #[test]
    fn encapsulations_align_from_their_own_start(
        outer in order(), inner in order(), start in 0..8_usize, a: u8, b: f64, text in "[a-z]{0,9}", after: u64,
    ) {
        prop_assume!(!b.is_nan());
        let mut out = Encoder::new(wire(outer));
        out.octets(&[0xee; 8][..start]);
        out.encapsulation(|out| {
            out.u8(a);
            out.f64(b);
            out.short_str(&text)
        }).unwrap();
        out.u64(after);
        let octets = out.to_vec();

        let mut content = Model::new(outer, 0);
        content.octets.push(outer.flag());
        a.model(&mut content);
        b.model(&mut content);
        text.model(&mut content);
        let mut model = Model::new(outer, start);
        content.octets.model(&mut model);
        after.model(&mut model);
        prop_assert_eq!(&octets, &model.octets);

        // The content may be in the other order.
        let mut content = Model::new(inner, 0);
        content.octets.push(inner.flag());
        a.model(&mut content);
        b.model(&mut content);
        let mut model = Model::new(outer, start);
        content.octets.model(&mut model);
        after.model(&mut model);
        let mut input = Decoder::new(&model.octets, wire(outer)).at(start);
        let mut nested = input.encapsulation().unwrap();
        prop_assert_eq!((nested.u8(), nested.f64(), nested.remaining()), (Ok(a), Ok(b), 0));
        prop_assert_eq!(input.u64(), Ok(after));
    }

    #[test]
    fn references(type_id in "[ -~]{0,20}", profiles in vec((any::<u32>(), vec(any::<u8>(), 0..20)), 0..4)) {
        let profiles = profiles.into_iter().map(|(tag, data)| TaggedProfile { tag, data }).collect();
        let ior = Ior { type_id, profiles };
        for order in ORDERS {
            for start in 0..8 {
                let octets = encoded(&ior, order, start).unwrap();
                let mut input = Decoder::new(&octets, wire(order)).at(start);
                prop_assert_eq!(&Ior::decode(&mut input).unwrap(), &ior);
                prop_assert_eq!(input.remaining(), 0);
            }
        }
    }

    #[test]
    fn a_bound_is_checked_at_construction_and_in_decoding(items in vec(any::<u16>(), 0..6), text in "[a-z\u{e9}]{0,6}", order in order()) {
        let bounded = BoundedVec::<u16, 3>::try_from(items.clone());
        let octets = encoded(&items, order, 0).unwrap();
        let read = BoundedVec::<u16, 3>::decode(&mut Decoder::new(&octets, wire(order)));
        match bounded {
            Ok(bounded) => {
                prop_assert_eq!(encoded(&bounded, order, 0).unwrap(), octets);
                prop_assert_eq!(read, Ok(bounded));
            }
            Err(error) => {
                prop_assert_eq!(error, OverBound { len: items.len(), bound: 3 });
                prop_assert_eq!(read, Err(error.into()));
            }
        }
        let bounded = BoundedString::<3>::try_from(text.as_str());
        let octets = encoded(&text, order, 0).unwrap();
        let read = BoundedString::<3>::decode(&mut Decoder::new(&octets, wire(order)));
        match bounded {
            Ok(bounded) => {
                prop_assert_eq!(encoded(&bounded, order, 0).unwrap(), octets);
                prop_assert_eq!(read, Ok(bounded));
            }
            Err(error) => prop_assert_eq!(read, Err(error.into())),
        }
    }
}

#[test]
fn octets_on_the_wire() {
    let cases: [(ByteOrder, &[u8]); 2] = [
        (ByteOrder::Big, &[1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 3, b'h', b'i', 0, 0, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]),
        (ByteOrder::Little, &[1, 0, 2, 0, 3, 0, 0, 0, 3, 0, 0, 0, b'h', b'i', 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
    ];
    for (order, expected) in cases {
        let mut out = Encoder::new(wire(order));
        out.bool(true);
        out.u16(2);
        out.i32(3);
        out.str("hi").unwrap();
        out.f64(1.0);
        assert_eq!(out.to_vec(), expected);
    }
}

#[test]
fn an_empty_sequence_is_its_length_without_element_alignment() {
    for order in ORDERS {
        assert_eq!(encoded(&Vec::<f64>::new(), order, 0).unwrap(), [0; 4]);
        let mut input = Decoder::new(&[0, 0, 0, 0, 7], wire(order));
        assert_eq!(Vec::<f64>::decode(&mut input), Ok(Vec::new()));
        assert_eq!(input.u8(), Ok(7));
    }
}

#[test]
fn text_beyond_iso_8859_1_is_rejected() {
    for order in ORDERS {
        assert_eq!(encoded("a€", order, 0), Err(CdrError::NotRepresentable { character: '€', code_set: "ISO 8859-1" }));
        assert_eq!(encoded("a\0b", order, 0), Err(CdrError::NulInString));
        assert_eq!(encoded("ü\0", order, 0), Err(CdrError::NulInString));
    }
}

#[test]
fn strings_are_borrowed_if_they_are_ascii() {
    let read = |octets: &'static [u8]| Decoder::new(octets, wire(ByteOrder::Big)).str();
    assert!(matches!(read(b"\0\0\0\x03hi\0"), Ok(std::borrow::Cow::Borrowed("hi"))));
    assert!(matches!(read(b"\0\0\0\x02\xe9\0"), Ok(std::borrow::Cow::Owned(text)) if text == "é"));
    assert_eq!(read(b"\0\0\0\x01\0"), Ok("".into()));
    assert_eq!(read(b"\0\0\0\0"), Ok("".into()), "as some ORBs send it");
    assert_eq!(read(b"\0\0\0\x02hi"), Err(CdrError::UnterminatedString));
    assert_eq!(read(b"\0\0\0\x04h\0i\0"), Err(CdrError::StrayNul));
    // UTF-8 is not the negotiated code set, even if the octets would be valid.
    assert_eq!(read(b"\0\0\0\x03\xc3\xa9\0"), Ok("Ã©".into()));
}

#[test]
fn a_bounded_sequence_takes_as_many_elements_as_its_bound() {
    let mut bounded = BoundedVec::<u16, 2>::new();
    assert_eq!((bounded.push(1), bounded.push(2)), (Ok(()), Ok(())));
    assert_eq!(bounded.push(3), Err(OverBound { len: 3, bound: 2 }));
    assert_eq!(bounded.into_inner(), [1, 2]);
    assert_eq!(BoundedString::<3>::try_from("NOK").unwrap().into_inner(), "NOK");
}
