//! The marshaling engines read and write the same octets as the reference.

use std::fmt::Debug;

use proptest::{prelude::*, sample::Index, test_runner::Config};
use spandrel_cdr::{
    Any, BoundedString, BoundedVec, BoundedWString, CdrError, Char, Decode, Decoder, Encode, Encoder, Fixed,
    LongDouble, TypeCode, Typed, WString, Wire, interpret, walk,
};
use spandrel_dynamic::DynAny;
use spandrel_reference::{Value, read, types, values_of, wires, write};

fn config() -> Config {
    if cfg!(miri) { Config { cases: 4, failure_persistence: None, ..Config::default() } } else { Config::default() }
}

/// A type and a value of it.
fn typed_values() -> impl Strategy<Value = (TypeCode, Value)> {
    types().prop_flat_map(|of| (Just(of.clone()), values_of(&of)))
}

/// The octets that an engine writes after `start` others; `None` if encoding fails.
fn encoded(wire: Wire, start: usize, write: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>) -> Option<Vec<u8>> {
    let mut out = Encoder::new(wire);
    out.octets(&vec![0xee; start]);
    write(&mut out).ok()?;
    Some(out.to_vec())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_reference_reads_its_own_octets((of, value) in typed_values(), wire in wires(), start in 0..8_usize) {
        if let Some(octets) = write(&of, &value, wire, start) {
            prop_assert_eq!(read(&of, &octets, wire, start), Some((value, octets.len())));
            for end in start..octets.len() {
                prop_assert_eq!(read(&of, &octets[..end], wire, start), None, "truncated at {}", end);
            }
        }
    }

    #[test]
    fn a_copied_any_equals_the_references_octets(
        (of, value) in typed_values(), from in wires(), to in wires(), start in 0..8_usize, place in 0..8_usize,
    ) {
        if let Some(octets) = write(&of, &value, from, start) {
            let mut input = Decoder::new(&octets, from).at(start);
            let any = Any::read(of.clone(), &mut input).unwrap();
            prop_assert_eq!(input.remaining(), 0);
            let sent = encoded(to, place, |out| {
                // The borrowed octets live until the end of this block.
                let mut value = any.value();
                walk::copy(any.type_code(), &mut value, out)
            });
            prop_assert_eq!(&sent, &write(&of, &value, to, place));
            let mut out = Encoder::new(to);
            out.octets(&vec![0xee; place]);
            prop_assert_eq!(any.write_value(&mut out).ok().map(|()| out.to_vec()), sent);
        }
    }

    #[test]
    fn a_dyn_any_round_trip_preserves_the_value((of, value) in typed_values(), from in wires(), to in wires(), place in 0..8_usize) {
        if let Some(octets) = write(&of, &value, from, 0) {
            let any = Any::read(of.clone(), &mut Decoder::new(&octets, from)).unwrap();
            let dynamic = DynAny::new(&any).unwrap();
            let rebuilt = dynamic.to_any().unwrap();
            prop_assert_eq!(&rebuilt, &any);
            prop_assert_eq!(&DynAny::new(&rebuilt).unwrap(), &dynamic);
            let mut out = Encoder::new(to);
            out.octets(&vec![0xee; place]);
            let sent = rebuilt.write_value(&mut out).ok().map(|()| out.to_vec());
            prop_assert_eq!(sent, write(&of, &value, to, place));
        }
    }

    #[test]
    fn reference_and_walker_refuse_the_same_octets(
        (of, value) in typed_values(), wire in wires(), at in any::<Index>(), with: u8,
    ) {
        // Type codes are excluded: the reference does not check the names in them.
        prop_assume!(!has_types(&value));
        if let Some(mut octets) = write(&of, &value, wire, 0).filter(|octets| !octets.is_empty()) {
            let at = at.index(octets.len());
            octets[at] = with;
            let mut input = Decoder::new(&octets, wire);
            let end = walk::skip(&of, &mut input).ok().map(|()| input.position());
            let reference = read(&of, &octets, wire, 0).map(|(_, end)| end);
            prop_assert_eq!(end, reference, "{} at {} of {:02x?}", with, at, octets);
        }
    }
}

fn has_types(value: &Value) -> bool {
    match value {
        Value::Any(..) | Value::Type(_) => true,
        Value::Parts(parts) => parts.iter().any(has_types),
        Value::Union(_, Some(member)) => has_types(member),
        _ => false,
    }
}

