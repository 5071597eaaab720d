//! Values: sharing, cycles, chunks, truncation, custom state, and rejected input.

use std::any::Any;
use std::sync::Arc;

use spandrel_cdr::{
    Binder, ByteOrder, Cast, CdrError, ConcreteValue, Decode, Decoder, Encode, Encoder, ExtractError, GraphBuilder,
    GraphError, ImplementedBy, Ior, Limits, Linked, PlainFactory, TypeCode, Typed, ValueBase, ValueFactory,
    ValueModifier, ValueRef, ValueType, Visibility, Wire, custom_factory, value_factory,
};

use crate::support;

use support::values::*;
use support::{ORDERS, wire};

fn octets<T: Encode + ?Sized>(value: &T, order: ByteOrder) -> Vec<u8> {
    let mut out = Encoder::new(wire(order));
    value.encode(&mut out).unwrap();
    out.to_vec()
}

#[track_caller]
fn there_and_back<T: Encode + Decode>(value: &T, order: ByteOrder) -> T {
    let octets = octets(value, order);
    let mut input = Decoder::new(&octets, wire(order));
    let back = T::decode(&mut input).unwrap();
    assert_eq!(input.remaining(), 0);
    back
}

fn node(name: &str) -> NodeState {
    NodeState { name: name.to_owned(), weight: 1.5, ..NodeState::default() }
}

type NodeRef = ValueRef<dyn Node>;

#[test]
fn nil_survives_encoding_and_decoding() {
    for order in ORDERS {
        assert_eq!(octets(&None::<NodeRef>, order), [0; 4]);
        assert_eq!(there_and_back(&None::<NodeRef>, order), None);
    }
}

#[test]
fn a_value_has_its_id_and_its_state() {
    let value: ValueRef<dyn Base> = ValueRef::new(BaseState { x: 7 });
    let expected = b"\x7f\xff\xff\x02\0\0\0\x0dIDL:Base:1.0\0\0\0\0\0\0\0\x07";
    assert_eq!(octets(&Some(value), ByteOrder::Big), expected);
}

#[test]
fn sharing_survives_encoding_and_decoding() {
    for order in ORDERS {
        let shared: NodeRef = ValueRef::new(node("shared"));
        let root: NodeRef = ValueRef::new(NodeState {
            next: Some(shared.clone()).into(),
            others: vec![Some(shared.clone()), None, Some(shared.clone())].into(),
            ..node("root")
        });
        // Sharing also holds between two outermost values of a message.
        let [root, alone] = there_and_back(&[Some(root), Some(shared)], order);
        let (root, alone) = (root.unwrap(), alone.unwrap());
        assert_eq!((&*root.node_state().name, &*alone.node_state().name), ("root", "shared"));
        let next = root.node_state().next.get().unwrap();
        let others = root.node_state().others.get();
        assert_eq!(others, [Some(next.clone()), None, Some(next.clone())]);
        assert_eq!(alone, next);
        // A link keeps the whole graph alive.
        drop((root, others));
        assert_eq!(next.node_state().weight, 1.5);
    }
}

fn ring(len: usize) -> NodeRef {
    let ring = GraphBuilder::build(|graph| {
        let nodes: Vec<NodeRef> = (0..len).map(|_| graph.reserve()).collect();
        for (nth, place) in nodes.iter().enumerate() {
            let next = nodes[(nth + 1) % len].clone();
            graph.define(place, NodeState { next: Some(next).into(), ..node(&nth.to_string()) })?;
        }
        Ok(nodes[0].clone())
    });
    ring.unwrap()
}

