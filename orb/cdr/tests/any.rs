//! `Any`: values of every type keep their meaning through insertion, extraction, and messages of every form.

use crate::support;

use std::sync::Arc;

use proptest::prelude::*;
use spandrel_cdr::{
    Any, Binder, ByteOrder, CdrError, CharSet, Decode, Decoder, Encode, Encoder, ExtractError, GiopVersion, Ior, Joint,
    TaggedProfile, TypeCode, Typed, WString, Wide, Wire, walk,
};
use support::{
    ORDERS, order,
    types::{mere_types, octets, type_codes},
    wire,
};

const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];

fn version() -> impl Strategy<Value = GiopVersion> {
    prop::sample::select(&VERSIONS)
}

/// An encoder that has written `start` octets.
fn after<'a>(start: usize, wire: Wire) -> Encoder<'a> {
    let mut out = Encoder::new(wire);
    out.octets(&vec![0xee; start]);
    out
}

fn sent<T: Encode + ?Sized>(value: &T, wire: Wire, start: usize) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    out.octets(&vec![0xee; start]);
    value.encode(&mut out).unwrap();
    out.to_vec()
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_type_code_survives_encoding_and_decoding(of in mere_types(), order in order(), version in version(), start in 0..8_usize) {
        // Labels may be wide characters, but none occur here.
        let wire = Wire::new(order, version);
        let octets = sent(&of, wire, start);
        let mut input = Decoder::new(&octets, wire).at(start);
        let read = TypeCode::decode(&mut input).unwrap();
        prop_assert!(read.equal(&of) && read.equivalent(&of), "{:?} became {:?}", of, read);
        prop_assert_eq!(input.remaining(), 0);
        prop_assert_eq!(&sent(&read, wire, start), &octets);
        prop_assert_eq!(read.to_string(), of.to_string());
        prop_assert!(read.compact().equivalent(&of));
        for end in start..octets.len() {
            prop_assert!(TypeCode::decode(&mut Decoder::new(&octets[..end], wire).at(start)).is_err());
        }
    }

    #[test]
    fn a_walk_finds_the_end_of_a_value_and_copies_it(
        of in type_codes(), seed in any::<u64>(), from in order(), to in order(), start in 0..8_usize, place in 0..8_usize,
    ) {
        let (given, expected) = (octets(&of, seed, from, start), octets(&of, seed, to, place));
        let mut input = Decoder::new(&given, wire(from)).at(start);
        walk::skip(&of, &mut input).unwrap();
        prop_assert_eq!(input.remaining(), 0);
        let mut out = after(place, wire(to));
        walk::copy(&of, &mut input.at(start), &mut out).unwrap();
        // The preceding octets are 0xee in both.
        prop_assert_eq!(out.to_vec(), expected, "of type {:?}", of);
    }

    #[test]
    fn an_any_keeps_its_value_in_every_wire_form(
        of in type_codes(), seed in any::<u64>(), from in order(), to in order(), start in 0..8_usize, place in 0..8_usize,
        versions in (version(), version()),
    ) {
        let (from, to) = (Wire::new(from, versions.0), Wire::new(to, versions.1));
        let given = octets(&of, seed, from.order, start);
        let received = Any::read(of.clone(), &mut Decoder::new(&given, from).at(start)).unwrap();
        let octets = sent(&received, to, place);
        let mut input = Decoder::new(&octets, to).at(place);
        let again = Any::decode(&mut input).unwrap();
        prop_assert_eq!(input.remaining(), 0);
        prop_assert_eq!(&again, &received);
        prop_assert!(again.type_code().equal(&of));
        // Back in the first form it has its original octets.
        let mut out = after(start, from);
        again.write_value(&mut out).unwrap();
        prop_assert_eq!(out.to_vec(), given);
    }

    #[test]
    fn an_any_is_decoded_across_joints_of_fragments(of in type_codes(), seed in any::<u64>(), order in order(), cut in any::<prop::sample::Index>()) {
        // A joint that does not change alignment changes nothing, at any position.
        let given = octets(&of, seed, order, 0);
        let at = cut.index(given.len() + 1) / 8 * 8;
        let joints = [Joint { at, alignment_position: at }];
        let mut input = Decoder::new(&given, wire(order)).with_joints(&joints);
        let joined = Any::read(of.clone(), &mut input).unwrap();
        let whole = Any::read(of, &mut Decoder::new(&given, wire(order))).unwrap();
        prop_assert_eq!(joined, whole);
    }
}

