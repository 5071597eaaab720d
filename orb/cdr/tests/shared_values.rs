//! Values that one message shares between its anys and its arguments, as omniORB encodes them: the second is
//! an indirection out of its any, or into one. An any's value is not an encapsulation, so an indirection may
//! lead to any earlier value in the message (CORBA 3.3 Part 2, 9.3.4.1 and 9.3.5.2).

use std::cell::Cell;
use std::sync::Arc;

use spandrel_cdr::{
    Any, ByteOrder, Cast, CdrError, ConcreteValue, Decode, Decoder, Encode, Encoder, GiopVersion, GraphBuilder,
    ImplementedBy, Joint, Limits, PlainFactory, TypeCode, Typed, ValueFactory, ValueModifier, ValueRef, ValueType,
    Visibility, Wire,
};

use crate::support;

use support::ORDERS;
use support::values::{Base, BaseState, Derived, DerivedState, Node, NodeState};

type OneBase = Option<ValueRef<dyn Base>>;
type OneNode = Option<ValueRef<dyn Node>>;

/// The mark in place of a value tag (CORBA 3.3 Part 2, 9.3.4.1).
const INDIRECTION: u32 = 0xffff_ffff;

fn boxed(of: &TypeCode, text: &str) -> Any {
    let write = |out: &mut Encoder<'_>| {
        out.u32(0x7fff_ff02); // one repository id
        out.short_str("IDL:Text:1.0")?;
        out.short_str(text)
    };
    Any::write(of.clone(), write).unwrap()
}

/// An any with a value, then `more` anys with indirections to the same value.
fn message(order: ByteOrder, text: &str, more: usize) -> (Any, Wire, Vec<u8>) {
    let of = TypeCode::value_box("IDL:Text:1.0", "Text", &TypeCode::string(0)).unwrap();
    let any = boxed(&of, text);
    let wire = Wire::new(order, GiopVersion::V1_2);
    let mut out = Encoder::new(wire);
    of.encode(&mut out).unwrap();
    let at = out.position().next_multiple_of(4);
    any.write_value(&mut out).unwrap();
    for _ in 0..more {
        of.encode(&mut out).unwrap();
        out.u32(INDIRECTION);
        let here = i32::try_from(out.position()).unwrap();
        out.i32(i32::try_from(at).unwrap() - here);
    }
    let octets = out.to_vec();
    drop(out);
    (any, wire, octets)
}

#[test]
fn an_any_gets_the_value_that_it_shares_with_an_earlier_one() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let (sent, wire, octets) = message(order, "boxed", 2);
        let mut input = Decoder::new(&octets, wire);
        let read: Vec<Any> = (0..3).map(|_| Any::decode(&mut input).unwrap()).collect();
        assert_eq!(input.remaining(), 0);
        for any in read {
            let mut out = Encoder::new(sent.value().wire());
            any.write_value(&mut out).unwrap();
            assert_eq!(out.to_vec(), sent.value().rest(), "it is self-contained in any message");
        }
    }
}

#[test]
fn the_copies_of_a_shared_value_are_limited() {
    let (_, wire, octets) = message(ByteOrder::Little, &"long ".repeat(20_000), 1_000);
    let mut input = Decoder::new(&octets, wire);
    let error = (0..1_001).find_map(|_| Any::decode(&mut input).err());
    assert!(matches!(error, Some(CdrError::Malformed(_))), "{error:?}");
}

#[test]
fn an_indirection_without_a_value_is_rejected() {
    let (_, wire, mut octets) = message(ByteOrder::Little, "boxed", 1);
    let offset = octets.len() - 4;
    let to_the_start = -i32::try_from(offset).unwrap();
    octets[offset..].copy_from_slice(&to_the_start.to_le_bytes());
    let mut input = Decoder::new(&octets, wire);
    Any::decode(&mut input).unwrap();
    assert!(matches!(Any::decode(&mut input), Err(CdrError::Malformed(_))));
}

fn value_type(id: &'static str, base: Option<&TypeCode>, members: &[(&'static str, TypeCode)]) -> TypeCode {
    let modifier = if base.is_some() { ValueModifier::Truncatable } else { ValueModifier::None };
    let members: Vec<_> = members.iter().map(|(name, of)| (*name, of.clone(), Visibility::Private)).collect();
    TypeCode::value(id, "V", modifier, base, &members).unwrap()
}

