//! Values that one message shares between its anys, as omniORB writes them: the second is an indirection out of its any.

use spandrel_cdr::{Any, ByteOrder, CdrError, Decode, Decoder, Encode, Encoder, GiopVersion, TypeCode, Wire};

/// In place of a value tag (CORBA 3.3 Part 2, 9.3.4.1).
const INDIRECTION: u32 = 0xffff_ffff;

fn boxed(of: &TypeCode, text: &str) -> Any {
    let write = |out: &mut Encoder<'_>| {
        out.u32(0x7fff_ff02); // one repository id
        out.short_str("IDL:Text:1.0")?;
        out.short_str(text)
    };
    Any::write(of.clone(), write).unwrap()
}

/// An any with a value, then as many anys whose value is said to be the same.
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
fn an_any_has_the_value_that_it_shares_with_one_before() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let (sent, wire, octets) = message(order, "boxed", 2);
        let mut input = Decoder::new(&octets, wire);
        let read: Vec<Any> = (0..3).map(|_| Any::decode(&mut input).unwrap()).collect();
        assert_eq!(input.remaining(), 0);
        for any in read {
            let mut out = Encoder::new(sent.value().wire());
            any.write_value(&mut out).unwrap();
            assert_eq!(out.to_vec(), sent.value().rest(), "it is whole, in whatever message it goes on");
        }
    }
}

#[test]
fn a_value_is_not_copied_into_any_number_of_anys() {
    let (_, wire, octets) = message(ByteOrder::Little, &"long ".repeat(20_000), 1_000);
    let mut input = Decoder::new(&octets, wire);
    let error = (0..1_001).find_map(|_| Any::decode(&mut input).err());
    assert!(matches!(error, Some(CdrError::Malformed(_))), "{error:?}");
}

#[test]
fn an_indirection_to_no_value_is_refused() {
    let (_, wire, mut octets) = message(ByteOrder::Little, "boxed", 1);
    let offset = octets.len() - 4;
    let to_the_start = -i32::try_from(offset).unwrap();
    octets[offset..].copy_from_slice(&to_the_start.to_le_bytes());
    let mut input = Decoder::new(&octets, wire);
    Any::decode(&mut input).unwrap();
    assert!(matches!(Any::decode(&mut input), Err(CdrError::Malformed(_))));
}
