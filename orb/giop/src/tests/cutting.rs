//! Messages divided into fragments: the joined message equals the original, for each layout and limit.

use crate::tests::support;

use std::io::IoSlice;

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{ByteOrder, Decode, Encode, Encoder, GiopVersion, Limits, Wire};
use spandrel_giop::{
    Assembler, Fragments, HEADER_LEN, LocateReplyHeader, LocateStatus, MIN_FRAGMENT, Message, MessageHeader,
    MessageType, ReplyStatus, RequestTemplate, ResponseFlags, begin_locate_reply, begin_reply, locate_request,
};
use spandrel_message::MessageBlock;
use support::wires;

/// A part of a body.
#[derive(Clone, Debug)]
enum Part {
    Octet(u8),
    Long(u32),
    Hyper(u64),
    Text(String),
    Octets(Vec<u8>),
    Longs(Vec<u32>),
    Hypers(Vec<u64>),
}

fn part() -> impl Strategy<Value = Part> {
    let long = || 1_usize..9000;
    prop_oneof![
        any::<u8>().prop_map(Part::Octet),
        any::<u32>().prop_map(Part::Long),
        any::<u64>().prop_map(Part::Hyper),
        long().prop_map(|len| Part::Text("text of any length; ".chars().cycle().take(len).collect())),
        long().prop_map(|len| Part::Octets((0..len).map(|at| (at % 251) as u8).collect())),
        (1_u32..2500).prop_map(|len| Part::Longs((0..len).collect())),
        (1_u64..1200).prop_map(|len| Part::Hypers((0..len).collect())),
    ]
}

fn encode<'a>(parts: &'a [Part], out: &mut Encoder<'a>) {
    for part in parts {
        match part {
            Part::Octet(value) => out.u8(*value),
            Part::Long(value) => out.u32(*value),
            Part::Hyper(value) => out.u64(*value),
            Part::Text(value) => out.str(value).unwrap(),
            Part::Octets(value) => value.encode(out).unwrap(),
            Part::Longs(value) => value.encode(out).unwrap(),
            Part::Hypers(value) => value.encode(out).unwrap(),
        }
    }
}

fn assert_reads(parts: &[Part], message: &Message, body: usize) {
    let mut input = message.decoder(Limits::default()).at(body);
    for part in parts {
        match part {
            Part::Octet(value) => assert_eq!(input.u8(), Ok(*value)),
            Part::Long(value) => assert_eq!(input.u32(), Ok(*value)),
            Part::Hyper(value) => assert_eq!(input.u64(), Ok(*value)),
            Part::Text(value) => assert_eq!(input.str().as_deref(), Ok(&**value)),
            Part::Octets(value) => assert_eq!(Vec::decode(&mut input).as_ref(), Ok(value)),
            Part::Longs(value) => assert_eq!(Vec::decode(&mut input).as_ref(), Ok(value)),
            Part::Hypers(value) => assert_eq!(Vec::decode(&mut input).as_ref(), Ok(value)),
        }
    }
    assert_eq!(input.remaining(), 0);
}

/// A reply with this body, and the offset of the body.
fn reply(wire: Wire, parts: &[Part]) -> (Encoder<'_>, usize) {
    let mut out = Encoder::new(wire);
    let body = begin_reply(&mut out, 0x0102_0304, ReplyStatus::NoException, &[]);
    let start = out.position();
    encode(parts, &mut out);
    body.end(&mut out).unwrap();
    (out, start)
}

/// The messages of a stream.
fn messages(mut stream: &[u8]) -> Vec<(MessageHeader, &[u8])> {
    let mut messages = Vec::new();
    while let Some(header) = stream.first_chunk::<HEADER_LEN>() {
        let header = MessageHeader::parse(header).unwrap();
        let (message, rest) = stream.split_at(header.total_len());
        messages.push((header, message));
        stream = rest;
    }
    assert!(stream.is_empty());
    messages
}

/// The message joined from the fragments, and their lengths.
fn joined(stream: &[u8], order: ByteOrder, version: GiopVersion) -> (Message, Vec<usize>) {
    let mut assembler = Assembler::new(1 << 20, 1);
    let (mut whole, mut lengths) = (None, Vec::new());
    for (header, octets) in messages(stream) {
        assert!(whole.is_none(), "nothing follows the last fragment");
        assert_eq!((header.order, header.version), (order, version));
        assert_eq!(header.message_type == MessageType::Fragment, !lengths.is_empty());
        lengths.push(octets.len());
        whole = assembler.accept(header, MessageBlock::from(octets)).unwrap();
        assert_eq!(whole.is_none(), header.more_fragments);
    }
    (whole.expect("the last fragment completes it"), lengths)
}

