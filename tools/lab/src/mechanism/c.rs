//! Mechanisms `c` and `c-unix`: the calls of [`crate::raw`].

use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};

use super::SocketOptions;
use super::octet_stream::OctetStream;
use crate::raw::{self, unix};

/// The naming and connecting of a kind of plain socket; transfers are the same for all.
pub(super) trait Plain: Send + 'static {
    fn listen(host: IpAddr, options: &SocketOptions) -> io::Result<(raw::Socket, String)>;
    fn connect(endpoint: &str, options: &SocketOptions) -> io::Result<raw::Socket>;
    fn tune(socket: &raw::Socket) -> io::Result<()>;
}

/// Streams over TCP sockets.
pub(super) struct Tcp;

/// UNIX-domain streams, under abstract names.
pub(super) struct UnixDomain;

fn prepared(socket: io::Result<raw::Socket>, options: &SocketOptions) -> io::Result<raw::Socket> {
    let socket = socket?;
    if let Some(octets) = options.queue_octets {
        raw::set_queues(&socket, octets)?;
    }
    Ok(socket)
}

impl Plain for Tcp {
    fn listen(host: IpAddr, options: &SocketOptions) -> io::Result<(raw::Socket, String)> {
        let addr = SocketAddr::new(host, 0);
        let socket = prepared(raw::socket(&addr), options)?;
        raw::bind(&socket, &addr)?;
        raw::listen(&socket, 1)?;
        let addr = raw::local_addr(&socket)?;
        Ok((socket, addr.to_string()))
    }

    fn connect(endpoint: &str, options: &SocketOptions) -> io::Result<raw::Socket> {
        let addr: SocketAddr = endpoint.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let socket = prepared(raw::socket(&addr), options)?;
        raw::connect(&socket, &addr)?;
        Ok(socket)
    }

    fn tune(socket: &raw::Socket) -> io::Result<()> {
        raw::set_no_delay(socket)
    }
}

impl Plain for UnixDomain {
    fn listen(_host: IpAddr, options: &SocketOptions) -> io::Result<(raw::Socket, String)> {
        let socket = prepared(unix::socket(), options)?;
        let name = unix::bind_free_name(&socket)?;
        raw::listen(&socket, 1)?;
        Ok((socket, name))
    }

    fn connect(name: &str, options: &SocketOptions) -> io::Result<raw::Socket> {
        let socket = prepared(unix::socket(), options)?;
        unix::connect(&socket, name)?;
        Ok(socket)
    }

    fn tune(_socket: &raw::Socket) -> io::Result<()> {
        Ok(())
    }
}

/// A connected socket used through plain calls.
pub(super) struct PlainStream<P>(raw::Socket, PhantomData<fn() -> P>);

impl<P: Plain> OctetStream for PlainStream<P> {
    type Listener = raw::Socket;

    fn listen(host: IpAddr, options: &SocketOptions) -> io::Result<(raw::Socket, String)> {
        P::listen(host, options)
    }

    fn accept(listener: &raw::Socket) -> io::Result<Self> {
        let socket = raw::accept(listener)?;
        P::tune(&socket)?;
        Ok(Self(socket, PhantomData))
    }

    fn stop(listener: &raw::Socket) -> io::Result<()> {
        raw::stop_listening(listener)
    }

    fn connect(endpoint: &str, options: &SocketOptions) -> io::Result<Self> {
        let socket = P::connect(endpoint, options)?;
        P::tune(&socket)?;
        Ok(Self(socket, PhantomData))
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
