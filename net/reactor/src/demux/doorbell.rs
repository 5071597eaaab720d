//! What a wait over plain handles is ended with.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use crate::sys::RawHandle;

/// A pair of sockets, of which one becomes readable when the other was rung.
#[derive(Debug)]
pub(crate) struct Doorbell {
    outside: UnixStream,
    inside: UnixStream,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        let (outside, inside) = UnixStream::pair()?;
        outside.set_nonblocking(true)?;
        inside.set_nonblocking(true)?;
        Ok(Self { outside, inside })
    }

    pub(crate) fn handle(&self) -> RawHandle {
        self.inside.as_raw_fd()
    }

    pub(crate) fn ring(&self) -> io::Result<()> {
        loop {
            match (&self.outside).write(&[1]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Full of earlier rings, which nobody has heard yet.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                result => return result.map(drop),
            }
        }
    }

    pub(crate) fn hush(&self) {
        while (&self.inside).read(&mut [0; 64]).is_ok_and(|count| count == 64) {}
    }
}
