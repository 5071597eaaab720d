//! Servers that break the protocol towards their clients. The attacks themselves are in `tests/clients.rs`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use anyhow::{Result, ensure};
use spandrel_cdr::{ByteOrder, GiopVersion, Ior};
use spandrel_giop::{IiopProfile, MessageType, bare_message, ior_to_string};

/// The behaviour of a server on a connection, given the first request's id.
pub type Behaviour = fn(&mut TcpStream, u32) -> std::io::Result<()>;

/// Starts a server with this behaviour on each connection; returns a stringified reference to it.
pub fn serve(behaviour: Behaviour) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::Builder::new().name("malicious-server".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                // The client may close the connection first.
                _ = read_request(&mut stream).and_then(|id| behaviour(&mut stream, id));
                // Keeps the connection open until the client closes it.
                _ = stream.read_exact(&mut [0]);
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
        object_key: b"target".to_vec(),
        components: Vec::new(),
    };
    let ior = Ior { type_id: "IDL:attacked/Target:1.0".to_owned(), profiles: vec![profile.encode()?] };
    Ok(ior_to_string(&ior))
}

/// Reads one request and returns its id.
pub fn read_request(stream: &mut TcpStream) -> std::io::Result<u32> {
    let mut header = [0; 12];
    stream.read_exact(&mut header)?;
    let size = u32::from_ne_bytes(header[8..].try_into().expect("the slice has four octets")) as usize;
    let mut body = vec![0; size.min(1 << 20)];
    stream.read_exact(&mut body)?;
    Ok(body.first_chunk().map_or(0, |id| u32::from_ne_bytes(*id)))
}

/// A GIOP 1.2 reply with this status and body, in native byte order.
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

/// Sends the octets.
pub fn send(stream: &mut TcpStream, octets: &[u8]) -> std::io::Result<()> {
    stream.write_all(octets)
}

/// Fails if more than `limit` has passed since `start`.
pub fn check_elapsed(start: std::time::Instant, limit: std::time::Duration) -> Result<()> {
    ensure!(start.elapsed() <= limit, "{:?} have passed", start.elapsed());
    Ok(())
}
