//! Eventfds that end waits.

use std::io;
use std::os::fd::OwnedFd;

/// Writes to an eventfd that is watched for edges, so that it need not be read.
pub(crate) fn ring(doorbell: &OwnedFd) -> io::Result<()> {
    loop {
        match rustix::io::write(doorbell, &1_u64.to_ne_bytes()) {
            Err(rustix::io::Errno::INTR) => {}
            // It is full after 2^64 - 2 writes: then it is read once.
            Err(rustix::io::Errno::AGAIN) => drop(rustix::io::read(doorbell, &mut [0; 8])),
            other => return Ok(other.map(drop)?),
        }
    }
}