#[test]
fn an_extracted_value_equals_the_inserted_one() {
    fn check<T: Encode + Decode + Typed + PartialEq + std::fmt::Debug>(value: T) {
        let any = Any::new(&value).unwrap();
        assert_eq!(any.extract::<T>().unwrap(), value);
        for order in ORDERS {
            let octets = sent(&any, wire(order), 0);
            assert_eq!(Any::decode(&mut Decoder::new(&octets, wire(order))).unwrap().extract::<T>().unwrap(), value);
        }
    }
    check(7_i32);
    check("Grüße".to_owned());
    check(vec![1.5_f64, -2.5]);
    check([[1_u16, 2], [3, 4]]);
    check(WString::from("широко"));
    check('€');
    check(spandrel_cdr::Fixed::<5, 2>::from_unscaled(-12345));
    check(Any::new(Any::new("inner").unwrap()).unwrap());
    check(Vec::<Vec<String>>::type_code());
    check(Any::default());
}

#[test]
fn extraction_requires_an_equivalent_type() {
    let any = Any::new(7_i32).unwrap();
    let error = any.extract::<u32>().unwrap_err();
    assert_eq!(error, ExtractError::OtherType { expected: TypeCode::ULONG, found: TypeCode::LONG });
    assert_eq!(error.to_string(), "a value of type `long` is not a `unsigned long`");
    let amount = TypeCode::alias("IDL:Amount:1.0", "Amount", &TypeCode::LONG).unwrap();
    let named = Any::with_type(amount.clone(), &7_i32).unwrap();
    assert_eq!((named.type_code(), named.extract()), (&amount, Ok(7_i32)));
    assert_eq!(named, any);
    assert_eq!(any.retyped(amount.clone()).unwrap().type_code(), &amount);
    assert!(Any::with_type(amount, &7_u32).is_err());
    assert!(any.retyped(TypeCode::STRING).is_err());
}

#[test]
fn equality_ignores_padding() {
    let of = TypeCode::structure("IDL:S:1.0", "S", &[("o", TypeCode::OCTET), ("l", TypeCode::LONG)]).unwrap();
    let read = |octets: &[u8]| Any::read(of.clone(), &mut Decoder::new(octets, wire(ByteOrder::Big))).unwrap();
    let (clean, dirty) = (read(&[1, 0, 0, 0, 0, 0, 0, 2]), read(&[1, 7, 7, 7, 0, 0, 0, 2]));
    assert_eq!(clean, dirty);
    assert_ne!(clean, read(&[1, 0, 0, 0, 0, 0, 0, 3]));
    let mut out = Encoder::new(wire(ByteOrder::Little));
    dirty.write_value(&mut out).unwrap();
    assert_eq!(out.to_vec(), [1, 0, 0, 0, 2, 0, 0, 0]);
}

/// `exception Broke { string what; };`
#[derive(Clone, Debug, PartialEq)]
struct Broke {
    what: String,
}

impl Encode for Broke {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        self.what.encode(out)
    }
}

impl Decode for Broke {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        String::decode(input).map(|what| Self { what })
    }
}

impl Typed for Broke {
    fn type_code() -> TypeCode {
        TypeCode::exception("IDL:Broke:1.0", "Broke", &[("what", TypeCode::STRING)]).unwrap()
    }
}

#[test]
fn an_exception_follows_its_id() {
    let broke = Broke { what: "the window".to_owned() };
    let any = Any::new(&broke).unwrap();
    assert_eq!(any.value().str().unwrap(), "IDL:Broke:1.0");
    for order in ORDERS {
        let octets = sent(&any, wire(order), 0);
        let again = Any::decode(&mut Decoder::new(&octets, wire(order))).unwrap();
        assert_eq!(again.extract::<Broke>().unwrap(), broke);
    }
}

