//! Untrusted type codes and anys: rejected, or harmless.

use crate::support;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{
    Any, ByteOrder, CdrError, Decode, Decoder, Encode, Encoder, Limits, TypeCode, ValueModifier, Wire, walk,
};
use support::{order, types::octets, wire};

const STRUCT: u32 = 15;
const UNION: u32 = 16;
const SEQUENCE: u32 = 19;
const ALIAS: u32 = 21;
const VALUE: u32 = 29;

/// The octets of a message with arbitrary content.
fn written<'a>(write: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>) -> Vec<u8> {
    let mut out = Encoder::new(wire(ByteOrder::Big));
    write(&mut out).unwrap();
    out.to_vec()
}

fn read(octets: &[u8]) -> Result<TypeCode, CdrError> {
    TypeCode::decode(&mut Decoder::new(octets, wire(ByteOrder::Big)))
}

/// `kind`, its id and name, and the rest.
fn named(
    out: &mut Encoder<'_>,
    kind: u32,
    rest: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    out.u32(kind);
    out.encapsulation(|out| {
        out.short_str("IDL:X:1.0")?;
        out.short_str("X")?;
        rest(out)
    })
}

fn indirection(out: &mut Encoder<'_>, target: usize) {
    out.u32(0xffff_ffff);
    let back = i64::try_from(target).unwrap() - i64::try_from(out.position()).unwrap();
    out.i32(i32::try_from(back).unwrap());
}

/// A struct of one member whose type is an indirection to this position.
fn struct_with_indirection(target: usize) -> Vec<u8> {
    written(|out| {
        named(out, STRUCT, |out| {
            out.u32(1);
            out.short_str("m")?;
            indirection(out, target);
            Ok(())
        })
    })
}

/// A thread knows the type codes that it decoded recently by their octets: no other octets may pass for them.
#[test]
fn a_type_code_that_was_decoded_before_is_validated_as_at_first() {
    let of_string = written(|out| {
        out.u32(SEQUENCE);
        out.encapsulation(|out| {
            out.u32(18);
            out.u32(0);
            out.u32(7);
            Ok(())
        })
    });
    let first = read(&of_string).unwrap();
    assert_eq!(read(&of_string).unwrap(), first);
    assert_eq!(first, TypeCode::sequence(&TypeCode::STRING, 7).unwrap());
    for length in 0..of_string.len() {
        assert!(read(&of_string[..length]).is_err(), "{length}");
    }
    // Another byte order has other numbers.
    assert!(TypeCode::decode(&mut Decoder::new(&of_string, wire(ByteOrder::Little))).is_err());
    // The bound of a string is no length of an encapsulation.
    let string = written(|out| {
        out.u32(18);
        out.u32(5);
        out.octets(b"12345");
        Ok(())
    });
    for _ in 0..2 {
        let mut input = Decoder::new(&string, wire(ByteOrder::Big));
        assert_eq!(TypeCode::decode(&mut input).unwrap(), TypeCode::string(5));
        assert_eq!(input.remaining(), 5);
    }
    // The same octets refer to another type each time.
    for (kind, expected) in [(3, TypeCode::LONG), (5, TypeCode::ULONG), (3, TypeCode::LONG)] {
        let octets = written(|out| {
            out.u32(kind);
            out.u32(SEQUENCE);
            out.encapsulation(|out| {
                indirection(out, 0);
                out.u32(0);
                Ok(())
            })
        });
        let mut input = Decoder::new(&octets, wire(ByteOrder::Big));
        TypeCode::decode(&mut input).unwrap();
        assert_eq!(TypeCode::decode(&mut input).unwrap(), TypeCode::sequence(&expected, 0).unwrap());
    }
    // What is within the limit of nesting at one depth is beyond it at a greater one.
    let limits = Limits { nesting: 3, ..Limits::default() };
    let mut input = Decoder::new(&of_string, Wire { limits, ..wire(ByteOrder::Big) });
    assert_eq!(TypeCode::decode(&mut input.clone()).unwrap(), first);
    let deeper = input.nested(|input| input.nested(|input| input.nested(|input| TypeCode::decode(input))));
    assert!(matches!(deeper, Err(CdrError::TooDeep { .. })), "{deeper:?}");
}

