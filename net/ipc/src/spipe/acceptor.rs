//! The acceptor of STREAM pipes.

use std::io;

use socket2::SockAddr;

use super::{Addr, Stream, pair};
use crate::socket::{Listener, acceptor};
use crate::unix::{self, AcceptorOptions};
use crate::{Handle, Pollable};

/// Listens at a path, and makes a pipe with each process that connects; carries no octets itself.
///
/// Several threads may accept at once. Dropping it stops listening, and removes the socket file unless that
/// was opened with [`keep_file`](AcceptorOptions::keep_file).
#[derive(Debug)]
pub struct Acceptor {
    listener: Rendezvous,
}

impl Acceptor {
    /// Starts to listen at `addr`.
    ///
    /// # Errors
    /// As [`unix::Acceptor::open`]; [`io::ErrorKind::InvalidInput`] for an address without a name.
    pub fn open(addr: &Addr) -> io::Result<Self> {
        Self::open_with(addr, &AcceptorOptions::default())
    }

    /// Starts to listen at `addr` with the given options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(addr: &Addr, options: &AcceptorOptions) -> io::Result<Self> {
        unix::Acceptor::open_with(addr.rendezvous()?, options).map(|acceptor| Self { listener: Rendezvous(acceptor) })
    }
}

acceptor!(Acceptor, Stream, Addr, Ok);

/// The listening socket at which the processes meet.
#[derive(Debug)]
struct Rendezvous(unix::Acceptor);

impl Rendezvous {
    /// Waits for a process to connect, and makes a pipe with it. A process that disconnects before there is a
    /// pipe is ignored.
    fn accept(&self) -> io::Result<(Stream, Addr)> {
        loop {
            let (client, _) = self.0.accept()?;
            match send_pipe_end(&client) {
                Ok(stream) => return Ok((stream, Addr::unnamed())),
                // The client sees the end of the rendezvous connection.
                Err(error) if is_exhausted(&error) => self.listener().count_shed(),
                Err(_) => {}
            }
        }
    }
}

/// The rest is delegated to the listener.
impl Rendezvous {
    fn listener(&self) -> &Listener {
        self.0.listener()
    }

    fn shutdown(&self) -> io::Result<()> {
        self.listener().shutdown()
    }

    fn is_shut_down(&self) -> bool {
        self.listener().is_shut_down()
    }

    fn shed(&self) -> u64 {
        self.listener().shed()
    }

    fn local_addr(&self) -> io::Result<SockAddr> {
        self.listener().local_addr()
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.listener().set_nonblocking(on)
    }
}

impl Pollable for Rendezvous {
    fn handle(&self) -> Handle<'_> {
        self.0.handle()
    }
}

/// Makes a pipe and passes one end to `client`. The queue of a new connection is empty, so this does not
/// wait.
fn send_pipe_end(client: &unix::Stream) -> io::Result<Stream> {
    let (ours, theirs) = pair()?;
    client.send_handle(&theirs)?;
    ours.with_peer_of(client)
}

fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::TOOMANYREFS))
}