#[test]
fn cycles_survive_and_are_freed_with_the_last_reference() {
    for order in ORDERS {
        for len in [1, 2, 50] {
            let first = there_and_back(&Some(ring(len)), order).unwrap();
            let mut here = first.clone();
            for nth in 0..len {
                assert_eq!(here.node_state().name, nth.to_string());
                here = here.node_state().next.get().unwrap();
            }
            assert_eq!(here, first);
        }
    }
    // A value that reports its drop.
    struct Told(Arc<()>, NodeState);
    impl Node for Told {
        fn node_state(&self) -> &NodeState {
            let _ = &self.0;
            &self.1
        }
    }
    let alive = Arc::new(());
    let circle = GraphBuilder::build(|graph| {
        let me: NodeRef = graph.reserve();
        let state = NodeState { next: Some(me.clone()).into(), ..node("me") };
        graph.define(&me, Told(alive.clone(), state))?;
        Ok(me)
    });
    let circle = circle.unwrap();
    assert_eq!(circle.node_state().next.get().as_ref(), Some(&circle));
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(circle);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn a_list_of_a_million_drops() {
    let mut list: Option<NodeRef> = None;
    for _ in 0..if cfg!(miri) { 100 } else { 1_000_000 } {
        list = Some(ValueRef::new(NodeState { next: list.into(), ..NodeState::default() }));
    }
    // And is too deep to be encoded.
    let mut out = Encoder::new(Wire::default());
    if !cfg!(miri) {
        assert_eq!(list.encode(&mut out), Err(CdrError::TooDeep { limit: 256 }));
    }
}

#[test]
fn a_graph_must_be_complete() {
    let undefined = GraphBuilder::build(|graph| Ok(graph.reserve::<dyn Node>()));
    assert_eq!(undefined.unwrap_err(), GraphError::Undefined { count: 1 });
    let twice = GraphBuilder::build(|graph| {
        let one: NodeRef = graph.add(node("one"));
        graph.define(&one, node("other"))?;
        Ok(one)
    });
    assert_eq!(twice.unwrap_err(), GraphError::AlreadyDefined);
    let foreign: NodeRef = ValueRef::new(node("foreign"));
    let other = GraphBuilder::build(|graph| graph.define(&foreign, node("other")));
    assert_eq!(other.unwrap_err(), GraphError::NotReserved);
}

fn derived() -> ValueRef<dyn Derived> {
    let node = ValueRef::new(node("inner"));
    ValueRef::new(DerivedState { base: BaseState { x: 7 }, y: -8, node: Some(node).into() })
}

#[test]
fn a_derived_value_is_decoded_as_its_base() {
    for order in ORDERS {
        let sent: ValueRef<dyn Base> = derived().upcast();
        let base = there_and_back(&Some(sent), order).unwrap();
        assert_eq!(base.base_state().x, 7);
        assert_eq!(base.repository_id(), Some("IDL:Derived:1.0"));
        let derived: ValueRef<dyn Derived> = base.downcast().unwrap();
        assert_eq!(derived.derived_state().y, -8);
        assert_eq!(derived.derived_state().node.get().unwrap().node_state().name, "inner");
        assert_eq!(derived.upcast::<dyn Base>(), base);
        assert!(base.downcast::<dyn Node>().is_none());
        assert!(base.implementation::<DerivedState>().is_some());
    }
}

#[test]
fn a_receiver_without_the_derived_type_gets_the_truncated_base() {
    for order in ORDERS {
        let sent = [Some(derived()), Some(derived())];
        let mut out = Encoder::new(wire(order));
        sent.encode(&mut out).unwrap();
        out.u32(0xcafe);
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, wire(order));
        for _ in 0..2 {
            let base = Option::<ValueRef<dyn OldBase>>::decode(&mut input).unwrap().unwrap();
            assert_eq!(base.old_state().x, 7);
        }
        assert_eq!(input.u32(), Ok(0xcafe));
    }
}

#[test]
fn shared_values_inside_a_truncated_part_are_decoded() {
    for order in ORDERS {
        let sent = derived();
        let node = sent.derived_state().node.get();
        let (sent, node) = (Some(sent), node);
        let mut out = Encoder::new(wire(order));
        sent.encode(&mut out).unwrap();
        node.encode(&mut out).unwrap();
        out.u32(0xcafe);
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, wire(order));
        Option::<ValueRef<dyn OldBase>>::decode(&mut input).unwrap().unwrap();
        let node = Option::<NodeRef>::decode(&mut input).unwrap().unwrap();
        assert_eq!(node.node_state().name, "inner");
        assert_eq!(input.u32(), Ok(0xcafe));
    }
}

/// A chain of nodes inside a truncated value, then the nodes of the chain from its end to its beginning.
fn chain_cut_off(len: usize, order: ByteOrder) -> Vec<u8> {
    let mut nodes: Vec<Option<NodeRef>> = vec![None];
    for _ in 0..len {
        let next = nodes[nodes.len() - 1].clone();
        nodes.push(Some(ValueRef::new(NodeState { next: next.into(), ..node("link") })));
    }
    let last = nodes[len].clone();
    let derived = DerivedState { node: last.into(), ..DerivedState::default() };
    let derived: Option<ValueRef<dyn Derived>> = Some(ValueRef::new(derived));
    let mut out = Encoder::new(wire(order));
    derived.encode(&mut out).unwrap();
    nodes.encode(&mut out).unwrap();
    out.to_vec()
}

