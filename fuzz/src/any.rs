//! Octets decoded as anys: no panic, no endless walk, memory in proportion to the input; a decoded any keeps
//! its type when it is encoded again, and decodes to an equal value.
//!
//! The first octet selects byte order, version and code set, the second the offset of the any.
use spandrel_cdr::{Any, ByteOrder, CharSet, Decode, Decoder, Encode, Encoder, GiopVersion, Wire};

pub fn run(input: &[u8]) {
    let [wire, start, octets @ ..] = input else { return };
    let (order, other) = match wire & 1 {
        0 => (ByteOrder::Big, ByteOrder::Little),
        _ => (ByteOrder::Little, ByteOrder::Big),
    };
    let version = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2][usize::from(wire >> 1) % 3];
    let char_set = if wire & 0x80 == 0 { CharSet::Latin1 } else { CharSet::Utf8 };
    let wire = Wire { char_set, ..Wire::new(order, version) };
    let Ok(any) = Any::decode(&mut Decoder::new(octets, wire).at(usize::from(start % 8))) else { return };
    let type_code = any.type_code();
    let _ = type_code.to_string();
    assert!(type_code.equal(type_code) && type_code.compact().equivalent(type_code));
    for (order, place) in [(order, 0), (order, 4), (other, 1)] {
        let wire = Wire { order, ..wire };
        // Some anys cannot be encoded again: values of unknown types, indirections to outside.
        let Some(encoded) = write(&any, wire, place) else { continue };
        let decoded = Any::decode(&mut Decoder::new(&encoded, wire).at(place)).expect("encoded octets can be decoded");
        assert!(decoded.type_code().equal(type_code));
        assert_eq!(write(&decoded, wire, place), Some(encoded));
    }
}

fn write(any: &Any, wire: Wire, start: usize) -> Option<Vec<u8>> {
    let mut out = Encoder::new(wire);
    out.octets(&vec![0; start]);
    any.encode(&mut out).ok().map(|()| out.to_vec())
}
