//! The values in the golden messages, which omniORB and JacORB wrote for seed 2, equal the generated ones.

use std::fs;

use spandrel_cdr::{
    ByteOrder, CdrError, Decode, Decoder, Encode, Encoder, GiopVersion, OctetForm, TrailingOctets, Wire, from_octets,
};
use spandrel_interop::idl::{Cube, Grid, Keywords, Point, Record, Scalars};
use spandrel_interop::values::{Value, check, value};

/// One message of a golden file: the offset of its body, its byte order and version, its octets.
struct Message {
    body: usize,
    wire: Wire,
    octets: Vec<u8>,
}

/// The messages of a file; the README of its folder describes the format.
fn messages(name: &str) -> Vec<Message> {
    let path = format!("{}/../../orb/giop/tests/golden/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut messages: Vec<Message> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.contains('=') {
            let word = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)).expect(name);
            let order = if word("order=") == "big" { ByteOrder::Big } else { ByteOrder::Little };
            let minor = word("version=").strip_prefix("1.").and_then(|minor| minor.parse().ok()).expect("1.x");
            let wire = Wire::new(order, GiopVersion { major: 1, minor });
            messages.push(Message { body: word("body=").parse().unwrap(), wire, octets: Vec::new() });
        } else {
            let octets = line.as_bytes().chunks(2);
            let octets = octets.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
            messages.last_mut().unwrap().octets.extend(octets);
        }
    }
    messages
}

/// Checks the request and the reply of a `rotate_*` call with seed 2.
#[track_caller]
fn check_rotate_messages<T: Value + Decode + Encode>(name: &str) {
    let [request, reply] = &messages(name)[..] else { panic!("{name} is not a request and a reply") };
    let mut input = Decoder::new(&request.octets, request.wire).at(request.body);
    assert_eq!(input.u32().unwrap(), 2, "the seed");
    check_values::<T>(&mut input, &[1, 2]);
    check_values::<T>(&mut Decoder::new(&reply.octets, reply.wire).at(reply.body), &[3, 4, 5]);
    // Our encoding has the same length. The octets may differ: omniORB does not clear the padding.
    let values: [T; 2] = [value(2, 1), value(2, 2)];
    let mut out = Encoder::new(request.wire);
    out.octets(&vec![0; request.body]);
    out.u32(2);
    values.iter().try_for_each(|value| value.encode(&mut out)).unwrap();
    assert_eq!(out.position(), request.octets.len());
}

#[track_caller]
fn check_values<T: Value + Decode>(input: &mut Decoder<'_>, roles: &[u32]) {
    for role in roles {
        let seen = T::decode(input).unwrap();
        check(&format!("role {role}"), &seen, 2, *role).unwrap();
    }
    assert_eq!(input.remaining(), 0);
}

#[test]
fn scalars_written_by_omniorb_in_every_version() {
    check_rotate_messages::<Scalars>("rotate-scalars-1.0");
    check_rotate_messages::<Scalars>("rotate-scalars-1.1");
    check_rotate_messages::<Scalars>("rotate-scalars-1.2");
}

#[test]
fn structs_and_arrays_written_by_omniorb() {
    check_rotate_messages::<Grid>("rotate-grid-1.2");
    check_rotate_messages::<Cube>("rotate-cube-1.2");
    check_rotate_messages::<Record>("rotate-record-1.2");
    check_rotate_messages::<Keywords>("rotate-keywords-1.2");
}

#[test]
fn sequences_written_by_omniorb() {
    check_rotate_messages::<Vec<Vec<String>>>("rotate-stringseqs-1.2");
    check_rotate_messages::<Vec<Point>>("rotate-pointseq-1.2");
}

#[test]
fn messages_written_by_jacorb() {
    check_rotate_messages::<Scalars>("jacorb-rotate-scalars-1.0");
    check_rotate_messages::<Scalars>("jacorb-rotate-scalars-1.2");
    check_rotate_messages::<Grid>("jacorb-rotate-grid-1.2");
    check_rotate_messages::<Cube>("jacorb-rotate-cube-1.2");
    check_rotate_messages::<Record>("jacorb-rotate-record-1.0");
    check_rotate_messages::<Record>("jacorb-rotate-record-1.2");
    check_rotate_messages::<Vec<Vec<String>>>("jacorb-rotate-stringseqs-1.2");
}

/// Checks the result in the reply of a `rotate_*` call as octets outside of a message.
#[track_caller]
fn check_result<T: Value + Decode + Encode>(name: &str) {
    let [_, reply] = &messages(name)[..] else { panic!("{name} is not a request and a reply") };
    assert_eq!(reply.body % 8, 0, "alignment counts from the body as from the message");
    let body = &reply.octets[reply.body..];
    let form = OctetForm::bare(reply.wire.order).version(reply.wire.version);
    assert!(matches!(from_octets::<T>(body, &form), Err(CdrError::TrailingOctets { .. })), "it is one of three values");
    let result: T = from_octets(body, &form.trailing_octets(TrailingOctets::Ignore)).unwrap();
    check("the result", &result, 2, 3).unwrap();
}

#[test]
fn results_of_omniorb_and_jacorb_are_bare_cdr() {
    check_result::<Scalars>("rotate-scalars-1.2"); // little-endian
    check_result::<Record>("rotate-record-1.2");
    check_result::<Vec<Vec<String>>>("rotate-stringseqs-1.2");
    check_result::<Scalars>("jacorb-rotate-scalars-1.2"); // big-endian
    check_result::<Record>("jacorb-rotate-record-1.2");
}
