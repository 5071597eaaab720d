//! The messages of models. Each carries a token, by which a wrong delivery is found.

use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Limits, Wire};
use spandrel_giop::{
    CancelRequest, Message, MessageType, ReplyStatus, RequestHeader, RequestTemplate, ResponseFlags, bare_message,
    begin_reply, locate_request,
};
use spandrel_transport::MessageReader;

/// A request of a model, with the token by which its reply is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FakeRequest {
    pub id: u32,
    pub token: u32,
    pub is_two_way: bool,
    /// Whether the caller has a deadline.
    pub is_limited: bool,
}

pub fn wire() -> Wire {
    Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2)
}

pub fn reader() -> MessageReader {
    MessageReader::new(1 << 16, 16)
}

/// Encodes a request, with so many octets after its token.
pub fn request(fake_request: FakeRequest, octets: usize) -> Encoder<'static> {
    let response = if fake_request.is_two_way { ResponseFlags::TWO_WAY } else { ResponseFlags::NONE };
    let mut out = Encoder::new(wire());
    let operation = if fake_request.is_limited { "limited" } else { "unlimited" };
    let body = RequestTemplate::new(wire(), b"key").begin(&mut out, fake_request.id, response, operation, &[]);
    put(&mut out, fake_request.token, octets);
    body.end(&mut out).expect("it is short");
    out
}

/// A Reply message to this request, with a body of so many octets.
pub fn reply(fake_request: FakeRequest, octets: usize) -> Vec<u8> {
    let mut out = Encoder::new(wire());
    let body = begin_reply(&mut out, fake_request.id, ReplyStatus::NoException, &[]);
    put(&mut out, fake_request.token, octets);
    body.end(&mut out).expect("it is short");
    out.to_vec()
}

/// A LocateRequest message with this request id.
pub fn locate(id: u32) -> Vec<u8> {
    let mut out = Encoder::new(wire());
    locate_request(&mut out, id, b"key").expect("it is short");
    out.to_vec()
}

/// A CancelRequest message for the request with this id.
pub fn cancel(request_id: u32) -> Vec<u8> {
    let mut out = Encoder::new(wire());
    CancelRequest { request_id }.encode(&mut out).expect("it is short");
    out.to_vec()
}

/// A message without a body.
pub fn bare(message_type: MessageType) -> [u8; 12] {
    bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, message_type)
}

/// Reads the header and the token of a request of a model.
///
/// # Panics
/// If the message is no request of a model.
pub fn parse_request(message: &Message) -> FakeRequest {
    let mut input = message.decoder(Limits::default());
    let header = RequestHeader::decode(&mut input).expect("a request");
    let token = token_in(message, input.position());
    let (is_two_way, is_limited) = (header.response.is_expected(), header.operation == "limited");
    FakeRequest { id: header.request_id, token, is_two_way, is_limited }
}

/// Decodes the token of a body at this offset.
///
/// # Panics
/// If it contains octets of another message.
pub fn token_in(message: &Message, body: usize) -> u32 {
    let mut input = message.decoder(Limits::default()).at(body);
    let token = input.u32().expect("a token");
    let filling = input.octet_sequence().expect("as many octets as announced");
    assert!(filling.iter().all(|octet| *octet == filler(token)), "a message was written inside another");
    token
}

fn put(out: &mut Encoder<'_>, token: u32, octets: usize) {
    out.u32(token);
    out.octet_sequence(&vec![filler(token); octets]).expect("it is short");
}

fn filler(token: u32) -> u8 {
    token.to_le_bytes()[0]
}
