//! Peers that take their time.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::Victim;
use crate::victim::LONG;
use crate::wire::{echo, newest, read_out, send};

/// Connections that send an octet now and then, and never a whole message. They are cut off after the time that a message may take.
pub(super) fn loris(victim: &Victim, strength: u32) -> Result<()> {
    let message = echo(victim, newest(), &[1; 200]);
    let mut streams = Vec::new();
    for number in 0..strength as usize * 50 {
        let mut stream = victim.connect()?;
        // Some have sent half a header, some half a body.
        send(&mut stream, &message[..[1, 6, 12, 40][number % 4]])?;
        streams.push(stream);
    }
    for octet in 40..45 {
        thread::sleep(Duration::from_millis(100));
        for stream in &mut streams {
            send(stream, &message[octet..=octet])?;
        }
    }
    let begun = Instant::now();
    for stream in &mut streams {
        read_out(stream, 1 << 20)?;
    }
    ensure!(begun.elapsed() < LONG, "slow clients are not cut off");
    Ok(())
}

/// Clients that ask for much and read nothing.
pub(super) fn deaf(victim: &Victim, strength: u32) -> Result<()> {
    let message = echo(victim, newest(), &vec![1; 60_000]);
    let (before, mut streams) = (victim.descriptors()?, Vec::new());
    for _ in 0..strength * 8 {
        let mut stream = victim.connect()?;
        stream.set_write_timeout(Some(Duration::from_millis(50)))?;
        // As many as the queues of both directions take.
        for _ in 0..200 {
            if stream.write_all(&message).is_err() {
                break;
            }
        }
        streams.push(stream);
    }
    // Those whose answers do not fit into the queues are cut off after a second; the others have been answered. Nothing is left of either
    // once they leave.
    let begun = Instant::now();
    while victim.descriptors()? > before && begun.elapsed() < Duration::from_secs(3) {
        thread::sleep(Duration::from_millis(10));
    }
    drop(streams);
    let begun = Instant::now();
    while victim.descriptors()? > before {
        ensure!(begun.elapsed() < LONG, "something is left of clients that read nothing");
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
