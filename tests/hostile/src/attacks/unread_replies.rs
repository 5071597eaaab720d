//! Clients that request many long replies and read none of them.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use spandrel_cdr::Encoder;
use spandrel_giop::{RequestTemplate, ResponseFlags};

use crate::AttackedServer;
use crate::wire::{native_wire, send};

/// The requests that each client sends.
const REQUESTS: u32 = 64;
/// The limit of the server's threads: those of 64 connections, of its reactor, and a few that replace blocked
/// readers.
const MAX_THREADS: u64 = 200;
/// The time that the clients keep their connections open.
const HOLD_TIME: Duration = Duration::from_secs(3);

/// [`REQUESTS`] requests, each for a reply of this many octets.
fn requests(server: &AttackedServer, octets: u32) -> Vec<u8> {
    let (wire, mut all) = (native_wire(), Vec::new());
    for id in 0..REQUESTS {
        let mut out = Encoder::new(wire);
        let template = RequestTemplate::new(wire, &server.profile.object_key);
        let body = template.begin(&mut out, id, ResponseFlags::TWO_WAY, "produce", &[]);
        out.u32(octets);
        body.end(&mut out).expect("the operation name is ASCII");
        all.extend(out.to_vec());
    }
    all
}

/// Keeps the connections open for [`HOLD_TIME`], and checks the number of the server's threads.
fn hold_connections(server: &AttackedServer, streams: Vec<TcpStream>) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < HOLD_TIME {
        let threads = server.threads()?;
        ensure!(threads <= MAX_THREADS, "the server has {threads} threads");
        thread::sleep(Duration::from_millis(10));
    }
    drop(streams);
    Ok(())
}

/// One client; replies of 16 MiB.
pub(super) fn from_one(server: &AttackedServer, _strength: u32) -> Result<()> {
    let mut stream = server.connect()?;
    send(&mut stream, &requests(server, 16 << 20))?;
    hold_connections(server, vec![stream])
}

/// Sixty clients; replies of 1 MiB.
pub(super) fn from_many(server: &AttackedServer, _strength: u32) -> Result<()> {
    let requests = requests(server, 1 << 20);
    let mut streams = Vec::new();
    for _ in 0..60 {
        let mut stream = server.connect()?;
        send(&mut stream, &requests)?;
        streams.push(stream);
    }
    hold_connections(server, streams)
}