fn octets(slices: &[IoSlice<'_>]) -> Vec<u8> {
    slices.iter().flat_map(|slice| slice.iter().copied()).collect()
}

/// Divides and joins a message; the number of fragments.
#[track_caller]
fn check(message: &Encoder<'_>, limit: usize) -> Option<(Message, usize)> {
    let Wire { order, version, .. } = message.wire();
    let limit = limit.max(MIN_FRAGMENT);
    let fragments = Fragments::of(message, limit)?;
    let slices = fragments.slices(message);
    // A gathering write takes a limited number of slices, so empty ones would waste them.
    assert!(slices.iter().all(|slice| !slice.is_empty()), "{slices:?}");
    assert!(slices.len() <= 2 * fragments.count() + message.slices().count(), "{slices:?}");
    let stream = octets(&slices);
    assert_eq!((stream.len(), &stream), (fragments.total_len(), &fragments.to_vec(message)));
    let (whole, lengths) = joined(&stream, order, version);
    assert_eq!(whole.octets(), message.to_vec());
    assert_eq!(lengths.len(), fragments.count());
    let ends = lengths.iter().scan(0, |end, len| {
        *end += len;
        Some(*end)
    });
    assert!(ends.eq(fragments.boundaries()));
    if version >= GiopVersion::V1_2 {
        let (last, others) = lengths.split_last().unwrap();
        assert!(others.iter().all(|len| *len <= limit && len % 8 == 0), "{lengths:?} of {limit}");
        assert!(*last <= limit);
    }
    Some((whole, lengths.len()))
}

proptest! {
    #![proptest_config(support::config())]

    #[test]
    fn a_divided_message_is_joined_and_decoded(parts in vec(part(), 1..6), limit in 1_usize..5000, wire in support::wire()) {
        let (message, body) = reply(wire, &parts);
        let len = message.position();
        match check(&message, limit) {
            Some((whole, count)) => {
                prop_assert!(len > limit.max(MIN_FRAGMENT) && count > 1 && wire.version > GiopVersion::V1_0);
                assert_reads(&parts, &whole, body);
            }
            None => prop_assert!(len <= limit.max(MIN_FRAGMENT) || wire.version < GiopVersion::V1_2),
        }
    }

    /// In 1.2 the fragments of several messages may alternate.
    #[test]
    fn fragments_of_several_messages_may_alternate(
        lengths in vec(0_usize..3000, 2..5), limit in 64_usize..600, big: bool, seed in any::<u64>(),
    ) {
        let wire = Wire::new(if big { ByteOrder::Big } else { ByteOrder::Little }, GiopVersion::V1_2);
        let bodies: Vec<Vec<u8>> = lengths.iter().map(|len| vec![7; *len]).collect();
        let template = RequestTemplate::new(wire, b"object key");
        let mut wholes = Vec::new();
        let mut streams: Vec<Vec<Vec<u8>>> = bodies.iter().enumerate().map(|(nth, body)| {
            let mut out = Encoder::new(wire);
            let begun = template.begin(&mut out, u32::try_from(nth).unwrap(), ResponseFlags::TWO_WAY, "operation", &[]);
            body.encode(&mut out).unwrap();
            begun.end(&mut out).unwrap();
            wholes.push(out.to_vec());
            let stream = Fragments::of(&out, limit).map_or_else(|| out.to_vec(), |fragments| fragments.to_vec(&out));
            messages(&stream).into_iter().map(|(_, octets)| octets.to_vec()).rev().collect()
        }).collect();
        let (mut assembler, mut joined, mut seed) = (Assembler::new(1 << 20, 8), Vec::new(), seed | 1);
        while streams.iter().any(|stream| !stream.is_empty()) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % streams.len();
            let Some(octets) = streams[at].pop() else { continue };
            let header = MessageHeader::parse(octets.first_chunk().unwrap()).unwrap();
            joined.extend(assembler.accept(header, MessageBlock::from(octets.as_slice())).unwrap());
        }
        let mut joined: Vec<_> = joined.iter().map(|message| message.octets().to_vec()).collect();
        joined.sort_by_key(|message| message[HEADER_LEN..HEADER_LEN + 4].to_vec());
        wholes.sort_by_key(|message| message[HEADER_LEN..HEADER_LEN + 4].to_vec());
        prop_assert_eq!(joined, wholes);
    }
}

/// Every limit, so that every cut is tried, with runs that begin and end everywhere.
#[test]
fn every_limit_is_kept() {
    for wire in wires().filter(|wire| wire.version > GiopVersion::V1_0) {
        for shift in 0..if cfg!(miri) { 1 } else { 8 } {
            let parts = [
                Part::Text("x".repeat(shift)),
                Part::Octets(vec![1; 2100 + shift]),
                Part::Hyper(7),
                Part::Octets(vec![2; 2048]),
                Part::Octet(1),
                Part::Longs((0..600).collect()),
                Part::Hyper(8),
            ];
            let (message, body) = reply(wire, &parts);
            for limit in (0..message.position() + 2).step_by(if cfg!(miri) { 1700 } else { 13 }) {
                match check(&message, limit) {
                    Some((whole, _)) => assert_reads(&parts, &whole, body),
                    None => assert!(message.position() <= limit || wire.version == GiopVersion::V1_1),
                }
            }
        }
    }
}

