//! The family.

use std::io;
use std::time::Duration;

use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::ServerName;
use spandrel_ipc::Family;
use spandrel_ipc::inet::Inet;
use spandrel_sync::Arc;

use crate::acceptor::{Terms, served};
use crate::connecting::Goal;
use crate::wait::{Deadline, Patience, Wait};
use crate::{Acceptor, Connecting, Stream};

/// TLS over the streams of another family, as a family: for code that is generic over families, and to open endpoints with.
///
/// Who listens needs [`server`](Self::server), who connects [`client`](Self::client).
#[derive(Clone, Debug)]
pub struct Tls<F: Family = Inet> {
    inner: F,
    server: Option<Terms>,
    client: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    patience: Patience,
}

impl<F: Family> Tls<F> {
    /// Over `inner`, which can neither listen nor connect yet.
    pub fn new(inner: F) -> Self {
        let patience = Patience { handshake: HANDSHAKE, close: CLOSE };
        Self { inner, server: None, client: None, patience }
    }

    /// As whom, and to whom, it listens. See [`ServerOptions`](crate::ServerOptions).
    #[must_use]
    pub fn server(self, config: Arc<ServerConfig>) -> Self {
        self.server_by(move || Arc::clone(&config))
    }

    /// Like [`server`](Self::server), where that may change, as certificates do that are renewed: `terms` is asked at each connection, by whoever
    /// accepts it.
    #[must_use]
    pub fn server_by(mut self, terms: impl Fn() -> Arc<ServerConfig> + Send + Sync + 'static) -> Self {
        self.server = Some(Terms::new(terms));
        self
    }

    /// As whom, and to whom, it connects: the peer must show that it is `name`. See [`ClientOptions`](crate::ClientOptions).
    #[must_use]
    pub fn client(mut self, config: Arc<ClientConfig>, name: ServerName<'static>) -> Self {
        self.client = Some((config, name));
        self
    }

    /// How long a handshake may take, from the time when the connection below was made. Default 30 seconds.
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.patience.handshake = timeout;
        self
    }

    /// How long the end of sending waits for a peer that does not receive, before it cuts the connection. Default five seconds. See
    /// [`Stream`].
    #[must_use]
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.patience.close = timeout;
        self
    }

    /// The family below.
    #[must_use]
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// The server's side over a stream that is connected already. The handshake is made by whoever transfers with it first.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] without [`server`](Self::server).
    pub fn serve(&self, stream: F::Stream) -> io::Result<Stream<F::Stream>> {
        served(stream, self.terms()?, self.patience)
    }

    /// The client's side over a stream that is connected already. The handshake is made by whoever transfers with it first.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] without [`client`](Self::client).
    pub fn join(&self, stream: F::Stream) -> io::Result<Stream<F::Stream>> {
        self.goal()?.over(stream)
    }

    /// The server's side of what an acceptor accepts that listens already.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] without [`server`](Self::server).
    pub fn secure(&self, acceptor: F::Acceptor) -> io::Result<Acceptor<F>> {
        Ok(Acceptor::new(acceptor, self.terms()?.clone(), self.patience))
    }

    fn terms(&self) -> io::Result<&Terms> {
        self.server.as_ref().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "this TLS family was not told as whom to listen (`Tls::server`)",
            )
        })
    }

    fn goal(&self) -> io::Result<Goal> {
        let (config, name) = self.client.clone().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "this TLS family was not told to whom to connect (`Tls::client`)",
            )
        })?;
        Ok(Goal { config, name, patience: self.patience })
    }
}

impl<F: Family> Family for Tls<F> {
    type Addr = F::Addr;
    type Acceptor = Acceptor<F>;
    type Connecting = Connecting<F>;
    type Stream = Stream<F::Stream>;

    fn open(&self, addr: &F::Addr) -> io::Result<Acceptor<F>> {
        let terms = self.terms()?.clone();
        Ok(Acceptor::new(self.inner.open(addr)?, terms, self.patience))
    }

    fn connect(&self, addr: &F::Addr, timeout: Option<Duration>) -> io::Result<Stream<F::Stream>> {
        let goal = self.goal()?;
        let end = timeout.map_or(Deadline::NEVER, Deadline::after);
        let stream = goal.over(self.inner.connect(addr, timeout)?)?;
        stream.handshake_as(Wait::Until(end))?;
        Ok(stream)
    }

    fn start(&self, addr: &F::Addr) -> io::Result<Connecting<F>> {
        let goal = self.goal()?;
        Ok(Connecting::new(self.inner.start(addr)?, goal))
    }
}

const HANDSHAKE: Duration = Duration::from_secs(30);
const CLOSE: Duration = Duration::from_secs(5);