fn node_type() -> TypeCode {
    let node = TypeCode::recursive("IDL:Node:1.0").unwrap();
    let others = TypeCode::sequence(&node, 0).unwrap();
    let members = [("name", TypeCode::string(0)), ("weight", f64::type_code()), ("next", node), ("others", others)];
    value_type("IDL:Node:1.0", None, &members)
}

fn base_type() -> TypeCode {
    value_type("IDL:Base:1.0", None, &[("x", i32::type_code())])
}

fn derived_type() -> TypeCode {
    let members = [("y", i64::type_code()), ("node", node_type())];
    value_type("IDL:Derived:1.0", Some(&base_type()), &members)
}

/// Two nodes that are each other's next, and their own others.
fn circle() -> [ValueRef<dyn Node>; 2] {
    let nodes = GraphBuilder::build(|graph| {
        let nodes: [ValueRef<dyn Node>; 2] = [graph.reserve(), graph.reserve()];
        for (nth, name) in ["a", "b"].into_iter().enumerate() {
            let (next, own) = (Some(nodes[1 - nth].clone()), Some(nodes[nth].clone()));
            let state = NodeState { name: name.into(), weight: 0.5, next: next.into(), others: vec![own].into() };
            graph.define(&nodes[nth], state)?;
        }
        Ok(nodes)
    });
    nodes.unwrap()
}

fn is_circle(a: &ValueRef<dyn Node>, b: &ValueRef<dyn Node>) -> bool {
    let leads = |from: &ValueRef<dyn Node>, name: &str, next: &ValueRef<dyn Node>| {
        let state = from.node_state();
        state.name == name && state.next.get().as_ref() == Some(next) && state.others.get() == [Some(from.clone())]
    };
    leads(a, "a", b) && leads(b, "b", a)
}

/// The value of an any, decoded alone.
fn extract<T: Decode>(any: &Any) -> T {
    let mut input = any.value();
    let value = T::decode(&mut input).unwrap();
    assert_eq!(input.remaining(), 0, "the any holds exactly its value");
    value
}

#[test]
fn an_argument_may_be_a_value_of_an_earlier_any() {
    for (order, start) in ORDERS.into_iter().flat_map(|order| (0..8).map(move |start| (order, start))) {
        let wire = support::wire(order);
        let of = node_type();
        let [a, b] = circle().map(Some);
        let mut out = Encoder::new(wire);
        out.octets(&vec![0xee; start]);
        of.encode(&mut out).unwrap();
        // The inner one is needed before the enclosing one, and both more than once.
        [&a, &b, &a, &b, &a].into_iter().for_each(|value| value.encode(&mut out).unwrap());
        let octets = out.to_vec();

        let mut input = Decoder::new(&octets, wire).at(start);
        let any = Any::decode(&mut input).unwrap();
        let [b, a, b_again, a_again] = [(); 4].map(|()| OneNode::decode(&mut input).unwrap().unwrap());
        assert_eq!(input.remaining(), 0);
        assert!(is_circle(&a, &b), "{order:?} from {start}");
        assert!(a_again == a && b_again == b, "arguments share their common values");
        let a = extract::<OneNode>(&any).unwrap();
        assert!(is_circle(&a, &a.node_state().next.get().unwrap()));
    }
}

#[test]
fn an_argument_may_be_a_chunked_value_of_an_earlier_any_or_inside_it() {
    for order in ORDERS {
        let wire = support::wire(order);
        let of = derived_type();
        let [a, b] = circle();
        let state = DerivedState { base: BaseState { x: 5 }, y: 7, node: Some(a.clone()).into() };
        let derived: OneBase = Some(ValueRef::<dyn Derived>::new(state).upcast());
        let (a, b) = (Some(a), Some(b));
        let mut out = Encoder::new(wire);
        of.encode(&mut out).unwrap();
        derived.encode(&mut out).unwrap();
        [&b, &a].into_iter().for_each(|node| node.encode(&mut out).unwrap());
        derived.encode(&mut out).unwrap();
        let octets = out.to_vec();

        let mut input = Decoder::new(&octets, wire);
        let any = Any::decode(&mut input).unwrap();
        let [b, a] = [(); 2].map(|()| OneNode::decode(&mut input).unwrap().unwrap());
        let derived = OneBase::decode(&mut input).unwrap().unwrap().downcast::<dyn Derived>().unwrap();
        assert_eq!(input.remaining(), 0);
        assert!(is_circle(&a, &b));
        let state = derived.derived_state();
        assert_eq!((state.base.x, state.y, state.node.get()), (5, 7, Some(a)));
        let again = extract::<OneBase>(&any).unwrap().downcast::<dyn Derived>().unwrap();
        assert_eq!(again.derived_state().node.get().unwrap().node_state().name, "a");
    }
}

