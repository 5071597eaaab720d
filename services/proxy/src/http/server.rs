//! The listener and its connections.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use axum::http::header::{CONNECTION, HOST, HeaderValue};
use axum::http::uri::Authority;
use axum::http::{StatusCode, Version};
use axum::response::IntoResponse as _;
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::RootCertStore;
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::lent_body::lend_body;
use crate::problem::Problem;

/// The numbers and times that bound the clients of an [`HttpServer`].
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// The most connections at a time (default 1,024). Further ones wait in the system's queue.
    pub connections: usize,
    /// The time for a TLS handshake, and for a request's header; also the longest pause between two requests of a
    /// connection (default 10 s).
    pub header_timeout: Duration,
    /// The most octets of a request's header (default 32 KiB).
    pub header_octets: usize,
    /// The time in which the running requests may end when the server is stopped (default 10 s).
    pub stop_timeout: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            header_timeout: Duration::from_secs(10),
            header_octets: 32 << 10,
            stop_timeout: Duration::from_secs(10),
        }
    }
}

/// The certificate and the key with which a server offers HTTPS.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, and those of intermediate authorities (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
    /// The authorities of clients' certificates (PEM). With them a client may show a certificate, which must be valid.
    pub client_authorities: Option<PathBuf>,
}

impl TlsFiles {
    fn config(&self) -> anyhow::Result<Arc<ServerConfig>> {
        let certificates = certificates_of(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .with_context(|| format!("cannot read the private key {}", self.key.display()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates_of(file)? {
                    roots.add(authority).with_context(|| format!("an authority in {}", file.display()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
            }
        };
        let mut config = builder
            .with_single_cert(certificates, key)
            .with_context(|| format!("the certificate {} and its key", self.certificate.display()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// The certificates in a file, one at least.
fn certificates_of(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.with_context(|| format!("cannot read the certificates in {}", file.display()))?;
    if read.is_empty() {
        bail!("there is no certificate in {}", file.display());
    }
    Ok(read)
}

/// The other end of a connection, as an extension of each request.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The IP address and port of the client.
    pub address: SocketAddr,
    /// The certificates that it has shown in TLS, its own first; verified. Empty without one.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

/// A running server; dropping it without [`stop`](Self::stop) ends its connections at once.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    is_secure: bool,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    stop_timeout: Duration,
}

impl HttpServer {
    /// Listens at an address, and serves the router that is made for it: with its port, also where the system has
    /// chosen that. The router bounds the bodies of requests. It must be called in a runtime of `tokio`.
    ///
    /// # Errors
    /// An address in use; files of TLS that cannot be read.
    pub fn start(
        address: SocketAddr,
        tls: Option<&TlsFiles>,
        limits: HttpLimits,
        router: impl FnOnce(SocketAddr) -> Router,
    ) -> anyhow::Result<Self> {
        let tls = tls.map(TlsFiles::config).transpose()?.map(TlsAcceptor::from);
        let listener = TcpListener::bind(address).with_context(|| format!("cannot listen at {address}"))?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let is_secure = tls.is_some();
        let connections =
            Connections { router: router(address), tls, limits, free: Arc::new(Semaphore::new(limits.connections)) };
        let accepting = tokio::spawn(connections.accept(listener, stopped));
        Ok(Self { address, is_secure, stop, accepting, stop_timeout: limits.stop_timeout })
    }

    /// The bound address, with the port that the system chose for port 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL with the port on which it listens.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}/", if self.is_secure { "https" } else { "http" }, self.address)
    }

    /// Accepts no further connection, and waits for the running requests, at most for the time that the limits allow.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // The requests have their time inside; more is a connection that cannot be ended.
        _ = tokio::time::timeout(self.stop_timeout + Duration::from_secs(1), self.accepting).await;
    }
}

/// The common part of all connections of a server.
struct Connections {
    router: Router,
    tls: Option<TlsAcceptor>,
    limits: HttpLimits,
    free: Arc<Semaphore>,
}

/// The pause after an error of accepting, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl Connections {
    async fn accept(self, listener: tokio::net::TcpListener, mut stopped: watch::Receiver<bool>) {
        let graceful = GracefulShutdown::new();
        let connections = Arc::new(self);
        loop {
            // A connection is accepted once there is room for it.
            let permit = tokio::select! {
                permit = Arc::clone(&connections.free).acquire_owned() => permit,
                _ = stopped.wait_for(|stopped| *stopped) => break,
            };
            let Ok(permit) = permit else { break };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.wait_for(|stopped| *stopped) => break,
            };
            match accepted {
                Ok((stream, address)) => {
                    let (connections, watcher) = (Arc::clone(&connections), graceful.watcher());
                    tokio::spawn(async move {
                        if let Err(error) = connections.serve(stream, address, watcher).await {
                            tracing::debug!(%address, %error, "an HTTP connection failed");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept an HTTP connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        _ = tokio::time::timeout(connections.limits.stop_timeout, graceful.shutdown()).await;
    }

    async fn serve(&self, stream: TcpStream, address: SocketAddr, watcher: Watcher) -> anyhow::Result<()> {
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            let peer = Peer { address, certificates: Arc::from([]) };
            return self.requests(stream, peer, watcher).await;
        };
        let stream = tokio::time::timeout(self.limits.header_timeout, tls.accept(stream))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificates = certificates.iter().map(|certificate| certificate.clone().into_owned()).collect();
        self.requests(stream, Peer { address, certificates }, watcher).await
    }

    async fn requests(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
        watcher: Watcher,
    ) -> anyhow::Result<()> {
        let (router, header_octets) = (self.router.clone(), self.limits.header_octets);
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            let refusal = refusal_of_header(&request, header_octets);
            request.extensions_mut().insert(peer.clone());
            let router = router.clone();
            async move {
                let (request, unread) = lend_body(request);
                let response = match refusal {
                    Some(problem) => Ok(problem.into_response()),
                    None => router.oneshot(request).await,
                };
                let has_next = unread.discard().await;
                response.map(|mut response| {
                    if !has_next {
                        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                    }
                    response
                })
            }
        });
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout)
            .max_buf_size(self.limits.header_octets.max(8 << 10));
        watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await?;
        Ok(())
    }
}

/// The refusal of a request by its header: one that is too long, also where it came in one piece, of which the buffer's
/// limit sees nothing; or without one valid `Host` (RFC 9112, 3.2).
fn refusal_of_header<B>(request: &Request<B>, most_octets: usize) -> Option<Problem> {
    const SEPARATORS: usize = ": \r\n".len();
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + SEPARATORS);
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if request.method().as_str().len() + target + fields.sum::<usize>() > most_octets {
        let title = "the header of the request is too long";
        let detail = format!("it may have {most_octets} octets");
        return Some(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, title).detail(detail));
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let is_host = |text: &[u8]| {
        text.is_empty() || Authority::try_from(text).is_ok_and(|authority| !authority.as_str().contains('@'))
    };
    let is_valid = match (hosts.next(), hosts.next()) {
        (Some(host), None) => is_host(host.as_bytes()),
        (None, _) => request.version() < Version::HTTP_11,
        (Some(_), Some(_)) => false,
    };
    (!is_valid).then(|| Problem::new(StatusCode::BAD_REQUEST, "the request needs one valid `Host`"))
}
