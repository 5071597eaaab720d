//! The protocol: addresses in references, connections, endpoints.
//!
//! `spandrel_tls::Stream` keeps the time limit of the handshake; on a server `monitor/client_timeouts.rs` of
//! `spandrel-server` does, too.

use std::io;
use std::sync::OnceLock; // for the whole process, so not part of any model
use std::time::Duration;

use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use spandrel_giop::IiopProfile;
use spandrel_giop::component::{Component, SslSecTrans};
use spandrel_ipc::inet::{self, Inet};
use spandrel_sync::Arc;
use spandrel_sync::time::Deadline;
use spandrel_tls::{ServerName, Stream, Tls};
use spandrel_transport::{
    Address, Endpoint, IIOP, Listener, OptionError, Protocol, PublishedAddresses, ServerProtocol, SocketSettings,
    connect_inet, cost, listen_inet,
};

use crate::configurations::Configurations;
use crate::explanation::explain;
use crate::files::CredentialKind;
use crate::options::{OPTION_NAMES, Options, SetupError};
use crate::validity::warn_of_expiry;
use crate::{ClientVerification, Plain};

/// The scheme of addresses and endpoints.
const SCHEME: &str = "ssliop";

/// GIOP over TLS: for `OrbBuilder::protocol`.
///
/// TLS 1.3 unless older versions are permitted. A client verifies that a trusted authority issued the
/// server's certificate, and that it is valid for the host in the reference. An ORB with this protocol uses
/// TLS if a reference offers both.
///
/// | option | value |
/// | --- | --- |
/// | `-ORBSSLCertificate` | a PEM file: this ORB's certificate, and those of the authorities in between |
/// | `-ORBSSLKey` | a PEM file: the private key that belongs to it |
/// | `-ORBSSLCA` | a PEM file: the trusted authorities |
/// | `-ORBSSLRevoked` | a PEM file: certificate revocation lists |
/// | `-ORBSSLReload` | seconds until the files are checked for changes again, or `never` (default 60) |
/// | `-ORBSSLVerify` | `none`, `request` or `require`: whether clients must authenticate (default `none`) |
/// | `-ORBSSLVersion` | `1.3`, or `1.2` for both (default `1.3`) |
/// | `-ORBSSLPlain` | `never`, `unoffered` or `fallback`: whether servers may be called over plain IIOP
/// (default `unoffered`; see [`Plain`]) |
/// | `-ORBSSLVerifyName` | `yes` or `no`: whether a server's certificate must be valid for the called host
/// (default `yes`) |
///
/// Clones share their settings. Changes, and files read again by [`reload`](Self::reload), apply to later
/// connections of all clones. An unusable change is logged, and the old settings stay.
#[derive(Clone, Debug)]
pub struct Ssliop {
    configurations: Arc<Configurations>,
}

/// The algorithms that verify signatures of certificates, of the first provider in this process: for the issuers of
/// certificates, which are compared outside of connections.
pub(crate) static SIGNATURE_ALGORITHMS: OnceLock<WebPkiSupportedAlgorithms> = OnceLock::new();

impl Ssliop {
    /// A protocol with this implementation of cryptography, without trusted authorities and credentials.
    #[must_use]
    pub fn new(provider: Arc<CryptoProvider>) -> Self {
        SIGNATURE_ALGORITHMS.get_or_init(|| provider.signature_verification_algorithms);
        Self { configurations: Arc::new(Configurations::new(provider)) }
    }

    /// A protocol with the cryptography of the crate `ring`, without trusted authorities and credentials (feature
    /// `ring`).
    #[cfg(feature = "ring")]
    #[must_use]
    pub fn ring() -> Self {
        Self::new(Arc::new(rustls::crypto::ring::default_provider()))
    }

    /// Sets the certificate, followed by those of the intermediate authorities, and the key of the first.
    /// Servers need a certificate; clients send it to servers that request one.
    #[must_use]
    pub fn identity(self, chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        warn_of_expiry(&chain, "Ssliop::identity");
        self.with(|options| {
            (options.credentials.chain, options.credentials.key) = (chain, Some(key));
            options.files.forget(CredentialKind::Chain);
            options.files.forget(CredentialKind::Key);
        })
    }

    /// Sets the trusted authorities. Replaces those set before and those of a file.
    #[must_use]
    pub fn trust(self, authorities: RootCertStore) -> Self {
        self.with(|options| {
            options.credentials.authorities = authorities;
            options.files.forget(CredentialKind::Authorities);
        })
    }

    /// Rejects the certificates in these revocation lists. Certificates of authorities without a list are
    /// accepted.
    #[must_use]
    pub fn revoked(self, lists: Vec<CertificateRevocationListDer<'static>>) -> Self {
        self.with(|options| {
            options.credentials.revoked = lists;
            options.files.forget(CredentialKind::Revoked);
        })
    }

    /// Sets the time after which the next connection checks the files of options for changes; `None`: never
    /// (default a minute). Changed files are read again.
    #[must_use]
    pub fn reload_after(self, pause: Option<Duration>) -> Self {
        self.with(|options| options.reload = pause)
    }

