//! Lending instead of copying: slices to the transport, and slices of the input to the caller.

use crate::support;

use std::borrow::Cow;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{ByteOrder, Char, Decode, Decoder, Encode, Encoder, LEND_OCTETS};
use support::{Model, Modelled, ORDERS, order, wire};

/// An item to encode.
#[derive(Clone, Debug)]
enum Step {
    Byte(u8),
    Number(u64),
    Numbers(Vec<u32>),
    Octets(Vec<u8>),
    Text(String),
}

fn step() -> impl Strategy<Value = Step> {
    // Lengths around the limit from which on slices are lent.
    let long = prop_oneof![0..9_usize, LEND_OCTETS - 3..LEND_OCTETS + 9];
    prop_oneof![
        any::<u8>().prop_map(Step::Byte),
        any::<u64>().prop_map(Step::Number),
        long.clone().prop_map(|len| Step::Numbers((0..).take(len / 4).collect())),
        (long.clone(), any::<u8>()).prop_map(|(len, octet)| Step::Octets(vec![octet; len])),
        (long, "[a-z]").prop_map(|(len, letter)| Step::Text(letter.repeat(len))),
    ]
}

impl Step {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        match self {
            Self::Byte(value) => value.encode(out),
            Self::Number(value) => value.encode(out),
            Self::Numbers(value) => value.encode(out),
            Self::Octets(value) => value.encode(out),
            Self::Text(value) => value.encode(out),
        }
        .unwrap();
    }

    fn model(&self, model: &mut Model) {
        match self {
            Self::Byte(value) => value.model(model),
            Self::Number(value) => value.model(model),
            Self::Numbers(value) => value.model(model),
            Self::Octets(value) => value.model(model),
            Self::Text(value) => value.model(model),
        }
    }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn parts_are_all_octets_in_order(steps in vec(step(), 0..8), order in order(), rubbish: bool) {
        let scratch = if rubbish { vec![0xff; 700] } else { Vec::new() };
        let mut out = Encoder::reusing(scratch, wire(order));
        let mut model = Model::new(order, 0);
        for step in &steps {
            step.encode(&mut out);
            step.model(&mut model);
            prop_assert_eq!(out.position(), model.octets.len());
        }
        prop_assert_eq!(&out.to_vec(), &model.octets);
        prop_assert!(out.parts().iter().all(|part| !part.is_empty()));
        if let Some(octets) = out.contiguous() {
            prop_assert_eq!(octets, &model.octets[..]);
        }
    }

    #[test]
    fn removed_octets_leave_no_trace(before in vec(step(), 0..4), after in vec(step(), 0..3), back in 0..30_usize, order in order()) {
        let mut out = Encoder::new(wire(order));
        let mut model = Model::new(order, 0);
        for step in &before {
            step.encode(&mut out);
            step.model(&mut model);
        }
        let position = out.position();
        out.octets(&[0xdd; 32][..back]);
        out.truncate(position);
        for step in &after {
            step.encode(&mut out);
            step.model(&mut model);
        }
        prop_assert_eq!(out.to_vec(), model.octets);
    }

    #[test]
    fn a_placeholder_is_filled_in_place(before in vec(step(), 0..3), between in vec(step(), 0..4), value: u32, order in order()) {
        let mut out = Encoder::new(wire(order));
        let mut model = Model::new(order, 0);
        for step in &before {
            step.encode(&mut out);
            step.model(&mut model);
        }
        let placeholder = out.placeholder();
        value.model(&mut model);
        for step in &between {
            step.encode(&mut out);
            step.model(&mut model);
        }
        out.fill(placeholder, value);
        prop_assert_eq!(out.to_vec(), model.octets);
    }

    #[test]
    fn sequences_are_lent_exactly_if_order_and_alignment_permit(items in vec(any::<u32>(), 1..9), order in order(), start in 0..8_usize) {
        let octets = support::encoded(&items, order, start).unwrap();
        // In memory that is aligned to eight, and one octet after it.
        let mut memory = vec![0_u64; octets.len() / 8 + 2];
        let base = memory.as_mut_slice();
        let bytes: &mut [u8] = zerocopy::IntoBytes::as_mut_bytes(base);
        for shift in 0..2 {
            bytes[shift..shift + octets.len()].copy_from_slice(&octets);
            let mut input = Decoder::new(&bytes[shift..shift + octets.len()], wire(order)).at(start);
            let lent = u32::lend(&mut input).unwrap();
            prop_assert_eq!(&*lent, &items[..]);
            prop_assert_eq!(matches!(lent, Cow::Borrowed(_)), shift == 0 && order == ByteOrder::NATIVE);
            prop_assert_eq!(input.remaining(), 0);
        }
    }
}

