//! Encodes and decodes sequences of the papers' `BinStruct`, to be measured from outside.
//!
//! `binstruct [encode|decode|fields] [native|swapped] [ELEMENTS] [ROUNDS]` prints nanoseconds for each element. Under
//! `valgrind --tool=callgrind`, two runs that differ in `ROUNDS` give the instructions for each.

use std::{env, hint::black_box, time::Instant};

use spandrel_cdr::{
    ByteOrder, CdrError, Char, Decode, Decoder, Encode, Encoder, FixedSize, GiopVersion, Wire, decode_fixed_vec,
    encode_fixed_slice,
};

#[derive(Clone, Copy)]
struct BinStruct {
    s: i16,
    c: Char,
    l: i32,
    o: u8,
    d: f64,
}

impl Encode for BinStruct {
    #[inline]
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        Encode::encode(&self.s, out)?;
        Encode::encode(&self.c, out)?;
        Encode::encode(&self.l, out)?;
        Encode::encode(&self.o, out)?;
        Encode::encode(&self.d, out)
    }

    #[inline]
    fn encode_slice<'a>(items: &'a [Self], out: &mut Encoder<'a>) -> Result<(), CdrError> {
        encode_fixed_slice(items, out)
    }
}

impl Decode for BinStruct {
    const MIN_OCTETS: usize = 16;

    #[inline]
    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self {
            s: Decode::decode(input)?,
            c: Decode::decode(input)?,
            l: Decode::decode(input)?,
            o: Decode::decode(input)?,
            d: Decode::decode(input)?,
        })
    }

    #[inline]
    fn decode_vec(input: &mut Decoder<'_>, len: usize) -> Result<Vec<Self>, CdrError> {
        decode_fixed_vec(input, len)
    }
}

impl FixedSize for BinStruct {
    const FIRST_ALIGN: usize = 2;
    const ALIGN: usize = 8;
    const SIZE: usize = 24;

    #[inline]
    fn put<const SWAP: bool>(&self, out: &mut [u8]) {
        let out: &mut [u8; 24] = out.try_into().expect("SIZE octets");
        FixedSize::put::<SWAP>(&self.s, &mut out[0..2]);
        FixedSize::put::<SWAP>(&self.c, &mut out[2..3]);
        out[3..4].fill(0);
        FixedSize::put::<SWAP>(&self.l, &mut out[4..8]);
        FixedSize::put::<SWAP>(&self.o, &mut out[8..9]);
        out[9..16].fill(0);
        FixedSize::put::<SWAP>(&self.d, &mut out[16..24]);
    }

    #[inline]
    fn get<const SWAP: bool>(input: &[u8]) -> Result<Self, CdrError> {
        let input: &[u8; 24] = input.try_into().expect("SIZE octets");
        Ok(Self {
            s: FixedSize::get::<SWAP>(&input[0..2])?,
            c: FixedSize::get::<SWAP>(&input[2..3])?,
            l: FixedSize::get::<SWAP>(&input[4..8])?,
            o: FixedSize::get::<SWAP>(&input[8..9])?,
            d: FixedSize::get::<SWAP>(&input[16..24])?,
        })
    }
}

/// Writes the sequence into scratch that is reused, as a connection does.
fn encode(items: &[BinStruct], wire: Wire, scratch: Vec<u8>) -> Vec<u8> {
    let mut out = Encoder::reusing(scratch, wire);
    items.encode(&mut out).expect("structs have a CDR form");
    black_box(out.position());
    out.into_scratch()
}

/// The same, field after field.
fn encode_fields(items: &[BinStruct], wire: Wire, scratch: Vec<u8>) -> Vec<u8> {
    let mut out = Encoder::reusing(scratch, wire);
    out.len(items.len()).expect("a short sequence");
    items.iter().try_for_each(|item| item.encode(&mut out)).expect("structs have a CDR form");
    black_box(out.position());
    out.into_scratch()
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let argument = |at: usize, default: &str| arguments.get(at).map_or(default, String::as_str).to_owned();
    let order = match argument(1, "native").as_str() {
        "swapped" if ByteOrder::NATIVE == ByteOrder::Big => ByteOrder::Little,
        "swapped" => ByteOrder::Big,
        _ => ByteOrder::NATIVE,
    };
    let elements: i16 = argument(2, "1024").parse().expect("a number of elements");
    let rounds: u32 = argument(3, "1000").parse().expect("a number of rounds");
    let wire = Wire::new(order, GiopVersion::V1_2);
    let items: Vec<BinStruct> =
        (0..elements).map(|n| BinStruct { s: n, c: Char(1), l: n.into(), o: 2, d: n.into() }).collect();

    let mut scratch = encode(&items, wire, Vec::new());
    let octets = scratch.clone();
    let begun = Instant::now();
    for _ in 0..rounds {
        let items = black_box(&items);
        match argument(0, "encode").as_str() {
            "encode" => scratch = encode(items, wire, scratch),
            "fields" => scratch = encode_fields(items, wire, scratch),
            _ => {
                let read = Vec::<BinStruct>::decode(&mut Decoder::new(black_box(&octets), wire));
                black_box(read.expect("what was written"));
            }
        }
    }
    let nanoseconds = begun.elapsed().as_secs_f64() * 1e9;
    println!("{:.2} ns for each element", nanoseconds / f64::from(rounds) / f64::from(elements));
}
