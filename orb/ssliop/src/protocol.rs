//! The protocol: addresses in references, connecting, listening.

use std::io;
use std::time::{Duration, Instant};

use rustls::crypto::CryptoProvider;
use rustls::{InvalidMessage, RootCertStore};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use spandrel_giop::IiopProfile;
use spandrel_giop::component::{Component, SslSecTrans};
use spandrel_ipc::inet::{self, Inet};
use spandrel_sync::Arc;
use spandrel_tls::{ServerName, Stream, Tls, tls_error};
use spandrel_transport::{
    Address, Endpoint, IIOP, Listener, OptionError, Protocol, PublishedAddresses, ServerProtocol, SocketSettings,
    connect_inet, cost, listen_inet,
};

use crate::files::Paper;
use crate::options::{Options, SetupError};
use crate::terms::Terms;
use crate::{ClientVerification, Plain};

/// The scheme of addresses and endpoints.
const SCHEME: &str = "ssliop";

/// GIOP over TLS: for [`OrbBuilder::protocol`](spandrel_orb::OrbBuilder::protocol).
///
/// TLS 1.3 unless older peers are let in. A client verifies that the server's certificate is of a trusted authority and says the
/// host that the reference names. Whoever has this protocol uses TLS where a reference offers both.
///
/// | option | value |
/// | --- | --- |
/// | `-ORBSSLCertificate` | a PEM file: this ORB's certificate, and those of the authorities in between |
/// | `-ORBSSLKey` | a PEM file: the private key that belongs to it |
/// | `-ORBSSLCA` | a PEM file: the authorities that are trusted |
/// | `-ORBSSLRevoked` | a PEM file: lists of the certificates that their authorities have revoked |
/// | `-ORBSSLReload` | after how many seconds the files may be looked at again, or `never` (default 60) |
/// | `-ORBSSLVerify` | `none`, `request` or `require`: whether clients must show who they are (default `none`) |
/// | `-ORBSSLVersion` | `1.3`, or `1.2` for both (default `1.3`) |
/// | `-ORBSSLPlain` | `never`, `unoffered` or `fallback`: whether servers may be reached by plain IIOP (default `unoffered`; see [`Plain`]) |
/// | `-ORBSSLVerifyName` | `yes` or `no`: whether a server's certificate must say the host that is called (default `yes`) |
///
/// A clone is the same protocol: what is said to it, or read anew by [`reload`](Self::reload), goes for the connections that are made from
/// then on, wherever the protocol is used. What cannot be used is logged, and the old stays.
#[derive(Clone, Debug)]
pub struct Ssliop {
    terms: Arc<Terms>,
}

impl Ssliop {
    /// With this implementation of cryptography; nobody is trusted yet, and there is nothing to show.
    #[must_use]
    pub fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { terms: Arc::new(Terms::new(provider)) }
    }

    /// Appears with this certificate, followed by those of the authorities in between, and the key that belongs to the first. Servers
    /// need one; clients show it to servers that ask.
    #[must_use]
    pub fn identity(self, chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        self.with(|options| {
            (options.papers.chain, options.papers.key) = (chain, Some(key));
            options.files.forget(Paper::Chain);
            options.files.forget(Paper::Key);
        })
    }

    /// Trusts whomever these authorities vouch for.
    #[must_use]
    pub fn trust(self, authorities: RootCertStore) -> Self {
        self.with(|options| {
            options.papers.authorities = authorities;
            options.files.forget(Paper::Authorities);
        })
    }

    /// Refuses certificates that their authorities have revoked in these lists. Those of whose authority there is no list are taken.
    #[must_use]
    pub fn revoked(self, lists: Vec<CertificateRevocationListDer<'static>>) -> Self {
        self.with(|options| {
            options.papers.revoked = lists;
            options.files.forget(Paper::Revoked);
        })
    }

    /// After which time files that options named may be looked at again, by whoever makes the next connection; nothing: never (default
    /// a minute). Those that have changed are read then.
    #[must_use]
    pub fn reload_after(self, pause: Option<Duration>) -> Self {
        self.with(|options| options.reload = pause)
    }

    /// Whether a server wants to know who its clients are (default: it does not). References say it as it was when the server began to
    /// listen.
    #[must_use]
    pub fn verify_clients(self, verification: ClientVerification) -> Self {
        self.with(|options| options.clients = verification)
    }

    /// Also speaks TLS 1.2, for peers that have nothing newer.
    #[must_use]
    pub fn allow_tls12(self) -> Self {
        self.with(|options| options.allows_tls12 = true)
    }

    /// Takes a server whose certificate is of a trusted authority whatever names it says, as other ORBs do. Anybody who has a
    /// certificate of that authority can then pose as any server.
    #[must_use]
    pub fn any_server_name(self) -> Self {
        self.with(|options| options.verifies_names = false)
    }

    /// Whether servers may be reached without TLS (default: those that do not offer it).
    #[must_use]
    pub fn plain(self, plain: Plain) -> Self {
        self.with(|options| options.plain = plain)
    }

    /// How long a handshake may take (default 30 s). Servers keep to what was said when they began to listen.
    #[must_use]
    pub fn handshake_timeout(self, timeout: Duration) -> Self {
        self.with(|options| options.handshake_timeout = timeout)
    }

    /// Reads the files that options named anew, now. Connections that are open stay as they are.
    ///
    /// # Errors
    /// [`SetupError`] if one cannot be read, or they do not go together: then everything stays as it was.
    pub fn reload(&self) -> Result<(), SetupError> {
        self.terms.reload()
    }

    fn with(self, change: impl FnOnce(&mut Options)) -> Self {
        self.terms.change(change);
        self
    }
}

