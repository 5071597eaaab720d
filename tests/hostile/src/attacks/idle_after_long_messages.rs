//! Clients that send a long request, take its reply, and stay connected without a further octet.

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use spandrel_giop::{HEADER_LEN, MessageHeader, MessageType};

use crate::AttackedServer;
use crate::attacked_server::TIMEOUT;
use crate::wire::{echo, native_wire, request, send};

/// Octets that an idle connection may have at most: those of a normal buffer, and of its thread.
const OF_CONNECTION: u64 = 200 << 10;
/// Octets that a server may retain for the next long message of any connection.
const OF_SERVER: u64 = 24 << 20;

/// Forty clients that send 12 MiB each, without a result: how much of a servant's own results its allocator keeps is
/// not the ORB's.
pub(super) fn very_long(server: &AttackedServer, strength: u32) -> Result<()> {
    let data = vec![7; 12 << 20];
    let message = request(native_wire(), &server.profile.object_key, "ignore", |out| {
        out.octet_sequence(&data).expect("the length fits");
    });
    idle_after(server, strength * 20, &message)
}

/// Two hundred clients that send almost 1 MiB each, and get as much back.
pub(super) fn long(server: &AttackedServer, strength: u32) -> Result<()> {
    idle_after(server, strength * 100, &echo(server, native_wire(), &vec![7; 1_000_000]))
}

/// Lets each of many clients send a request, take the reply, and stay connected.
fn idle_after(server: &AttackedServer, clients: u32, message: &[u8]) -> Result<()> {
    let before = server.resident()?;
    let mut idle = Vec::new();
    for _ in 0..clients {
        let mut stream = server.connect()?;
        // Written beside the reading, since the server may write before it has read all.
        let mut writer = stream.try_clone()?;
        thread::scope(|scope| {
            let sent = scope.spawn(|| send(&mut writer, message));
            let mut header = [0; HEADER_LEN];
            stream.read_exact(&mut header)?;
            let header = MessageHeader::parse(&header)?;
            ensure!(header.message_type == MessageType::Reply, "{header}");
            let body = header.total_len() - HEADER_LEN;
            std::io::copy(&mut (&stream).take(body as u64), &mut std::io::sink())?;
            ensure!(sent.join().expect("it does not panic")?, "the server ended the connection");
            Ok(())
        })?;
        idle.push(stream);
    }
    let most = (u64::from(clients) * OF_CONNECTION + OF_SERVER) >> 10;
    let start = Instant::now();
    loop {
        let more = server.resident()?.saturating_sub(before);
        if more <= most {
            return Ok(());
        }
        ensure!(start.elapsed() < TIMEOUT, "{clients} idle connections have {more} KiB, where {most} are allowed");
        thread::sleep(Duration::from_millis(10));
    }
}
