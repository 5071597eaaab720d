//! The bounds of a walk by type code: steps for each octet, nesting, lengths.

use crate::support::{ORDERS, wire};

use spandrel_cdr::{
    ByteOrder, CdrError, Decoder, Encode as _, Encoder, Joint, Label, Limits, TypeCode, ValueModifier, Visibility,
    Wire, walk,
};

static LONG: TypeCode = TypeCode::LONG;
static NULL: TypeCode = TypeCode::NULL;

/// The octets of a message, big-endian.
fn written<'a>(write: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>) -> Vec<u8> {
    let mut out = Encoder::new(wire(ByteOrder::Big));
    write(&mut out).unwrap();
    out.to_vec()
}

fn copied(type_code: &TypeCode, octets: &[u8], form: Wire) -> Result<Vec<u8>, CdrError> {
    let mut out = Encoder::new(form);
    walk::copy(type_code, &mut Decoder::new(octets, form), &mut out)?;
    Ok(out.to_vec())
}

fn structure(members: &[(&'static str, TypeCode)]) -> TypeCode {
    TypeCode::structure("IDL:S:1.0", "S", members).unwrap()
}

/// How many values without octets may follow this one in a struct before the type has too many parts.
fn permitted_empty_values(of: &TypeCode, octets: &[u8]) -> u32 {
    let is_permitted = |count| {
        let empties = TypeCode::array(&structure(&[]), count).unwrap();
        match copied(&structure(&[("value", of.clone()), ("rest", empties)]), octets, wire(ByteOrder::Big)) {
            Ok(copy) => {
                assert_eq!(copy, octets);
                true
            }
            Err(CdrError::Malformed("a type has far more parts than its value has octets")) => false,
            Err(error) => panic!("{of}: {error}"),
        }
    };
    let (mut permitted, mut refused) = (1_u32, 1 << 16);
    while refused - permitted > 1 {
        let middle = permitted.midpoint(refused);
        if is_permitted(middle) { permitted = middle } else { refused = middle }
    }
    permitted
}

/// A walk may take 1,024 steps, and 32 for each octet that counts. Of a text only its length counts, for instance, since
/// its octets may differ in another code set.
#[test]
fn each_value_permits_steps_by_its_octets() {
    let text = |out: &mut Encoder<'_>| out.short_str("many characters, which do not count");
    let reference = |out: &mut Encoder<'_>| {
        out.short_str("IDL:R:1.0")?;
        out.len(2)?;
        for tag in [7, 8] {
            out.u32(tag);
            out.octet_sequence(&[1; 40])?;
        }
        Ok(())
    };
    let colour = TypeCode::enumeration("IDL:Colour:1.0", "Colour", &["red", "green"]).unwrap();
    let union = TypeCode::union("IDL:U:1.0", "U", &colour, &[(Label::Value(1), "text", TypeCode::STRING)]).unwrap();
    let strings = TypeCode::sequence(&TypeCode::STRING, 0).unwrap();
    let longs = TypeCode::sequence(&TypeCode::LONG, 0).unwrap();
    let by_kind = [
        // The type, a value, the octets that count, and the steps within it.
        (TypeCode::LONG, written(|out| out.u32_ok(7)), 4, 0),
        (TypeCode::DOUBLE, written(|out| out.u64_ok(7)), 8, 0),
        (TypeCode::STRING, written(text), 4, 0),
        (TypeCode::WSTRING, written(|out| out.wstr("wide")), 4, 0),
        (TypeCode::WCHAR, written(|out| out.wchar('w')), 1, 0),
        (TypeCode::PRINCIPAL, written(|out| out.octet_sequence(&[9; 21])), 4, 0),
        (TypeCode::TYPE_CODE, written(|out| colour.encode(out)), 4, 0),
        (TypeCode::ANY, written(|out| LONG.encode(out).and_then(|()| out.u32_ok(7))), 8, 1),
        (TypeCode::fixed(5, 2).unwrap(), vec![0x12, 0x34, 0x5c], 3, 0),
        (TypeCode::fixed(4, 0).unwrap(), vec![0x01, 0x23, 0x4c], 3, 0),
        (colour, written(|out| out.u32_ok(1)), 4, 0),
        (union.clone(), written(|out| out.u32_ok(1).and_then(|()| text(out))), 5, 1),
        (union, written(|out| out.u32_ok(0)), 1, 0),
        (strings, written(|out| out.len(3).and_then(|()| (0..3).try_for_each(|_| text(out)))), 16, 3),
        (longs, written(|out| out.len(3).and_then(|()| (0..3).try_for_each(|_| out.u32_ok(7)))), 16, 0),
        (TypeCode::object(), written(reference), 24, 0),
        (TypeCode::abstract_base(), written(|out| out.bool_ok(true).and_then(|()| reference(out))), 25, 0),
        (TypeCode::abstract_base(), written(|out| out.bool_ok(false).and_then(|()| out.u32_ok(0))), 5, 0),
    ];
    for (of, value, octets, steps) in by_kind {
        // The struct, its two members, and what the value has.
        assert_eq!(permitted_empty_values(&of, &value), 1024 + 32 * octets - 3 - steps, "{of}");
    }
}

/// Writers as expressions, which are closures of one form with those that may fail.
trait Written {
    fn u32_ok(&mut self, value: u32) -> Result<(), CdrError>;
    fn u64_ok(&mut self, value: u64) -> Result<(), CdrError>;
    fn bool_ok(&mut self, value: bool) -> Result<(), CdrError>;
}

impl Written for Encoder<'_> {
    fn u32_ok(&mut self, value: u32) -> Result<(), CdrError> {
        self.u32(value);
        Ok(())
    }

    fn u64_ok(&mut self, value: u64) -> Result<(), CdrError> {
        self.u64(value);
        Ok(())
    }

    fn bool_ok(&mut self, value: bool) -> Result<(), CdrError> {
        self.bool(value);
        Ok(())
    }
}