/// Declares structs twice: with code like the IDL compiler's, and with a table.
macro_rules! structs {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        mod compiled {
            use super::*;
            $(
                structs!(@declare $name { $($field: $type),* });

                impl Encode for $name {
                    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
                        $(Encode::encode(&self.$field, out)?;)*
                        Ok(())
                    }
                }

                impl Decode for $name {
                    const MIN_OCTETS: usize = $(<$type as Decode>::MIN_OCTETS +)* 0;

                    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
                        Ok(Self { $($field: Decode::decode(input)?),* })
                    }
                }
            )*
        }

        mod interpreted {
            use super::*;
            $(
                structs!(@declare $name { $($field: $type),* });
                interpret!(struct $name { $($field: $type),* });
            )*
        }
    };
    (@declare $name:ident { $($field:ident: $type:ty),* }) => {
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }

        impl Typed for $name {
            fn type_code() -> TypeCode {
                let members = [$((stringify!($field), <$type as Typed>::type_code())),*];
                TypeCode::structure(concat!("IDL:", stringify!($name), ":1.0"), stringify!($name), &members).unwrap()
            }
        }
    };
}

structs! {
    BinStruct { s: i16, c: Char, l: i32, o: u8, d: f64 }
    Tailed { d: f64, o: u8 }
    Ragged { o: u8, d: f64, p: u8 }
    Texts { a: String, o: u8, b: WString, c: BoundedString<4>, d: char }
    Lists { o: u8, bins: Vec<BinStruct>, tails: Vec<Tailed>, rags: Vec<Ragged>, many: BoundedVec<String, 2> }
    Nested { o: u8, bin: BinStruct, rows: [[i32; 2]; 3], texts: [Texts; 2], deep: Vec<Vec<Ragged>> }
    Rare { o: u8, any: Any, of: TypeCode, price: Fixed<8, 3>, long: LongDouble }
}

/// Values of the Rust type have the same octets as in the reference, in both directions.
#[track_caller]
fn assert_equals_reference<T: Typed + Encode + Decode + Debug>() {
    let strategy = (values_of(&T::type_code()), wires(), 0..8_usize);
    let mut runner =
        proptest::test_runner::TestRunner::new(Config { cases: 64, failure_persistence: None, ..config() });
    let outcome = runner.run(&strategy, |(value, wire, start)| {
        let of = T::type_code();
        if let Some(octets) = write(&of, &value, wire, start) {
            let mut input = Decoder::new(&octets, wire).at(start);
            let decoded = T::decode(&mut input).unwrap();
            prop_assert_eq!(input.remaining(), 0);
            let mut out = Encoder::new(wire);
            out.octets(&vec![0xee; start]);
            decoded.encode(&mut out).unwrap();
            prop_assert_eq!(out.to_vec(), octets, "{:?}", decoded);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{}: {error}", std::any::type_name::<T>()));
}

#[test]
fn rust_types_equal_the_reference() {
    assert_equals_reference::<i16>();
    assert_equals_reference::<u64>();
    assert_equals_reference::<f32>();
    assert_equals_reference::<bool>();
    assert_equals_reference::<Char>();
    assert_equals_reference::<char>();
    assert_equals_reference::<LongDouble>();
    assert_equals_reference::<String>();
    assert_equals_reference::<WString>();
    assert_equals_reference::<BoundedString<3>>();
    assert_equals_reference::<BoundedWString<3>>();
    assert_equals_reference::<Fixed<7, 2>>();
    assert_equals_reference::<Fixed<30, 30>>();
    assert_equals_reference::<Vec<f64>>();
    assert_equals_reference::<Vec<bool>>();
    assert_equals_reference::<Vec<char>>();
    assert_equals_reference::<Vec<WString>>();
    assert_equals_reference::<Vec<Vec<i16>>>();
    assert_equals_reference::<BoundedVec<String, 2>>();
    assert_equals_reference::<[[u16; 3]; 2]>();
    assert_equals_reference::<[WString; 2]>();
    assert_equals_reference::<Any>();
    assert_equals_reference::<Vec<Any>>();
    assert_equals_reference::<TypeCode>();
}

macro_rules! tests_in_both_engines {
    ($($name:ident)*) => {$(
        #[test]
        #[allow(non_snake_case, reason = "named after the type")]
        fn $name() {
            assert_equals_reference::<compiled::$name>();
            assert_equals_reference::<interpreted::$name>();
            assert_equals_reference::<Vec<compiled::$name>>();
            assert_equals_reference::<Vec<interpreted::$name>>();
        }
    )*};
}

tests_in_both_engines!(BinStruct Tailed Ragged Texts Lists Nested Rare);
