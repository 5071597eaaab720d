//! Servers that do to their clients what they should not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use anyhow::{Result, ensure};
use spandrel_cdr::{ByteOrder, GiopVersion, Ior};
use spandrel_giop::{IiopProfile, MessageType, bare_message, ior_to_string};

/// What a rogue does with a connection, given the first request's id.
pub type Deed = fn(&mut TcpStream, u32) -> std::io::Result<()>;

/// A server that treats each connection so; the text of a reference to it.
pub fn serve(deed: Deed) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::Builder::new().name("rogue".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                // A client that hangs up is what a rogue has to expect.
                _ = read_request(&mut stream).and_then(|id| deed(&mut stream, id));
                // Left open for a while, or the client would see the end at once.
                _ = stream.read(&mut [0; 1]);
            });
        }
    })?;
    reference(port)
}

/// A reference to an object at this port.
pub fn reference(port: u16) -> Result<String> {
    let profile = IiopProfile {
        version: GiopVersion::V1_2,
        host: "127.0.0.1".to_owned(),
        port,
        object_key: b"rogue".to_vec(),
        components: Vec::new(),
    };
    let ior = Ior { type_id: "IDL:attacked/Target:1.0".to_owned(), profiles: vec![profile.encode()?] };
    Ok(ior_to_string(&ior))
}

/// Reads one request; its id.
pub fn read_request(stream: &mut TcpStream) -> std::io::Result<u32> {
    let mut header = [0; 12];
    stream.read_exact(&mut header)?;
    let size = u32::from_ne_bytes(header[8..].try_into().expect("four octets")) as usize;
    let mut body = vec![0; size.min(1 << 20)];
    stream.read_exact(&mut body)?;
    Ok(body.first_chunk().map_or(0, |id| u32::from_ne_bytes(*id)))
}

/// A reply in GIOP 1.2 with this status and what follows the contexts, in this machine's order.
pub fn reply(id: u32, status: u32, body: &[u8]) -> Vec<u8> {
    let mut octets = bare_message(GiopVersion::V1_2, ByteOrder::NATIVE, MessageType::Reply).to_vec();
    for number in [id, status, 0] {
        octets.extend(number.to_ne_bytes());
    }
    octets.extend(body);
    let size = (octets.len() as u32 - 12).to_ne_bytes();
    octets[8..12].copy_from_slice(&size);
    octets
}

/// Writes all of it.
pub fn say(stream: &mut TcpStream, octets: &[u8]) -> std::io::Result<()> {
    stream.write_all(octets)
}

/// Makes sure that something took no longer than it may.
pub fn in_time(begun: std::time::Instant, limit: std::time::Duration) -> Result<()> {
    ensure!(begun.elapsed() <= limit, "it took {:?}", begun.elapsed());
    Ok(())
}
