//! Waiting for connections.

use std::{fmt, io};

use rustls::{Connection, ServerConfig, ServerConnection};
use spandrel_ipc::inet::Inet;
use spandrel_ipc::{Accept, Family, Handle, Interest, Pollable, Prepared, Transfer};
use spandrel_sync::Arc;

use crate::Stream;
use crate::wait::Patience;

/// Waits for connections at an address; carries no octets itself.
///
/// [`accept`](Self::accept) gives a connection at once; the handshake is made by whoever transfers with it first.
#[derive(Debug)]
pub struct Acceptor<F: Family = Inet> {
    inner: F::Acceptor,
    terms: Terms,
    patience: Patience,
}

/// What the next connection is served by.
#[derive(Clone)]
pub(crate) struct Terms(Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>);

impl Terms {
    pub(crate) fn new(terms: impl Fn() -> Arc<ServerConfig> + Send + Sync + 'static) -> Self {
        Self(Arc::new(terms))
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Terms")
    }
}

impl<F: Family> Acceptor<F> {
    pub(crate) fn new(inner: F::Acceptor, terms: Terms, patience: Patience) -> Self {
        Self { inner, terms, patience }
    }

    /// The acceptor below.
    #[must_use]
    pub fn inner(&self) -> &F::Acceptor {
        &self.inner
    }

    /// Waits for one connection and tells where it came from.
    ///
    /// # Errors
    /// Those of the acceptor below.
    pub fn accept(&self) -> io::Result<(Stream<F::Stream>, F::Addr)> {
        let (stream, from) = self.inner.accept()?;
        Ok((served(stream, &self.terms, self.patience)?, from))
    }

    /// Whether `accept` waits for a connection or fails at once with [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// Those of the acceptor below.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.inner.set_nonblocking(on)
    }

    /// Makes `accept` fail from now on, also where it is already waiting.
    ///
    /// # Errors
    /// Those of the acceptor below.
    pub fn shutdown(&self) -> io::Result<()> {
        self.inner.shutdown()
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of the acceptor below.
    pub fn local_addr(&self) -> io::Result<F::Addr> {
        self.inner.local_addr()
    }
}

impl<F: Family> Accept for Acceptor<F> {
    type Addr = F::Addr;
    type Stream = Stream<F::Stream>;

    fn accept(&self) -> io::Result<(Self::Stream, F::Addr)> {
        Self::accept(self)
    }
    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        Self::set_nonblocking(self, on)
    }
    fn shutdown(&self) -> io::Result<()> {
        Self::shutdown(self)
    }
    fn local_addr(&self) -> io::Result<F::Addr> {
        Self::local_addr(self)
    }
}

impl<F: Family> Pollable for Acceptor<F> {
    fn handle(&self) -> Handle<'_> {
        self.inner.handle()
    }
    fn pending(&self) -> bool {
        self.inner.pending()
    }
    fn is_plain(&self) -> bool {
        self.inner.is_plain()
    }
    fn prepare(&self, wanted: Interest) -> Prepared {
        self.inner.prepare(wanted)
    }
    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        self.inner.interpret(seen, wanted)
    }
}

/// The server's side over a stream.
pub(crate) fn served<S: Transfer>(inner: S, terms: &Terms, patience: Patience) -> io::Result<Stream<S>> {
    let connection = ServerConnection::new((terms.0)()).map_err(io::Error::other)?;
    Ok(Stream::new(inner, Connection::Server(connection), patience))
}
