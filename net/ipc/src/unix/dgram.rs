//! Datagrams of the UNIX-domain family.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::Addr;
use super::socket_file::SocketFile;
use crate::dgram::{
    Batch, Connected, Data, DgramSocket, Encode, Received, Room, SendError, Unconnected, Wait, common_options,
    connected_transfers, taken_over, unconnected_receives, unconnected_sends,
};
use crate::{Handle, Pollable};

/// A UNIX-domain endpoint that names the receiver of each datagram and gets the sender of each.
///
/// Datagrams between processes of one host are neither lost nor reordered. A receiver's queue has a limit
/// (Linux: `net.unix.max_dgram_qlen`, often 10 or 512); while it is full, senders wait. (Readiness for output
/// of an unconnected endpoint does not reflect the receiver's queue; [`send_to_within`](Self::send_to_within)
/// does wait for that.)
///
/// Dropping it closes it, and removes its socket file unless that was opened with
/// [`keep_file`](DgramOptions::keep_file).
///
/// ```
/// use spandrel_ipc::unix::{Addr, Dgram};
///
/// # let folder = std::env::temp_dir().join(format!("spandrel-unix-dgram-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let addr = Addr::path(folder.join("log"))?;
/// let log = Dgram::open(&addr)?;
/// Dgram::unnamed()?.send_to(b"one line", &addr)?;
/// let mut line = [0; 80];
/// let (received, from) = log.recv_from(&mut line)?;
/// assert_eq!(&line[..received.len()], b"one line");
/// assert!(from.is_unnamed()); // and so cannot be answered
/// # drop(log);
/// # std::fs::remove_dir(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Dgram {
    socket: DgramSocket,
    file: Option<SocketFile>,
}

/// A UNIX-domain endpoint with one peer: it sends to no other and receives from no other.
///
/// It is ready for output when the peer's queue has room (on Linux only after most of its datagrams were
/// received). Only sending reports that the peer has closed ([`SendError::Refused`]): a receive continues to
/// wait.
///
/// ```
/// use spandrel_ipc::unix::ConnectedDgram;
///
/// let (here, there) = ConnectedDgram::pair()?;
/// here.send(b"ping")?;
/// let mut octets = [0; 16];
/// assert_eq!(there.recv(&mut octets)?.len(), 4);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ConnectedDgram {
    socket: DgramSocket,
    file: Option<SocketFile>,
}

/// Options of a UNIX-domain datagram endpoint; the plain forms use [`DgramOptions::default`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DgramOptions {
    /// Whether a socket file without a receiver is replaced; see
    /// [`AcceptorOptions::replace_stale`](super::AcceptorOptions::replace_stale). Default false.
    pub replace_stale: bool,
    /// Whether the socket file stays when the endpoint is dropped. Default false.
    pub keep_file: bool,
    /// The permissions of the socket file, such as `0o600`: write permission allows sending. Default: the
    /// process's file mode creation mask.
    pub mode: Option<u32>,
    /// The send queue, in octets (`SO_SNDBUF`); no datagram can be longer. Default: the system's own.
    pub send_queue: Option<usize>,
    /// The receive queue, in octets (`SO_RCVBUF`). Default: the system's own. Linux counts octets in flight
    /// on the sender's side alone.
    pub recv_queue: Option<usize>,
}

impl DgramOptions {
    /// Sets [`replace_stale`](Self::replace_stale): whether a file without a receiver is replaced.
    #[must_use]
    pub fn replace_stale(mut self, on: bool) -> Self {
        self.replace_stale = on;
        self
    }

    /// Sets [`keep_file`](Self::keep_file): whether the file outlives the endpoint.
    #[must_use]
    pub fn keep_file(mut self, on: bool) -> Self {
        self.keep_file = on;
        self
    }

    /// Sets [`mode`](Self::mode), the permissions of the file.
    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets [`send_queue`](Self::send_queue), in octets (`SO_SNDBUF`).
    #[must_use]
    pub fn send_queue(mut self, octets: usize) -> Self {
        self.send_queue = Some(octets);
        self
    }

    /// Sets [`recv_queue`](Self::recv_queue), in octets (`SO_RCVBUF`).
    #[must_use]
    pub fn recv_queue(mut self, octets: usize) -> Self {
        self.recv_queue = Some(octets);
        self
    }

    /// A socket that is not bound yet.
    fn socket(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
        if let Some(octets) = self.send_queue {
            socket.set_send_buffer_size(octets)?;
        }
        if let Some(octets) = self.recv_queue {
            socket.set_recv_buffer_size(octets)?;
        }
        Ok(socket)
    }

    /// A socket at `addr`, and its file.
    fn bind(&self, addr: &Addr) -> io::Result<(Socket, Option<SocketFile>)> {
        let socket = self.socket()?;
        let Some(path) = addr.as_path() else {
            socket.bind(&addr.to_system()?)?;
            return Ok((socket, None));
        };
        let (socket, file) = SocketFile::bind(socket, path, self.replace_stale, self.mode, Ok)?;
        if self.keep_file {
            file.keep();
            return Ok((socket, None));
        }
        Ok((socket, Some(file)))
    }
}

