//! Malformed values: rejected in every form.

use proptest::prelude::*;
use spandrel_cdr::{ByteOrder, CdrError, Decode, Decoder, Encode, Encoder, GraphBuilder, Limits, ValueRef, Wire};

use crate::support;

use support::values::*;
use support::{ORDERS, config, order, wire};

type NodeRef = ValueRef<dyn Node>;

/// Octets in big-endian order, assembled by hand.
#[derive(Clone, Default)]
struct Octets(Vec<u8>);

impl Octets {
    fn word(mut self, word: u32) -> Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0xee);
        self.0.extend(word.to_be_bytes());
        self
    }

    /// An indirection to this position.
    fn back(self, to: i32) -> Self {
        let marked = self.word(0xffff_ffff);
        let here = i32::try_from(marked.0.len()).unwrap();
        marked.word((to - here).cast_unsigned())
    }

    fn text(self, text: &str) -> Self {
        let mut octets = self.word(u32::try_from(text.len() + 1).unwrap());
        octets.0.extend(text.as_bytes());
        octets.0.push(0);
        octets
    }

    fn octets(mut self, octets: &[u8]) -> Self {
        self.0.extend(octets);
        self
    }

    fn read<T: Decode>(&self) -> Result<T, CdrError> {
        T::decode(&mut Decoder::new(&self.0, wire(ByteOrder::Big)))
    }

    #[track_caller]
    fn malformed<T: Decode>(&self) {
        match self.read::<T>() {
            Err(CdrError::Malformed(_)) => {}
            Err(other) => panic!("refused with {other}"),
            Ok(_) => panic!("accepted"),
        }
    }
}

fn start() -> Octets {
    Octets::default()
}

/// A `Base` in chunks, up to its state.
fn chunked() -> Octets {
    start().word(0x7fff_ff0a).text("IDL:Base:1.0")
}

type Bases = [Option<ValueRef<dyn Base>>; 2];
type OneBase = Option<ValueRef<dyn Base>>;
type OneOldBase = Option<ValueRef<dyn OldBase>>;

#[test]
fn indirections_lead_to_earlier_values() {
    let base = start().word(0x7fff_ff02).text("IDL:Base:1.0").word(5);
    assert!(base.clone().back(0).read::<Bases>().is_ok());
    for to in [-4, 4, 8, 12, 24, 28, 32, 400, i32::MIN / 2] {
        base.clone().back(to).malformed::<Bases>();
    }
    // To itself, and to impossible positions.
    start().back(0).malformed::<OneBase>();
    start().word(0xffff_ffff).word(0).malformed::<OneBase>();
    start().word(0xffff_ffff).word(0x8000_0000).malformed::<OneBase>();
    start().word(0xffff_ffff).word(0x7fff_ffff).malformed::<OneBase>();
}

#[test]
fn repository_ids_are_shared_by_indirections() {
    let once = start().word(0x7fff_ff02).text("IDL:Base:1.0").word(5).word(0x7fff_ff02);
    assert!(once.clone().back(4).word(6).read::<Bases>().is_ok());
    for to in [0, 8, 12, 28, 32, 36] {
        once.clone().back(to).word(6).malformed::<Bases>();
    }
    let list = start().word(0x7fff_ff06).word(2).text("IDL:Other:1.0").text("IDL:Base:1.0");
    // A list that is not chunked cannot be truncated.
    let other = CdrError::UnknownValue { repository_id: "IDL:Other:1.0".into() };
    assert_eq!(list.word(5).read::<OneBase>(), Err(other.clone()));
    let list = start().word(0x7fff_ff0e).word(2).text("IDL:Other:1.0").text("IDL:Base:1.0");
    let list = list.word(8).word(5).word(0xbad).word(0xffff_ffff);
    let twice = list.word(0x7fff_ff0e).back(4).word(4).word(6).word(0xffff_ffff);
    let [one, two] = twice.read::<Bases>().unwrap();
    assert_eq!((one.unwrap().base_state().x, two.unwrap().base_state().x), (5, 6));
    let unknown = start().word(0x7fff_ff0e).word(1).text("IDL:Other:1.0").word(4).word(6).word(0xffff_ffff);
    assert_eq!(unknown.read::<OneBase>(), Err(other));
    let long = start().word(0x7fff_ff06).word(0x1000_0000);
    assert!(matches!(long.read::<OneBase>(), Err(CdrError::LengthBeyondInput { .. })));
}

