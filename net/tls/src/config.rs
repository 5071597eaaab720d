//! Identity and trust: the settings of servers and clients with their own certificate authority.
//!
//! Rarer settings are made in the configurations of `rustls` themselves, which [`Tls`](crate::Tls) takes as
//! well.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use spandrel_sync::Arc;

/// The reason why settings are inconsistent.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The provider has no suitable algorithms, or the key does not belong to the certificate.
    #[error("the TLS settings are inconsistent")]
    Tls(#[from] rustls::Error),
    /// No certificate authorities, or an unreadable revocation list.
    #[error("cannot verify peers' certificates with these authorities or revocation lists")]
    Verifier(#[from] VerifierBuilderError),
}
spandrel_error::debug_as_report!(ConfigError);

/// The settings that both sides have.
#[derive(Clone, Debug)]
struct Common {
    provider: Arc<CryptoProvider>,
    allows_tls12: bool,
    protocols: Vec<Vec<u8>>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
}

impl Common {
    fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { provider, allows_tls12: false, protocols: Vec::new(), revoked: Vec::new() }
    }

    fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        if self.allows_tls12 { BOTH } else { NEWEST }
    }
}

/// The common settings, as methods of each side.
macro_rules! common_options {
    () => {
        /// Also accepts peers without TLS 1.3, with TLS 1.2.
        pub fn allow_tls12(mut self) -> Self {
            self.common.allows_tls12 = true;
            self
        }

        /// The supported application protocols (ALPN), the preferred one first. If both sides have some, they
        /// must have one in common. Default none.
        pub fn protocols<P: Into<Vec<u8>>>(mut self, protocols: impl IntoIterator<Item = P>) -> Self {
            self.common.protocols = protocols.into_iter().map(Into::into).collect();
            self
        }

        /// Refuses certificates that their authorities have revoked in these lists. Certificates of
        /// authorities without a list are accepted.
        pub fn revoked(mut self, lists: impl IntoIterator<Item = CertificateRevocationListDer<'static>>) -> Self {
            self.common.revoked.extend(lists);
            self
        }
    };
}

/// Settings of a server. Default: TLS 1.3 only, and any client.
#[derive(Debug)]
#[must_use = "it does nothing until it is built"]
pub struct ServerOptions {
    common: Common,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    clients: Clients,
}

/// The clients that may connect.
#[derive(Clone, Debug)]
enum Clients {
    Any,
    /// With a certificate of these authorities, or with none.
    Requested(RootCertStore),
    /// With a certificate of these authorities.
    Required(RootCertStore),
}

impl ServerOptions {
    /// Options without client certificates. `chain` begins with the server's certificate, to which `key`
    /// belongs; those of the intermediate authorities follow.
    pub fn new(
        provider: Arc<CryptoProvider>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Self {
        Self { common: Common::new(provider), chain, key, clients: Clients::Any }
    }

    common_options!();

    /// Accepts only clients with a certificate of one of these authorities (mutual authentication).
    pub fn require_clients(mut self, authorities: RootCertStore) -> Self {
        self.clients = Clients::Required(authorities);
        self
    }

    /// Requests a client certificate of one of these authorities, and accepts clients without one too.
    pub fn request_clients(mut self, authorities: RootCertStore) -> Self {
        self.clients = Clients::Requested(authorities);
        self
    }

    /// Checks the settings, and makes the configuration for [`Tls::server`](crate::Tls::server).
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn build(self) -> Result<Arc<ServerConfig>, ConfigError> {
        let Self { common, chain, key, clients } = self;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&common.provider))
            .with_protocol_versions(common.versions())?;
        let builder = match clients {
            Clients::Any => builder.with_no_client_auth(),
            Clients::Requested(authorities) => {
                builder.with_client_cert_verifier(clients_of(authorities, &common).allow_unauthenticated().build()?)
            }
            Clients::Required(authorities) => {
                builder.with_client_cert_verifier(clients_of(authorities, &common).build()?)
            }
        };
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = common.protocols;
        Ok(Arc::new(config))
    }
}

fn clients_of(authorities: RootCertStore, common: &Common) -> rustls::server::ClientCertVerifierBuilder {
    WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&common.provider))
        .with_crls(common.revoked.iter().cloned())
        .allow_unknown_revocation_status()
}

/// Settings of a client. Default: TLS 1.3 only, and no client certificate.
#[derive(Debug)]
#[must_use = "it does nothing until it is built"]
pub struct ClientOptions {
    common: Common,
    authorities: RootCertStore,
    takes_any_name: bool,
    identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

impl ClientOptions {
    /// Connects only to servers with a certificate of one of these authorities.
    pub fn new(provider: Arc<CryptoProvider>, authorities: RootCertStore) -> Self {
        Self { common: Common::new(provider), authorities, takes_any_name: false, identity: None }
    }

    common_options!();

    /// The certificate chain and the key for servers that request a client certificate. `chain` begins with
    /// the client's own certificate, to which `key` belongs; those of the intermediate authorities follow.
    pub fn identity(mut self, chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        self.identity = Some((chain, key));
        self
    }

    /// Accepts a server with a certificate of one of the authorities for any name: the holder of any such
    /// certificate can then pose as any server.
    pub fn any_name(mut self) -> Self {
        self.takes_any_name = true;
        self
    }

    /// Checks the settings, and makes the configuration for [`Tls::client`](crate::Tls::client).
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn build(self) -> Result<Arc<ClientConfig>, ConfigError> {
        let Self { common, authorities, takes_any_name, identity } = self;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&common.provider))
            .with_crls(common.revoked.iter().cloned())
            .allow_unknown_revocation_status()
            .build()?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&common.provider))
            .with_protocol_versions(common.versions())?;
        let builder = match takes_any_name {
            true => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName(verifier))),
            false => builder.with_webpki_verifier(verifier),
        };
        let mut config = match identity {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = common.protocols;
        Ok(Arc::new(config))
    }
}

/// Verifies everything but the name, which is checked last.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

static NEWEST: &[&SupportedProtocolVersion] = &[&TLS13];
static BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
