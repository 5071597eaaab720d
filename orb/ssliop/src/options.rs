//! The TLS settings of an ORB.

use std::path::Path;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use spandrel_sync::Arc;
use spandrel_tls::{ClientOptions, ConfigError, ServerOptions};
use spandrel_transport::OptionError;

use crate::files::{CredentialKind, Credentials, FileError, Files};

/// Whether a server requests certificates from its clients.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ClientVerification {
    /// Certificates are not requested.
    #[default]
    None,
    /// Certificates are requested, but clients without one are accepted.
    Requested,
    /// Mutual authentication: only clients with a certificate of a trusted authority are accepted.
    Required,
}

/// Whether servers may be called without TLS, over plain IIOP.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Plain {
    /// Never: references without TLS cannot be used.
    Never,
    /// For references without TLS only. A reference with TLS is never used without it, even if TLS fails:
    /// otherwise an attacker could break connections to force plain ones.
    #[default]
    Unoffered,
    /// For all references, if TLS fails.
    Fallback,
}

/// The settings of the protocol.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) credentials: Credentials,
    pub(crate) files: Files,
    /// The time until files are checked again; `None`: never.
    pub(crate) reload: Option<Duration>,
    pub(crate) clients: ClientVerification,
    /// Whether a server's certificate must be valid for the called host.
    pub(crate) verifies_names: bool,
    pub(crate) allows_tls12: bool,
    pub(crate) plain: Plain,
    pub(crate) handshake_timeout: Duration,
}

/// The reason why a program's options and files do not suffice for TLS.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A server has no certificate and key.
    #[error("this ORB has no certificate (set `Ssliop::identity`, or the options -ORBSSLCertificate and -ORBSSLKey)")]
    NoIdentity,
    /// A certificate is given without its key.
    #[error("this ORB has a certificate without its private key (set the option -ORBSSLKey, or `Ssliop::identity`)")]
    NoKey,
    /// A key is given without its certificate.
    #[error(
        "this ORB has a private key without its certificate (set the option -ORBSSLCertificate, or `Ssliop::identity`)"
    )]
    NoCertificate,
    /// Peers are to be verified, and no authority is trusted.
    #[error("this ORB has no trusted authority to verify peers (set `Ssliop::trust`, or the option -ORBSSLCA)")]
    NoAuthorities,
    /// A file of certificates, keys or revocation lists cannot be read, or has no such contents.
    #[error(transparent)]
    File(#[from] FileError),
    /// A key that does not match the certificate, or revocation lists that do not match the authorities.
    #[error(transparent)]
    Config(#[from] ConfigError),
}
spandrel_error::debug_as_report!(SetupError);

/// The options of [`Options::take`].
pub(crate) const OPTION_NAMES: [&str; 9] = [
    "-ORBSSLCertificate",
    "-ORBSSLKey",
    "-ORBSSLCA",
    "-ORBSSLRevoked",
    "-ORBSSLReload",
    "-ORBSSLVerify",
    "-ORBSSLVersion",
    "-ORBSSLPlain",
    "-ORBSSLVerifyName",
];

impl Options {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            credentials: Credentials::none(),
            files: Files::default(),
            reload: Some(Duration::from_secs(60)),
            clients: ClientVerification::None,
            verifies_names: true,
            allows_tls12: false,
            plain: Plain::default(),
            handshake_timeout: Duration::from_secs(30),
        }
    }

    /// The configuration of clients.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>, SetupError> {
        let Credentials { authorities, revoked, .. } = self.credentials.clone();
        if authorities.is_empty() {
            return Err(SetupError::NoAuthorities);
        }
        let mut options = ClientOptions::new(Arc::clone(&self.provider), authorities).revoked(revoked);
        if let Some((chain, key)) = self.identity()? {
            options = options.identity(chain, key);
        }
        if self.allows_tls12 {
            options = options.allow_tls12();
        }
        if !self.verifies_names {
            options = options.any_name();
        }
        Ok(options.build()?)
    }

    /// The configuration of servers.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, SetupError> {
        let Credentials { authorities, revoked, .. } = self.credentials.clone();
        let (chain, key) = self.identity()?.ok_or(SetupError::NoIdentity)?;
        let mut options = ServerOptions::new(Arc::clone(&self.provider), chain, key).revoked(revoked);
        if self.clients != ClientVerification::None && authorities.is_empty() {
            return Err(SetupError::NoAuthorities);
        }
        match self.clients {
            ClientVerification::None => {}
            ClientVerification::Requested => options = options.request_clients(authorities),
            ClientVerification::Required => options = options.require_clients(authorities),
        }
        if self.allows_tls12 {
            options = options.allow_tls12();
        }
        Ok(options.build()?)
    }

    /// The certificates and the key of this ORB; `None` without both.
    fn identity(&self) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, SetupError> {
        let Credentials { chain, key, .. } = self.credentials.clone();
        match (chain.is_empty(), key) {
            (false, Some(key)) => Ok(Some((chain, key))),
            (false, None) => Err(SetupError::NoKey),
            (true, Some(_)) => Err(SetupError::NoCertificate),
            (true, None) => Ok(None),
        }
    }

    /// Accepts a command-line option; returns false if it is not one of TLS.
    pub(crate) fn take(&mut self, option: &str, value: &str) -> Result<bool, OptionError> {
        match option {
            "-ORBSSLCertificate" => self.read(CredentialKind::Chain, value)?,
            "-ORBSSLKey" => self.read(CredentialKind::Key, value)?,
            "-ORBSSLCA" => self.read(CredentialKind::Authorities, value)?,
            "-ORBSSLRevoked" => self.read(CredentialKind::Revoked, value)?,
            "-ORBSSLReload" => {
                self.reload = match (value, value.parse()) {
                    ("never", _) => None,
                    (_, Ok(seconds)) => Some(Duration::from_secs(seconds)),
                    _ => return Err(OptionError::expected("seconds, or never")),
                }
            }
            "-ORBSSLVerify" => {
                self.clients = match value {
                    "none" => ClientVerification::None,
                    "request" => ClientVerification::Requested,
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

    fn read(&mut self, kind: CredentialKind, path: &str) -> Result<(), OptionError> {
        self.files
            .read(kind, Path::new(path), &mut self.credentials)
            .map_err(|error| OptionError::because(spandrel_error::report_in_line(&error)))
    }
}
