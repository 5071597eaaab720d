//! Messages written by hand.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use anyhow::{Result, bail};
use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_giop::{MessageType, RequestTemplate, ResponseFlags, bare_message};

use crate::AttackedServer;

pub const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];
pub const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// A complete request.
pub fn request(wire: Wire, key: &[u8], operation: &str, arguments: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    let body = RequestTemplate::new(wire, key).begin(&mut out, 1, ResponseFlags::TWO_WAY, operation, &[]);
    arguments(&mut out);
    body.end(&mut out).expect("the operation name is ASCII");
    out.to_vec()
}

/// A valid request.
pub fn echo(server: &AttackedServer, wire: Wire, octets: &[u8]) -> Vec<u8> {
    request(wire, &server.profile.object_key, "echo", |out| out.octet_sequence(octets).expect("the length fits"))
}

/// Native byte order and GIOP 1.2.
pub fn native_wire() -> Wire {
    Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2)
}

/// A message header with this body size.
pub fn header(message_type: MessageType, flags: u8, size: u32) -> [u8; 12] {
    let mut header = bare_message(GiopVersion::V1_2, ByteOrder::Little, message_type);
    header[6] |= flags;
    header[8..].copy_from_slice(&size.to_le_bytes());
    header
}

/// Sends the octets; `false` if the server has closed the connection.
pub fn send(stream: &mut TcpStream, octets: &[u8]) -> Result<bool> {
    match stream.write_all(octets) {
        Ok(()) => Ok(true),
        Err(error) if is_closed(error.kind()) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads to the end of the stream, at most `most` octets.
pub fn read_out(stream: &mut TcpStream, most: u64) -> Result<Vec<u8>> {
    let mut received = Vec::new();
    match stream.take(most).read_to_end(&mut received) {
        Ok(_) => Ok(received),
        Err(error) if is_closed(error.kind()) => Ok(received),
        Err(error) => bail!("the server neither replies nor closes the connection: {error}"),
    }
}

/// Shuts down the sending direction, and reads until the server closes the connection.
pub fn finish(mut stream: TcpStream) -> Result<Vec<u8>> {
    // The server may have closed the connection already.
    _ = stream.shutdown(std::net::Shutdown::Write);
    read_out(&mut stream, 64 << 20)
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::NotConnected
    )
}
