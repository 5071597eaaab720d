//! Mechanism `c`: the calls of [`crate::raw`].

use std::io;
use std::net::SocketAddr;

use super::SocketOptions;
use super::octet_stream::OctetStream;
use crate::raw;

/// A connected socket used through plain calls.
pub(super) struct Plain(raw::Socket);

fn prepared(addr: &SocketAddr, options: &SocketOptions) -> io::Result<raw::Socket> {
    let socket = raw::socket(addr)?;
    if let Some(octets) = options.queue_octets {
        raw::set_queues(&socket, octets)?;
    }
    Ok(socket)
}

impl OctetStream for Plain {
    type Listener = raw::Socket;

    fn listen(addr: SocketAddr, options: &SocketOptions) -> io::Result<(raw::Socket, SocketAddr)> {
        let socket = prepared(&addr, options)?;
        raw::bind(&socket, &addr)?;
        raw::listen(&socket, 1)?;
        let addr = raw::local_addr(&socket)?;
        Ok((socket, addr))
    }

    fn accept(listener: &raw::Socket) -> io::Result<Self> {
        let socket = raw::accept(listener)?;
        raw::set_no_delay(&socket)?;
        Ok(Self(socket))
    }

    fn stop(listener: &raw::Socket) -> io::Result<()> {
        raw::stop_listening(listener)
    }

    fn connect(addr: SocketAddr, options: &SocketOptions) -> io::Result<Self> {
        let socket = prepared(&addr, options)?;
        raw::connect(&socket, &addr)?;
        raw::set_no_delay(&socket)?;
        Ok(Self(socket))
    }

    #[inline]
    fn send(&self, data: &[u8]) -> io::Result<usize> {
        raw::send(&self.0, data)
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        raw::recv(&self.0, buffer)
    }

    fn close_writer(&self) -> io::Result<()> {
        raw::close_writer(&self.0)
    }
}