#[test]
fn text_is_converted_to_the_code_sets_of_each_message() {
    let any = Any::new("é").unwrap();
    let latin1 = sent(&any, wire(ByteOrder::Big), 0);
    assert_eq!(latin1[8..], [0, 0, 0, 2, 0xe9, 0]);
    let utf8 = Wire { char_set: CharSet::Utf8, ..wire(ByteOrder::Big) };
    assert_eq!(sent(&any, utf8, 0)[8..], [0, 0, 0, 3, 0xc3, 0xa9, 0]);
    let euro = Any::new("€").unwrap();
    let mut out = Encoder::new(wire(ByteOrder::Big));
    assert_eq!(euro.encode(&mut out), Err(CdrError::NotRepresentable { character: '€', code_set: "ISO 8859-1" }));

    let wide = Any::new(Wide("ü")).unwrap();
    assert_eq!(wide.extract::<WString>().unwrap(), WString::from("ü"));
    let older = sent(&wide, Wire::new(ByteOrder::Big, GiopVersion::V1_1), 0);
    assert_eq!(older[8..], [0, 0, 0, 2, 0, 0xfc, 0, 0]);
    let mut out = Encoder::new(Wire::new(ByteOrder::Big, GiopVersion::V1_0));
    assert!(wide.encode(&mut out).is_err());
}

#[derive(Clone, Debug)]
struct Names;

#[derive(Clone, Debug, PartialEq)]
struct Bound(Ior);

impl Binder for Names {
    fn bind(&self, ior: Ior) -> Result<Arc<dyn std::any::Any + Send + Sync>, CdrError> {
        Ok(Arc::new(Bound(ior)))
    }

    fn share(&self) -> Arc<dyn Binder> {
        Arc::new(self.clone())
    }
}

impl spandrel_cdr::Reference for Bound {
    fn ior(&self) -> &Ior {
        &self.0
    }
}

impl spandrel_cdr::FromBound for Bound {
    fn from_bound(bound: Arc<dyn std::any::Any + Send + Sync>) -> Result<Self, CdrError> {
        bound.downcast::<Self>().map(|bound| (*bound).clone()).map_err(|_| CdrError::Unbound)
    }
}

impl Typed for Bound {
    fn type_code() -> TypeCode {
        TypeCode::object_reference("IDL:Bound:1.0", "Bound").unwrap()
    }
}

#[test]
fn a_reference_is_bound_on_extraction_after_its_message() {
    let profile = TaggedProfile { tag: 0, data: vec![0, 1, 2] };
    let ior = Ior { type_id: "IDL:Bound:1.0".to_owned(), profiles: vec![profile] };
    let sequence = Any::new(vec![Some(Bound(ior.clone())), None]).unwrap();
    let octets = sent(&sequence, wire(ByteOrder::Little), 0);
    let received = {
        let binder = Names;
        Any::decode(&mut Decoder::new(&octets, wire(ByteOrder::Little)).with_binder(&binder)).unwrap()
    };
    assert_eq!(received.extract::<Vec<Option<Bound>>>().unwrap(), [Some(Bound(ior)), None]);
    let error = Any::decode(&mut Decoder::new(&octets, wire(ByteOrder::Little))).unwrap();
    assert_eq!(error.extract::<Vec<Option<Bound>>>(), Err(ExtractError::Value(CdrError::Unbound)));
}

/// A reference to an object of any interface.
#[derive(Clone, Debug, PartialEq)]
struct Object(Bound);

impl spandrel_cdr::Reference for Object {
    fn ior(&self) -> &Ior {
        self.0.ior()
    }
}

impl spandrel_cdr::FromBound for Object {
    fn from_bound(bound: Arc<dyn std::any::Any + Send + Sync>) -> Result<Self, CdrError> {
        Bound::from_bound(bound).map(Self)
    }
}

impl Typed for Object {
    fn type_code() -> TypeCode {
        TypeCode::object()
    }
}

