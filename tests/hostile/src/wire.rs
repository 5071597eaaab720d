//! Messages by hand.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use anyhow::{Result, bail};
use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_giop::{MessageType, RequestTemplate, ResponseFlags, bare_message};

use crate::Victim;

pub const VERSIONS: [GiopVersion; 3] = [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2];
pub const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// A whole request.
pub fn request(wire: Wire, key: &[u8], operation: &str, arguments: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut out = Encoder::new(wire);
    let body = RequestTemplate::new(wire, key).begin(&mut out, 1, ResponseFlags::TWO_WAY, operation, &[]);
    arguments(&mut out);
    body.end(&mut out).expect("the operation's name is plain");
    out.to_vec()
}

/// A request that is fine, and answered.
pub fn echo(victim: &Victim, wire: Wire, octets: &[u8]) -> Vec<u8> {
    request(wire, &victim.profile.object_key, "echo", |out| out.octet_sequence(octets).expect("it is short"))
}

/// The default agreement.
pub fn newest() -> Wire {
    Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2)
}

/// A message header that announces so many octets.
pub fn header(message_type: MessageType, flags: u8, size: u32) -> [u8; 12] {
    let mut header = bare_message(GiopVersion::V1_2, ByteOrder::Little, message_type);
    header[6] |= flags;
    header[8..].copy_from_slice(&size.to_le_bytes());
    header
}

/// Sends, as far as the server takes it: it may well have hung up.
pub fn send(stream: &mut TcpStream, octets: &[u8]) -> Result<bool> {
    match stream.write_all(octets) {
        Ok(()) => Ok(true),
        Err(error) if is_gone(error.kind()) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads to the end, at most so much.
pub fn read_out(stream: &mut TcpStream, most: u64) -> Result<Vec<u8>> {
    let mut said = Vec::new();
    match stream.take(most).read_to_end(&mut said) {
        Ok(_) => Ok(said),
        Err(error) if is_gone(error.kind()) => Ok(said),
        Err(error) => bail!("the server neither answers nor hangs up: {error}"),
    }
}

/// Ends sending and reads what the server says until it hangs up.
pub fn finish(mut stream: TcpStream) -> Result<Vec<u8>> {
    // It may have hung up already.
    _ = stream.shutdown(std::net::Shutdown::Write);
    read_out(&mut stream, 64 << 20)
}

fn is_gone(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::NotConnected
    )
}
