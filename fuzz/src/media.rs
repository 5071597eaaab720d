//! Input of media flows: specifications, messages of SFP, packets of RTP and RTCP, and numbers in any order.
//!
//! The first octet selects the kind. The parsers are those of `spandrel-avstreams`, which is too large to be built here as a
//! whole.

#[allow(dead_code)]
#[path = "../../services/avstreams/src/flow_spec.rs"]
mod flow_spec;
#[allow(dead_code)]
#[path = "../../services/avstreams/src/reorder.rs"]
mod reorder;
#[allow(dead_code)]
#[path = "../../services/avstreams/src/rtp.rs"]
mod rtp;
#[allow(dead_code)]
#[path = "../../services/avstreams/src/sfp.rs"]
mod sfp;

use std::time::{Duration, Instant};

use flow_spec::{FlowEntry, MAX_ENTRY, MAX_FLOWS, parse_flow_spec, parse_reverse_flow_spec};
use reorder::{Arrival, ReorderBuffer};
use sfp::{FrameFields, Message};

pub fn run(input: &[u8]) {
    let [kind, octets @ ..] = input else { return };
    match kind % 6 {
        0 => specification(octets),
        1 => sfp_message(octets),
        2 => sfp_frame(octets),
        3 => rtp_packet(octets),
        4 => drop(rtp::parse_control(octets)),
        _ => order(octets),
    }
}

/// Entries that NUL separates. What was parsed has a text with the same meaning.
fn specification(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    let entries: Vec<String> = text.split('\0').map(str::to_owned).collect();
    for parsed in [parse_flow_spec(&entries), parse_reverse_flow_spec(&entries)].into_iter().flatten() {
        assert!(parsed.len() <= MAX_FLOWS && parsed.len() == entries.len());
        for entry in parsed {
            let again = entry.to_string();
            if again.len() <= MAX_ENTRY {
                assert_eq!(FlowEntry::parse(&again).as_ref(), Ok(&entry), "{again}");
            }
        }
    }
}

/// A message in a datagram has the meaning that it has in a stream of octets.
fn sfp_message(octets: &[u8]) {
    let whole = sfp::parse(octets);
    if let Some(Message::Frame(part)) = &whole {
        assert!(part.data.len() <= octets.len() - sfp::HEADER_OCTETS);
    }
    let Some((header, body)) = octets.split_at_checked(sfp::HEADER_OCTETS) else { return };
    if let Some(header) = sfp::parse_header(header) {
        assert_eq!(sfp::parse_body(&header, body), whole);
    }
}

/// The datagrams of a frame are within their limit, and have its octets.
fn sfp_frame(octets: &[u8]) {
    let [fields, limit, low, data @ ..] = octets else { return };
    let fields = [FrameFields::Simple, FrameFields::Sequenced, FrameFields::Whole][usize::from(fields % 3)];
    let (most, sequence) = (64 + 8 * usize::from(*limit), u32::from(*low));
    let mut joined = Vec::new();
    for (index, message) in sfp::frame(fields, sequence, 7, 9, data, most).iter().enumerate() {
        assert!(message.len() <= most, "{} of {most}", message.len());
        match sfp::parse(message).expect("our message is one of the protocol") {
            Message::Frame(part) if index == 0 => joined.extend(part.data),
            Message::Fragment { number, data, .. } if number as usize == index => joined.extend(data),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(joined, data);
}

/// The payload of a packet is a part of it; the packets of a frame have its octets.
fn rtp_packet(octets: &[u8]) {
    if let Some(packet) = rtp::parse(octets) {
        assert!(packet.data.len() < octets.len());
    }
    let mut sender = rtp::RtpSender::new(1, u16::MAX, 96);
    let packets = sender.frame(5, octets, 100);
    let parts = packets.iter().map(|packet| rtp::parse(packet).expect("our packet is one of RTP"));
    let joined: Vec<u8> = parts.flat_map(|packet| packet.data).collect();
    assert_eq!(joined, octets);
}

/// Packets come out in their order, with the number of lost ones before each, and few of them wait.
fn order(octets: &[u8]) {
    const CAPACITY: usize = 8;
    let mut buffer = ReorderBuffer::new(16, CAPACITY, Duration::from_millis(20));
    let (begin, mut time) = (Instant::now(), Duration::ZERO);
    let (mut inserted, mut popped, mut last) = (0_usize, 0_usize, None::<u16>);
    for step in octets.chunks_exact(3) {
        time += Duration::from_millis(u64::from(step[2] % 8));
        let (number, before) = (u16::from_be_bytes([step[0], step[1]]), buffer.highest());
        let arrival = buffer.insert(u32::from(number), begin + time, number);
        if let Arrival::Accepted { .. } = arrival {
            inserted += 1;
            if buffer.highest().abs_diff(before) > 3_000 {
                // The numbers begin anew, and those that waited are dropped.
                (inserted, popped, last) = (1, 0, None);
            }
        }
        while let Some(ordered) = buffer.pop(begin + time) {
            popped += 1;
            if let Some(last) = last {
                assert_eq!(last.wrapping_add(1).wrapping_add(ordered.lost as u16), ordered.item);
            }
            last = Some(ordered.item);
        }
        assert!(inserted - popped <= CAPACITY, "{inserted} came, {popped} went");
    }
}