    /// Whether a server requests certificates from its clients (default: no). References publish the setting
    /// at the time when the server began to listen.
    #[must_use]
    pub fn verify_clients(self, verification: ClientVerification) -> Self {
        self.with(|options| options.clients = verification)
    }

    /// Permits TLS 1.2 too, for peers without a newer version.
    #[must_use]
    pub fn allow_tls12(self) -> Self {
        self.with(|options| options.allows_tls12 = true)
    }

    /// Accepts a server with a certificate of a trusted authority for any host name, as other ORBs do. Any
    /// holder of a certificate of that authority can then impersonate any server.
    #[must_use]
    pub fn any_server_name(self) -> Self {
        self.with(|options| options.verifies_names = false)
    }

    /// Whether servers may be called without TLS (default: those that do not offer it).
    #[must_use]
    pub fn plain(self, plain: Plain) -> Self {
        self.with(|options| options.plain = plain)
    }

    /// The time limit of a handshake (default 30 s). Servers use the setting at the time when they began to
    /// listen.
    #[must_use]
    pub fn handshake_timeout(self, timeout: Duration) -> Self {
        self.with(|options| options.handshake_timeout = timeout)
    }

    /// Reads the files of options again, now. Open connections are unaffected.
    ///
    /// # Errors
    /// [`SetupError`] if a file cannot be read, or they do not match: then the old settings stay.
    pub fn reload(&self) -> Result<(), SetupError> {
        self.configurations.reload()
    }

    /// TLS with the present settings of a server, for connections that carry something else than GIOP. It has renewed
    /// certificates for later connections.
    ///
    /// # Errors
    /// [`SetupError`] without a certificate, or for files that do not match.
    pub fn server_family(&self) -> Result<Tls<Inet>, SetupError> {
        let begun = self.configurations.server()?;
        let limit = self.configurations.read(|options| options.handshake_timeout);
        let configurations = Arc::clone(&self.configurations);
        // Fallback settings exist, so this does not fail.
        let configurations = move || configurations.server().unwrap_or_else(|_| Arc::clone(&begun));
        Ok(Tls::new(Inet::default()).server_by(configurations).handshake_timeout(limit).explain_errors(explain))
    }

    fn with(self, change: impl FnOnce(&mut Options)) -> Self {
        self.configurations.change(change);
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
        let (config, limit) = self.configurations.client().map_err(unusable)?;
        let name = ServerName::try_from(host.to_owned()).map_err(unusable)?;
        let deadline = Deadline::after(timeout);
        let tls = Tls::new(Inet::default()).client(config, name).handshake_timeout(limit).explain_errors(explain);
        let stream = tls.join(connect_inet(address, timeout, settings)?)?;
        let handshake = match deadline.remaining() {
            None => stream.handshake(),
            Some(left) => stream.handshake_within(left),
        };
        handshake?;
        Ok(stream)
    }

    fn cost(&self, _address: &Address) -> u32 {
        // Preferred to plain IIOP, which is unencrypted.
        cost::NETWORK - 1
    }

    fn excludes(&self, scheme: &str, is_offered: bool) -> bool {
        scheme == IIOP
            && match self.configurations.read(|options| options.plain) {
                Plain::Never => true,
                Plain::Unoffered => is_offered,
                Plain::Fallback => false,
            }
    }

    fn option(&self, option: &str, value: &str) -> Result<bool, OptionError> {
        self.configurations.change(|options| options.take(option, value))
    }

    fn option_names(&self) -> &'static [&'static str] {
        &OPTION_NAMES
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
        let tls = self.server_family().map_err(|error| endpoint.invalid(spandrel_error::report_in_line(&error)))?;
        let clients = self.configurations.read(|options| options.clients);
        let (acceptor, hosts) = listen_inet(endpoint, settings)?;
        let Some(&(_, port)) = hosts.first() else {
            return Err(endpoint.invalid("it has no address to publish"));
        };
        if hosts.iter().any(|(_, other)| *other != port) {
            return Err(endpoint.invalid("TAG_SSL_SEC_TRANS has one port: all published addresses need the same port"));
        }
        let component = Component::SslSecTrans(SslSecTrans {
            supports: SslSecTrans::PROTECTED | SslSecTrans::ESTABLISH_TRUST_IN_TARGET | trust_in_client(clients, false),
            requires: SslSecTrans::PROTECTED | trust_in_client(clients, true),
            port,
        });
        let bound = Address::new(SCHEME, acceptor.local_addr()?.to_string());
        let published = PublishedAddresses {
            addresses: hosts.iter().map(|(host, port)| Address::at_port(SCHEME, host, *port)).collect(),
            // Port 0: another endpoint offers plain IIOP, or none does. The component contains only a port,
            // and applies to all hosts.
            hosts: hosts.into_iter().map(|(host, _)| (host, 0)).collect(),
            components: vec![component.encode().map_err(unusable)?],
            ..PublishedAddresses::default()
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
        ClientVerification::Requested if !is_required => SslSecTrans::ESTABLISH_TRUST_IN_CLIENT,
        _ => 0,
    }
}

fn unusable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