#[test]
fn a_codebase_is_ignored() {
    let value = start().word(0x7fff_ff03).text("http://code.example/").text("IDL:Base:1.0").word(5);
    assert_eq!(value.read::<OneBase>().unwrap().unwrap().base_state().x, 5);
    let again = value.word(0x7fff_ff03).back(4).back(32).word(6);
    assert_eq!(again.read::<Bases>().unwrap()[1].as_ref().unwrap().base_state().x, 6);
}

#[test]
fn unknown_tag_bits_are_rejected() {
    start().word(0x7fff_ff04).text("IDL:Base:1.0").word(5).malformed::<OneBase>();
    start().word(0x7fff_ff12).text("IDL:Base:1.0").word(5).malformed::<OneBase>();
    start().word(0x7fff_feff).malformed::<OneBase>();
    start().word(0x8000_0000).malformed::<OneBase>();
    start().word(1).malformed::<OneBase>();
    // Without an id a value is of its position's type.
    assert_eq!(start().word(0x7fff_ff00).word(5).read::<OneBase>().unwrap().unwrap().base_state().x, 5);
}

#[test]
fn chunk_sizes_are_validated() {
    assert!(chunked().word(4).word(5).word(0xffff_ffff).read::<OneBase>().is_ok());
    // No size, too long, too short, no chunk, and an early end.
    chunked().word(0).word(5).word(0xffff_ffff).malformed::<OneBase>();
    assert!(chunked().word(100).word(5).word(0xffff_ffff).read::<OneBase>().is_err());
    chunked().word(2).word(5).word(0xffff_ffff).malformed::<OneBase>();
    chunked().word(0xffff_ffff).malformed::<OneBase>();
    // The rest of a chunk after the state is skipped, and so are further chunks and values.
    let more = chunked().word(6).word(5).octets(b"ab").word(3).octets(b"cde");
    let more = more.word(0x7fff_ff0a).text("IDL:Any:1.0").word(1).octets(b"f").word((-2_i32).cast_unsigned());
    let end = more.clone().word(0xffff_ffff).word(9);
    let mut input = Decoder::new(&end.0, wire(ByteOrder::Big));
    assert_eq!(OneBase::decode(&mut input).unwrap().unwrap().base_state().x, 5);
    assert_eq!(input.u32(), Ok(9));
    // A nested value without chunks would not end; neither would a chunk of size zero.
    more.clone().word(0x7fff_ff02).text("IDL:Any:1.0").word(0xffff_ffff).malformed::<OneBase>();
    more.clone().word(0).word(0xffff_ffff).malformed::<OneBase>();
    // Ends of values that are not open.
    more.clone().word((-2_i32).cast_unsigned()).malformed::<OneBase>();
    more.word(0x8000_0000).malformed::<OneBase>();
}

#[test]
fn primitives_are_not_divided_between_chunks() {
    let node = || start().word(0x7fff_ff0a).text("IDL:Node:1.0");
    // A number of eight octets, which may need padding, nil, and no others.
    let rest = |octets: Octets| {
        let is_aligned = octets.0.len().next_multiple_of(4).is_multiple_of(8);
        let octets = if is_aligned { octets.word(20).word(0) } else { octets.word(16) };
        octets.word(0).word(0).word(0).word(0).word(0xffff_ffff)
    };
    let whole = rest(node().word(6).word(2).octets(b"a\0"));
    assert_eq!(whole.read::<Option<NodeRef>>().unwrap().unwrap().node_state().name, "a");
    let between = rest(node().word(4).word(2).word(2).octets(b"a\0"));
    assert_eq!(between.read::<Option<NodeRef>>().unwrap().unwrap().node_state().name, "a");
    rest(node().word(5).word(2).octets(b"a").word(1).octets(b"\0")).malformed::<Option<NodeRef>>();
    rest(node().word(3).octets(b"\0\0\0").word(3).octets(b"\x02a\0")).malformed::<Option<NodeRef>>();
}

