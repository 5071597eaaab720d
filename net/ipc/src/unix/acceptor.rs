//! Waiting for connections of the UNIX-domain family.

use std::io;

use socket2::{Domain, Socket, Type};

use super::socket_file::SocketFile;
use super::stream::DOMAINS;
use super::{Addr, Stream};
use crate::socket::{Expected, Listener, OwnedHandle, acceptor, adopt, set_queues};

/// Waits for connections at an address; carries no octets itself.
///
/// Several threads may accept at once. Dropping it stops listening, and removes the socket file unless it was
/// opened with [`keep_file`](AcceptorOptions::keep_file) or the file has been replaced.
#[derive(Debug)]
pub struct Acceptor {
    listener: Listener,
    file: Option<SocketFile>,
}

/// Options of an [`Acceptor`]; [`Acceptor::open`] uses [`AcceptorOptions::default`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptorOptions {
    /// The maximum number of connections that wait to be accepted. Default 1024; the system may have a lower
    /// limit.
    pub backlog: u16,
    /// Whether a socket file without a listener, for example of a killed process, is replaced. Default false:
    /// opening fails with [`io::ErrorKind::AddrInUse`]. A connection attempt detects a listener; openers of
    /// one folder that use this option wait for each other, so that none removes the file of another that is
    /// about to listen.
    pub replace_stale: bool,
    /// Whether the socket file stays when the acceptor is dropped. Default false.
    pub keep_file: bool,
    /// The permissions of the socket file, such as `0o600`: write permission allows connections. Set before
    /// the first connection. Default: the process's file mode creation mask.
    pub mode: Option<u32>,
    /// The send queue of accepted streams, in octets (`SO_SNDBUF`). Default: the system's own.
    pub send_queue: Option<usize>,
    /// The receive queue of accepted streams, in octets (`SO_RCVBUF`). Default: the system's own. Linux
    /// counts octets in flight on the sender's side alone.
    pub recv_queue: Option<usize>,
}

impl Default for AcceptorOptions {
    fn default() -> Self {
        Self { backlog: 1024, replace_stale: false, keep_file: false, mode: None, send_queue: None, recv_queue: None }
    }
}

impl AcceptorOptions {
    /// Sets [`backlog`](Self::backlog), in connections.
    #[must_use]
    pub fn backlog(mut self, connections: u16) -> Self {
        self.backlog = connections;
        self
    }

    /// Sets [`replace_stale`](Self::replace_stale): whether a file without a listener is replaced.
    #[must_use]
    pub fn replace_stale(mut self, on: bool) -> Self {
        self.replace_stale = on;
        self
    }

    /// Sets [`keep_file`](Self::keep_file): whether the file outlives the acceptor.
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
}

impl Acceptor {
    /// Starts to listen at `addr`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when there is such a file or name, [`io::ErrorKind::NotFound`] when there
    /// is no such folder, [`io::ErrorKind::PermissionDenied`] and others of the operating system.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, &AcceptorOptions::default())
    }

    /// Starts to listen at `addr` with the given options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(addr: &Addr, options: &AcceptorOptions) -> io::Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        set_queues(&socket, options.send_queue, options.recv_queue)?;
        let listen = |socket: Socket| Listener::listen(socket, options.backlog);
        match addr.as_path() {
            Some(path) => {
                let (listener, file) = SocketFile::bind(socket, path, options.replace_stale, options.mode, listen)?;
                if options.keep_file {
                    file.keep();
                    return Ok(Self { listener, file: None });
                }
                Ok(Self { listener, file: Some(file) })
            }
            None => {
                socket.bind(&addr.to_system()?)?;
                Ok(Self { listener: listen(socket)?, file: None })
            }
        }
    }

    /// The listener, for families that are built over this one.
    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }
}

acceptor!(Acceptor, Stream, Addr, |(socket, from)| Ok((Stream::from_socket(socket)?, Addr::from_system(&from)?)));

/// The socket file, if any, stays.
impl From<Acceptor> for OwnedHandle {
    fn from(mut acceptor: Acceptor) -> Self {
        if let Some(file) = acceptor.file.take() {
            file.keep();
        }
        acceptor.listener.into_socket().into()
    }
}

/// Takes over a listening socket made elsewhere, such as one inherited from another process. Its socket file,
/// if any, will stay.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a handle that is not a UNIX-domain stream socket, or does not listen;
/// it is closed.
impl TryFrom<OwnedHandle> for Acceptor {
    type Error = io::Error;

    fn try_from(handle: OwnedHandle) -> io::Result<Self> {
        Ok(Self { listener: Listener::from_listening(adopt(handle, LISTENING)?), file: None })
    }
}

const LISTENING: Expected = Expected { domains: DOMAINS, kind: Type::STREAM, listening: true };
