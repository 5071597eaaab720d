//! The messages of the Simple Flow Protocol 1.0.
//!
//! A sender begins with Start, and its receiver answers StartReply. Each frame has a header; a frame that is larger than a
//! datagram goes on in fragments. With flow control, the receiver sends credit: the number of frames that it takes further.

use spandrel_cdr::{ByteOrder, Char, Decode, Decoder, Encode, OctetForm, TrailingOctets, from_octets, to_octets};

use crate::imports::flow_protocol as wire;

/// The octets of Start.
pub(crate) const START_OCTETS: usize = 7;
/// The octets of StartReply.
pub(crate) const REPLY_OCTETS: usize = 5;
/// The octets of the header of a frame.
pub(crate) const HEADER_OCTETS: usize = 12;
/// The octets of the header of a fragment.
pub(crate) const FRAGMENT_OCTETS: usize = 24;
/// The octets of a message with credit.
pub(crate) const CREDIT_OCTETS: usize = 8;
/// The octets of the parts before the data of a whole frame without further sources.
const FRAME_OCTETS: usize = 16;

const LITTLE_ENDIAN: u8 = 1;
/// The second bit: fragments follow, or the receiver refuses.
const MORE: u8 = 2;

/// The fields of frames that the sender writes: the settings of `SFPStatus`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum FrameFields {
    /// Nothing but the data: SimpleFrame.
    Simple,
    /// A number before the data: SequencedFrame.
    Sequenced,
    /// A number, a timestamp and the source: Frame.
    #[default]
    Whole,
}

/// A message as it was received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Start {
        major: u8,
        minor: u8,
    },
    Reply {
        is_refused: bool,
    },
    Credit(u32),
    EndOfStream,
    /// A frame, or the first part of one.
    Frame(FramePart),
    Fragment {
        number: u32,
        sequence: u32,
        is_last: bool,
        data: Vec<u8>,
    },
}

/// A frame, or its first part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FramePart {
    pub(crate) sequence: Option<u32>,
    pub(crate) timestamp: u32,
    pub(crate) has_fragments: bool,
    pub(crate) data: Vec<u8>,
}

pub(crate) fn start() -> Vec<u8> {
    encoded(&wire::Start { magic_number: magic(b"=STA"), major_version: 1, minor_version: 0, flags: 0 })
}

pub(crate) fn reply(is_refused: bool) -> Vec<u8> {
    encoded(&wire::StartReply { magic_number: magic(b"=STR"), flags: if is_refused { MORE } else { 0 } })
}

pub(crate) fn credit(frames: u32) -> Vec<u8> {
    encoded(&wire::Credit { magic_number: magic(b"=CRE"), cred_num: frames })
}

pub(crate) fn end_of_stream() -> Vec<u8> {
    header(wire::MsgType::EndofStreamMsg, false, 0)
}

fn header(kind: wire::MsgType, has_fragments: bool, size: usize) -> Vec<u8> {
    encoded(&wire::FrameHeader {
        magic_number: magic(b"=SFP"),
        flags: if has_fragments { MORE } else { 0 },
        message_type: kind as u8,
        message_size: size as u32,
    })
}

/// The datagrams of a frame, none of them larger than `most` octets.
pub(crate) fn frame(
    fields: FrameFields,
    sequence: u32,
    timestamp: u32,
    source: u32,
    data: &[u8],
    most: usize,
) -> Vec<Vec<u8>> {
    let (kind, prefix) = match fields {
        FrameFields::Simple => (wire::MsgType::SimpleFrameMsg, Vec::new()),
        FrameFields::Sequenced => {
            (wire::MsgType::SequencedFrameMsg, encoded(&wire::SequencedFrame { sequence_num: sequence }))
        }
        FrameFields::Whole => {
            let whole = wire::Frame { timestamp, synch_source: source, source_ids: Vec::new(), sequence_num: sequence };
            (wire::MsgType::FrameMsg, encoded(&whole))
        }
    };
    let room = most.saturating_sub(HEADER_OCTETS + FRAME_OCTETS).max(1);
    let (first, rest) = data.split_at(data.len().min(room));
    let mut message = header(kind, !rest.is_empty(), prefix.len() + first.len());
    message.extend_from_slice(&prefix);
    message.extend_from_slice(first);
    let mut messages = vec![message];
    let room = most.saturating_sub(FRAGMENT_OCTETS).max(1);
    let count = rest.len().div_ceil(room);
    for (index, part) in rest.chunks(room).enumerate() {
        let mut message = encoded(&wire::Fragment {
            magic_number: magic(b"FRAG"),
            flags: if index + 1 < count { MORE } else { 0 },
            frag_number: index as u32 + 1,
            sequence_num: sequence,
            frag_sz: part.len() as u32,
            source_id: source,
        });
        message.extend_from_slice(part);
        messages.push(message);
    }
    messages
}