#[test]
fn an_any_may_have_the_value_of_an_earlier_argument() {
    for order in ORDERS {
        let wire = support::wire(order);
        let (node, base) = (node_type(), base_type());
        let [a, _] = circle();
        let state = DerivedState { base: BaseState { x: 5 }, y: 7, node: Some(a.clone()).into() };
        let derived: OneBase = Some(ValueRef::<dyn Derived>::new(state).upcast());
        let (x, a) = (Some(ValueRef::<dyn Base>::new(BaseState { x: 6 })), Some(a));
        let mut out = Encoder::new(wire);
        // The node is in chunks, inside a value in chunks.
        [&derived, &x].into_iter().for_each(|value| value.encode(&mut out).unwrap());
        node.encode(&mut out).unwrap();
        a.encode(&mut out).unwrap();
        base.encode(&mut out).unwrap();
        x.encode(&mut out).unwrap();
        let octets = out.to_vec();

        let mut input = Decoder::new(&octets, wire);
        let [derived, x] = [(); 2].map(|()| OneBase::decode(&mut input).unwrap().unwrap());
        let [node, base] = [(); 2].map(|()| Any::decode(&mut input).unwrap());
        assert_eq!(input.remaining(), 0);
        // An any holds a copy.
        let a = extract::<OneNode>(&node).unwrap();
        assert!(is_circle(&a, &a.node_state().next.get().unwrap()));
        assert_eq!(extract::<OneBase>(&base).unwrap().base_state(), x.base_state());
        assert!(derived.downcast::<dyn Derived>().is_some());
    }
}

#[test]
fn a_value_without_an_id_has_the_type_of_the_any() {
    let wire = support::wire(ByteOrder::Big);
    let of = derived_type();
    let mut out = Encoder::new(wire);
    of.encode(&mut out).unwrap();
    let at = i32::try_from(out.position().next_multiple_of(4)).unwrap();
    out.u32(0x7fff_ff00);
    out.i32(5);
    out.i64(7);
    out.u32(0);
    out.u32(INDIRECTION);
    let here = i32::try_from(out.position()).unwrap();
    out.i32(at - here);
    let octets = out.to_vec();
    let mut input = Decoder::new(&octets, wire);
    Any::decode(&mut input).unwrap();
    let base = OneBase::decode(&mut input).unwrap().unwrap();
    assert_eq!(base.downcast::<dyn Derived>().expect("the type of the any").derived_state().y, 7);
    // It is of no other type.
    let mut input = Decoder::new(&octets, wire);
    Any::decode(&mut input).unwrap();
    let refused = OneNode::decode(&mut input);
    assert_eq!(refused, Err(CdrError::UnknownValue { repository_id: "IDL:Derived:1.0".into() }));
}

/// In joined fragments of GIOP 1.1 positions and alignment differ.
#[test]
fn values_are_shared_across_fragments() {
    for order in ORDERS {
        let wire = Wire::new(order, GiopVersion::V1_1);
        let of = base_type();
        let base = Some(ValueRef::<dyn Base>::new(BaseState { x: 5 }));
        let mut out = Encoder::new(wire);
        out.octets(&[0; 12]);
        of.encode(&mut out).unwrap();
        base.encode(&mut out).unwrap();
        let end = out.position();
        base.encode(&mut out).unwrap();
        of.encode(&mut out).unwrap();
        base.encode(&mut out).unwrap();
        // Five octets, a fragment, and another that begins after the any.
        let octets = [&[0xee; 5][..], &out.to_vec()[12..]].concat();
        let joints = [Joint { at: 5, alignment_position: 12 }, Joint { at: end - 7, alignment_position: end }];
        let mut input = Decoder::new(&octets, wire).at(5).with_joints(&joints);
        let first = Any::decode(&mut input).unwrap();
        let argument = OneBase::decode(&mut input).unwrap().unwrap();
        let second = Any::decode(&mut input).unwrap();
        assert_eq!((argument.base_state().x, input.remaining()), (5, 0));
        assert_eq!(first, second);
        assert_eq!(extract::<OneBase>(&first).unwrap().base_state().x, 5);
    }
}

