//! Octets decoded as values of many types: no panic, memory in proportion to the input, and a decoded value
//! is encoded to octets that decode to an equal one.
//!
//! The first octet selects the type, the second byte order and version.
use spandrel_cdr::{
    BoundedString, BoundedVec, ByteOrder, Char, Decode, Decoder, Encode, Encoder, GiopVersion, Ior, LongDouble, Wire,
};

pub fn run(input: &[u8]) {
    let [kind, wire, octets @ ..] = input else { return };
    let order = if wire & 1 == 0 { ByteOrder::Big } else { ByteOrder::Little };
    let version = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2][usize::from(wire >> 1) % 3];
    let wire = Wire::new(order, version);
    match kind % 16 {
        0 => round_trip::<Vec<i16>>(octets, wire),
        1 => round_trip::<Vec<u32>>(octets, wire),
        2 => round_trip::<Vec<f64>>(octets, wire),
        3 => round_trip::<Vec<u8>>(octets, wire),
        4 => round_trip::<Vec<bool>>(octets, wire),
        5 => round_trip::<Vec<Char>>(octets, wire),
        6 => round_trip::<Vec<LongDouble>>(octets, wire),
        7 => round_trip::<String>(octets, wire),
        8 => round_trip::<Vec<String>>(octets, wire),
        9 => round_trip::<Vec<Vec<Vec<u16>>>>(octets, wire),
        10 => round_trip::<BoundedVec<i64, 5>>(octets, wire),
        11 => round_trip::<Vec<BoundedString<4>>>(octets, wire),
        12 => round_trip::<[[f32; 3]; 2]>(octets, wire),
        13 => round_trip::<Vec<Ior>>(octets, wire),
        14 => round_trip::<Vec<[BoundedVec<String, 2>; 2]>>(octets, wire),
        _ => read_primitives(octets, wire),
    }
}

fn round_trip<T: Decode + Encode>(octets: &[u8], wire: Wire) {
    let Ok(value) = T::decode(&mut Decoder::new(octets, wire)) else { return };
    let encoded = write(&value, wire);
    let decoded = T::decode(&mut Decoder::new(&encoded, wire)).expect("encoded octets can be decoded");
    assert_eq!(write(&decoded, wire), encoded);
}

fn write<T: Encode>(value: &T, wire: Wire) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    value.encode(&mut out).expect("a decoded value can be encoded");
    out.to_vec()
}

/// Reads primitives in an order that the input selects, through encapsulations.
fn read_primitives(octets: &[u8], wire: Wire) {
    let mut input = Decoder::new(octets, wire);
    while let Ok(step) = input.u8() {
        let succeeded = match step % 12 {
            0 => input.i16().is_ok(),
            1 => input.u32().is_ok(),
            2 => input.f64().is_ok(),
            3 => input.bool().is_ok(),
            4 => input.str().is_ok(),
            5 => input.latin1().is_ok(),
            6 => input.octet_sequence().is_ok(),
            7 => input.align(8).is_ok(),
            8 => input.sequence_len(3).is_ok(),
            9 => input.take(usize::from(step)).is_ok(),
            10 => <u32 as Decode>::lend(&mut input).is_ok(),
            _ => input.encapsulation().is_ok_and(|mut inner| inner.u32().is_ok()),
        };
        if !succeeded {
            return;
        }
    }
}