#[test]
fn indirections_lead_to_type_codes_or_are_rejected() {
    // To the struct itself: a recursive type.
    assert!(read(&struct_with_indirection(0)).is_ok());
    // No other position in it or after it has a type code.
    let len = struct_with_indirection(0).len();
    for target in 1..len + 8 {
        let error = read(&struct_with_indirection(target)).unwrap_err();
        assert_eq!(error, CdrError::Malformed("an indirection does not point to a type code"), "{target}");
    }
    for offset in [i32::MIN, -4, 0, 4, i32::MAX] {
        let alone = written(|out| {
            out.u32(0xffff_ffff);
            out.i32(offset);
            Ok(())
        });
        assert!(read(&alone).is_err(), "{offset}");
    }
}

#[test]
fn only_a_constructed_type_may_contain_itself() {
    let sequence = written(|out| {
        out.u32(SEQUENCE);
        out.encapsulation(|out| {
            indirection(out, 0);
            out.u32(0);
            Ok(())
        })
    });
    let alias = written(|out| {
        named(out, ALIAS, |out| {
            indirection(out, 0);
            Ok(())
        })
    });
    for octets in [sequence, alias] {
        let error = read(&octets).unwrap_err();
        assert_eq!(error, CdrError::Malformed("a type contains itself without a constructed type in between"));
    }
    let base = written(|out| {
        named(out, VALUE, |out| {
            out.i16(0);
            indirection(out, 0);
            out.u32(0);
            Ok(())
        })
    });
    assert_eq!(read(&base).unwrap_err(), CdrError::Malformed("a value type inherits from a type of another kind"));
    let switched_by_itself = written(|out| {
        named(out, UNION, |out| {
            indirection(out, 0);
            out.i32(-1);
            out.u32(0);
            Ok(())
        })
    });
    assert_eq!(
        read(&switched_by_itself).unwrap_err(),
        CdrError::Malformed("a union cannot have a discriminator of this type")
    );
}

#[test]
fn a_struct_that_is_its_own_member_has_no_values() {
    let of = read(&struct_with_indirection(0)).unwrap();
    let mut input = Decoder::new(&[0; 64], wire(ByteOrder::Big));
    assert_eq!(walk::skip(&of, &mut input), Err(CdrError::TooDeep { limit: 64 }));
    assert_eq!(of.to_string(), "struct X { X m; }");
    assert!(of.equal(&of.compact().compact()) || of.equivalent(&of.compact()));
}

#[test]
fn kinds_counts_and_labels_are_validated() {
    for kind in [37, 38, 0x7fff_ffff, 0xffff_fffe] {
        assert!(
            read(&written(|out| {
                out.u32(kind);
                Ok(())
            }))
            .is_err()
        );
    }
    let many = written(|out| {
        named(out, STRUCT, |out| {
            out.u32(u32::MAX);
            Ok(())
        })
    });
    assert!(matches!(read(&many), Err(CdrError::LengthBeyondInput { .. })));
    let union = |default: i32, labels: [i32; 2]| {
        written(|out| {
            named(out, UNION, |out| {
                out.u32(3);
                out.i32(default);
                out.u32(2);
                for label in labels {
                    out.i32(label);
                    out.short_str("m")?;
                    out.u32(3);
                }
                Ok(())
            })
        })
    };
    assert!(read(&union(-1, [1, 2])).is_ok() && read(&union(1, [1, 1])).is_ok());
    assert_eq!(read(&union(-1, [1, 1])), Err(CdrError::Malformed("a union has a label twice")));
    assert_eq!(read(&union(2, [1, 2])), Err(CdrError::Malformed("a union's default member does not exist")));
}