/// No primitive is divided, and octets after a cut keep their alignment: 4 after a multiple of 8 of the
/// whole.
#[test]
fn a_1_1_message_is_cut_inside_long_runs_only() {
    let wire = Wire::new(ByteOrder::NATIVE, GiopVersion::V1_1);
    let hypers = [Part::Hypers((0..2000).collect())];
    let (message, _) = reply(wire, &hypers);
    assert_eq!(Fragments::of(&message, 1000), None, "each cut would divide a number");
    let small = [Part::Hypers((0..200).collect()), Part::Octets(vec![1; 5000]), Part::Hyper(1)];
    let (message, _) = reply(wire, &small);
    let fragments = Fragments::of(&message, 1000).unwrap();
    let octets_begin = message.divisible_runs().next().unwrap();
    let mut at = 0;
    for (_, octets) in &messages(&fragments.to_vec(&message))[..fragments.count() - 1] {
        at += if at == 0 { octets.len() } else { octets.len() - HEADER_LEN };
        assert_eq!(at % 8, 4);
        assert!(
            octets_begin.contains(&at) && (at == octets_begin.start || octets.len() <= 1000 || octets.len() > 1600),
            "at {at}"
        );
    }
}

/// The ends of the fragments of a message in GIOP 1.1, found by trying every position.
fn ends_by_trial(message: &Encoder<'_>, limit: usize) -> Vec<usize> {
    let (len, mut ends, mut from, mut to) = (message.position(), Vec::new(), 0, limit);
    while len > to {
        let runs: Vec<_> = message.divisible_runs().collect();
        let is_cut = |at: &usize| at % 8 == 4 && runs.iter().any(|run| run.start < *at && *at < run.end);
        let fits = (from + 1..=to).rev().find(is_cut);
        let Some(end) = fits.or_else(|| (to + 1..len).find(is_cut)) else { break };
        ends.push(end);
        (from, to) = (end, end + limit - HEADER_LEN);
    }
    ends.push(len);
    ends
}

#[track_caller]
fn assert_cut_as_late_as_possible(parts: &[Part], limit: usize) {
    let (message, _) = reply(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_1), parts);
    let mut ends = ends_by_trial(&message, limit);
    for (nth, end) in ends.iter_mut().enumerate() {
        *end += nth * HEADER_LEN;
    }
    let boundaries = Fragments::of(&message, limit).map(|fragments| fragments.boundaries().collect::<Vec<_>>());
    assert_eq!(boundaries.unwrap_or_else(|| vec![message.position()]), ends, "limit {limit}");
}

/// Each fragment is as long as the limit permits, and the first cut beyond it is taken where none is within it.
#[test]
fn a_1_1_message_is_cut_as_late_as_the_limit_permits() {
    for gap in if cfg!(miri) { 3..4 } else { 0..8 } {
        let parts = [
            Part::Octets(vec![1; 2061]),
            Part::Hypers((0..gap).collect()),
            Part::Octets(vec![2; 2048]),
            Part::Hypers((0..40).collect()),
            Part::Longs((0..600).collect()),
        ];
        for limit in (MIN_FRAGMENT..2400).step_by(if cfg!(miri) { 1100 } else { 19 }) {
            assert_cut_as_late_as_possible(&parts, limit);
        }
    }
    // Among these is a message whose last fragment reaches the limit.
    for len in if cfg!(miri) { 4000..4004 } else { 4000..4600 } {
        assert_cut_as_late_as_possible(&[Part::Octets(vec![1; len])], 600);
    }
}

#[test]
fn fragments_borrow_the_octets_of_the_message() {
    let data = vec![5; 100_000];
    let parts = [Part::Octets(data)];
    let Part::Octets(data) = &parts[0] else { unreachable!() };
    let (message, _) = reply(Wire::default(), &parts);
    let fragments = Fragments::of(&message, 8192).unwrap();
    let slices = fragments.slices(&message);
    let lent: usize =
        slices.iter().filter(|slice| data.as_ptr_range().contains(&slice.as_ptr())).map(|s| s.len()).sum();
    assert_eq!(lent, data.len());
}

#[test]
fn messages_of_types_without_fragments_stay_whole() {
    for wire in wires() {
        let key = vec![b'k'; 3000];
        let mut ask = Encoder::new(wire);
        locate_request(&mut ask, 1, &key).unwrap();
        let mut answer = Encoder::new(wire);
        let body = begin_locate_reply(&mut answer, 1, LocateStatus::ObjectForward);
        answer.octets(&key);
        body.end(&mut answer).unwrap();
        for message in [ask, answer] {
            let cut = check(&message, 100);
            assert_eq!(cut.is_some(), wire.version >= GiopVersion::V1_2, "{wire:?}");
            let Some((whole, _)) = cut.filter(|(whole, _)| whole.header.message_type == MessageType::LocateReply)
            else {
                continue;
            };
            let header = LocateReplyHeader::decode(&mut whole.decoder(Limits::default())).unwrap();
            assert_eq!(header.status, LocateStatus::ObjectForward);
        }
    }
}
