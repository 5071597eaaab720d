//! Doorbells: they end a wait over handles.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use crate::sys::RawHandle;

/// A pair of sockets: a write to one makes the other readable.
#[derive(Debug)]
pub(crate) struct Doorbell {
    sender: UnixStream,
    receiver: UnixStream,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Self { sender, receiver })
    }

    pub(crate) fn handle(&self) -> RawHandle {
        self.receiver.as_raw_fd()
    }

    pub(crate) fn ring(&self) -> io::Result<()> {
        loop {
            match (&self.sender).write(&[1]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Full of earlier rings, which were not read yet.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                result => return result.map(drop),
            }
        }
    }

    pub(crate) fn drain(&self) {
        while (&self.receiver).read(&mut [0; 64]).is_ok_and(|count| count == 64) {}
    }
}