/// A value type without operations, whose values consist of their state.
macro_rules! plain_value {
    ($name:ident $id:literal) => {
        impl ValueType for $name {
            const REPOSITORY_ID: &'static str = $id;

            fn known(id: &str) -> Option<&'static dyn ValueFactory> {
                (id == Self::REPOSITORY_ID).then_some(&PlainFactory::<Self>::NEW)
            }
        }

        impl ConcreteValue for $name {
            type State = Self;
            const IDS: &'static [&'static str] = &[$id];
        }

        impl ImplementedBy<Self> for $name {
            fn offer(value: &Arc<Self>, cast: &mut Cast<'_>) {
                cast.offer::<Self>(|| value.clone());
            }

            fn encode_state<'a>(value: &'a Self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                value.encode(out)
            }
        }
    };
}

/// IDL: `module M { valuetype One { public long x; }; };`
#[derive(Clone, Debug)]
struct One {
    x: i32,
}

impl Encode for One {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.x.encode(out)
    }
}

impl Decode for One {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { x: Decode::decode(input)? })
    }
}

plain_value!(One "IDL:M/One:1.0");

/// Recorded from omniORBpy 4.3.1, by its `cdrMarshal`: `struct Both { any a; One b; One c; any d; }` and
/// `struct Reverse { One b; any a; }`, each with the same value in all members. The value is in chunks and
/// has no repository id, type codes are little-endian in both orders, and padding is not cleared.
#[test]
fn values_that_omniorb_shares_between_anys_and_arguments() {
    let both = [
        "0000001d0000003a01cad7160e00000049444c3a4d2f4f6e653a312e30000000040000004f6e65000000f4000000000001000000020000007800\
         1780030000000100d4007fffff080000000400000005ffffffffffffffffffffffecffffffffffffffe40000001d0000003a01cad7160e000000\
         49444c3a4d2f4f6e653a312e30000000040000004f6e650000000000000000000100000002000000780000000300000001006b27ffffffffffff\
         ff98",
        "1d0000003a00000001cad7160e00000049444c3a4d2f4f6e653a312e30000000040000004f6e650000000000000000000100000002000000780\
         0000003000000010049d408ffff7f0400000005000000ffffffffffffffffecffffffffffffffe4ffffff1d0000003a00000001cad7160e0000\
         0049444c3a4d2f4f6e653a312e30000000040000004f6e650000000000000000000100000002000000780000000300000001006b27ffffffff9\
         8ffffff",
    ];
    let reverse = [
        "7fffff080000000400000005ffffffff0000001d0000003a019530160e00000049444c3a4d2f4f6e653a312e30000000040000004f6e6500000\
         00000000000000100000002000000780000000300000001000000ffffffffffffffa8",
        "08ffff7f0400000005000000ffffffff1d0000003a000000019530160e00000049444c3a4d2f4f6e653a312e30000000040000004f6e6500000\
         00000000000000100000002000000780000000300000001000000ffffffffa8ffffff",
    ];
    let one = |input: &mut Decoder<'_>| Option::<ValueRef<One>>::decode(input).unwrap().unwrap();
    for (nth, order) in ORDERS.into_iter().enumerate() {
        let wire = support::wire(order);
        let octets = octets(both[nth]);
        let mut input = Decoder::new(&octets, wire);
        let a = Any::decode(&mut input).unwrap();
        let [b, c] = [one(&mut input), one(&mut input)];
        let d = Any::decode(&mut input).unwrap();
        assert_eq!((b.x, input.remaining()), (5, 0), "{order:?}");
        assert_eq!(b, c, "one value");
        assert_eq!(a.type_code(), d.type_code());
        assert_eq!([&a, &d].map(|any| one(&mut any.value()).x), [5, 5]);

        let octets = self::octets(reverse[nth]);
        let mut input = Decoder::new(&octets, wire);
        let (b, a) = (one(&mut input), Any::decode(&mut input).unwrap());
        assert_eq!((b.x, one(&mut a.value()).x, input.remaining()), (5, 5, 0), "{order:?}");
    }
}

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A list of octets, each with the next.
#[derive(Clone, Debug)]
struct Link {
    octets: Vec<u8>,
    next: Option<ValueRef<Link>>,
}

