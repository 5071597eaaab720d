//! Untrusted input: it ends in a value or in an error, never in a panic, a hang or excessive memory.

use crate::support;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{
    BoundedString, BoundedVec, ByteOrder, CdrError, Char, Decode, Decoder, GiopVersion, Ior, Joint, Limits, LongDouble,
    Wire,
};
use support::{
    ORDERS, order,
    structs::{BinStruct, Octets, Ragged},
    wire,
};

/// Decodes the input as every kind of value.
fn read_everything(input: &Decoder<'_>) {
    fn read<T: Decode>(input: &Decoder<'_>) {
        let mut own = input.clone();
        if T::decode(&mut own).is_ok() {
            assert!(own.position() >= input.position() + T::MIN_OCTETS);
        }
        let _ = T::lend(&mut input.clone());
        let _ = T::decode_array::<3>(&mut input.clone());
        let _ = Vec::<T>::decode(&mut input.clone());
        let _ = BoundedVec::<T, 2>::decode(&mut input.clone());
    }
    read::<i16>(input);
    read::<u32>(input);
    read::<f64>(input);
    read::<u8>(input);
    read::<bool>(input);
    read::<Char>(input);
    read::<LongDouble>(input);
    read::<String>(input);
    read::<BoundedString<3>>(input);
    read::<Vec<Vec<u16>>>(input);
    read::<BinStruct>(input);
    read::<Ragged>(input);
    read::<Octets>(input);
    read::<Ior>(input);
    read::<[String; 2]>(input);
    if let Ok(inner) = input.clone().encapsulation() {
        let _ = f64::decode(&mut inner.clone());
    }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn arbitrary_octets_are_decoded_or_rejected(octets in vec(any::<u8>(), 0..100), order in order(), start in 0..9_usize) {
        read_everything(&Decoder::new(&octets, wire(order)).at(start));
    }

    #[test]
    fn plausible_octets_are_decoded_or_rejected(octets in vec(prop_oneof![3 => Just(0_u8), 1 => 0..9_u8], 0..100), order in order()) {
        read_everything(&Decoder::new(&octets, wire(order)));
    }

    #[test]
    fn joints_at_any_position_are_safe(
        octets in vec(prop_oneof![3 => Just(0_u8), 1 => 0..9_u8], 0..100), order in order(),
        mut joints in vec((0..120_usize, 0..16_usize), 0..4), start in 0..100_usize,
    ) {
        joints.sort_unstable();
        let joints: Vec<_> = joints.into_iter().map(|(at, alignment_position)| Joint { at, alignment_position }).collect();
        let input = Decoder::new(&octets, wire(order)).with_joints(&joints).at(start);
        prop_assert_eq!(input.remaining(), octets.len().saturating_sub(start));
        prop_assert_eq!(input.rest(), &octets[start.min(octets.len())..]);
        read_everything(&input);
    }
}

#[test]
fn a_length_beyond_the_input_is_rejected_before_allocation() {
    for order in ORDERS {
        let octets = [0xff; 64];
        let refused = |error| matches!(error, CdrError::LengthBeyondInput { len: 0xffff_ffff, remaining: 60 });
        let input = Decoder::new(&octets, wire(order));
        assert!(refused(Vec::<u8>::decode(&mut input.clone()).unwrap_err()));
        assert!(refused(Vec::<f64>::decode(&mut input.clone()).unwrap_err()));
        assert!(refused(Vec::<Vec<BinStruct>>::decode(&mut input.clone()).unwrap_err()));
        assert!(refused(f64::lend(&mut input.clone()).unwrap_err()));
        assert!(refused(BinStruct::lend(&mut input.clone()).unwrap_err()));
        assert!(refused(String::decode(&mut input.clone()).unwrap_err()));
        assert!(refused(input.clone().encapsulation().unwrap_err()));
    }
}

#[test]
fn a_length_is_checked_with_the_smallest_element() {
    for order in ORDERS {
        let mut octets = support::encoded(&7_u32, order, 0).unwrap();
        octets.extend([0; 27]);
        // Seven strings of at least four octets do not fit into twenty-seven.
        let error = Vec::<String>::decode(&mut Decoder::new(&octets, wire(order))).unwrap_err();
        assert_eq!(error, CdrError::LengthBeyondInput { len: 7, remaining: 27 });
    }
}

/// A value that contains others of its type, as recursive IDL types do.
#[derive(Clone, Debug)]
struct Tree(Vec<Tree>);

impl Decode for Tree {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Vec::decode(input).map(Self)
    }
}

