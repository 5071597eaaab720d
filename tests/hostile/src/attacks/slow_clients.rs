//! Clients that send or read slowly.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::AttackedServer;
use crate::attacked_server::TIMEOUT;
use crate::wire::{echo, native_wire, read_out, send};

/// Connections that send single octets and never a complete message. The server closes them after its message
/// timeout.
pub(super) fn slowloris(server: &AttackedServer, strength: u32) -> Result<()> {
    let message = echo(server, native_wire(), &[1; 200]);
    let mut streams = Vec::new();
    for number in 0..strength as usize * 50 {
        let mut stream = server.connect()?;
        // Part of a header, or of a body.
        send(&mut stream, &message[..[1, 6, 12, 40][number % 4]])?;
        streams.push(stream);
    }
    for octet in 40..45 {
        thread::sleep(Duration::from_millis(100));
        for stream in &mut streams {
            send(stream, &message[octet..=octet])?;
        }
    }
    let start = Instant::now();
    for stream in &mut streams {
        read_out(stream, 1 << 20)?;
    }
    ensure!(start.elapsed() < TIMEOUT, "the server does not close slow connections");
    Ok(())
}

/// Clients that request large replies and read none.
pub(super) fn never_reading(server: &AttackedServer, strength: u32) -> Result<()> {
    let message = echo(server, native_wire(), &vec![1; 60_000]);
    let (before, mut streams) = (server.descriptors()?, Vec::new());
    for _ in 0..strength * 8 {
        let mut stream = server.connect()?;
        stream.set_write_timeout(Some(Duration::from_millis(50)))?;
        // As many as the socket buffers of both directions hold.
        for _ in 0..200 {
            if stream.write_all(&message).is_err() {
                break;
            }
        }
        streams.push(stream);
    }
    // The server closes connections whose replies do not fit into the socket buffers after a second; the
    // others have their replies. No descriptor is left of either kind after the clients close their sockets.
    let start = Instant::now();
    while server.descriptors()? > before && start.elapsed() < Duration::from_secs(3) {
        thread::sleep(Duration::from_millis(10));
    }
    drop(streams);
    let start = Instant::now();
    while server.descriptors()? > before {
        ensure!(start.elapsed() < TIMEOUT, "descriptors are left of clients that read nothing");
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
