//! Mechanism `ipc`: the typed endpoints of `spandrel-ipc`.

use std::io;
use std::net::SocketAddr;

use spandrel_ipc::inet::{Acceptor, AcceptorOptions, Addr, Connector, Stream};

use super::SocketOptions;
use super::octet_stream::OctetStream;

/// A connected stream of the Internet family.
pub(super) struct Inet(Stream);

impl OctetStream for Inet {
    type Listener = Acceptor;

    fn listen(addr: SocketAddr, options: &SocketOptions) -> io::Result<(Acceptor, SocketAddr)> {
        let mut acceptor = AcceptorOptions::default().backlog(1).reuse_address(false);
        if let Some(octets) = options.queue_octets {
            acceptor = acceptor.send_queue(octets as usize).recv_queue(octets as usize);
        }
        let acceptor = Acceptor::open_with(&Addr::from(addr), &acceptor)?;
        let addr = acceptor.local_addr()?.into();
        Ok((acceptor, addr))
    }

    fn accept(acceptor: &Acceptor) -> io::Result<Self> {
        let (stream, _) = acceptor.accept()?;
        stream.set_no_delay(true)?;
        Ok(Self(stream))
    }

    fn stop(acceptor: &Acceptor) -> io::Result<()> {
        acceptor.shutdown()
    }

    fn connect(addr: SocketAddr, options: &SocketOptions) -> io::Result<Self> {
        let mut connector = Connector::new().no_delay(true);
        if let Some(octets) = options.queue_octets {
            connector = connector.send_queue(octets as usize).recv_queue(octets as usize);
        }
        connector.open(&Addr::from(addr)).map(Self)
    }

    #[inline]
    fn send(&self, data: &[u8]) -> io::Result<usize> {
        self.0.send(data)
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }

    fn close_writer(&self) -> io::Result<()> {
        self.0.close_writer()
    }
}