#[test]
fn type_codes_nest_no_deeper_than_the_limit() {
    fn nested(out: &mut Encoder<'_>, levels: usize) -> Result<(), CdrError> {
        if levels == 0 {
            out.u32(3);
            return Ok(());
        }
        out.u32(SEQUENCE);
        out.encapsulation(|out| {
            nested(out, levels - 1)?;
            out.u32(0);
            Ok(())
        })
    }
    let nested = |levels| written(|out| nested(out, levels));
    assert!(read(&nested(64)).is_ok());
    assert_eq!(read(&nested(65)), Err(CdrError::TooDeep { limit: 64 }));
    assert_eq!(read(&nested(2000)), Err(CdrError::TooDeep { limit: 64 }));
}

/// `levels` structs, each with two members of the previous one, in a message of proportional length.
fn doubling(levels: usize, innermost: u32) -> Vec<u8> {
    fn level(out: &mut Encoder<'_>, levels: usize, innermost: u32) -> Result<(), CdrError> {
        out.u32(STRUCT);
        out.encapsulation(|out| {
            out.short_str("")?;
            out.short_str("")?;
            if levels == 0 {
                out.u32(innermost);
                for _ in 0..innermost {
                    out.short_str("")?;
                    out.u32(10);
                }
                return Ok(());
            }
            out.u32(2);
            out.short_str("")?;
            out.align(4);
            let at = out.position();
            level(out, levels - 1, innermost)?;
            out.short_str("")?;
            out.align(4);
            indirection(out, at);
            Ok(())
        })
    }
    written(|out| level(out, levels, innermost))
}

#[test]
fn operations_on_a_short_type_code_with_much_repetition_stay_cheap() {
    let octets = doubling(60, 1);
    let (a, b) = (read(&octets).unwrap(), read(&octets).unwrap());
    // Each of these would take 2^60 steps without detection of repetition.
    assert!(a.equal(&b) && a.equivalent(&b));
    let again = written(|out| a.encode(out));
    assert_eq!(again.len(), octets.len());
    assert!(a.compact().equal(&b));
    assert!(a.to_string().len() < 200);
    let any = Any::read(a.clone(), &mut Decoder::new(&[0; 1000], wire(ByteOrder::Big)));
    assert!(matches!(any, Err(CdrError::Truncated { .. })));
}

#[test]
fn types_without_octets_exhaust_a_budget() {
    let of = read(&doubling(60, 0)).unwrap();
    let mut input = Decoder::new(&[], wire(ByteOrder::Big));
    let tired = CdrError::Malformed("a type has far more parts than its value has octets");
    assert_eq!(walk::skip(&of, &mut input), Err(tired.clone()));
    let empties = TypeCode::array(&read(&doubling(0, 0)).unwrap(), u32::MAX).unwrap();
    assert_eq!(walk::skip(&empties, &mut input), Err(tired));
}

#[test]
fn sequences_of_empty_elements_keep_their_length() {
    let of = TypeCode::sequence(&read(&doubling(0, 0)).unwrap(), 0).unwrap();
    // The octets after the sequence must not matter.
    for rest in 0..3 {
        let octets = [&[0, 0, 0, 2][..], &vec![0; rest]].concat();
        let mut input = Decoder::new(&octets, wire(ByteOrder::Big));
        assert_eq!(Any::read(of.clone(), &mut input).unwrap().value().rest(), [0, 0, 0, 2]);
        assert_eq!(input.remaining(), rest);
    }
    let mut input = Decoder::new(&[0xff; 4], wire(ByteOrder::Big));
    assert!(matches!(walk::skip(&of, &mut input), Err(CdrError::Malformed(_))));
}

#[test]
fn a_type_code_has_a_limited_number_of_parts() {
    let many = written(|out| {
        named(out, 17, |out| {
            out.u32(70_000);
            (0..70_000).try_for_each(|_| out.short_str(""))
        })
    });
    assert_eq!(read(&many), Err(CdrError::Malformed("a type code has too many parts")));
}

