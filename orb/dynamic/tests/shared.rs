//! Values that several arguments share.

mod support;

use spandrel_cdr::{Any, ByteOrder, Decoder, Encoder, GiopVersion, Wire};
use spandrel_dynamic::DynAny;
use support::base;

#[test]
fn a_shared_value_is_read_and_written_as_two() {
    for orders in [[ByteOrder::Little, ByteOrder::Big], [ByteOrder::Big, ByteOrder::Little]] {
        let [from, to] = orders.map(|order| Wire::new(order, GiopVersion::V1_2));
        let mut out = Encoder::new(from);
        out.u32(0x7fff_ff02);
        out.short_str("IDL:Base:1.0").unwrap();
        out.align(4);
        out.i32(7);
        let here = i32::try_from(out.position()).unwrap();
        out.i32(-1);
        // From the octets after the tag to the value.
        out.i32(-(here + 4));
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, from);
        let first = Any::read(base(), &mut input).unwrap();
        let second = Any::read(base(), &mut input).unwrap();
        let mut out = Encoder::new(to);
        first.write_value(&mut out).unwrap();
        second.write_value(&mut out).unwrap();
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, to);
        let read = [(); 2].map(|()| DynAny::new(&Any::read(base(), &mut input).unwrap()).unwrap());
        assert_eq!(read[0], read[1]);
        assert_eq!(read[0].long(), Ok(7));
        assert_eq!(input.remaining(), 0);
    }
}

/// The second value says that its id is that of the first: alone it must say it itself.
#[test]
fn a_shared_id_is_written_with_each_value() {
    for orders in [[ByteOrder::Little, ByteOrder::Big], [ByteOrder::Big, ByteOrder::Big]] {
        let [from, to] = orders.map(|order| Wire::new(order, GiopVersion::V1_2));
        let mut out = Encoder::new(from);
        out.u32(0x7fff_ff02);
        out.short_str("IDL:Base:1.0").unwrap();
        out.i32(7);
        out.u32(0x7fff_ff02);
        out.i32(-1);
        // Back to the length of the string.
        let here = i32::try_from(out.position()).unwrap();
        out.i32(4 - here);
        out.i32(8);
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, from);
        let first = Any::read(base(), &mut input).unwrap();
        let second = Any::read(base(), &mut input).unwrap();
        assert_eq!(input.remaining(), 0);
        // The other way round, so that nothing stands where it stood.
        let mut out = Encoder::new(to);
        second.write_value(&mut out).unwrap();
        first.write_value(&mut out).unwrap();
        let octets = out.to_vec();
        let mut input = Decoder::new(&octets, to);
        let read = [(); 2].map(|()| DynAny::new(&Any::read(base(), &mut input).unwrap()).unwrap().long());
        assert_eq!(read, [Ok(8), Ok(7)]);
    }
}