impl Protocol for Ssliop {
    type Stream = Stream<inet::Stream>;

    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn addresses(&self, profile: &IiopProfile) -> Vec<Address> {
        let offered = profile.components.iter().filter_map(|component| match Component::decode(component) {
            Ok(Some(Component::SslSecTrans(SslSecTrans { port: port @ 1.., .. }))) => Some(port),
            _ => None,
        });
        offered.map(|port| Address::at_port(SCHEME, &profile.host, port)).collect()
    }

    fn connect(
        &self,
        address: &Address,
        timeout: Option<Duration>,
        settings: &SocketSettings,
    ) -> io::Result<Self::Stream> {
        let (host, _) = address.host_and_port().ok_or(io::ErrorKind::InvalidInput)?;
        let (config, patience) = self.terms.client().map_err(unusable)?;
        let name = ServerName::try_from(host.to_owned()).map_err(unusable)?;
        let begun = Instant::now();
        let tls = Tls::new(Inet::default()).client(config, name).handshake_timeout(patience);
        let stream = tls.join(connect_inet(address, timeout, settings)?)?;
        let done = match timeout {
            None => stream.handshake(),
            Some(timeout) => stream.handshake_within(timeout.saturating_sub(begun.elapsed())),
        };
        done.map_err(explained)?;
        Ok(stream)
    }

    fn cost(&self, _address: &Address) -> u32 {
        // Preferred to plain IIOP, which can be read on its way.
        cost::NETWORK - 1
    }

    fn excludes(&self, scheme: &str, is_offered: bool) -> bool {
        scheme == IIOP
            && match self.terms.read(|options| options.plain) {
                Plain::Never => true,
                Plain::Unoffered => is_offered,
                Plain::Fallback => false,
            }
    }

    fn option(&self, option: &str, value: &str) -> Result<bool, OptionError> {
        self.terms.change(|options| options.take(option, value))
    }

    fn server(protocol: &Arc<Self>) -> Option<Arc<dyn ServerProtocol>> {
        Some(Arc::<Self>::clone(protocol))
    }
}

impl ServerProtocol for Ssliop {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        let begun = self.terms.server().map_err(|error| endpoint.invalid(error))?;
        let (clients, patience) = self.terms.read(|options| (options.clients, options.handshake_timeout));
        let terms = Arc::clone(&self.terms);
        // There are terms to fall back to, so asking for them does not fail.
        let terms = move || terms.server().unwrap_or_else(|_| Arc::clone(&begun));
        let tls = Tls::new(Inet::default()).server_by(terms).handshake_timeout(patience);
        let (acceptor, hosts) = listen_inet(endpoint, settings)?;
        let Some(&(_, port)) = hosts.first() else {
            return Err(endpoint.invalid("no address to publish"));
        };
        if hosts.iter().any(|(_, other)| *other != port) {
            return Err(
                endpoint.invalid("the component that tells of TLS has one port: all published addresses need the same")
            );
        }
        let component = Component::SslSecTrans(SslSecTrans {
            supports: SslSecTrans::PROTECTED | SslSecTrans::ESTABLISH_TRUST_IN_TARGET | trust_in_client(clients, false),
            requires: SslSecTrans::PROTECTED | trust_in_client(clients, true),
            port,
        });
        let bound = Address::new(SCHEME, acceptor.local_addr()?.to_string());
        let published = PublishedAddresses {
            addresses: hosts.iter().map(|(host, port)| Address::at_port(SCHEME, host, *port)).collect(),
            // Port 0: plain IIOP is offered by another endpoint, or not at all. The component tells only a port, and goes for all hosts.
            hosts: hosts.into_iter().map(|(host, _)| (host, 0)).collect(),
            components: vec![component.encode().map_err(unusable)?],
        };
        let keep_alive = settings.keep_alive;
        Listener::over::<Tls<Inet>>(bound, tls.secure(acceptor)?, published, move |stream, from| {
            stream.inner().set_no_delay(true)?;
            keep_alive.apply(stream.inner())?;
            Ok(Address::new(SCHEME, from.to_string()))
        })
    }
}

/// The flags of the component for the authentication of clients.
fn trust_in_client(clients: ClientVerification, is_required: bool) -> u16 {
    match clients {
        ClientVerification::Required => SslSecTrans::ESTABLISH_TRUST_IN_CLIENT,
        ClientVerification::Asked if !is_required => SslSecTrans::ESTABLISH_TRUST_IN_CLIENT,
        _ => 0,
    }
}

/// The server does not speak TLS.
#[derive(Debug, thiserror::Error)]
#[error("what listens there does not speak TLS")]
struct NoTls(#[source] io::Error);

/// The same error, in words that name the remedy.
fn explained(error: io::Error) -> io::Error {
    match tls_error(&error) {
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            io::Error::new(error.kind(), NoTls(error))
        }
        _ => error,
    }
}

fn unusable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
