//! Who the other side of a connection is, for servants that decide by it what they do for whom.
//!
//! What is told was verified in the handshake: that some trusted authority vouches for it. What it may do is for programs to say.

use std::net::IpAddr;

use rustls::{client::verify_server_name, server::ParsedCertificate};
use rustls_pki_types::{CertificateDer, ServerName};
use spandrel_ipc::inet;
use spandrel_orb::server::with_current_stream;
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

/// The certificates by which the other side of a connection has shown who it is.
///
/// ```no_run
/// use spandrel_orb::{CompletionStatus, SystemException};
/// use spandrel_ssliop::PeerIdentity;
///
/// /// What a servant asks first.
/// fn only_the_teller() -> Result<(), SystemException> {
///     match PeerIdentity::current() {
///         Some(peer) if peer.common_name().as_deref() == Some("teller") => Ok(()),
///         _ => Err(SystemException::no_permission(0, CompletionStatus::No)),
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PeerIdentity {
    /// Never empty.
    chain: Vec<CertificateDer<'static>>,
}

impl PeerIdentity {
    /// Who sent the request that this thread runs now: inside of a servant, or of a future that serves. With bidirectional GIOP that may be a server
    /// that calls back, which was believed for its name.
    ///
    /// Nothing outside of requests, for those that came by anything but TLS, from clients that have shown no certificate, and once their connection
    /// has ended: whoever insists on knowing refuses then. Inside of calls on objects of the same process it is who sent the request from outside, as for
    /// [`CancellationToken::current`](spandrel_orb::CancellationToken::current).
    #[must_use]
    pub fn current() -> Option<Self> {
        let chain = with_current_stream(spandrel_tls::Stream::<inet::Stream>::peer_certificates)??;
        if chain.is_empty() { None } else { Some(Self { chain }) }
    }

    /// All certificates that were shown (DER): its own first, then those of authorities, each of which vouches for the one before it.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// Its own certificate (DER).
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.chain[0]
    }

    /// What its certificate calls it (the subject's common name, CN). Nothing if it says none, several, or one that is no text: such a one is
    /// not to be mistaken for another. Names are only as unique as the authority makes them.
    #[must_use]
    pub fn common_name(&self) -> Option<String> {
        let (_, certificate) = X509Certificate::from_der(self.certificate()).ok()?;
        let mut names = certificate.subject().iter_common_name();
        match (names.next(), names.next()) {
            (Some(name), None) => name.as_str().ok().map(str::to_owned),
            _ => None,
        }
    }

    /// Whether its certificate says that it is this host: a DNS name or an address, among the alternative names of the subject (RFC 9525). A
    /// certificate may stand for all hosts of a domain (`*.bank.example`).
    #[must_use]
    pub fn is_host(&self, name: &str) -> bool {
        let name = match name.parse::<IpAddr>() {
            Ok(address) => Ok(ServerName::from(address)),
            Err(_) => ServerName::try_from(name),
        };
        let (Ok(name), Ok(certificate)) = (name, ParsedCertificate::try_from(self.certificate())) else { return false };
        verify_server_name(&certificate, &name).is_ok()
    }
}
