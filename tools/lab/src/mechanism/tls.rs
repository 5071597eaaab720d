//! Mechanism `tls`: plain sockets of the standard library with `rustls` on top, blocking as in its
//! documentation. Other mechanisms over TLS (`orb-tls`) are compared with it.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, Stream};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use super::octet_stream::OctetStream;
use super::{SocketOptions, certificate};

/// The cryptography provider, the same for all.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The identity of a receiver: a self-signed certificate for one run.
pub(super) struct Identity {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Identity {
    pub(super) fn for_host(host: IpAddr) -> io::Result<Self> {
        let (certificate, key) = certificate::self_signed(host)?;
        Ok(Self { certificate, key })
    }

    /// The receiver's address and certificate as one text.
    pub(super) fn endpoint(&self, at: &str) -> String {
        let digits: String = self.certificate.iter().map(|octet| format!("{octet:02x}")).collect();
        format!("{at} {digits}")
    }
}

/// The address of a receiver, and the certificate to trust.
pub(super) fn read_endpoint(endpoint: &str) -> io::Result<(&str, RootCertStore)> {
    let (at, digits) = endpoint.split_once(' ').ok_or(io::ErrorKind::InvalidInput)?;
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let octets = digits.as_bytes().chunks(2).map(octet).collect::<Option<Vec<u8>>>();
    let mut trusted = RootCertStore::empty();
    let octets = octets.ok_or(io::ErrorKind::InvalidInput)?;
    trusted.add(CertificateDer::from(octets)).map_err(io::Error::other)?;
    Ok((at, trusted))
}

/// A connection of either side.
pub(super) struct TlsStream(RefCell<Side>);

enum Side {
    Client(Box<ClientConnection>, TcpStream),
    Server(Box<ServerConnection>, TcpStream),
}

/// The listening socket, and the configuration of its connections.
pub(super) struct TlsListener {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl OctetStream for TlsStream {
    type Listener = TlsListener;

    fn listen(host: IpAddr, _options: &SocketOptions) -> io::Result<(TlsListener, String)> {
        let identity = Identity::for_host(host)?;
        let listener = TcpListener::bind((host, 0))?;
        let endpoint = identity.endpoint(&listener.local_addr()?.to_string());
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate], identity.key)
            .map_err(io::Error::other)?;
        Ok((TlsListener { listener, config: Arc::new(config) }, endpoint))
    }

    fn accept(listener: &TlsListener) -> io::Result<Self> {
        let (stream, _) = listener.listener.accept()?;
        stream.set_nodelay(true)?;
        let connection = ServerConnection::new(Arc::clone(&listener.config)).map_err(io::Error::other)?;
        Ok(Self(RefCell::new(Side::Server(Box::new(connection), stream))))
    }

    fn stop(listener: &TlsListener) -> io::Result<()> {
        // A waiting `accept` gets a connection, which is closed at once.
        let mut addr = listener.listener.local_addr()?;
        if addr.ip().is_unspecified() {
            addr.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        TcpStream::connect(addr).map(drop)
    }

    fn connect(endpoint: &str, _options: &SocketOptions) -> io::Result<Self> {
        let (at, trusted) = read_endpoint(endpoint)?;
        let addr: SocketAddr = at.parse().map_err(io::Error::other)?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        let connection =
            ClientConnection::new(Arc::new(config), ServerName::from(addr.ip())).map_err(io::Error::other)?;
        Ok(Self(RefCell::new(Side::Client(Box::new(connection), stream))))
    }

    #[inline]
    fn send(&self, data: &[u8]) -> io::Result<usize> {
        // Without a flush, octets may stay in the library.
        match &mut *self.0.borrow_mut() {
            Side::Client(connection, stream) => write_all(&mut Stream::new(&mut **connection, stream), data),
            Side::Server(connection, stream) => write_all(&mut Stream::new(&mut **connection, stream), data),
        }
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut *self.0.borrow_mut() {
            Side::Client(connection, stream) => Stream::new(&mut **connection, stream).read(buffer),
            Side::Server(connection, stream) => Stream::new(&mut **connection, stream).read(buffer),
        }
    }

    fn close_writer(&self) -> io::Result<()> {
        match &mut *self.0.borrow_mut() {
            Side::Client(connection, stream) => {
                connection.send_close_notify();
                connection.complete_io(stream)?;
            }
            Side::Server(connection, stream) => {
                connection.send_close_notify();
                connection.complete_io(stream)?;
            }
        }
        Ok(())
    }
}

/// Sends `close_notify`; errors of a closed peer are ignored.
impl Drop for TlsStream {
    fn drop(&mut self) {
        _ = self.close_writer();
    }
}

fn write_all(stream: &mut impl Write, data: &[u8]) -> io::Result<usize> {
    stream.write_all(data)?;
    stream.flush()?;
    Ok(data.len())
}