#[test]
fn long_slices_are_lent_and_short_ones_copied() {
    let numbers: Vec<u32> = (0..1000).collect();
    let octets = vec![7_u8; LEND_OCTETS];
    let short = vec![8_u8; LEND_OCTETS - 1];
    let mut out = Encoder::new(wire(ByteOrder::NATIVE));
    numbers.encode(&mut out).unwrap();
    octets.encode(&mut out).unwrap();
    short.encode(&mut out).unwrap();
    let parts = out.parts();
    let addresses: Vec<_> = parts.iter().map(|part| part.as_ptr().addr()).collect();
    assert_eq!(parts.len(), 5, "length, numbers, length, octets, length with short octets");
    assert_eq!(addresses[1], numbers.as_ptr().addr());
    assert_eq!(addresses[3], octets.as_ptr().addr());
    assert!(out.contiguous().is_none());
}

#[test]
fn numbers_in_the_other_order_are_copied() {
    let order = if ByteOrder::NATIVE == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
    let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
    let mut out = Encoder::new(wire(order));
    numbers.encode(&mut out).unwrap();
    assert!(out.contiguous().is_some());
    let mut model = Model::new(order, 0);
    numbers.model(&mut model);
    assert_eq!(out.to_vec(), model.octets);
}

#[test]
fn octets_characters_and_booleans_are_lent_in_every_order() {
    for order in ORDERS {
        let octets = support::encoded(&vec![1_u8, 0, 1], order, 0).unwrap();
        let input = Decoder::new(&octets, wire(order));
        assert!(matches!(u8::lend(&mut input.clone()), Ok(Cow::Borrowed([1, 0, 1]))));
        assert!(matches!(Char::lend(&mut input.clone()), Ok(Cow::Borrowed([Char(1), Char(0), Char(1)]))));
        assert!(matches!(bool::lend(&mut input.clone()), Ok(Cow::Borrowed([true, false, true]))));
    }
}

#[test]
fn scratch_is_reused_without_its_content() {
    let mut scratch = Vec::new();
    for round in 0..3_u8 {
        let mut out = Encoder::reusing(scratch, wire(ByteOrder::Big));
        out.u8(round);
        out.u64(u64::from(round));
        assert_eq!(out.to_vec(), [round, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, round]);
        scratch = out.into_scratch();
    }
}

#[test]
#[should_panic(expected = "a lent slice cannot be removed")]
fn a_lent_slice_cannot_be_removed() {
    let octets = vec![1_u8; LEND_OCTETS];
    let mut out = Encoder::new(wire(ByteOrder::Big));
    out.u64(1);
    out.lend(&octets);
    out.u64(2);
    out.truncate(LEND_OCTETS + 4);
}

#[test]
#[should_panic(expected = "a position that was reached")]
fn truncation_beyond_the_end_panics() {
    Encoder::new(wire(ByteOrder::Big)).truncate(1);
}

proptest! {
    #[test]
    fn into_whole_copies_lent_slices_into_the_block(steps in vec(step(), 0..12), before in 0..20_usize, order in order()) {
        let mut out = Encoder::continuing(vec![9; 20], before, wire(order));
        steps.iter().for_each(|step| step.encode(&mut out));
        let expected = out.to_vec();
        let (block, len) = out.into_whole();
        prop_assert_eq!(&block[..len], &expected[..]);
    }
}