#[test]
fn nested_anys_end_at_the_limit() {
    let nested = |levels: usize| {
        written(|out| {
            (0..levels).for_each(|_| out.u32(11));
            out.u32(0);
            Ok(())
        })
    };
    let read = |octets: &[u8]| Any::decode(&mut Decoder::new(octets, wire(ByteOrder::Big))).map(drop);
    assert_eq!(read(&nested(63)), Ok(()));
    assert_eq!(read(&nested(64)), Err(CdrError::TooDeep { limit: 64 }));
    assert_eq!(read(&nested(100_000)), Err(CdrError::TooDeep { limit: 64 }));
}

/// `valuetype X { X next; }`, and a list of such values.
fn list(len: usize) -> Vec<u8> {
    written(|out| {
        named(out, VALUE, |out| {
            out.i16(0);
            out.u32(0);
            out.u32(1);
            out.short_str("next")?;
            out.align(4);
            indirection(out, 0);
            out.i16(1);
            Ok(())
        })?;
        (0..len).for_each(|_| out.u32(0x7fff_ff00));
        out.u32(0);
        Ok(())
    })
}

#[test]
fn nested_values_end_at_their_own_limit() {
    let read = |octets: &[u8]| Any::decode(&mut Decoder::new(octets, wire(ByteOrder::Big)));
    let most = read(&list(256)).unwrap();
    let mut out = Encoder::new(wire(ByteOrder::Little));
    most.encode(&mut out).unwrap();
    let little = out.to_vec();
    assert_eq!(Any::decode(&mut Decoder::new(&little, wire(ByteOrder::Little))).unwrap(), most);
    assert_eq!(read(&list(257)).unwrap_err(), CdrError::TooDeep { limit: 256 });
}

#[test]
fn an_indirection_out_of_an_any_copies_its_target() {
    let of = read(&list(0)).unwrap();
    let octets = written(|out| {
        out.u32(0x7fff_ff00);
        indirection(out, 0);
        out.u32(0x7fff_ff00);
        indirection(out, 0);
        Ok(())
    });
    let mut input = Decoder::new(&octets, wire(ByteOrder::Big));
    let circle = Any::read(of.clone(), &mut input).unwrap();
    let both = Any::read(of.clone(), &mut input).unwrap();
    let sent = |any: &Any| {
        let mut out = Encoder::new(wire(ByteOrder::Little));
        any.write_value(&mut out).unwrap();
        out.to_vec()
    };
    // A value that refers to itself, and one before such a value.
    assert_eq!(sent(&circle).len(), 12);
    assert_eq!(sent(&both).len(), 16);
    let octets = sent(&both);
    let mut back = Decoder::new(&octets, wire(ByteOrder::Little));
    assert_eq!(sent(&Any::read(of, &mut back).unwrap()), octets);
}

/// Decodes octets as an any; a decoded any must survive encoding and decoding in both orders.
fn read_any(octets: &[u8], wire: Wire) {
    let Ok(any) = Any::decode(&mut Decoder::new(octets, wire)) else { return };
    let _ = (any.type_code().to_string(), any.type_code().compact());
    for order in support::ORDERS {
        let wire = Wire { order, ..wire };
        let mut out = Encoder::new(wire);
        // Values of unknown types and characters of other sets cannot always be forwarded.
        if any.encode(&mut out).is_err() {
            continue;
        }
        let written = out.to_vec();
        let again = Any::decode(&mut Decoder::new(&written, wire)).expect("an encoded any can be decoded");
        assert!(again.type_code().equal(any.type_code()));
    }
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn arbitrary_octets_are_an_any_or_rejected(octets in vec(any::<u8>(), 0..200), order in order()) {
        read_any(&octets, wire(order));
    }

    #[test]
    fn plausible_octets_are_an_any_or_rejected(
        words in vec(prop_oneof![3 => 0..37_u32, 1 => Just(0xffff_ffff), 1 => 0xffff_ff80..=0xffff_ffff_u32, 1 => Just(0x7fff_ff00)], 1..40),
        order in order(),
    ) {
        let mut out = Encoder::new(wire(order));
        words.iter().for_each(|word| out.u32(*word));
        read_any(&out.to_vec(), wire(order));
    }

    #[test]
    fn a_damaged_any_is_an_any_or_rejected(
        of in support::types::type_codes(), seed in any::<u64>(), order in order(),
        at in any::<prop::sample::Index>(), to in any::<u8>(), nesting in 1..64_u16,
    ) {
        let given = octets(&of, seed, order, 0);
        let any = Any::read(of, &mut Decoder::new(&given, wire(order))).unwrap();
        let mut out = Encoder::new(wire(order));
        any.encode(&mut out).unwrap();
        let mut octets = out.to_vec();
        let at = at.index(octets.len());
        octets[at] = to;
        read_any(&octets, wire(order));
        let limits = Limits { nesting, ..Limits::default() };
        read_any(&octets, Wire { limits, ..wire(order) });
        read_any(&octets[..at], wire(order));
    }
}