#[test]
fn values_inside_a_truncated_part_are_created_once() {
    for order in ORDERS {
        let octets = chain_cut_off(8, order);
        let mut input = Decoder::new(&octets, wire(order));
        Option::<ValueRef<dyn OldBase>>::decode(&mut input).unwrap().unwrap();
        let nodes = Nodes::decode(&mut input).unwrap();
        assert_eq!((nodes.len(), input.remaining()), (9, 0));
        for pair in nodes.windows(2) {
            assert_eq!(pair[1].as_ref().unwrap().node_state().next.get(), pair[0]);
        }
        // Each is inside its predecessor: a long chain would be decoded repeatedly.
        let octets = chain_cut_off(200, order);
        let mut input = Decoder::new(&octets, wire(order));
        Option::<ValueRef<dyn OldBase>>::decode(&mut input).unwrap().unwrap();
        assert!(matches!(Nodes::decode(&mut input), Err(CdrError::Malformed(_))));
    }
}

#[test]
fn boxed_values_are_values() {
    for order in ORDERS {
        let text: ValueRef<Text> = ValueRef::new(Text("boxed".to_owned()));
        let back = there_and_back(&[Some(text.clone()), Some(text)], order);
        assert_eq!(back[0].as_ref().unwrap().0, "boxed");
        assert_eq!(back[0], back[1]);
    }
}

/// A binder with factories only.
#[derive(Clone, Default)]
struct Factories(Vec<(&'static str, Arc<dyn ValueFactory>)>);

impl Binder for Factories {
    fn bind(&self, _: Ior) -> Result<Arc<dyn Any + Send + Sync>, CdrError> {
        Err(CdrError::Unbound)
    }

    fn share(&self) -> Arc<dyn Binder> {
        Arc::new(self.clone())
    }

    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.0.iter().find(|(id, _)| *id == repository_id).map(|(_, factory)| factory.clone())
    }
}

impl Typed for dyn Base {
    fn type_code() -> TypeCode {
        let members = [("x", TypeCode::LONG, Visibility::Public)];
        TypeCode::value("IDL:Base:1.0", "Base", ValueModifier::None, None, &members).unwrap()
    }
}

impl Typed for dyn Derived {
    fn type_code() -> TypeCode {
        let members =
            [("y", TypeCode::LONGLONG, Visibility::Public), ("node", TypeCode::value_base(), Visibility::Public)];
        let base = <dyn Base>::type_code();
        TypeCode::value("IDL:Derived:1.0", "Derived", ValueModifier::Truncatable, Some(&base), &members).unwrap()
    }
}

impl Typed for Text {
    fn type_code() -> TypeCode {
        TypeCode::value_box("IDL:Text:1.0", "Text", &TypeCode::STRING).unwrap()
    }
}

/// As `CORBA::Any::to_value` in the mappings to other languages.
#[test]
fn a_value_in_an_any_is_extracted_as_its_base() {
    let derived =
        || Some(ValueRef::<dyn Derived>::new(DerivedState { base: BaseState { x: 3 }, ..Default::default() }));
    let whole = spandrel_cdr::Any::new(derived()).unwrap();
    assert!(whole.extract::<Option<ValueRef<dyn Base>>>().is_err(), "its type is another one");
    let base = whole.to_value::<dyn Base>().unwrap().unwrap();
    assert_eq!((base.base_state().x, base.repository_id()), (3, Some("IDL:Derived:1.0")));
    assert!(base.downcast::<dyn Derived>().is_some());
    assert_eq!(whole.to_value::<dyn Derived>().unwrap().unwrap().derived_state().base.x, 3);
    let other = |result: Result<_, ExtractError>| matches!(result, Err(ExtractError::OtherType { .. }));
    assert!(other(whole.to_value::<Text>().map(drop)));
    let factories = Factories(vec![("IDL:Derived:1.0", Arc::new(PlainFactory::<dyn Derived>::NEW))]);
    let read = |of: TypeCode, octets: &[u8]| {
        let mut input = Decoder::new(octets, wire(ByteOrder::Big)).with_binder(&factories);
        spandrel_cdr::Any::read(of, &mut input).unwrap()
    };
    let any_value = read(<dyn Derived>::type_code(), &octets(&derived(), ByteOrder::Big));
    let any_value = any_value.to_value::<dyn ValueBase>().unwrap().unwrap();
    assert!(any_value.downcast::<dyn Derived>().is_some());
    assert_eq!(spandrel_cdr::Any::new(None::<ValueRef<dyn Derived>>).unwrap().to_value::<dyn Base>().unwrap(), None);
    // The type code is less specific than the value: the value's type decides.
    let said_less = read(<dyn Base>::type_code(), &octets(&derived(), ByteOrder::Big));
    assert!(said_less.to_value::<dyn Derived>().unwrap().is_some());
    let is_less = spandrel_cdr::Any::new(Some(ValueRef::<dyn Base>::new(BaseState { x: 4 }))).unwrap();
    assert!(other(is_less.to_value::<dyn Derived>().map(drop)));
    assert!(other(spandrel_cdr::Any::new(4_i32).unwrap().to_value::<dyn Base>().map(drop)));
    // The value has no type information, so it has the type code's type (Part 2, 9.3.4.1): no ids, and null
    // inside.
    let unsaid = b"\x7f\xff\xff\x00\0\0\0\x05\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\0";
    let unsaid = read(<dyn Derived>::type_code(), &unsaid[..]);
    assert_eq!(unsaid.to_value::<dyn Base>().unwrap().unwrap().repository_id(), Some("IDL:Derived:1.0"));
    // In the form of an abstract interface.
    let either = TypeCode::abstract_interface("IDL:Either:1.0", "Either").unwrap();
    let value = derived();
    let mut out = Encoder::new(wire(ByteOrder::Big));
    out.bool(false);
    value.encode(&mut out).unwrap();
    let either = read(either, &out.to_vec());
    assert_eq!(either.to_value::<dyn Base>().unwrap().unwrap().base_state().x, 3);
    assert!(other(either.to_value::<Text>().map(drop)));
}

/// Counts, names, and a value, in an order without an IDL equivalent.
struct Soup(Vec<u64>, Linked<Option<NodeRef>>, String);

impl Recipe for Soup {
    fn marshal<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.u8(9);
        self.1.encode(out)?;
        self.0.encode(out)?;
        self.1.encode(out)?;
        out.str(&self.2)
    }
}