/// The message in a datagram; `None` if it is none of the protocol.
pub(crate) fn parse(datagram: &[u8]) -> Option<Message> {
    let (magic, flags) = (datagram.get(..4)?, *datagram.get(4)?);
    match magic {
        b"=STA" => {
            // The flags come last in this message alone.
            let start: wire::Start = decoded(datagram, START_OCTETS, *datagram.get(6)?)?;
            Some(Message::Start { major: start.major_version, minor: start.minor_version })
        }
        b"=STR" => Some(Message::Reply { is_refused: flags & MORE != 0 }),
        // Credit has no flags: the octets are in the order of the network.
        b"=CRE" => Some(Message::Credit(decoded::<wire::Credit>(datagram, CREDIT_OCTETS, 0)?.cred_num)),
        b"FRAG" => {
            let fragment: wire::Fragment = decoded(datagram, FRAGMENT_OCTETS, flags)?;
            let data = datagram.get(FRAGMENT_OCTETS..)?;
            (data.len() == fragment.frag_sz as usize && fragment.frag_number > 0).then(|| Message::Fragment {
                number: fragment.frag_number,
                sequence: fragment.sequence_num,
                is_last: flags & MORE == 0,
                data: data.to_vec(),
            })
        }
        b"=SFP" => {
            let header = parse_header(datagram)?;
            parse_body(&header, datagram.get(HEADER_OCTETS..)?)
        }
        _ => None,
    }
}

/// The header of a frame in a stream of octets, whose body follows.
pub(crate) struct StreamHeader {
    kind: u8,
    flags: u8,
    pub(crate) size: usize,
}

pub(crate) fn parse_header(octets: &[u8]) -> Option<StreamHeader> {
    let flags = *octets.get(4)?;
    let header: wire::FrameHeader = decoded(octets, HEADER_OCTETS, flags)?;
    let size = header.message_size as usize;
    (octets.get(..4)? == b"=SFP").then_some(StreamHeader { kind: header.message_type, flags, size })
}

/// The frame after a header.
pub(crate) fn parse_body(header: &StreamHeader, body: &[u8]) -> Option<Message> {
    let kind = wire::MsgType::EndofStreamMsg as u8..=wire::MsgType::SpecialFrameMsg as u8;
    if body.len() != header.size || !kind.contains(&header.kind) {
        return None;
    }
    let has_fragments = header.flags & MORE != 0;
    let part = |sequence, timestamp, data: &[u8]| {
        Some(Message::Frame(FramePart { sequence, timestamp, has_fragments, data: data.to_vec() }))
    };
    match header.kind {
        kind if kind == wire::MsgType::EndofStreamMsg as u8 => Some(Message::EndOfStream),
        kind if kind == wire::MsgType::SimpleFrameMsg as u8 => part(None, 0, body),
        kind if kind == wire::MsgType::SequencedFrameMsg as u8 => {
            let frame: wire::SequencedFrame = decoded(body, 4, header.flags)?;
            part(Some(frame.sequence_num), 0, body.get(4..)?)
        }
        kind if kind == wire::MsgType::FrameMsg as u8 => {
            let (frame, rest) = decoded_prefix::<wire::Frame>(body, header.flags)?;
            part(Some(frame.sequence_num), frame.timestamp, rest)
        }
        _ => {
            let (_, rest) = decoded_prefix::<wire::SpecialFrame>(body, header.flags)?;
            part(None, 0, rest)
        }
    }
}

fn magic(text: &[u8; 4]) -> [Char; 4] {
    text.map(Char::from)
}

fn order(flags: u8) -> ByteOrder {
    if flags & LITTLE_ENDIAN == 0 { ByteOrder::Big } else { ByteOrder::Little }
}

fn encoded<T: Encode>(message: &T) -> Vec<u8> {
    to_octets(message, &OctetForm::bare(ByteOrder::Big)).expect("the values have no bounds")
}

fn decoded<T: Decode>(octets: &[u8], length: usize, flags: u8) -> Option<T> {
    let form = OctetForm::bare(order(flags)).trailing_octets(TrailingOctets::Reject);
    from_octets(octets.get(..length)?, &form).ok()
}

/// The value at the beginning, and the octets after it.
fn decoded_prefix<T: Decode>(octets: &[u8], flags: u8) -> Option<(T, &[u8])> {
    let form = OctetForm::bare(order(flags)).trailing_octets(TrailingOctets::Ignore);
    let decode = |input: &mut Decoder<'_>| {
        let value = T::decode(input)?;
        Ok((value, input.remaining()))
    };
    let (value, remaining) = form.decode_with(octets, decode).ok()?;
    Some((value, &octets[octets.len() - remaining..]))
}
