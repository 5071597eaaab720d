//! As whom an ORB appears, and whom it trusts.

use std::path::Path;
use std::time::Duration;

#[cfg(feature = "server")]
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use spandrel_orb::transport::OptionError;
use spandrel_sync::Arc;
#[cfg(feature = "server")]
use spandrel_tls::ServerOptions;
use spandrel_tls::{ClientOptions, ConfigError, pem};

/// Whether a server wants to know who its clients are.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ClientVerification {
    /// It does not ask.
    #[default]
    None,
    /// It asks, and takes those too that have no certificate.
    Asked,
    /// Mutual authentication: it takes only clients with a certificate of a trusted authority.
    Required,
}

/// Whether servers may be reached without TLS, by plain IIOP.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Plain {
    /// Never: references that do not offer TLS cannot be used.
    Never,
    /// Those that do not offer TLS. One that does is not reached otherwise, even if TLS fails, lest whoever can break a connection could
    /// have it made anew in plain.
    #[default]
    Unoffered,
    /// All, where TLS fails.
    Fallback,
}

/// All that TLS is told.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: Option<PrivateKeyDer<'static>>,
    pub(crate) authorities: RootCertStore,
    pub(crate) clients: ClientVerification,
    /// A server must have the name by which it was called.
    pub(crate) verifies_names: bool,
    pub(crate) allows_tls12: bool,
    pub(crate) plain: Plain,
    pub(crate) handshake_timeout: Duration,
}

/// Why there can be no TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[cfg(feature = "server")]
    #[error(
        "this ORB has no certificate to show (`Ssliop::identity`, or the options -ORBSSLCertificate and -ORBSSLKey)"
    )]
    NoIdentity,
    #[error("this ORB trusts no authority that could vouch for others (`Ssliop::trust`, or the option -ORBSSLCA)")]
    NoAuthorities,
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Options {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            chain: Vec::new(),
            key: None,
            authorities: RootCertStore::empty(),
            clients: ClientVerification::None,
            verifies_names: true,
            allows_tls12: false,
            plain: Plain::default(),
            handshake_timeout: Duration::from_secs(30),
        }
    }

    /// What clients connect with.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>, SetupError> {
        if self.authorities.is_empty() {
            return Err(SetupError::NoAuthorities);
        }
        let mut options = ClientOptions::new(Arc::clone(&self.provider), self.authorities.clone());
        if let Some(key) = &self.key
            && !self.chain.is_empty()
        {
            options = options.identity(self.chain.clone(), key.clone_key());
        }
        if self.allows_tls12 {
            options = options.allow_tls12();
        }
        if !self.verifies_names {
            options = options.any_name();
        }
        Ok(options.build()?)
    }

    /// What servers accept with.
    #[cfg(feature = "server")]
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, SetupError> {
        let (false, Some(key)) = (self.chain.is_empty(), &self.key) else { return Err(SetupError::NoIdentity) };
        let mut options = ServerOptions::new(Arc::clone(&self.provider), self.chain.clone(), key.clone_key());
        if self.clients != ClientVerification::None && self.authorities.is_empty() {
            return Err(SetupError::NoAuthorities);
        }
        match self.clients {
            ClientVerification::None => {}
            ClientVerification::Asked => options = options.ask_clients(self.authorities.clone()),
            ClientVerification::Required => options = options.require_clients(self.authorities.clone()),
        }
        if self.allows_tls12 {
            options = options.allow_tls12();
        }
        Ok(options.build()?)
    }

    /// Takes an option of a command line; false if it is none of these.
    pub(crate) fn take(&mut self, option: &str, value: &str) -> Result<bool, OptionError> {
        let file = Path::new(value);
        let unreadable = |error: pem::PemError| OptionError::because(format_args!("{}: {error}", file.display()));
        match option {
            "-ORBSSLCertificate" => self.chain = pem::certificates(file).map_err(unreadable)?,
            "-ORBSSLKey" => self.key = Some(pem::private_key(file).map_err(unreadable)?),
            "-ORBSSLCA" => self.authorities = pem::authorities(file).map_err(unreadable)?,
            "-ORBSSLVerify" => {
                self.clients = match value {
                    "none" => ClientVerification::None,
                    "request" => ClientVerification::Asked,
                    "require" => ClientVerification::Required,
                    _ => return Err(OptionError::expected("none, request or require")),
                }
            }
            "-ORBSSLVersion" => {
                self.allows_tls12 = match value {
                    "1.3" => false,
                    "1.2" => true,
                    _ => return Err(OptionError::expected("1.3, or 1.2 for both")),
                }
            }
            "-ORBSSLPlain" => {
                self.plain = match value {
                    "never" => Plain::Never,
                    "unoffered" => Plain::Unoffered,
                    "fallback" => Plain::Fallback,
                    _ => return Err(OptionError::expected("never, unoffered or fallback")),
                }
            }
            "-ORBSSLVerifyName" => {
                self.verifies_names = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(OptionError::expected("yes or no")),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