impl Tree {
    fn depth(&self) -> usize {
        1 + self.0.iter().map(Self::depth).max().unwrap_or(0)
    }
}

#[test]
fn nesting_ends_in_an_error_instead_of_a_stack_overflow() {
    for order in ORDERS {
        let nested = |levels: usize| {
            let mut octets = support::encoded(&vec![1_u32; levels], order, 0).unwrap().split_off(4);
            octets.extend([0; 4]);
            octets
        };
        let octets = nested(63);
        assert_eq!(Tree::decode(&mut Decoder::new(&octets, wire(order))).unwrap().depth(), 64);
        let octets = nested(if cfg!(miri) { 1000 } else { 100_000 });
        let error = Tree::decode(&mut Decoder::new(&octets, wire(order))).unwrap_err();
        assert_eq!(error, CdrError::TooDeep { limit: 64 });
        let strict = Wire { limits: Limits { nesting: 3, ..Limits::default() }, ..Wire::new(order, GiopVersion::V1_2) };
        let error = Tree::decode(&mut Decoder::new(&nested(3), strict)).unwrap_err();
        assert_eq!(error, CdrError::TooDeep { limit: 3 });
    }
}

#[test]
fn encapsulations_count_as_nesting() {
    let strict = Wire { limits: Limits { nesting: 1, ..Limits::default() }, ..Wire::default() };
    let octets =
        support::encoded(&vec![spandrel_cdr::ByteOrder::NATIVE.flag(), 0, 0, 0, 0, 0, 0, 0], strict.order, 0).unwrap();
    let mut outer = Decoder::new(&octets, strict);
    let mut inner = outer.encapsulation().unwrap();
    assert_eq!(inner.encapsulation().unwrap_err(), CdrError::Truncated { needed: 1, remaining: 0 });
    let mut inner = Decoder::new(&octets, strict).encapsulation().unwrap();
    assert_eq!(Vec::<u32>::decode(&mut inner), Err(CdrError::TooDeep { limit: 1 }));
}

#[test]
fn booleans_are_zero_or_one() {
    for order in ORDERS {
        for value in (0..=255_u8).step_by(if cfg!(miri) { 51 } else { 1 }) {
            let octets = support::encoded(&vec![1, value], order, 0).unwrap();
            let single = bool::decode(&mut Decoder::new(&[value], wire(order)));
            let sequence = Vec::<bool>::decode(&mut Decoder::new(&octets, wire(order)));
            let lent = bool::lend(&mut Decoder::new(&octets, wire(order))).map(std::borrow::Cow::into_owned);
            match value {
                0 | 1 => {
                    assert_eq!(single, Ok(value == 1));
                    assert_eq!((sequence, lent), (Ok(vec![true, value == 1]), Ok(vec![true, value == 1])));
                }
                bad => {
                    let error = CdrError::BadBoolean(bad);
                    assert_eq!(single, Err(error.clone()));
                    assert_eq!((sequence, lent), (Err(error.clone()), Err(error)));
                }
            }
        }
    }
}

#[test]
fn an_empty_encapsulation_has_no_byte_order() {
    let error = Decoder::new(&[0; 4], Wire::default()).encapsulation().unwrap_err();
    assert_eq!(error, CdrError::Truncated { needed: 1, remaining: 0 });
}

/// The memory of an element beyond its octets on the wire counts; elements that need no more are free.
#[test]
fn the_memory_of_elements_beyond_their_octets_is_limited() {
    type Texts = Vec<BoundedString<3>>;
    let wire = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
    let octets = |texts: usize| [vec![texts as u8, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0].repeat(texts)].concat();
    let beyond = 10 * (size_of::<String>() - BoundedString::<3>::MIN_OCTETS);
    let read = |limit| Texts::decode(&mut Decoder::new(&octets(10), wire).with_memory_limit(limit, None));
    assert_eq!(read(beyond).map(|texts| texts.len()), Ok(10));
    assert_eq!(read(beyond - 1), Err(CdrError::TooMuchMemory { limit: beyond - 1 }));
    let numbers = [2, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0];
    assert_eq!(Vec::<u32>::decode(&mut Decoder::new(&numbers, wire).with_memory_limit(0, None)), Ok(vec![7, 9]));
}

#[test]
fn the_debug_form_of_a_decoder_has_its_position_and_no_octets() {
    let input = Decoder::new(&[171; 9], Wire::default()).at(4);
    let text = format!("{input:?}");
    assert!(text.contains("at: 4") && text.contains("remaining: 5") && !text.contains("171"), "{text}");
}
