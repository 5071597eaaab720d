//! Messages beyond the size limit.

use anyhow::Result;
use spandrel_giop::MessageType;

use crate::AttackedServer;
use crate::wire::{finish, header, send};

/// Message sizes in headers: at the limit of 64 MiB, above it, and the maximum.
const SIZES: [u32; 5] = [(64 << 20) - 12, (64 << 20) - 11, 1 << 30, i32::MAX as u32, u32::MAX];

/// A header with a large size, and few octets of the body.
pub(super) fn announced(server: &AttackedServer, strength: u32) -> Result<()> {
    for size in SIZES {
        let mut streams = Vec::new();
        for _ in 0..strength * 5 {
            let mut stream = server.connect()?;
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

/// 1 GiB sent in full, as far as the server reads: it may read and drop it.
pub(super) fn sent(server: &AttackedServer, strength: u32) -> Result<()> {
    let block = vec![0; 1 << 20];
    for _ in 0..strength.div_ceil(4) {
        let mut stream = server.connect()?;
        send(&mut stream, &header(MessageType::Request, 0, 1 << 30))?;
        let mut megabytes = 0;
        while megabytes < 1024 && send(&mut stream, &block)? {
            megabytes += 1;
        }
        finish(stream)?;
    }
    Ok(())
}
