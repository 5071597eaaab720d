//! A stream of octets decoded as GIOP messages, with fragments: no panic, bounded memory, and decoded headers
//! are encoded to octets that decode to equal ones.
use spandrel_cdr::{Decode, Decoder, Encode, Encoder, Ior, Limits, Wire};
use spandrel_giop::{
    Assembler, Body, CancelRequest, HEADER_LEN, LocateReplyHeader, LocateRequestHeader, Message, MessageHeader,
    MessageType, ReplyHeader, ReplyStatus, RequestHeader, SystemException,
};
use spandrel_message::MessageBlock;

const MAX_MESSAGE: usize = 1 << 16;
const MAX_UNFINISHED: usize = 4;

pub fn run(input: &[u8]) {
    let mut assembler = Assembler::new(MAX_MESSAGE, MAX_UNFINISHED);
    let mut rest = input;
    while let Some(header) = rest.first_chunk::<HEADER_LEN>() {
        let Ok(header) = MessageHeader::parse(header) else { return };
        if header.check(MAX_MESSAGE).is_err() || header.total_len() > rest.len() {
            return;
        }
        let (octets, later) = rest.split_at(header.total_len());
        rest = later;
        match assembler.accept(header, MessageBlock::from(octets)) {
            Ok(Some(message)) => read(&message),
            Ok(None) => assert!(assembler.unfinished() <= MAX_UNFINISHED),
            Err(error) => {
                let _ = (error.to_string(), error.reaction());
                return;
            }
        }
    }
}

fn read(message: &Message) {
    let _ = message.to_string();
    assert!(message.octets().len() <= MAX_MESSAGE);
    let input = message.decoder(Limits::default());
    match message.header.message_type {
        MessageType::Request => request(input),
        MessageType::Reply => reply(input),
        MessageType::LocateRequest => locate_request(input),
        MessageType::LocateReply => locate_reply(input),
        MessageType::CancelRequest => {
            let _ = CancelRequest::decode(&mut input.clone()).map(|cancel| cancel.to_string());
        }
        _ => {}
    }
}

/// Encodes a message with `write`, and decodes it with `read`.
fn encode_and_decode<T>(
    wire: Wire,
    write: impl FnOnce(&mut Encoder<'_>) -> Body,
    read: impl FnOnce(&mut Decoder<'_>) -> T,
) -> T {
    let mut out = Encoder::new(wire);
    write(&mut out).end(&mut out).expect("a header is within the size limit");
    let octets = out.to_vec();
    read(&mut Decoder::new(&octets, wire).at(HEADER_LEN))
}

fn request(mut input: Decoder<'_>) {
    let Ok(header) = RequestHeader::decode(&mut input) else { return };
    let _ = (header.target.object_key(), header.service_contexts.iter().count());
    let text = header.to_string();
    let decoded_text = encode_and_decode(
        input.wire(),
        |out| header.encode(out).expect("a decoded value can be encoded"),
        |input| RequestHeader::decode(input).expect("encoded octets can be decoded").to_string(),
    );
    assert_eq!(decoded_text, text);
    let _ = Vec::<String>::decode(&mut input);
}

fn reply(mut input: Decoder<'_>) {
    let Ok(header) = ReplyHeader::decode(&mut input) else { return };
    let text = header.to_string();
    let decoded_text = encode_and_decode(
        input.wire(),
        |out| header.encode(out),
        |input| ReplyHeader::decode(input).expect("encoded octets can be decoded").to_string(),
    );
    assert_eq!(decoded_text, text);
    match header.status {
        ReplyStatus::SystemException => {
            let Ok(id) = input.str() else { return };
            let _ = SystemException::decode(&id, &mut input).map(|exception| exception.to_string());
        }
        ReplyStatus::LocationForward => ior(&mut input),
        _ => {}
    }
}

fn locate_request(mut input: Decoder<'_>) {
    let Ok(header) = LocateRequestHeader::decode(&mut input) else { return };
    let mut out = Encoder::new(input.wire());
    header.encode(&mut out).expect("a decoded value can be encoded");
    let octets = out.to_vec();
    let mut input = Decoder::new(&octets, input.wire()).at(HEADER_LEN);
    let decoded_text = LocateRequestHeader::decode(&mut input).expect("encoded octets can be decoded");
    assert_eq!(decoded_text.to_string(), header.to_string());
}

fn locate_reply(mut input: Decoder<'_>) {
    let Ok(header) = LocateReplyHeader::decode(&mut input) else { return };
    let _ = header.to_string();
    ior(&mut input);
}

fn ior(input: &mut Decoder<'_>) {
    let wire = input.wire();
    let Ok(ior) = Ior::decode(input) else { return };
    let mut out = Encoder::new(wire);
    ior.encode(&mut out).expect("a decoded value can be encoded");
    let octets = out.to_vec();
    assert_eq!(Ior::decode(&mut Decoder::new(&octets, wire)).expect("encoded octets can be decoded"), ior);
}
