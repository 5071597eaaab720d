//! Helpers shared by several test modules; each uses a part of them.
#![allow(dead_code, reason = "every test program compiles its own copy and uses a part")]

use proptest::{prelude::*, test_runner::Config};
use spandrel_cdr::{ByteOrder, CdrError, Decode, Decoder, Encode, Encoder, GiopVersion, Wire};

pub(crate) mod structs;
pub(crate) mod types;
pub(crate) mod values;

pub(crate) const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// Few cases under Miri, which is slow, and no files there, which it isolates.
pub(crate) fn config() -> Config {
    if cfg!(miri) { Config { cases: 4, failure_persistence: None, ..Config::default() } } else { Config::default() }
}

pub(crate) fn order() -> impl Strategy<Value = ByteOrder> {
    prop::sample::select(&ORDERS)
}

pub(crate) fn wire(order: ByteOrder) -> Wire {
    Wire::new(order, GiopVersion::V1_2)
}

/// A reference implementation of CDR after the standard's table (CORBA 3.3 Part 2, 9.3.1), without
/// optimizations.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) octets: Vec<u8>,
    order: ByteOrder,
}

impl Model {
    /// A model that has written `start` octets already, all 0xee.
    pub(crate) fn new(order: ByteOrder, start: usize) -> Self {
        Self { octets: vec![0xee; start], order }
    }

    /// One primitive: `big` are its octets, most significant first.
    pub(crate) fn primitive(&mut self, alignment: usize, big: &[u8]) {
        while !self.octets.len().is_multiple_of(alignment) {
            self.octets.push(0);
        }
        match self.order {
            ByteOrder::Big => self.octets.extend(big),
            ByteOrder::Little => self.octets.extend(big.iter().rev()),
        }
    }

    pub(crate) fn octet(&mut self, octet: u64) {
        self.octets.push(u8::try_from(octet).expect("an octet"));
    }

    pub(crate) fn len(&mut self, len: usize) {
        self.primitive(4, &u32::try_from(len).unwrap().to_be_bytes());
    }

    pub(crate) fn string(&mut self, text: &str) {
        let latin1: Vec<u8> = text.chars().map(|c| u8::try_from(c).expect("Latin-1")).collect();
        self.len(latin1.len() + 1);
        self.octets.extend(latin1);
        self.octets.push(0);
    }
}

/// A type with an encoding in the model.
pub(crate) trait Modelled: Encode + Decode + PartialEq + std::fmt::Debug {
    fn model(&self, model: &mut Model);
}

macro_rules! modelled {
    ($($type:ty, $alignment:literal, $self:ident => $big:expr;)*) => {
        $(impl Modelled for $type {
            fn model(&$self, model: &mut Model) {
                model.primitive($alignment, &$big);
            }
        })*
    };
}

modelled! {
    i16, 2, self => self.to_be_bytes();
    u16, 2, self => self.to_be_bytes();
    i32, 4, self => self.to_be_bytes();
    u32, 4, self => self.to_be_bytes();
    i64, 8, self => self.to_be_bytes();
    u64, 8, self => self.to_be_bytes();
    f32, 4, self => self.to_be_bytes();
    f64, 8, self => self.to_be_bytes();
    u8, 1, self => [*self];
    bool, 1, self => [u8::from(*self)];
    spandrel_cdr::Char, 1, self => [self.0];
    spandrel_cdr::LongDouble, 8, self => self.to_bits().to_be_bytes();
}

impl Modelled for String {
    fn model(&self, model: &mut Model) {
        model.string(self);
    }
}

impl<T: Modelled> Modelled for Vec<T> {
    fn model(&self, model: &mut Model) {
        model.len(self.len());
        self.iter().for_each(|item| item.model(model));
    }
}

impl<T: Modelled, const N: usize> Modelled for [T; N] {
    fn model(&self, model: &mut Model) {
        self.iter().for_each(|item| item.model(model));
    }
}

/// The encoding after `start` octets.
pub(crate) fn encoded<T: Encode + ?Sized>(value: &T, order: ByteOrder, start: usize) -> Result<Vec<u8>, CdrError> {
    let mut out = Encoder::new(wire(order));
    out.octets(&vec![0xee; start]);
    value.encode(&mut out)?;
    assert_eq!(out.position(), out.to_vec().len());
    Ok(out.to_vec())
}

/// Checks that the value is encoded as in the model at this start, decoded completely, and rejected when
/// truncated at any octet.
#[track_caller]
pub(crate) fn check_at<T: Modelled>(value: &T, order: ByteOrder, start: usize) {
    let mut model = Model::new(order, start);
    value.model(&mut model);
    let octets = encoded(value, order, start).unwrap();
    assert_eq!(octets, model.octets, "{value:?} in {order:?} from {start}");
    let mut input = Decoder::new(&octets, wire(order)).at(start);
    assert_eq!(&T::decode(&mut input).unwrap(), value, "in {order:?} from {start}");
    assert_eq!(input.remaining(), 0);
    assert!(octets.len() - start >= T::MIN_OCTETS, "MIN_OCTETS of {} is too large", std::any::type_name::<T>());
    if octets.len() > start {
        let cut = Decoder::new(&octets[..octets.len() - 1], wire(order)).at(start);
        assert!(T::decode(&mut cut.clone()).is_err(), "{value:?} cut off in {order:?} from {start}");
    }
}

/// [`check_at`] in both orders, at every start with a different alignment.
#[track_caller]
pub(crate) fn check<T: Modelled>(value: &T) {
    for order in ORDERS {
        (0..8).for_each(|start| check_at(value, order, start));
    }
}
