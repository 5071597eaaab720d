//! Type codes that refer back within themselves, in fragmented messages (CORBA 3.3 Part 2, 9.3.5.1.3 and
//! 9.4.9).

use crate::tests::support;

use spandrel_cdr::{Any, ByteOrder, Decode, Encode, Encoder, GiopVersion, Limits, TypeCode, Wire};
use spandrel_giop::{Assembler, Fragments, HEADER_LEN, Message, MessageHeader, MessageType, ReplyStatus, begin_reply};
use spandrel_message::MessageBlock;
use support::wires;

/// A tree of nodes, each with two points: one type recurs, the other occurs twice.
fn tree() -> TypeCode {
    let point =
        TypeCode::structure("IDL:Point:1.0", "Point", &[("x", TypeCode::DOUBLE), ("y", TypeCode::SHORT)]).unwrap();
    let children = TypeCode::sequence(&TypeCode::recursive("IDL:Tree:1.0").unwrap(), 0).unwrap();
    let members = [("from", point.clone()), ("to", point), ("children", children.clone()), ("others", children)];
    TypeCode::structure("IDL:Tree:1.0", "Tree", &members).unwrap()
}

/// A reply with the type alone, an any whose value is the type, the type once more, and a number.
fn reply(wire: Wire, of: &TypeCode) -> (Vec<u8>, usize) {
    let any = Any::new(of).unwrap();
    let mut out = Encoder::new(wire);
    let body = begin_reply(&mut out, 7, ReplyStatus::NoException, &[]);
    let start = out.position();
    of.encode(&mut out).unwrap();
    any.encode(&mut out).unwrap();
    of.encode(&mut out).unwrap();
    out.u64(0x1122_3344_5566_7788);
    body.end(&mut out).unwrap();
    (out.to_vec(), start)
}

#[track_caller]
fn assert_reads(message: &Message, start: usize, of: &TypeCode) {
    let mut input = message.decoder(Limits::default()).at(start);
    assert_eq!(TypeCode::decode(&mut input).as_ref(), Ok(of));
    let any = Any::decode(&mut input).unwrap();
    assert_eq!(any.extract::<TypeCode>().as_ref(), Ok(of));
    assert_eq!(TypeCode::decode(&mut input).as_ref(), Ok(of));
    assert_eq!(input.u64(), Ok(0x1122_3344_5566_7788));
    assert_eq!(input.remaining(), 0);
}

fn accept(assembler: &mut Assembler, octets: &[u8]) -> Option<Message> {
    let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
    assembler.accept(header, MessageBlock::from(octets)).unwrap()
}

#[test]
fn a_repeated_type_is_written_once() {
    let of = tree();
    // In this order no offset equals the indirection mark before it.
    let mut out = Encoder::new(Wire::new(ByteOrder::Little, GiopVersion::V1_2));
    of.encode(&mut out).unwrap();
    let octets = out.to_vec();
    let times = |what: &[u8]| octets.windows(what.len()).filter(|window| *window == what).count();
    assert_eq!((times(b"IDL:Point:1.0"), times(b"IDL:Tree:1.0")), (1, 1));
    assert_eq!(times(&[0xff; 4]), 3, "one point and two trees are encoded as indirections");
}

#[test]
fn types_are_decoded_from_1_2_fragments_with_any_cut() {
    let of = tree();
    for wire in wires().filter(|wire| wire.version == GiopVersion::V1_2) {
        let (whole, start) = reply(wire, &of);
        assert_reads(&Message::whole(MessageBlock::from(whole.as_slice())).unwrap(), start, &of);
        for limit in (64..whole.len()).step_by(if cfg!(miri) { 160 } else { 8 }) {
            let mut out = Encoder::new(wire);
            out.octets(&whole);
            let stream = Fragments::of(&out, limit).unwrap().to_vec(&out);
            let (mut assembler, mut rest, mut joined) = (Assembler::new(1 << 16, 1), &stream[..], None);
            while !rest.is_empty() {
                let header = MessageHeader::parse(rest.first_chunk().unwrap()).unwrap();
                let (fragment, later) = rest.split_at(header.total_len());
                (joined, rest) = (accept(&mut assembler, fragment), later);
            }
            assert_reads(&joined.expect("the last completes it"), start, &of);
        }
    }
}

/// Inside an encapsulation, a sequence of octets, a 1.1 message may be cut anywhere. Octets after the cut
/// keep their alignment if the cut is 4 after a multiple of 8.
#[test]
fn types_are_decoded_from_1_1_fragments_with_any_permitted_cut() {
    let of = tree();
    for wire in wires().filter(|wire| wire.version == GiopVersion::V1_1) {
        let (whole, start) = reply(wire, &of);
        let mut alone = Encoder::new(wire);
        of.encode(&mut alone).unwrap();
        // After kind and length.
        let encapsulation = start + 8..start + alone.position();
        for at in encapsulation.filter(|at| at % 8 == 4).step_by(if cfg!(miri) { 9 } else { 1 }) {
            let header = MessageHeader::parse(whole.first_chunk().unwrap()).unwrap();
            let size = u32::try_from(at - HEADER_LEN).unwrap();
            let first = MessageHeader { more_fragments: true, size, ..header };
            let size = u32::try_from(whole.len() - at).unwrap();
            let last = MessageHeader { message_type: MessageType::Fragment, size, ..header };
            let mut assembler = Assembler::new(1 << 16, 1);
            let first = [&first.to_octets(), &whole[HEADER_LEN..at]].concat();
            assert_eq!(accept(&mut assembler, &first), None);
            let joined = accept(&mut assembler, &[&last.to_octets(), &whole[at..]].concat()).unwrap();
            assert_reads(&joined, start, &of);
        }
    }
}