fn soups(greedy: bool) -> Factories {
    let read = move |input: &mut Decoder<'_>| {
        assert_eq!(input.u8()?, 9);
        let node = Decode::decode(input)?;
        let counts = Decode::decode(input)?;
        let again: Linked<Option<NodeRef>> = Decode::decode(input)?;
        assert_eq!(node, again);
        // Its unread rest is skipped.
        let name = if greedy { Decode::decode(input)? } else { String::new() };
        Ok(Soup(counts, node, name))
    };
    Factories(vec![("IDL:Recipe:1.0", custom_factory::<dyn Recipe, _>(read))])
}

#[test]
fn custom_values_use_their_own_marshaling() {
    for order in ORDERS {
        for greedy in [true, false] {
            let soup: ValueRef<dyn Recipe> =
                ValueRef::new(Soup(vec![1, 2, 3], Some(ValueRef::new(node("leek"))).into(), "soup".to_owned()));
            let octets = octets(&[Some(soup), None], order);
            let factories = soups(greedy);
            let mut input = Decoder::new(&octets, wire(order)).with_binder(&factories);
            let [soup, none] = <[Option<ValueRef<dyn Recipe>>; 2]>::decode(&mut input).unwrap();
            assert_eq!((none, input.remaining()), (None, 0));
            let soup = soup.unwrap();
            let Soup(counts, leek, name) = soup.implementation().unwrap();
            assert_eq!(leek.get().unwrap().node_state().name, "leek");
            assert_eq!((&counts[..], &**name), (&[1, 2, 3][..], if greedy { "soup" } else { "" }));
        }
    }
}

/// A link would stay in the value, and could not be followed later.
#[test]
fn the_reader_of_a_custom_value_that_keeps_a_plain_reference_is_an_error() {
    let soup: ValueRef<dyn Recipe> =
        ValueRef::new(Soup(Vec::new(), Some(ValueRef::new(node("leek"))).into(), "".to_owned()));
    let octets = octets(&Some(soup), ByteOrder::Big);
    let read = |input: &mut Decoder<'_>| {
        input.u8()?;
        let node: Option<NodeRef> = Decode::decode(input)?;
        Ok(Soup(Vec::new(), node.into(), String::new()))
    };
    let factories = Factories(vec![("IDL:Recipe:1.0", custom_factory::<dyn Recipe, _>(read))]);
    let mut input = Decoder::new(&octets, wire(ByteOrder::Big)).with_binder(&factories);
    let refused = Option::<ValueRef<dyn Recipe>>::decode(&mut input);
    assert_eq!(refused.unwrap_err(), CdrError::UnlinkedValue);
}

const WSTRING_VALUE: &str = "IDL:omg.org/CORBA/WStringValue:1.0";

/// The value box `CORBA::WStringValue` as the application implements it.
#[derive(Clone)]
struct WideText(String);

impl Encode for WideText {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.wstr(&self.0)
    }
}

impl Decode for WideText {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        input.wstr().map(Self)
    }
}