#[test]
fn nested_values_are_between_chunks() {
    // A `Derived` whose node is not chunked, then one whose node begins inside a chunk.
    let derived = || start().word(0x7fff_ff0a).text("IDL:Derived:1.0");
    let node = |octets: Octets| octets.text("IDL:Node:1.0");
    let state = |octets: Octets| octets.word(4).word(5).word(12).word(0).word(0).word(7);
    node(state(derived()).word(0x7fff_ff02)).word(0xffff_ffff).malformed::<OneBase>();
    node(derived().word(32).word(5).word(0).word(7).word(0x7fff_ff0a)).malformed::<OneBase>();
    // One tag for both ends, too many, and one for each.
    let inner = |octets: Octets| octets.word(28).text("").octets(&[0; 7]).word(0).word(0).word(0).word(0);
    let both = inner(node(state(derived()).word(0x7fff_ff0a)));
    assert!(both.clone().word(0xffff_ffff).read::<OneBase>().is_ok());
    assert!(both.clone().word(0xffff_fffe).word(0xffff_ffff).read::<OneBase>().is_ok());
    both.clone().word(0xffff_fffd).malformed::<OneBase>();
    assert!(both.clone().word(0xffff_fffe).read::<OneBase>().is_err());
    // The same, truncated to the base.
    let cut = Octets([&start().word(0x7fff_ff0e).word(2).text("IDL:Derived:1.0").text("IDL:Base:1.0").0[..]].concat());
    let cut = inner(node(state(cut).word(0x7fff_ff0a))).word(0xffff_ffff);
    assert_eq!(cut.read::<OneOldBase>().unwrap().unwrap().old_state().x, 5);
}

#[test]
fn values_must_have_the_type_of_their_position() {
    let wrong = CdrError::UnknownValue { repository_id: "IDL:Base:1.0".into() };
    let base = start().word(0x7fff_ff02).text("IDL:Base:1.0").word(5);
    assert_eq!(base.read::<Option<NodeRef>>(), Err(wrong));
    // Known already, with another type.
    let twice = base.back(0);
    let mut input = Decoder::new(&twice.0, wire(ByteOrder::Big));
    OneBase::decode(&mut input).unwrap();
    let refused = Option::<NodeRef>::decode(&mut input);
    assert_eq!(refused, Err(CdrError::WrongValue { expected: "IDL:Node:1.0", found: "IDL:Base:1.0" }));
    // A node inside a `Derived` that is an indirection to the incomplete `Derived`.
    let derived = start().word(0x7fff_ff02).text("IDL:Derived:1.0").word(5).word(0).word(0).word(7).back(0);
    let refused = derived.read::<OneBase>();
    assert_eq!(refused, Err(CdrError::WrongValue { expected: "IDL:Node:1.0", found: "IDL:Derived:1.0" }));
}

/// A graph of nodes: names, and links.
type Shape = Vec<(Option<prop::sample::Index>, Vec<Option<prop::sample::Index>>)>;

fn shape() -> impl Strategy<Value = Shape> {
    let index = || proptest::option::weighted(0.8, any::<prop::sample::Index>());
    prop::collection::vec((index(), prop::collection::vec(index(), 0..4)), 1..12)
}

fn build(shape: &Shape) -> NodeRef {
    let built = GraphBuilder::build(|graph| {
        let nodes: Vec<NodeRef> = shape.iter().map(|_| graph.reserve()).collect();
        let link = |index: &Option<prop::sample::Index>| index.as_ref().map(|index| index.get(&nodes).clone());
        for (nth, (next, others)) in shape.iter().enumerate() {
            let others: Nodes = others.iter().map(link).collect();
            let name = "n".repeat(nth);
            let state = NodeState { name, weight: nth as f64, next: link(next).into(), others: others.into() };
            graph.define(&nodes[nth], state)?;
        }
        Ok(nodes[0].clone())
    });
    built.unwrap()
}

/// A node's name, its weight's bits, and the numbers of its next and its others.
type Seen = (String, u64, Option<usize>, Vec<Option<usize>>);