/// As `CORBA::Any::to_object` in the mappings to other languages.
#[test]
fn a_reference_to_any_interface_is_an_object() {
    let profile = TaggedProfile { tag: 0, data: vec![0, 1, 2] };
    let bound = Bound(Ior { type_id: "IDL:Bound:1.0".to_owned(), profiles: vec![profile] });
    let received = |any: &Any| {
        let octets = sent(any, wire(ByteOrder::Little), 0);
        Any::decode(&mut Decoder::new(&octets, wire(ByteOrder::Little)).with_binder(&Names)).unwrap()
    };
    let alias = TypeCode::alias("IDL:Alias:1.0", "Alias", &Bound::type_code()).unwrap();
    for any in [Any::new(Some(bound.clone())), Any::with_type(alias, &Some(bound.clone()))] {
        let any = received(&any.unwrap());
        assert!(any.extract::<Option<Object>>().is_err(), "its type is another interface");
        assert_eq!(any.to_object::<Object>().unwrap(), Some(Object(bound.clone())));
        assert_eq!(any.to_object::<Bound>().unwrap(), Some(bound.clone()));
    }
    assert_eq!(received(&Any::new(None::<Bound>).unwrap()).to_object::<Object>().unwrap(), None);
    // A reference to an object of one interface does not convert to another, and a number holds no reference.
    let other = received(&Any::new(Some(Object(bound.clone()))).unwrap());
    assert!(matches!(other.to_object::<Bound>(), Err(ExtractError::OtherType { .. })));
    assert!(matches!(Any::new(1_i32).unwrap().to_object::<Object>(), Err(ExtractError::OtherType { .. })));
    // An abstract interface holds a reference, a value, or nil.
    let either = TypeCode::abstract_interface("IDL:Either:1.0", "Either").unwrap();
    let object = Any::write(either.clone(), |out| {
        out.bool(true);
        out.str("IDL:Bound:1.0")?;
        out.len(0)
    });
    let reference = received(&object.unwrap()).to_object::<Object>().unwrap().unwrap();
    assert_eq!(reference.0.0.type_id, "IDL:Bound:1.0");
    let value = Any::write(either.clone(), |out| {
        out.bool(false);
        // A value in chunks: one of four octets, and the end tag.
        [0x7fff_ff08, 4, 1, u32::MAX].into_iter().for_each(|number| out.u32(number));
        Ok(())
    });
    assert!(matches!(value.unwrap().to_object::<Object>(), Err(ExtractError::OtherType { .. })));
    let nil = Any::write(either.clone(), |out| {
        out.bool(false);
        out.u32(0);
        Ok(())
    });
    assert_eq!(received(&nil.unwrap()).to_object::<Object>().unwrap(), None);
}

#[test]
fn long_values_are_lent_to_the_encoder() {
    let any = Any::new(vec![7_u8; 100_000]).unwrap();
    let mut out = Encoder::new(wire(ByteOrder::NATIVE));
    any.encode(&mut out).unwrap();
    assert!(out.contiguous().is_none() && out.position() == 8 + 12 + 4 + 100_000);
}

#[test]
fn write_rejects_octets_that_are_no_value() {
    let pair = TypeCode::array(&TypeCode::SHORT, 2).unwrap();
    let write = |items: &'static [i16]| Any::write(pair.clone(), |out| i16::encode_slice(items, out));
    assert_eq!(write(&[1, 2]).unwrap().extract::<[i16; 2]>().unwrap(), [1, 2]);
    assert!(write(&[1]).is_err() && write(&[1, 2, 3]).is_err());
}

/// The sign of zero is 0xC (CORBA 3.3 Part 2, 9.3.2.8). omniORB 4.2.5 forwards a received 0xD.
#[test]
fn a_negative_zero_in_an_any_is_forwarded_as_zero() {
    let fixed = |digits| TypeCode::fixed(digits, digits.cast_signed()).unwrap();
    let members = [("m0", fixed(5)), ("m1", i64::type_code())];
    let of = TypeCode::structure("IDL:Struct:1.0", "Struct", &members).unwrap();
    for order in ORDERS {
        let [_, other] = if order == ORDERS[0] { ORDERS } else { [ORDERS[1], ORDERS[0]] };
        for (of, received, sent) in [
            (&of, &[0, 0, 0x0d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &[0, 0, 0x0c][..]),
            (&fixed(1), &[0x0d], &[0x0c]),
        ] {
            let any = Any::read(of.clone(), &mut Decoder::new(received, wire(order))).unwrap();
            let mut out = Encoder::new(wire(other));
            any.write_value(&mut out).unwrap();
            assert_eq!(out.to_vec()[..sent.len()], *sent, "{of}");
            assert_eq!(any, Any::read(of.clone(), &mut Decoder::new(&out.to_vec(), wire(other))).unwrap());
        }
    }
}