/// The message of TAO's Bug_2678_Regression: a sequence of anys, each a struct with an any, in which the type
/// codes of the second are indirections into the first. The standard permits indirections within one type
/// code only (9.3.5.1.3).
#[test]
fn a_type_code_may_be_an_indirection_into_an_earlier_any() {
    let numbers = ["value1", "value2"].map(|name| (name, TypeCode::LONG));
    let inner = TypeCode::structure("IDL:Inner:1.0", "Inner", &numbers).unwrap();
    let container = TypeCode::structure("IDL:Container:1.0", "Container", &[("contents", TypeCode::ANY)]).unwrap();
    let octets = written(|out| {
        out.octets(b"any");
        out.align(4);
        let outer_at = out.position();
        write_type(&container, out);
        let inner_at = out.position().next_multiple_of(4);
        write_type(&inner, out);
        out.i32(1);
        out.i32(2);
        indirection(out, outer_at);
        indirection(out, inner_at);
        out.i32(3);
        out.i32(4);
        // A type code that uses another.
        out.u32(SEQUENCE);
        out.encapsulation(|out| {
            indirection(out, inner_at);
            out.u32(0);
            Ok(())
        })?;
        out.u32(0);
        Ok(())
    });
    let mut input = Decoder::new(&octets, wire(ByteOrder::Big)).at(3);
    let [first, second, third] = [(); 3].map(|()| Any::decode(&mut input).unwrap());
    assert_eq!(input.remaining(), 0);
    for (any, numbers) in [(&first, [1, 2]), (&second, [3, 4])] {
        assert!(any.type_code().equal(&container));
        // Its content is self-contained, and can be forwarded in any message.
        let contents = Any::decode(&mut any.value()).unwrap();
        assert!(contents.type_code().equal(&inner));
        let mut value = contents.value();
        assert_eq!([value.i32(), value.i32()], numbers.map(Ok));
        let mut out = Encoder::new(wire(ByteOrder::Little));
        any.encode(&mut out).unwrap();
        assert_eq!(&Any::decode(&mut Decoder::new(&out.to_vec(), wire(ByteOrder::Little))).unwrap(), any);
    }
    assert!(third.type_code().equal(&TypeCode::sequence(&inner, 0).unwrap()));
}

fn write_type(of: &TypeCode, out: &mut Encoder<'_>) {
    let mut alone = Encoder::new(out.wire());
    of.encode(&mut alone).unwrap();
    out.align(4);
    out.octets(&alone.to_vec());
}

#[test]
fn discriminators_and_base_types_may_be_indirections_to_earlier_type_codes() {
    let colour = TypeCode::enumeration("IDL:Colour:1.0", "Colour", &["red", "green"]).unwrap();
    let colour = TypeCode::alias("IDL:Paint:1.0", "Paint", &colour).unwrap();
    let base = TypeCode::value("IDL:Base:1.0", "Base", ValueModifier::None, None, &[] as &[(&str, _, _)]).unwrap();
    let mut start = 0;
    let octets = written(|out| {
        write_type(&colour, out);
        let base_at = out.position().next_multiple_of(4);
        write_type(&base, out);
        start = out.position().next_multiple_of(4);
        named(out, UNION, |out| {
            indirection(out, 0);
            out.i32(-1);
            out.u32(1);
            out.u32(1);
            out.short_str("g")?;
            out.u32(3);
            Ok(())
        })?;
        named(out, VALUE, |out| {
            out.i16(0);
            indirection(out, base_at);
            out.u32(0);
            Ok(())
        })
    });
    let mut input = Decoder::new(&octets, wire(ByteOrder::Big)).at(start);
    let [union, value] = [(); 2].map(|()| TypeCode::decode(&mut input).unwrap());
    assert!(union.discriminator_type().unwrap().equal(&colour));
    assert!(value.concrete_base_type().unwrap().unwrap().equal(&base));
}

