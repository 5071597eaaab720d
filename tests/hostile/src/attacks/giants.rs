//! Messages beyond the limit.

use anyhow::Result;
use spandrel_giop::MessageType;

use crate::Victim;
use crate::wire::{finish, header, send};

/// Octets that headers announce: at the limit of 64 MiB, above it, and as many as a header can say.
const SIZES: [u32; 5] = [(64 << 20) - 12, (64 << 20) - 11, 1 << 30, i32::MAX as u32, u32::MAX];

/// A header, and little or nothing of what it announces.
pub(super) fn announced(victim: &Victim, strength: u32) -> Result<()> {
    for size in SIZES {
        let mut streams = Vec::new();
        for _ in 0..strength * 5 {
            let mut stream = victim.connect()?;
            send(&mut stream, &header(MessageType::Request, 0, size))?;
            send(&mut stream, &[0; 100])?;
            streams.push(stream);
        }
        for stream in streams {
            finish(stream)?;
        }
    }
    Ok(())
}

/// A gigabyte, really sent, as far as the server takes it: it may read and drop it.
pub(super) fn sent(victim: &Victim, strength: u32) -> Result<()> {
    let block = vec![0; 1 << 20];
    for _ in 0..strength.div_ceil(4) {
        let mut stream = victim.connect()?;
        send(&mut stream, &header(MessageType::Request, 0, 1 << 30))?;
        let mut megabytes = 0;
        while megabytes < 1024 && send(&mut stream, &block)? {
            megabytes += 1;
        }
        finish(stream)?;
    }
    Ok(())
}
