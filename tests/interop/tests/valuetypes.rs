//! Value types between our client and our server, in both byte orders, and omniORB's golden values.

use spandrel::types::values::{CdrError, Decode, Decoder, Encode, Encoder, ValueRef};
use spandrel::{
    Orb,
    cdr::{ByteOrder, GiopVersion},
};
use spandrel_cdr::Wire;
use spandrel_interop::more_values_idl::*;
use spandrel_interop::valuetypes::{client, server};

fn orb(order: &str) -> Orb {
    Orb::init(["-ORBByteOrder", order].map(str::to_owned)).unwrap()
}

#[track_caller]
fn assert_all_cases_pass(client_order: &str, server_order: &str) {
    let serving = orb(server_order);
    let reference = server::activate(&serving).unwrap();
    let tally = client::run(&orb(client_order), &reference, &mut |_| {}).unwrap();
    assert!(tally.is_good() && tally.run > 15, "{tally:#?}");
    serving.run(); // the client's last case shuts it down
}

#[test]
fn values_are_exchanged_in_both_byte_orders() {
    assert_all_cases_pass("little", "big");
    assert_all_cases_pass("big", "little");
}

/// The octets of a golden value, in each byte order that the file has.
fn golden(name: &str) -> Vec<(ByteOrder, Vec<u8>)> {
    let of_name = include_str!("../golden/values.txt").lines().filter_map(|line| {
        let (order, hex) = line.strip_prefix(name)?.strip_prefix(' ')?.split_once(' ')?;
        let octets = hex.as_bytes().chunks(2);
        let octets = octets.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
        Some((if order == "big" { ByteOrder::Big } else { ByteOrder::Little }, octets))
    });
    let of_name: Vec<_> = of_name.collect();
    assert!(!of_name.is_empty(), "no golden {name}");
    of_name
}

/// Decodes a golden value and checks it, then encodes and decodes it again.
#[track_caller]
fn check_golden<T: Decode + Encode>(name: &str, check: impl Fn(&T)) {
    for (order, octets) in golden(name) {
        let wire = Wire::new(order, GiopVersion::V1_2);
        let mut input = Decoder::new(&octets, wire);
        let value = T::decode(&mut input).unwrap();
        assert_eq!(input.remaining(), 0, "{name}");
        check(&value);
        let mut out = Encoder::new(wire);
        value.encode(&mut out).unwrap();
        check(&T::decode(&mut Decoder::new(&out.to_vec(), wire)).unwrap());
    }
}

type Value<T> = Option<ValueRef<T>>;

/// Two values of one message.
#[derive(Clone)]
struct BaseAndNode {
    base: Value<dyn Base>,
    node: Value<dyn Node>,
}

impl Encode for BaseAndNode {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.base.encode(out)?;
        self.node.encode(out)
    }
}

impl Decode for BaseAndNode {
    const MIN_OCTETS: usize = 8;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { base: Decode::decode(input)?, node: Decode::decode(input)? })
    }
}

#[test]
fn golden_values_of_omniorb_are_decoded() {
    check_golden::<Value<dyn Node>>("nil", |node| assert_eq!(*node, None));
    check_golden::<Value<dyn Node>>("node", |node| {
        let node = node.as_ref().unwrap();
        assert_eq!((node.name(), node.weight(), node.left(), node.others().len()), ("alone", 1.5, None, 0));
    });
    check_golden::<Pair>("graph", |pair| client::same_pair(pair, &client::graph().unwrap()).unwrap());
    check_golden::<Value<dyn Base>>("base", |base| assert_eq!(base.as_ref().unwrap().x(), 7));
    check_golden::<[Value<dyn Base>; 2]>("derived", |[one, other]| {
        assert_eq!(one, other);
        let derived: ValueRef<dyn Derived> = one.as_ref().unwrap().downcast().unwrap();
        assert_eq!((derived.x(), derived.flag(), derived.y()), (7, 1, -8));
        assert_eq!(derived.tree().unwrap().name(), "inner");
    });
    check_golden::<[Value<Text>; 2]>("text", |[one, other]| {
        assert_eq!(one, other);
        assert_eq!(one.as_ref().unwrap().0, "boxed");
    });
}

#[test]
fn golden_values_are_truncated_where_the_derived_type_is_unknown() {
    use spandrel_interop::values_idl as old;
    check_golden::<BaseAndNode>("special", |BaseAndNode { base, node }| {
        let special: ValueRef<dyn Special> = base.as_ref().unwrap().downcast().unwrap();
        assert_eq!((special.what(), special.tree()), ("special", node.clone()));
        assert_eq!(special.forest()[0], *node);
    });
    // The node belongs to the truncated part, and is decoded all the same.
    for (order, octets) in golden("special") {
        let mut input = Decoder::new(&octets, Wire::new(order, GiopVersion::V1_2));
        let base = Value::<dyn old::Base>::decode(&mut input).unwrap().unwrap();
        let node = Value::<dyn old::Node>::decode(&mut input).unwrap().unwrap();
        assert_eq!((base.x(), node.name(), input.remaining()), (5, "tree", 0));
    }
    check_golden::<Value<dyn Base>>("very-special", |base| {
        let special: ValueRef<dyn VerySpecial> = base.as_ref().unwrap().downcast().unwrap();
        assert_eq!((special.x(), special.more(), special.tree()), (6, 2.5, special.last()));
    });
    check_golden::<Value<dyn old::Base>>("very-special", |base| assert_eq!(base.as_ref().unwrap().x(), 6));
}