/// Structs may nest four times as deeply as sequences, and one level deeper for each enclosing value type.
#[test]
fn structs_nest_up_to_their_limit() {
    let limits = Limits { nesting: 4, ..Limits::default() };
    let form = Wire { limits, ..wire(ByteOrder::Big) };
    let nested = |levels| (0..levels).fold(TypeCode::OCTET, |inner, _| structure(&[("inner", inner)]));
    assert_eq!(copied(&nested(16), &[7], form).unwrap(), [7]);
    assert_eq!(copied(&nested(17), &[7], form), Err(CdrError::TooDeep { limit: 4 }));
    // The depth is that of levels which have not ended.
    let twice = structure(&[("first", nested(15)), ("second", nested(15))]);
    assert_eq!(copied(&twice, &[7, 8], form).unwrap(), [7, 8]);

    let value = |levels| {
        let state = [("state", nested(levels), Visibility::Public)];
        TypeCode::value("IDL:V:1.0", "V", ValueModifier::None, None, &state).unwrap()
    };
    let octets = [0x7f, 0xff, 0xff, 0x00, 7];
    assert_eq!(copied(&value(16), &octets, form).unwrap(), octets);
    assert_eq!(copied(&value(17), &octets, form), Err(CdrError::TooDeep { limit: 4 }));
}

#[test]
fn a_bounded_sequence_or_text_may_be_as_long_as_its_bound() {
    for content in [TypeCode::OCTET, TypeCode::ANY] {
        let bounded = TypeCode::sequence(&content, 2).unwrap();
        let octets = |len| {
            written(|out| {
                out.len(len)?;
                // Octets, or anys without a value.
                (0..len).try_for_each(|_| {
                    if content.equal(&TypeCode::OCTET) {
                        out.u8(7);
                        Ok(())
                    } else {
                        NULL.encode(out)
                    }
                })
            })
        };
        for len in 0..=2 {
            assert_eq!(copied(&bounded, &octets(len), wire(ByteOrder::Big)).unwrap(), octets(len));
        }
        let over = CdrError::OverBound { len: 3, bound: 2 };
        assert_eq!(copied(&bounded, &octets(3), wire(ByteOrder::Big)), Err(over));
    }
    // The bound counts characters, not the octets that the text has in memory.
    let text = |text: &str| written(|out| out.wstr(text));
    for accepted in ["", "ab", "ää", "日本"] {
        assert_eq!(copied(&TypeCode::wstring(2), &text(accepted), wire(ByteOrder::Big)).unwrap(), text(accepted));
    }
    let over = CdrError::OverBound { len: 3, bound: 2 };
    assert_eq!(copied(&TypeCode::wstring(2), &text("日本語"), wire(ByteOrder::Big)), Err(over));
}

/// A number directly after a joint of fragments is aligned by its offset in the fragment.
#[test]
fn numbers_after_a_joint_are_copied_without_the_gap_of_their_position() {
    let long_double = TypeCode::array(&TypeCode::LONGDOUBLE, 3).unwrap();
    for order in ORDERS {
        for (number, size) in [
            (TypeCode::USHORT, 2),
            (TypeCode::FLOAT, 4),
            (TypeCode::ULONGLONG, 8),
            (TypeCode::LONGDOUBLE, 16),
            (long_double.clone(), 48),
        ] {
            // An octet ends the first fragment; the number follows at once, as offset 16 of the second one.
            let of = structure(&[("first", TypeCode::OCTET), ("second", number.clone())]);
            let octets: Vec<u8> = (0..=size).collect();
            let joints = [Joint { at: 1, alignment_position: 16 }];
            let mut input = Decoder::new(&octets, wire(order)).with_joints(&joints);
            let mut out = Encoder::new(wire(order));
            walk::copy(&of, &mut input, &mut out).unwrap();
            let copy = out.to_vec();
            let gap = usize::from(size.min(8)) - 1;
            let expected = [&octets[..1], &vec![0; gap], &octets[1..]].concat();
            assert_eq!(copy, expected, "{number} {order:?}");
            assert_eq!(input.remaining(), 0);
        }
    }
}