thread_local! {
    /// The number of links whose octets have been decoded.
    static READ: Cell<u32> = const { Cell::new(0) };
}

impl Encode for Link {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.octets.encode(out)?;
        self.next.encode(out)
    }
}

impl Decode for Link {
    const MIN_OCTETS: usize = 8;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let octets = Decode::decode(input)?;
        READ.set(READ.get() + 1);
        Ok(Self { octets, next: Decode::decode(input)? })
    }
}

plain_value!(Link "IDL:Link:1.0");

fn lying_type() -> TypeCode {
    TypeCode::sequence(&value_type("IDL:Link:1.0", None, &[("length", u32::type_code())]), 0).unwrap()
}

/// An any with `count` values whose type code declares their states as numbers: the lengths of the octets
/// that extend to `ends` when decoded, which differ by eight from one to the next. Returns the position of
/// each.
fn lying_any<'a>(of: &'a TypeCode, out: &mut Encoder<'a>, count: u32, ends: impl Fn(u32) -> u32) -> Vec<u32> {
    of.encode(out).unwrap();
    out.u32(count);
    let first = u32::try_from(out.position()).unwrap();
    let places: Vec<u32> = (0..count).map(|nth| first + 8 * nth).collect();
    for (nth, at) in (0..).zip(&places) {
        out.u32(0x7fff_ff00);
        out.u32(ends(nth) - at - 8);
    }
    places
}

/// Writes an indirection to this position.
fn write_indirection(out: &mut Encoder<'_>, to: u32) {
    out.u32(INDIRECTION);
    let here = u32::try_from(out.position()).unwrap();
    out.i32(-i32::try_from(here - to).unwrap());
}

#[test]
fn repeated_decoding_is_limited() {
    const LEN: u32 = 200_000;
    let wire = support::wire(ByteOrder::Big);
    let of = lying_type();
    let mut out = Encoder::new(wire);
    let places = lying_any(&of, &mut out, 1_000, |_| LEN - 4);
    out.octets(&vec![0; LEN as usize - out.position()]);
    places.into_iter().for_each(|at| write_indirection(&mut out, at));
    let octets = out.to_vec();
    let mut input = Decoder::new(&octets, wire);
    Any::decode(&mut input).unwrap();
    let mut input = input.at(LEN as usize);
    let refused = (0..1_000).find_map(|_| Option::<ValueRef<Link>>::decode(&mut input).err());
    assert!(matches!(refused, Some(CdrError::Malformed(_))), "{refused:?}");
    assert!((1..20).contains(&READ.get()), "{} times the octets of the message were decoded", READ.get());
}

#[test]
fn nested_repeated_decoding_is_limited() {
    const LEN: u32 = 200_000;
    const COUNT: u32 = 200;
    let wire = Wire { limits: Limits { value_nesting: 500, ..Limits::default() }, ..support::wire(ByteOrder::Big) };
    let of = lying_type();
    let mut out = Encoder::new(wire);
    // Each is followed by an indirection to the previous one; the first by nil.
    let places = lying_any(&of, &mut out, COUNT, |nth| LEN + 8 * nth);
    out.octets(&vec![0; LEN as usize - out.position()]);
    out.u32(0);
    out.u32(0);
    places.iter().for_each(|at| write_indirection(&mut out, *at));
    let octets = out.to_vec();
    let mut input = Decoder::new(&octets, wire);
    Any::decode(&mut input).unwrap();
    // The last of them, at the end of the message.
    let mut input = input.at(octets.len() - 8);
    let refused = Option::<ValueRef<Link>>::decode(&mut input);
    assert!(matches!(refused, Err(CdrError::Malformed(_))), "{refused:?}");
    assert!((1..20).contains(&READ.get()), "{} times the octets of the message were decoded", READ.get());
}

#[test]
fn values_in_anys_count_against_the_limit_of_a_message() {
    let limits = Limits { values: 10, ..Limits::default() };
    let wire = Wire { limits, ..support::wire(ByteOrder::Big) };
    let of = lying_type();
    for count in [10, 11] {
        let mut out = Encoder::new(wire);
        lying_any(&of, &mut out, count, |_| 1 << 20);
        let octets = out.to_vec();
        let read = Any::decode(&mut Decoder::new(&octets, wire));
        assert_eq!(read.is_ok(), count == 10);
        assert!(read.is_ok() || read.unwrap_err() == CdrError::TooManyValues { limit: 10 });
    }
}
