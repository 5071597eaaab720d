//! TLS over any family of streams.

use std::io;
use std::time::Duration;

use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::ServerName;
use spandrel_ipc::Family;
use spandrel_ipc::inet::Inet;
use spandrel_sync::Arc;
use spandrel_sync::time::Deadline;

use crate::acceptor::{ServerConfigSource, served};
use crate::connecting::ClientSettings;
use crate::fault::Explain;
use crate::stream::StreamSettings;
use crate::wait::Wait;
use crate::{Acceptor, Connecting, Stream};

/// TLS over the streams of another family, as a family: for code that is generic over families, and to open
/// endpoints.
///
/// Listening needs [`server`](Self::server), connecting [`client`](Self::client).
#[derive(Clone, Debug)]
pub struct Tls<F: Family = Inet> {
    inner: F,
    server: Option<ServerConfigSource>,
    client: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    stream_settings: StreamSettings,
}

impl<F: Family> Tls<F> {
    /// TLS over `inner`, without settings for listening and connecting yet.
    pub fn new(inner: F) -> Self {
        let stream_settings = StreamSettings { handshake_timeout: HANDSHAKE, close_timeout: CLOSE, explain: None };
        Self { inner, server: None, client: None, stream_settings }
    }

    /// The server configuration. See [`ServerOptions`](crate::ServerOptions).
    #[must_use]
    pub fn server(self, config: Arc<ServerConfig>) -> Self {
        self.server_by(move || Arc::clone(&config))
    }

    /// Like [`server`](Self::server), for a configuration that may change, for example with renewed
    /// certificates: `config_source` is called for each connection, by the accepting thread.
    #[must_use]
    pub fn server_by(mut self, config_source: impl Fn() -> Arc<ServerConfig> + Send + Sync + 'static) -> Self {
        self.server = Some(ServerConfigSource::new(config_source));
        self
    }

    /// The client configuration: the peer must prove that it is `name`. See
    /// [`ClientOptions`](crate::ClientOptions).
    #[must_use]
    pub fn client(mut self, config: Arc<ClientConfig>, name: ServerName<'static>) -> Self {
        self.client = Some((config, name));
        self
    }

    /// The timeout of a handshake, counted from the underlying connection. Default 30 seconds.
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.stream_settings.handshake_timeout = timeout;
        self
    }

    /// The time for which closing waits for a peer that does not receive, before it cuts the connection.
    /// Default five seconds. See [`Stream`].
    #[must_use]
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.stream_settings.close_timeout = timeout;
        self
    }

    /// Adds the user's view to TLS errors: `explain` returns the meaning of an error for this side, and the remedy, such
    /// as the option to set. Streams report its text before that of the TLS error.
    #[must_use]
    pub fn explain_errors(mut self, explain: Explain) -> Self {
        self.stream_settings.explain = Some(explain);
        self
    }

    /// The family of the streams below TLS.
    #[must_use]
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// The server's side of a connection over an established stream. The first transfer performs the
    /// handshake.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] without [`server`](Self::server).
    pub fn serve(&self, stream: F::Stream) -> io::Result<Stream<F::Stream>> {
        served(stream, self.config_source()?, self.stream_settings)
    }

    /// The client's side of a connection over an established stream. The first transfer performs the
    /// handshake.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] without [`client`](Self::client).
    pub fn join(&self, stream: F::Stream) -> io::Result<Stream<F::Stream>> {
        self.settings()?.over(stream)
    }

    /// A TLS acceptor over an acceptor that listens already.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] without [`server`](Self::server).
    pub fn secure(&self, acceptor: F::Acceptor) -> io::Result<Acceptor<F>> {
        Ok(Acceptor::new(acceptor, self.config_source()?.clone(), self.stream_settings))
    }

    fn config_source(&self) -> io::Result<&ServerConfigSource> {
        self.server.as_ref().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "this TLS family has no server configuration (`Tls::server`)")
        })
    }

    fn settings(&self) -> io::Result<ClientSettings> {
        let (config, name) = self.client.clone().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "this TLS family has no client configuration (`Tls::client`)")
        })?;
        Ok(ClientSettings { config, name, stream: self.stream_settings })
    }
}

impl<F: Family> Family for Tls<F> {
    type Addr = F::Addr;
    type Acceptor = Acceptor<F>;
    type Connecting = Connecting<F>;
    type Stream = Stream<F::Stream>;

    fn open(&self, addr: &F::Addr) -> io::Result<Acceptor<F>> {
        let config_source = self.config_source()?.clone();
        Ok(Acceptor::new(self.inner.open(addr)?, config_source, self.stream_settings))
    }

    fn connect(&self, addr: &F::Addr, timeout: Option<Duration>) -> io::Result<Stream<F::Stream>> {
        let settings = self.settings()?;
        let end = Deadline::after(timeout);
        let stream = settings.over(self.inner.connect(addr, timeout)?)?;
        stream.handshake_as(Wait::Until(end))?;
        Ok(stream)
    }

    fn start(&self, addr: &F::Addr) -> io::Result<Connecting<F>> {
        let settings = self.settings()?;
        Ok(Connecting::new(self.inner.start(addr)?, settings))
    }
}

const HANDSHAKE: Duration = Duration::from_secs(30);
const CLOSE: Duration = Duration::from_secs(5);
