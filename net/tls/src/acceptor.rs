//! Listening for TLS connections.

use std::{fmt, io};

use rustls::{Connection, ServerConfig, ServerConnection};
use spandrel_ipc::inet::Inet;
use spandrel_ipc::{Accept, Family, Handle, Interest, Pollable, Prepared, Transfer};
use spandrel_sync::Arc;

use crate::Stream;
use crate::stream::StreamSettings;

/// Waits for connections at an address; carries no octets itself.
///
/// [`accept`](Self::accept) returns a connection at once; the first transfer performs the handshake.
#[derive(Debug)]
pub struct Acceptor<F: Family = Inet> {
    inner: F::Acceptor,
    config_source: ServerConfigSource,
    stream_settings: StreamSettings,
}

/// The configuration of the next connection.
#[derive(Clone)]
pub(crate) struct ServerConfigSource(Arc<dyn Fn() -> Arc<ServerConfig> + Send + Sync>);

impl ServerConfigSource {
    pub(crate) fn new(config_source: impl Fn() -> Arc<ServerConfig> + Send + Sync + 'static) -> Self {
        Self(Arc::new(config_source))
    }
}

impl fmt::Debug for ServerConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerConfigSource")
    }
}

impl<F: Family> Acceptor<F> {
    pub(crate) fn new(inner: F::Acceptor, config_source: ServerConfigSource, stream_settings: StreamSettings) -> Self {
        Self { inner, config_source, stream_settings }
    }

    /// The acceptor of the connections below TLS.
    #[must_use]
    pub fn inner(&self) -> &F::Acceptor {
        &self.inner
    }

    /// Waits for one connection and returns it with the peer's address.
    ///
    /// # Errors
    /// The errors of the underlying acceptor.
    pub fn accept(&self) -> io::Result<(Stream<F::Stream>, F::Addr)> {
        let (stream, from) = self.inner.accept()?;
        Ok((served(stream, &self.config_source, self.stream_settings)?, from))
    }

    /// Whether `accept` waits for a connection or fails at once with [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// The errors of the underlying acceptor.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.inner.set_nonblocking(on)
    }

    /// Makes `accept` fail from now on, also in threads that already wait in it.
    ///
    /// # Errors
    /// The errors of the underlying acceptor.
    pub fn shutdown(&self) -> io::Result<()> {
        self.inner.shutdown()
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// The errors of the underlying acceptor.
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

/// The server's side of a connection over a stream.
pub(crate) fn served<S: Transfer>(
    inner: S,
    config_source: &ServerConfigSource,
    settings: StreamSettings,
) -> io::Result<Stream<S>> {
    let connection = ServerConnection::new((config_source.0)()).map_err(io::Error::other)?;
    Ok(Stream::new(inner, Connection::Server(connection), settings))
}
