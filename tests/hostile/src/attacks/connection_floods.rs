//! Floods of connections.

use std::io::{self, Read};
use std::net::TcpStream;

use anyhow::{Result, ensure};

use crate::AttackedServer;
use crate::wire::{echo, native_wire, send};

/// The descriptor limit of the server in [`beyond_descriptors`].
const DESCRIPTORS: usize = 300;
pub(super) const FEW_DESCRIPTORS: &[&str] = &["--descriptors", "300"];

/// Reads a message and returns its header.
fn read_message(stream: &mut TcpStream) -> Result<[u8; 12]> {
    let mut header = [0; 12];
    stream.read_exact(&mut header)?;
    let [.., a, b, c, d] = header;
    let length = if header[6] & 1 == 1 { u32::from_le_bytes([a, b, c, d]) } else { u32::from_be_bytes([a, b, c, d]) };
    io::copy(&mut stream.take(length.into()), &mut io::sink())?;
    Ok(header)
}

/// `strength` hundred concurrent connections, which are all served.
pub(super) fn open(server: &AttackedServer, strength: u32) -> Result<()> {
    let message = echo(server, native_wire(), &[1; 20]);
    let mut streams = Vec::new();
    for _ in 0..strength * 100 {
        streams.push(server.connect()?);
    }
    for stream in &mut streams {
        send(stream, &message)?;
    }
    for stream in &mut streams {
        ensure!(read_message(stream)?[7] == 1, "not a reply");
    }
    Ok(())
}

/// More connections than the server has descriptors for. It serves the accepted ones and closes the others.
pub(super) fn beyond_descriptors(server: &AttackedServer, strength: u32) -> Result<()> {
    let message = echo(server, native_wire(), &[1; 20]);
    for _ in 0..strength.div_ceil(4) {
        let mut served = Vec::new();
        for _ in 0..2 * DESCRIPTORS {
            let mut stream = server.connect()?;
            // Connections without a descriptor are closed.
            if send(&mut stream, &message).and_then(|_| read_message(&mut stream)).is_ok_and(|header| header[7] == 1) {
                served.push(stream);
            }
        }
        ensure!((DESCRIPTORS / 2..DESCRIPTORS).contains(&served.len()), "{} connections were served", served.len());
        for stream in &mut served {
            send(stream, &message)?;
            ensure!(read_message(stream)?[7] == 1, "an accepted connection is no longer served");
        }
    }
    Ok(())
}

/// More connections than the limit: the excess ones receive CloseConnection, and can connect when others have
/// closed.
pub(super) fn beyond_limit(server: &AttackedServer, strength: u32) -> Result<()> {
    let message = echo(server, native_wire(), &[1; 20]);
    for _ in 0..strength.div_ceil(4) {
        let mut served = Vec::new();
        let mut refused = 0;
        for _ in 0..300 {
            let mut stream = server.connect()?;
            send(&mut stream, &message)?;
            match read_message(&mut stream) {
                Ok(header) if header[7] == 1 => served.push(stream),
                // CloseConnection, or a reset that discarded it.
                _ => refused += 1,
            }
        }
        ensure!((100..=200).contains(&served.len()), "{} connections were served and {refused} refused", served.len());
    }
    Ok(())
}

/// Connections that are reset, some within a message.
pub(super) fn reset(server: &AttackedServer, strength: u32) -> Result<()> {
    let message = echo(server, native_wire(), &[1; 2000]);
    for number in 0..strength as usize * 200 {
        let mut stream = server.connect()?;
        send(&mut stream, &message[..number % message.len()])?;
        // The reply is not read, so closing the socket resets the connection.
    }
    Ok(())
}