impl Dgram {
    /// Opens an endpoint at `addr`. With [`Addr::unnamed`], Linux assigns a free abstract name, to which
    /// answers can be sent; see also [`Dgram::unnamed`](Self::unnamed).
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when there is such a file or name, [`io::ErrorKind::NotFound`] when there
    /// is no such folder, [`io::ErrorKind::PermissionDenied`] and others of the operating system.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, &DgramOptions::default())
    }

    /// Opens an endpoint at `addr` with the given options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(addr: &Addr, options: &DgramOptions) -> io::Result<Self> {
        let (socket, file) = options.bind(addr)?;
        Ok(Self { socket: DgramSocket::new(socket), file })
    }

    /// Opens an unnamed endpoint, to which no datagram can be sent.
    ///
    /// # Errors
    /// Any error of the operating system, such as too many open files.
    pub fn unnamed() -> io::Result<Self> {
        DgramOptions::default().socket().map(Self::from_socket)
    }

    /// Sets the peer: from now on this endpoint sends to it and receives from it only. Datagrams of other
    /// senders that arrived before are still received.
    ///
    /// # Errors
    /// As [`ConnectedDgram::connect`]; the endpoint is closed then.
    pub fn connect(self, peer: &Addr) -> io::Result<ConnectedDgram> {
        rustix::net::connect(self.socket.socket(), &peer.encode()?)?;
        Ok(ConnectedDgram { socket: self.socket, file: self.file })
    }

    /// The bound path or abstract name; unnamed if it is not bound.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        Addr::from_system(&self.socket.socket().local_addr()?)
    }

    fn from_socket(socket: Socket) -> Self {
        Self { socket: DgramSocket::new(socket), file: None }
    }

    fn take_over(socket: Socket) -> io::Result<Self> {
        check_kind(&socket, false)?;
        Ok(Self::from_socket(socket))
    }
}

impl ConnectedDgram {
    /// Opens an unnamed endpoint with this peer, which cannot answer: answers need a named endpoint or a
    /// [`pair`](Self::pair).
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when there is no such file, [`io::ErrorKind::ConnectionRefused`] without a
    /// receiver, [`io::ErrorKind::PermissionDenied`], also when the peer is connected to another endpoint,
    /// and others of the operating system.
    pub fn connect(peer: &Addr) -> io::Result<Self> {
        Dgram::unnamed()?.connect(peer)
    }

    /// Opens an endpoint at `local` with this peer.
    ///
    /// # Errors
    /// As [`connect`](Self::connect) and [`Dgram::open`].
    pub fn connect_from(peer: &Addr, local: &Addr) -> io::Result<Self> {
        Dgram::open(local)?.connect(peer)
    }

    /// Opens an endpoint at `local` with this peer and the given options.
    ///
    /// # Errors
    /// As [`connect_from`](Self::connect_from).
    pub fn connect_with(peer: &Addr, local: &Addr, options: &DgramOptions) -> io::Result<Self> {
        Dgram::open_with(local, options)?.connect(peer)
    }

    /// Two endpoints without names, each the other's peer (socketpair(2)).
    ///
    /// # Errors
    /// Any error of the operating system, such as too many open files.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = Socket::pair(Domain::UNIX, Type::DGRAM, None)?;
        Ok((Self::from_socket(one), Self::from_socket(other)))
    }

    /// The bound path or abstract name; unnamed if it is not bound.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        Addr::from_system(&self.socket.socket().local_addr()?)
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn remote_addr(&self) -> io::Result<Addr> {
        Addr::from_system(&self.socket.socket().peer_addr()?)
    }

    fn from_socket(socket: Socket) -> Self {
        Self { socket: DgramSocket::new(socket), file: None }
    }

    fn take_over(socket: Socket) -> io::Result<Self> {
        check_kind(&socket, true)?;
        Ok(Self::from_socket(socket))
    }
}

/// Whether a socket is a UNIX-domain datagram socket, connected or not.
fn check_kind(socket: &Socket, connected: bool) -> io::Result<()> {
    let wrong = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, format!("the socket is {what}")));
    if socket.r#type()? != Type::DGRAM {
        return wrong("not a datagram socket");
    }
    if !socket.local_addr()?.is_unix() {
        return wrong("not one of the UNIX-domain family");
    }
    match (socket.peer_addr().is_ok(), connected) {
        (true, false) => wrong("connected to a peer"),
        (false, true) => wrong("not connected to a peer"),
        _ => Ok(()),
    }
}

unconnected_receives!(Dgram, Addr);
unconnected_sends!(Dgram, Addr);
common_options!(Dgram);
taken_over!(Dgram, Dgram::take_over);
connected_transfers!(ConnectedDgram, Addr);
common_options!(ConnectedDgram);
taken_over!(ConnectedDgram, ConnectedDgram::take_over);

/// The socket file, if any, stays.
impl From<Dgram> for OwnedFd {
    fn from(endpoint: Dgram) -> Self {
        endpoint.file.into_iter().for_each(SocketFile::keep);
        endpoint.socket.into_socket().into()
    }
}

/// The socket file, if any, stays.
impl From<ConnectedDgram> for OwnedFd {
    fn from(endpoint: ConnectedDgram) -> Self {
        endpoint.file.into_iter().for_each(SocketFile::keep);
        endpoint.socket.into_socket().into()
    }
}
