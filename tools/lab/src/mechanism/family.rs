//! The typed endpoints of `spandrel-ipc`: one mechanism for each family of streams, over the generic loops of
//! `octet_stream`.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use spandrel_ipc::{Accept, Family, Receive, Transfer, Transmit, inet};

use super::SocketOptions;
use super::octet_stream::OctetStream;

/// The operations of a family that the measurements need besides.
pub(super) trait MeasuredFamily: Family<Addr: FromStr<Err: Display>> {
    /// The family with these options.
    fn with(options: &SocketOptions) -> Self;
    /// A free address of this machine to listen at, if possible one at which `host` is reached.
    fn free_address(host: IpAddr) -> io::Result<Self::Addr>;
    /// Sets options at either end of a connection.
    fn tune(_stream: &Self::Stream) -> io::Result<()> {
        Ok(())
    }
}

impl MeasuredFamily for inet::Inet {
    fn with(options: &SocketOptions) -> Self {
        let mut acceptor = inet::AcceptorOptions::default().backlog(1).reuse_address(false);
        let mut connector = inet::Connector::new();
        if let Some(octets) = options.queue_octets {
            acceptor = acceptor.send_queue(octets as usize).recv_queue(octets as usize);
            connector = connector.send_queue(octets as usize).recv_queue(octets as usize);
        }
        Self::new(acceptor, connector)
    }

    fn free_address(host: IpAddr) -> io::Result<inet::Addr> {
        Ok(SocketAddr::new(host, 0).into())
    }

    fn tune(stream: &inet::Stream) -> io::Result<()> {
        stream.set_no_delay(true)
    }
}

#[cfg(target_os = "linux")]
impl MeasuredFamily for spandrel_ipc::unix::Unix {
    fn with(options: &SocketOptions) -> Self {
        use spandrel_ipc::unix::{AcceptorOptions, Connector};
        let (mut acceptor, mut connector) = (AcceptorOptions::default().backlog(1), Connector::new());
        if let Some(octets) = options.queue_octets {
            acceptor = acceptor.send_queue(octets as usize).recv_queue(octets as usize);
            connector = connector.send_queue(octets as usize).recv_queue(octets as usize);
        }
        Self::new(acceptor, connector)
    }

    fn free_address(_host: IpAddr) -> io::Result<spandrel_ipc::unix::Addr> {
        Ok(spandrel_ipc::unix::Addr::unnamed()) // the system assigns a free abstract name
    }
}

#[cfg(target_os = "linux")]
impl MeasuredFamily for spandrel_ipc::shm::Shm {
    fn with(options: &SocketOptions) -> Self {
        use spandrel_ipc::shm::{AcceptorOptions, Connector};
        let mut connector = Connector::new();
        if let Some(octets) = options.queue_octets {
            connector = connector.send_queue(octets as usize).recv_queue(octets as usize);
        }
        Self::new(AcceptorOptions::default(), connector)
    }

    fn free_address(_host: IpAddr) -> io::Result<spandrel_ipc::shm::Addr> {
        Ok(spandrel_ipc::shm::Addr::unnamed())
    }
}

#[cfg(target_os = "linux")]
impl MeasuredFamily for spandrel_ipc::spipe::Spipe {
    /// The system chooses the queues of a pipe.
    fn with(_options: &SocketOptions) -> Self {
        use spandrel_ipc::spipe::AcceptorOptions;
        Self::new(AcceptorOptions::default().backlog(1).mode(0o600).replace_stale(true))
    }

    fn free_address(_host: IpAddr) -> io::Result<spandrel_ipc::spipe::Addr> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The acceptor removes the file when it is dropped.
        let name = format!("spandrel-lab-{}-{number}", std::process::id());
        spandrel_ipc::spipe::Addr::path(std::env::temp_dir().join(name))
    }
}

/// A connected stream of a family.
pub(super) struct FamilyStream<F: MeasuredFamily>(F::Stream);

impl<F: MeasuredFamily> OctetStream for FamilyStream<F> {
    type Listener = F::Acceptor;

    fn listen(host: IpAddr, options: &SocketOptions) -> io::Result<(F::Acceptor, String)> {
        let acceptor = F::with(options).open(&F::free_address(host)?)?;
        let endpoint = acceptor.local_addr()?.to_string();
        Ok((acceptor, endpoint))
    }

    fn accept(acceptor: &F::Acceptor) -> io::Result<Self> {
        let (stream, _) = acceptor.accept()?;
        F::tune(&stream)?;
        Ok(Self(stream))
    }

    fn stop(acceptor: &F::Acceptor) -> io::Result<()> {
        acceptor.shutdown()
    }

    fn connect(endpoint: &str, options: &SocketOptions) -> io::Result<Self> {
        let unreadable = |error| io::Error::new(io::ErrorKind::InvalidInput, format!("{error}"));
        let addr = endpoint.parse::<F::Addr>().map_err(unreadable)?;
        let stream = F::with(options).connect(&addr, None)?;
        F::tune(&stream)?;
        Ok(Self(stream))
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
