//! A client that writes the octets of several requests at once.

use std::net::TcpStream;

use spandrel::{
    ObjectRef,
    cdr::{ByteOrder, GiopVersion},
    types::IiopProfile,
};
use spandrel_cdr::{Encoder, Limits, Wire};
use spandrel_giop::{Message, ReplyHeader, ReplyStatus, RequestTemplate, ResponseFlags};

use crate::{
    Server,
    support::{TEST_TIMEOUT, read_message},
};

/// A connection to the server.
pub fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// An encoded request to the server's object.
pub fn request(server: &Server, id: u32, operation: &str, arguments: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    request_to(&server.object, id, operation, arguments)
}

/// An encoded request to any object of a server.
pub fn request_to(object: &ObjectRef, id: u32, operation: &str, arguments: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
    let wire = Wire::new(ByteOrder::Little, GiopVersion::V1_2);
    let template = RequestTemplate::new(wire, &profile.object_key);
    let mut out = Encoder::new(wire);
    let body = template.begin(&mut out, id, ResponseFlags::TWO_WAY, operation, &[]);
    arguments(&mut out);
    body.end(&mut out).unwrap();
    out.to_vec()
}

/// An encoded request for `echo_octets`.
pub fn echo(server: &Server, id: u32, data: &[u8]) -> Vec<u8> {
    request(server, id, "echo_octets", |out| out.octet_sequence(data).unwrap())
}

/// An encoded request for `hold`, with the gate as its request id.
pub fn hold(server: &Server, gate: u32) -> Vec<u8> {
    request(server, gate, "hold", |out| out.u32(gate))
}

/// Reads a reply without exception; returns its request id and its length.
pub fn read_reply(stream: &mut TcpStream) -> (u32, usize) {
    let octets = read_message(stream).unwrap();
    let message = Message::whole(octets.as_slice().into()).unwrap();
    let header = ReplyHeader::decode(&mut message.decoder(Limits::default())).unwrap();
    assert_eq!(header.status, ReplyStatus::NoException);
    (header.request_id, octets.len())
}
