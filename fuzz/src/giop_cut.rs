//! A message divided into fragments and joined again: no octet is lost at any division, and fragments are
//! within their size limit. Then the texts and addressing modes in replies: no panic, and decoded parts are
//! encoded to octets that decode to equal ones.
use spandrel_cdr::{ByteOrder, Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{
    AddressingDisposition, Assembler, CompletionStatus, ContextLimits, Fragments, HEADER_LEN, MIN_FRAGMENT,
    MessageHeader, MessageType, ReplyHeader, ReplyStatus, ServiceContext, SystemException, begin_reply,
    exception_detail, read_exception_detail,
};
use spandrel_message::MessageBlock;

const MAX_MESSAGE: usize = 1 << 20;

pub fn run(input: &[u8]) {
    let Some((&[how, low, high], rest)) = input.split_first_chunk::<3>() else { return };
    let order = if how & 1 == 0 { ByteOrder::Big } else { ByteOrder::Little };
    let version = GiopVersion { major: 1, minor: how >> 1 & 3 };
    if version > GiopVersion::V1_2 {
        return round_trip_parts(rest);
    }
    let limit = usize::from(u16::from_le_bytes([low, high]));
    fragment_and_join(Wire::new(order, version), limit, rest, usize::from(how >> 3));
}

/// Fragments and joins a reply with this body; alternate runs of it are borrowed and may be divided.
fn fragment_and_join(wire: Wire, limit: usize, body: &[u8], runs: usize) {
    let long: Vec<u8> = body.iter().copied().cycle().take(body.len() * 16).collect();
    let mut out = Encoder::new(wire);
    let reply = begin_reply(&mut out, 7, ReplyStatus::NoException, &[]);
    for (nth, part) in long.chunks(long.len() / (runs + 1) + 1).enumerate() {
        out.align(if nth % 3 == 0 { 8 } else { 4 });
        if nth % 2 == 0 { out.lend_divisible(part) } else { out.lend(part) }
    }
    reply.end(&mut out).expect("the message is within the size limit");
    let Some(fragments) = Fragments::of(&out, limit) else { return };
    let stream = fragments.to_vec(&out);
    assert_eq!(stream.len(), fragments.total_len());
    let (mut assembler, mut rest, mut joined) = (Assembler::new(MAX_MESSAGE, 1), &stream[..], None);
    while let Some(header) = rest.first_chunk::<HEADER_LEN>() {
        let header = MessageHeader::parse(header).expect("encoded octets can be decoded");
        let (octets, later) = rest.split_at(header.total_len());
        rest = later;
        if wire.version >= GiopVersion::V1_2 {
            assert!(octets.len() <= limit.max(MIN_FRAGMENT) && (!header.more_fragments || octets.len() % 8 == 0));
        }
        assert!(joined.is_none());
        joined = assembler.accept(header, MessageBlock::from(octets)).expect("fragments can be joined");
    }
    let joined = joined.expect("the last fragment completes the message");
    assert!(rest.is_empty() && joined.header.message_type == MessageType::Reply);
    assert_eq!(joined.octets(), out.to_vec());
}

fn round_trip_parts(input: &[u8]) {
    let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_2);
    if let Ok(mode) = AddressingDisposition::decode(&mut Decoder::new(input, wire)) {
        let mut out = Encoder::new(wire);
        mode.encode(&mut out);
        assert_eq!(out.to_vec(), input[..2], "{mode}");
    }
    if let Ok(text) = read_exception_detail(input) {
        let exception = SystemException::internal(0, CompletionStatus::No).with_detail(text.clone());
        let context: ServiceContext = exception_detail(&exception).expect("the exception has a detail");
        assert_eq!(read_exception_detail(&context.data), Ok(text));
    }
    if let Ok(header) = ReplyHeader::decode(&mut Decoder::new(input, wire)) {
        let limits = ContextLimits { count: 4, octets: 64 };
        let octets: usize = header.service_contexts.iter().map(|context| context.data.len()).sum();
        let is_within = header.service_contexts.len() <= limits.count && octets <= limits.octets;
        assert_eq!(header.service_contexts.check(limits).is_ok(), is_within);
    }
}