#[test]
fn an_indirection_without_a_type_code_is_rejected() {
    let octets = written(|out| {
        for target in [0_usize, 1, 2, 3, 8] {
            out.u32(0xeeee_eeee);
            indirection(out, target);
        }
        Ok(())
    });
    for nth in 0..5 {
        let input = &mut Decoder::new(&octets, wire(ByteOrder::Big)).at(12 * nth + 4);
        assert!(matches!(TypeCode::decode(input), Err(CdrError::Malformed(_))), "{nth}");
    }
}

/// Earlier type codes are decoded again each time: many times, long ones, or each with two more.
#[test]
fn the_cost_of_earlier_type_codes_is_bounded() {
    // A long one with a thousand indirections to it.
    let octets = written(|out| {
        named(out, STRUCT, |out| {
            out.u32(500);
            (0..500).try_for_each(|nth| {
                out.short_str(&format!("member{nth}"))?;
                out.u32(3);
                Ok(())
            })
        })?;
        (0..1_000).for_each(|_| indirection(out, 0));
        Ok(())
    });
    let mut input = Decoder::new(&octets, wire(ByteOrder::Big));
    let read = (0..1_001).map_while(|_| TypeCode::decode(&mut input).ok()).count();
    assert!((2..60).contains(&read), "{read}");
    // Each has two members of the previous one.
    let mut last = 0;
    let octets = written(|out| {
        for nth in 0..60 {
            let at = out.position().next_multiple_of(4);
            named(out, STRUCT, |out| {
                out.u32(2);
                for name in ["a", "b"] {
                    out.short_str(name)?;
                    if nth == 0 { out.u32(3) } else { indirection(out, last) }
                }
                Ok(())
            })?;
            last = at;
        }
        Ok(())
    });
    let error = TypeCode::decode(&mut Decoder::new(&octets, wire(ByteOrder::Big)).at(last)).unwrap_err();
    assert!(matches!(error, CdrError::Malformed(_)), "{error:?}");
    // A chain of indirections, as long as the message.
    let octets = written(|out| {
        out.u32(3);
        (0..10_000).for_each(|nth| indirection(out, if nth == 0 { 0 } else { 8 * nth - 4 }));
        Ok(())
    });
    let error = TypeCode::decode(&mut Decoder::new(&octets, wire(ByteOrder::Big)).at(octets.len() - 8)).unwrap_err();
    assert_eq!(error, CdrError::TooDeep { limit: 64 });
}

/// Found by fuzzing: the type code of an inner sequence has octets that are dropped when it is written again. They
/// counted for the budget of a walk, so that a sequence of 191 values without octets was decoded, and refused when it
/// had been written.
#[test]
fn octets_that_are_not_written_again_permit_no_further_steps() {
    const OCTETS: &str = "1400000025000000ffffffff0b000000040000000000000000000000000000000000090000bf00000000000000bf\
        0000000000000000000000000000140000001500000000000000000000000000090000bf00000000000000";
    let octet = |at| u8::from_str_radix(&OCTETS[at..at + 2], 16).unwrap();
    let octets: Vec<u8> = (0..OCTETS.len()).step_by(2).map(octet).collect();
    let decoded = Any::decode(&mut Decoder::new(&octets, wire(ByteOrder::Little)));
    assert_eq!(decoded, Err(CdrError::Malformed("a type has far more parts than its value has octets")));
}
