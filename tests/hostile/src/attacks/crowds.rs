//! Many connections.

use std::io::{self, Read};
use std::net::TcpStream;

use anyhow::{Result, ensure};

use crate::Victim;
use crate::wire::{echo, newest, send};

/// How many descriptors a server has that is to run out of them.
const DESCRIPTORS: usize = 300;
pub(super) const FEW_DESCRIPTORS: &[&str] = &["--descriptors", "300"];

/// Reads a message; its header.
fn answer(stream: &mut TcpStream) -> Result<[u8; 12]> {
    let mut header = [0; 12];
    stream.read_exact(&mut header)?;
    let [.., a, b, c, d] = header;
    let length = if header[6] & 1 == 1 { u32::from_le_bytes([a, b, c, d]) } else { u32::from_be_bytes([a, b, c, d]) };
    io::copy(&mut stream.take(length.into()), &mut io::sink())?;
    Ok(header)
}

/// As many connections as `strength` says (in hundreds) are open at once, and all are served.
pub(super) fn open(victim: &Victim, strength: u32) -> Result<()> {
    let message = echo(victim, newest(), &[1; 20]);
    let mut streams = Vec::new();
    for _ in 0..strength * 100 {
        streams.push(victim.connect()?);
    }
    for stream in &mut streams {
        send(stream, &message)?;
    }
    for stream in &mut streams {
        ensure!(answer(stream)?[7] == 1, "not a reply");
    }
    Ok(())
}

/// More than the server has descriptors for. It keeps whom it has, and does not keep the others waiting.
pub(super) fn starved(victim: &Victim, strength: u32) -> Result<()> {
    let message = echo(victim, newest(), &[1; 20]);
    for _ in 0..strength.div_ceil(4) {
        let mut served = Vec::new();
        for _ in 0..2 * DESCRIPTORS {
            let mut stream = victim.connect()?;
            // Those for whom there is none are cut off, sooner or later.
            if send(&mut stream, &message).and_then(|_| answer(&mut stream)).is_ok_and(|header| header[7] == 1) {
                served.push(stream);
            }
        }
        ensure!((DESCRIPTORS / 2..DESCRIPTORS).contains(&served.len()), "{} were served", served.len());
        for stream in &mut served {
            send(stream, &message)?;
            ensure!(answer(stream)?[7] == 1, "one that was served is not any more");
        }
    }
    Ok(())
}

/// More than the server takes: those beyond are told so (CloseConnection), and are served when others have left.
pub(super) fn beyond(victim: &Victim, strength: u32) -> Result<()> {
    let message = echo(victim, newest(), &[1; 20]);
    for _ in 0..strength.div_ceil(4) {
        let mut served = Vec::new();
        let mut refused = 0;
        for _ in 0..300 {
            let mut stream = victim.connect()?;
            send(&mut stream, &message)?;
            match answer(&mut stream) {
                Ok(header) if header[7] == 1 => served.push(stream),
                // CloseConnection, or what is left of it after a reset.
                _ => refused += 1,
            }
        }
        ensure!((100..=200).contains(&served.len()), "{} were served and {refused} refused", served.len());
    }
    Ok(())
}

/// Connections that vanish, some of them in a message.
pub(super) fn reset(victim: &Victim, strength: u32) -> Result<()> {
    let message = echo(victim, newest(), &[1; 2000]);
    for number in 0..strength as usize * 200 {
        let mut stream = victim.connect()?;
        send(&mut stream, &message[..number % message.len()])?;
        // What the server says is not read, so that closing resets the connection.
    }
    Ok(())
}
