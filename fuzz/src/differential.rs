//! Values of random types decoded by the walker, by dynamic anys and by the naive reference
//! (`tests/reference`): all refuse, or all end at the same octet; and the value encoded in the other byte
//! order equals the reference's octets.
//!
//! The first octet is the length of the type's seed, the second selects byte order, version and code set, the
//! third the offset of the value. Anys, and type codes as values, are excluded: the reference does not check
//! the names in them.
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
    let Some(of) = type_from(seed).filter(is_comparable) else { return };
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
    let dynamic = DynAny::new(&any).expect("a decoded value can be decomposed");
    let rebuilt = dynamic.to_any().expect("a decomposed value can be rebuilt");
    for any in [&any, &rebuilt] {
        let mut out = Encoder::new(other);
        assert_eq!(any.write_value(&mut out).ok().map(|()| out.to_vec()), write(of, &value, other, 0), "{of}");
    }
}

/// The random type for this seed.
fn type_from(seed: &[u8]) -> Option<TypeCode> {
    let mut full_seed = [0; 32];
    seed.iter().enumerate().for_each(|(at, octet)| full_seed[at % 32] ^= octet);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &full_seed);
    let config = Config { failure_persistence: None, max_local_rejects: 16, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, rng);
    TYPES.with_borrow(|types| types.new_tree(&mut runner).ok().map(|tree| tree.current()))
}

fn is_comparable(of: &TypeCode) -> bool {
    let of = of.without_aliases();
    match of.kind() {
        TcKind::Any | TcKind::TypeCode => false,
        TcKind::Sequence | TcKind::Array => of.content_type().is_ok_and(|of| is_comparable(&of)),
        TcKind::Struct | TcKind::Except | TcKind::Union => (0..of.member_count().expect("the type has members"))
            .all(|nth| of.member_type(nth).is_ok_and(|of| is_comparable(&of))),
        _ => true,
    }
}