/// The links reachable from a node: every node once, by number.
fn look(root: &NodeRef) -> Vec<Seen> {
    let mut seen = vec![root.clone()];
    let mut all = Vec::new();
    while let Some(node) = seen.get(all.len()).cloned() {
        let mut number = |other: Option<NodeRef>| {
            other.map(|other| match seen.iter().position(|known| *known == other) {
                Some(number) => number,
                None => {
                    seen.push(other);
                    seen.len() - 1
                }
            })
        };
        let state = node.node_state();
        let next = number(state.next.get());
        let others = state.others.get().into_iter().map(&mut number).collect();
        all.push((state.name.clone(), state.weight.to_bits(), next, others));
    }
    all
}

/// Not chunked by itself, chunked inside a truncatable value.
fn encoded(root: &NodeRef, is_chunked: bool, order: ByteOrder, start: usize) -> Vec<u8> {
    let node = Some(root.clone());
    let derived = DerivedState { node: node.clone().into(), ..DerivedState::default() };
    let derived: Option<ValueRef<dyn Base>> = Some(ValueRef::<dyn Derived>::new(derived).upcast());
    let mut out = Encoder::new(wire(order));
    out.octets(&vec![0xee; start]);
    if is_chunked { derived.encode(&mut out) } else { node.encode(&mut out) }.unwrap();
    out.to_vec()
}

fn decoded(octets: &[u8], is_chunked: bool, order: ByteOrder, start: usize) -> Result<NodeRef, CdrError> {
    let mut input = Decoder::new(octets, wire(order)).at(start);
    let node = if is_chunked {
        let derived = OneBase::decode(&mut input)?.and_then(|base| base.downcast::<dyn Derived>());
        derived.and_then(|derived| derived.derived_state().node.get())
    } else {
        Option::<NodeRef>::decode(&mut input)?
    };
    match (node, input.remaining()) {
        (Some(node), 0) => Ok(node),
        _ => Err(CdrError::Malformed("another value")),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn graphs_survive_encoding_and_decoding(shape in shape(), order in order(), is_chunked: bool, start in 0_usize..8) {
        let root = build(&shape);
        let octets = encoded(&root, is_chunked, order, start);
        let back = decoded(&octets, is_chunked, order, start).unwrap();
        prop_assert_eq!(look(&back), look(&root));
        // Truncated at any octet it is rejected, and with any changed octet it is safe.
        for cut in start..octets.len() {
            prop_assert!(decoded(&octets[..cut], is_chunked, order, start).is_err());
        }
    }

    #[test]
    fn changed_octets_end_in_a_value_or_an_error(
        shape in shape(), order in order(), is_chunked: bool, at: prop::sample::Index, octet: u8,
    ) {
        let mut octets = encoded(&build(&shape), is_chunked, order, 0);
        let at = at.index(octets.len());
        octets[at] = octet;
        if let Ok(back) = decoded(&octets, is_chunked, order, 0) {
            look(&back);
        }
        // A receiver without the derived type decodes the same octets differently.
        let _ = OneOldBase::decode(&mut Decoder::new(&octets, wire(order)));
    }

    #[test]
    fn any_octets_end_in_a_value_or_an_error(
        octets in prop::collection::vec(
            prop_oneof![Just(0_u8), Just(0xff), Just(0x7f), Just(4), Just(0x0a), Just(0x0e), any::<u8>()], 0..80,
        ),
        order in order(),
    ) {
        let _ = OneBase::decode(&mut Decoder::new(&octets, wire(order)));
        let _ = Option::<NodeRef>::decode(&mut Decoder::new(&octets, wire(order)));
    }
}

#[test]
fn nesting_ends_in_an_error_instead_of_a_stack_overflow() {
    // Each node's next is another, endlessly.
    let mut octets = start();
    for _ in 0..100_000 {
        octets = octets.word(0x7fff_ff00).text("").octets(&[0; 3]).word(0).word(0);
        let at = octets.0.len();
        octets.0.resize(at.next_multiple_of(8), 0);
    }
    for order in ORDERS {
        assert!(Option::<NodeRef>::decode(&mut Decoder::new(&octets.0, wire(order))).is_err());
    }
    let limits = Limits { value_nesting: 5, ..Limits::default() };
    let list = (0..6).fold(None, |next: Option<NodeRef>, _| {
        Some(ValueRef::new(NodeState { next: next.into(), ..NodeState::default() }))
    });
    let mut out = Encoder::new(Wire { limits, ..Wire::default() });
    assert_eq!(list.encode(&mut out), Err(CdrError::TooDeep { limit: 5 }));
}
