//! Structs of fixed layout: tight loops over sequences give the same octets as coding by field.

use crate::support;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{CdrError, Decode, Decoder, Encode, Encoder, FixedSize, Joint};
use support::{
    Modelled, ORDERS, check,
    structs::{BinStruct, Nested, Octets, Outer, Ragged, Short, Tailed},
    wire,
};

/// The constants of [`FixedSize`] agree with the encoding from an aligned start.
#[track_caller]
fn check_layout<T: Modelled + FixedSize>(value: &T) {
    for order in ORDERS {
        let mut model = support::Model::new(order, 0);
        value.model(&mut model);
        assert_eq!(model.octets.len(), T::SIZE);
        let mut octets = vec![0xff; T::SIZE];
        if order.is_swapped() {
            value.put::<true>(&mut octets);
        } else {
            value.put::<false>(&mut octets);
        }
        assert_eq!(octets, model.octets);
    }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn sequences_of_the_papers_struct(items in vec(any::<BinStruct>(), 0..9)) {
        check(&items);
        items.first().into_iter().for_each(check_layout);
    }

    #[test]
    fn the_last_element_has_no_tail_padding(items in vec(any::<Tailed>(), 0..9)) {
        check(&items);
        items.first().into_iter().for_each(check_layout);
    }

    #[test]
    fn elements_that_are_never_aligned_again(items in vec(any::<Ragged>(), 0..9)) {
        check(&items);
        items.first().into_iter().for_each(check_layout);
    }

    #[test]
    fn elements_without_alignment(items in vec(any::<Octets>(), 0..9)) {
        check(&items);
        items.first().into_iter().for_each(check_layout);
    }

    #[test]
    fn nested_and_short_elements(a in vec(any::<Nested>(), 0..5), b in vec(any::<Outer>(), 0..5), c in vec(any::<Short>(), 0..9)) {
        check(&a);
        check(&b);
        check(&c);
        a.first().into_iter().for_each(check_layout);
        b.first().into_iter().for_each(check_layout);
        c.first().into_iter().for_each(check_layout);
    }

    #[test]
    fn arrays_and_sequences_of_sequences(a: [BinStruct; 3], b in vec(vec(any::<Ragged>(), 0..3), 0..3)) {
        check(&a);
        check(&vec![a, a]);
        check(&b);
    }

    #[test]
    fn a_sequence_decodes_alike_from_all_1_1_fragments(
        items in vec(any::<BinStruct>(), 1..20), cut in any::<prop::sample::Index>(), order in support::order(),
    ) {
        // Two fragments: offsets in the second count from twelve, which determines the alignment after the
        // joint.
        let cut = cut.index(items.len());
        let mut first = Encoder::new(wire(order));
        first.len(items.len()).unwrap();
        items[..cut].iter().try_for_each(|item| item.encode(&mut first)).unwrap();
        let mut second = Encoder::new(wire(order));
        second.octets(&[0; 12]);
        items[cut..].iter().try_for_each(|item| item.encode(&mut second)).unwrap();
        let joints = [Joint { at: first.position(), alignment_position: 12 }];
        let octets = [first.to_vec(), second.to_vec().split_off(12)].concat();
        let mut input = Decoder::new(&octets, wire(order)).with_joints(&joints);
        prop_assert_eq!(input.remaining(), octets.len());
        prop_assert_eq!(&Vec::<BinStruct>::decode(&mut input).unwrap(), &items);
        prop_assert_eq!(input.remaining(), 0);
    }
}

#[test]
fn received_padding_is_ignored_and_sent_padding_is_zero() {
    let item = BinStruct { s: 1, c: spandrel_cdr::Char(2), l: 3, o: 4, d: 5.0 };
    let items = vec![item; 3];
    for order in ORDERS {
        let mut scratch = vec![0xff; 256];
        scratch.fill(0xff);
        let mut out = Encoder::reusing(scratch, wire(order));
        items.encode(&mut out).unwrap();
        let clean = out.to_vec();
        let mut model = support::Model::new(order, 0);
        items.model(&mut model);
        assert_eq!(clean, model.octets);
        let mut dirty = clean.clone();
        // The first element follows the length, the others are aligned: gaps of 3 and 7 octets.
        for at in [7, 13, 14, 15, 24 + 3, 24 + 9, 24 + 15, 48 + 3, 48 + 12] {
            assert_eq!(dirty[at], 0);
            dirty[at] = 0xaa;
        }
        assert_eq!(Vec::<BinStruct>::decode(&mut Decoder::new(&dirty, wire(order))).as_ref(), Ok(&items));
    }
}

#[test]
fn an_invalid_member_is_rejected_in_tight_loops_too() {
    for order in ORDERS {
        for bad in 0..4_usize {
            let mut octets = Encoder::new(wire(order));
            octets.len(4).unwrap();
            (0..4).for_each(|at| octets.octets(&[1, if at == bad { 2 } else { 1 }, 3]));
            let octets = octets.to_vec();
            let read = Vec::<Octets>::decode(&mut Decoder::new(&octets, wire(order)));
            assert_eq!(read, Err(CdrError::BadBoolean(2)));
        }
    }
}

#[test]
fn a_sequence_truncated_inside_an_element_is_rejected() {
    let items = vec![BinStruct { s: 1, c: spandrel_cdr::Char(2), l: 3, o: 4, d: 5.0 }; 4];
    for order in ORDERS {
        let octets = support::encoded(&items, order, 0).unwrap();
        for cut in (0..octets.len()).step_by(if cfg!(miri) { 9 } else { 1 }) {
            let read = Vec::<BinStruct>::decode(&mut Decoder::new(&octets[..cut], wire(order)));
            assert!(
                matches!(read, Err(CdrError::Truncated { .. } | CdrError::LengthBeyondInput { .. })),
                "cut at {cut}: {read:?}"
            );
        }
    }
}

#[test]
fn an_array_of_arrays_continues_across_a_joint_without_padding() {
    // As omniORB divides `double cells[2][2]` in GIOP 1.1: the second row begins with a fragment, at 4 modulo
    // 8.
    for order in ORDERS {
        let cells = [[1.5, -2.5], [3.5, 4.5]];
        let mut out = Encoder::new(wire(order));
        cells.encode(&mut out).unwrap();
        let octets = out.to_vec();
        let joints = [Joint { at: 16, alignment_position: 12 }];
        let mut input = Decoder::new(&octets, wire(order)).with_joints(&joints);
        assert_eq!(<[[f64; 2]; 2]>::decode(&mut input).unwrap(), cells);
        assert_eq!(input.remaining(), 0);
    }
}
