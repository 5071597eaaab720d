//! Doorbells: they end a wait over handles.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::windows::io::AsRawSocket;

use crate::sys::RawHandle;

/// A datagram socket that is connected to itself: sending makes it readable.
#[derive(Debug)]
pub(crate) struct Doorbell(UdpSocket);

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    pub(crate) fn handle(&self) -> RawHandle {
        self.0.as_raw_socket()
    }

    pub(crate) fn ring(&self) -> io::Result<()> {
        match self.0.send(&[1]) {
            // Full of earlier rings, which were not read yet.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result.map(drop),
        }
    }

    pub(crate) fn drain(&self) {
        while self.0.recv(&mut [0]).is_ok() {}
    }
}
