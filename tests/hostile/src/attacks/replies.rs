//! Clients that ask for long replies, many at once, and take none of them.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use spandrel_cdr::Encoder;
use spandrel_giop::{RequestTemplate, ResponseFlags};

use crate::Victim;
use crate::wire::{newest, send};

/// Requests that each client sends without reading.
const REQUESTS: u32 = 64;
/// Threads that the server may have: those of 64 connections, those of its reactor, and a few that read on where a servant lasts.
const THREADS: u64 = 200;
/// How long the clients stay.
const STAY: Duration = Duration::from_secs(3);

/// So many requests, each for so many octets.
fn requests(victim: &Victim, octets: u32) -> Vec<u8> {
    let (wire, mut all) = (newest(), Vec::new());
    for id in 0..REQUESTS {
        let mut out = Encoder::new(wire);
        let template = RequestTemplate::new(wire, &victim.profile.object_key);
        let body = template.begin(&mut out, id, ResponseFlags::TWO_WAY, "produce", &[]);
        out.u32(octets);
        body.end(&mut out).expect("the operation's name is plain");
        all.extend(out.to_vec());
    }
    all
}

/// Stays for a while, and watches the server's threads meanwhile.
fn stay(victim: &Victim, streams: Vec<TcpStream>) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < STAY {
        let threads = victim.threads()?;
        ensure!(threads <= THREADS, "the server has {threads} threads");
        thread::sleep(Duration::from_millis(10));
    }
    drop(streams);
    Ok(())
}

/// One client, replies of 16 MiB.
pub(super) fn from_one(victim: &Victim, _strength: u32) -> Result<()> {
    let mut stream = victim.connect()?;
    send(&mut stream, &requests(victim, 16 << 20))?;
    stay(victim, vec![stream])
}

/// Sixty clients, replies of 1 MiB.
pub(super) fn from_many(victim: &Victim, _strength: u32) -> Result<()> {
    let requests = requests(victim, 1 << 20);
    let mut streams = Vec::new();
    for _ in 0..60 {
        let mut stream = victim.connect()?;
        send(&mut stream, &requests)?;
        streams.push(stream);
    }
    stay(victim, streams)
}
