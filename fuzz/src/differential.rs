//! Values of random types read by what walks over octets by type codes, by dynamic anys and by the naive reference (`tests/reference`): all
//! refuse, or all read to the same end; and what was read is sent on in another order as the reference would write it.
//!
//! The first octet says how many octets the type is drawn from, the second order, version and code set, the third where the value begins.
//! Anys, and type codes as values, are left out: the reference does not look at the names in them.
use std::cell::RefCell;

use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use spandrel_cdr::{Any, ByteOrder, CharSet, Decoder, Encoder, GiopVersion, TcKind, TypeCode, Wire, walk};
use spandrel_dynamic::DynAny;
use spandrel_reference::{read, types, write};

thread_local! {
    static TYPES: RefCell<BoxedStrategy<TypeCode>> = RefCell::new(types().boxed());
}

pub fn run(input: &[u8]) {
    let [len, how, start, rest @ ..] = input else { return };
    let Some((seed, octets)) = rest.split_at_checked(usize::from(*len)) else { return };
    let Some(of) = drawn(seed).filter(is_comparable) else { return };
    let (order, other) = match how & 1 {
        0 => (ByteOrder::Big, ByteOrder::Little),
        _ => (ByteOrder::Little, ByteOrder::Big),
    };
    let version = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2][usize::from(how >> 1) % 3];
    let char_set = if how & 0x80 == 0 { CharSet::Latin1 } else { CharSet::Utf8 };
    let wire = Wire { char_set, ..Wire::new(order, version) };
    compare(&of, octets, usize::from(start % 8).min(octets.len()), wire, Wire { order: other, ..wire });
}

fn compare(of: &TypeCode, octets: &[u8], start: usize, wire: Wire, other: Wire) {
    let expected = read(of, octets, wire, start);
    let end = expected.as_ref().map(|(_, end)| *end);
    let mut input = Decoder::new(octets, wire).at(start);
    let skipped = walk::skip(of, &mut input).map(|()| input.position());
    assert_eq!(skipped.as_ref().ok(), end.as_ref(), "{of}: {skipped:?}");
    let mut input = Decoder::new(octets, wire).at(start);
    let any = Any::read(of.clone(), &mut input);
    assert_eq!(any.as_ref().ok().map(|_| input.position()), end, "{of}: {any:?}");
    let (Ok(any), Some((value, _))) = (any, expected) else { return };
    let apart = DynAny::new(&any).expect("what was read can be taken apart");
    let together = apart.to_any().expect("and put together");
    for any in [&any, &together] {
        let mut out = Encoder::new(other);
        assert_eq!(any.write_value(&mut out).ok().map(|()| out.to_vec()), write(of, &value, other, 0), "{of}");
    }
}

/// The type that these octets choose.
fn drawn(seed: &[u8]) -> Option<TypeCode> {
    let mut whole = [0; 32];
    seed.iter().enumerate().for_each(|(at, octet)| whole[at % 32] ^= octet);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &whole);
    let config = Config { failure_persistence: None, max_local_rejects: 16, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, rng);
    TYPES.with_borrow(|types| types.new_tree(&mut runner).ok().map(|tree| tree.current()))
}

fn is_comparable(of: &TypeCode) -> bool {
    let of = of.without_aliases();
    match of.kind() {
        TcKind::Any | TcKind::TypeCode => false,
        TcKind::Sequence | TcKind::Array => of.content_type().is_ok_and(|of| is_comparable(&of)),
        TcKind::Struct | TcKind::Except | TcKind::Union => {
            (0..of.member_count().expect("members")).all(|nth| of.member_type(nth).is_ok_and(|of| is_comparable(&of)))
        }
        _ => true,
    }
}