impl ValueType for WideText {
    const REPOSITORY_ID: &'static str = WSTRING_VALUE;

    fn known(id: &str) -> Option<&'static dyn ValueFactory> {
        (id == Self::REPOSITORY_ID).then_some(&PlainFactory::<Self>::NEW)
    }
}

impl ConcreteValue for WideText {
    type State = Self;
    const IDS: &'static [&'static str] = &[WSTRING_VALUE];
}

impl ImplementedBy<Self> for WideText {
    fn offer(value: &Arc<Self>, cast: &mut Cast<'_>) {
        cast.offer::<Self>(|| value.clone());
    }

    fn encode_state<'a>(value: &'a Self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        value.encode(out)
    }
}

impl Typed for WideText {
    fn type_code() -> TypeCode {
        TypeCode::value_box(WSTRING_VALUE, "WStringValue", &TypeCode::WSTRING).unwrap()
    }
}

/// A `java.lang.String` in an `any` of Java's ORBs: a box of `string` by its type code, and a `WStringValue` by its
/// id and its octets.
#[test]
fn a_string_of_java_in_an_any_is_read_by_its_own_id() {
    for order in ORDERS {
        for box_id in [WSTRING_VALUE, "RMI:java.lang.String:0000000000000000"] {
            for has_id in [true, false] {
                if !has_id && box_id != WSTRING_VALUE {
                    continue;
                }
                let of = TypeCode::value_box(box_id, "StringValue", &TypeCode::STRING).unwrap();
                let mut out = Encoder::new(wire(order));
                out.u32(if has_id { 0x7fff_ff02 } else { 0x7fff_ff00 });
                if has_id {
                    out.str(WSTRING_VALUE).unwrap();
                }
                out.wstr("Grüße, 東京").unwrap();
                out.u32(77);
                let octets = out.to_vec();
                let mut input = Decoder::new(&octets, wire(order));
                let any = spandrel_cdr::Any::read(of, &mut input).unwrap();
                assert_eq!(input.u32(), Ok(77), "the value ends where it ends");
                // In another encoding.
                let other = if order == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
                let mut out = Encoder::new(wire(other));
                any.write_value(&mut out).unwrap();
                let copy = out.to_vec();
                let mut input = Decoder::new(&copy, wire(other));
                let again = spandrel_cdr::Any::read(any.type_code().clone(), &mut input).unwrap();
                assert_eq!((again == any, input.remaining()), (true, 0));
                for any in [&any, &again] {
                    let value = any.to_value::<WideText>().unwrap().unwrap();
                    assert_eq!(value.0, "Grüße, 東京");
                    let value = any.to_value::<dyn ValueBase>();
                    assert!(
                        matches!(value, Err(ExtractError::Value(CdrError::UnknownValue { .. }))),
                        "no factory: {value:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn values_have_the_operations_of_the_registered_factory() {
    struct Shouting(BaseState);
    impl Base for Shouting {
        fn base_state(&self) -> &BaseState {
            &self.0
        }
    }
    let shouting = value_factory::<dyn Base, _>(Shouting);
    let factories = Factories(vec![("IDL:Base:1.0", shouting)]);
    let octets = octets(&Some(ValueRef::<dyn Base>::new(BaseState { x: 3 })), ByteOrder::Little);
    let mut input = Decoder::new(&octets, wire(ByteOrder::Little)).with_binder(&factories);
    let value = Option::<ValueRef<dyn ValueBase>>::decode(&mut input).unwrap().unwrap();
    assert_eq!(value.implementation::<Shouting>().unwrap().0.x, 3);
    assert_eq!(value.downcast::<dyn Base>().unwrap().base_state().x, 3);
    // Without a factory a value of any type cannot be created.
    let unknown = Option::<ValueRef<dyn ValueBase>>::decode(&mut Decoder::new(&octets, wire(ByteOrder::Little)));
    assert_eq!(unknown, Err(CdrError::UnknownValue { repository_id: "IDL:Base:1.0".into() }));
}

#[test]
fn limits_of_values_are_enforced() {
    let octets = octets(&Some(ring(20)), ByteOrder::NATIVE);
    let read = |limits| Option::<NodeRef>::decode(&mut Decoder::new(&octets, Wire { limits, ..Wire::default() }));
    assert!(read(Limits { value_nesting: 20, values: 20, ..Limits::default() }).is_ok());
    let deep = read(Limits { value_nesting: 19, ..Limits::default() });
    assert_eq!(deep, Err(CdrError::TooDeep { limit: 19 }));
    let many = read(Limits { values: 19, ..Limits::default() });
    assert_eq!(many, Err(CdrError::TooManyValues { limit: 19 }));
}
