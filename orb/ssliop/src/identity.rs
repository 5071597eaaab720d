//! The identity of a peer, for access control in servants.
//!
//! The handshake has verified that a trusted authority issued the certificate. Authorization is left to
//! programs.

mod signature;
mod subject;

use std::net::IpAddr;

use rustls::{client::verify_server_name, server::ParsedCertificate};
use rustls_pki_types::{CertificateDer, ServerName, TrustAnchor};
use spandrel_ipc::inet;
use spandrel_server::with_current_stream;
use webpki::EndEntityCert;

/// The certificates with which a peer has authenticated.
///
/// ```no_run
/// use spandrel_orb::{CompletionStatus, SystemException};
/// use spandrel_ssliop::PeerIdentity;
///
/// /// The check at the beginning of an operation.
/// fn only_the_teller() -> Result<(), SystemException> {
///     match PeerIdentity::current() {
///         Some(peer) if peer.common_name().as_deref() == Some("teller") => Ok(()),
///         _ => Err(SystemException::no_permission(0, CompletionStatus::No)),
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PeerIdentity {
    /// The certificate of the peer, then those that issued it. Never empty.
    chain: Vec<CertificateDer<'static>>,
}

impl PeerIdentity {
    /// The sender of the request that this thread runs: inside a servant, or a future that serves. With
    /// bidirectional GIOP it may be a server that calls back, identified by its verified name.
    ///
    /// `None` outside requests, for requests over other protocols than TLS, from clients without a
    /// certificate, and after the end of their connection: a servant that requires an identity must then
    /// reject the request. Inside calls on objects of the same process it is the sender of the remote
    /// request, as for `CancellationToken::current`.
    #[must_use]
    pub fn current() -> Option<Self> {
        let chain = with_current_stream(spandrel_tls::Stream::<inet::Stream>::peer_certificates)??;
        if chain.is_empty() { None } else { Some(Self { chain }) }
    }

    /// The identity in a chain of certificates that another protocol has verified, such as HTTP over TLS; `None` for an
    /// empty one.
    #[must_use]
    pub fn of_verified(chain: Vec<CertificateDer<'static>>) -> Option<Self> {
        if chain.is_empty() { None } else { Some(Self { chain }) }
    }

    /// Calls `look` with the certificate (DER) of [`current`](Self::current)'s peer, without a copy; for caches of
    /// what is derived from it.
    pub fn with_current_certificate<R>(look: impl FnOnce(&CertificateDer<'_>) -> R) -> Option<R> {
        let first = |chain: &[CertificateDer<'_>]| chain.first().map(look);
        with_current_stream(|stream: &spandrel_tls::Stream<inet::Stream>| stream.with_peer_certificates(first))??
    }

    /// The common name of the authority that has issued the certificate; `None` as for
    /// [`common_name`](Self::common_name).
    #[must_use]
    pub fn issuer_common_name(&self) -> Option<String> {
        let certificate = EndEntityCert::try_from(self.certificate()).ok()?;
        subject::common_name(certificate.issuer())
    }

    /// Whether this authority itself has issued the certificate: it has the issuer's name, and its key verifies the
    /// signature. An authority of the same name with another key has not. [`pem::authorities`](crate::pem::authorities)
    /// reads authorities.
    ///
    /// `None` if this process has made no [`Ssliop`](crate::Ssliop), whose implementation of cryptography it needs.
    #[must_use]
    pub fn is_issued_by(&self, authority: &TrustAnchor<'_>) -> Option<bool> {
        let algorithms = crate::protocol::SIGNATURE_ALGORITHMS.get()?;
        Some(signature::is_signed_by(self.certificate(), authority, algorithms))
    }

    /// The DNS names among the alternative names of the subject, as they are in the certificate: one may stand for
    /// all hosts of a domain (`*.bank.example`).
    #[must_use]
    pub fn dns_names(&self) -> Vec<String> {
        let certificate = EndEntityCert::try_from(self.certificate());
        certificate.map_or_else(|_| Vec::new(), |it| it.valid_dns_names().map(str::to_owned).collect())
    }

    /// The URIs among the alternative names of the subject, such as `spiffe://bank.example/teller`.
    #[must_use]
    pub fn uri_names(&self) -> Vec<String> {
        let certificate = EndEntityCert::try_from(self.certificate());
        certificate.map_or_else(|_| Vec::new(), |it| it.valid_uri_names().map(str::to_owned).collect())
    }

    /// The certificate chain (DER): the peer's own certificate first, then those of authorities, each of
    /// which issued the one before it.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// Its own certificate (DER).
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.chain[0]
    }

    /// The subject's common name (CN) in its certificate. `None` if there is none, several, or one that is
    /// not text: such a name could be confused with another. Names are only as unique as the authority makes
    /// them.
    #[must_use]
    pub fn common_name(&self) -> Option<String> {
        let certificate = EndEntityCert::try_from(self.certificate()).ok()?;
        subject::common_name(certificate.subject())
    }

    /// Whether its certificate is valid for this host: a DNS name or an address, among the alternative names
    /// of the subject (RFC 9525). A certificate may cover all hosts of a domain (`*.bank.example`).
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
