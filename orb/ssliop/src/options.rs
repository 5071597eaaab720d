//! What an ORB is told of TLS.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use spandrel_sync::Arc;
use spandrel_tls::{ClientOptions, ConfigError, ServerOptions};
use spandrel_transport::OptionError;

use crate::files::{FileError, Files, Paper, Papers};

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
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) papers: Papers,
    pub(crate) files: Files,
    /// How long files are not looked at again; nothing: never again.
    pub(crate) reload: Option<Duration>,
    pub(crate) clients: ClientVerification,
    /// A server must have the name by which it was called.
    pub(crate) verifies_names: bool,
    pub(crate) allows_tls12: bool,
    pub(crate) plain: Plain,
    pub(crate) handshake_timeout: Duration,
}

/// Why there can be no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A server needs a certificate and its key.
    #[error(
        "this ORB has no certificate to show (`Ssliop::identity`, or the options -ORBSSLCertificate and -ORBSSLKey)"
    )]
    NoIdentity,
    /// Who verifies others must trust somebody.
    #[error("this ORB trusts no authority that could vouch for others (`Ssliop::trust`, or the option -ORBSSLCA)")]
    NoAuthorities,
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Key and certificate, or authorities and revocation lists, do not go together.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Options {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            papers: Papers::none(),
            files: Files::default(),
            reload: Some(Duration::from_secs(60)),
            clients: ClientVerification::None,
            verifies_names: true,
            allows_tls12: false,
            plain: Plain::default(),
            handshake_timeout: Duration::from_secs(30),
        }
    }

    /// What clients connect with.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>, SetupError> {
        let Papers { chain, key, authorities, revoked } = self.papers.clone();
        if authorities.is_empty() {
            return Err(SetupError::NoAuthorities);
        }
        let mut options = ClientOptions::new(Arc::clone(&self.provider), authorities).revoked(revoked);
        if let Some(key) = key
            && !chain.is_empty()
        {
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

    /// What servers accept with.
    pub(crate) fn server(&self) -> Result<Arc<ServerConfig>, SetupError> {
        let Papers { chain, key, authorities, revoked } = self.papers.clone();
        let (false, Some(key)) = (chain.is_empty(), key) else { return Err(SetupError::NoIdentity) };
        let mut options = ServerOptions::new(Arc::clone(&self.provider), chain, key).revoked(revoked);
        if self.clients != ClientVerification::None && authorities.is_empty() {
            return Err(SetupError::NoAuthorities);
        }
        match self.clients {
            ClientVerification::None => {}
            ClientVerification::Asked => options = options.ask_clients(authorities),
            ClientVerification::Required => options = options.require_clients(authorities),
        }
        if self.allows_tls12 {
            options = options.allow_tls12();
        }
        Ok(options.build()?)
    }

    /// Takes an option of a command line; false if it is none of these.
    pub(crate) fn take(&mut self, option: &str, value: &str) -> Result<bool, OptionError> {
        match option {
            "-ORBSSLCertificate" => self.read(Paper::Chain, value)?,
            "-ORBSSLKey" => self.read(Paper::Key, value)?,
            "-ORBSSLCA" => self.read(Paper::Authorities, value)?,
            "-ORBSSLRevoked" => self.read(Paper::Revoked, value)?,
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

    fn read(&mut self, paper: Paper, path: &str) -> Result<(), OptionError> {
        self.files.read(paper, Path::new(path), &mut self.papers).map_err(|error| {
            let cause = error.source().map(ToString::to_string).unwrap_or_default();
            OptionError::because(format_args!("{error}: {cause}"))
        })
    }
}
