//! The meaning of TLS errors for the user of an ORB: what one side rejects, and the options to look at.
//!
//! The peer's reason is an alert (RFC 8446, 6.2; RFC 5246, 7.2.2). With TLS 1.3 a client's handshake ends before the
//! server has verified its certificate, so the alert arrives with the first octets that the client reads.

use rustls::{AlertDescription as Alert, CertificateError, Error, InvalidMessage, PeerIncompatible, Side};

/// The meaning of an error of a handshake on this side, with the options that concern it.
pub(crate) fn explain(side: Side, error: &Error) -> Option<&'static str> {
    match (side, error) {
        (Side::Client, Error::AlertReceived(alert)) => alert_of_server(*alert),
        (Side::Server, Error::AlertReceived(alert)) => alert_of_client(*alert),
        (Side::Client, Error::InvalidCertificate(reason)) => invalid_server_certificate(reason),
        (Side::Server, Error::InvalidCertificate(reason)) => invalid_client_certificate(reason),
        (Side::Client, Error::PeerIncompatible(reason)) if is_version(reason) => Some(NO_VERSION_OF_SERVER),
        (Side::Server, Error::PeerIncompatible(reason)) if is_version(reason) => Some(NO_VERSION_OF_CLIENT),
        (Side::Server, Error::NoCertificatesPresented) => {
            Some("the client has sent no certificate, and this server requires one (-ORBSSLVerify)")
        }
        (Side::Client, Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            Some("the server does not support TLS")
        }
        (Side::Server, Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            Some("the client does not use TLS, which this endpoint requires (-ORBListenEndpoints)")
        }
        _ => None,
    }
}

/// The reason for which a server rejects this client.
fn alert_of_server(alert: Alert) -> Option<&'static str> {
    Some(match alert {
        Alert::CertificateRequired => {
            "the server requires a certificate of this client (-ORBSSLCertificate and -ORBSSLKey)"
        }
        Alert::UnknownCA => {
            "the server does not trust the authority of this client's certificate (-ORBSSLCertificate; -ORBSSLCA at the \
             server)"
        }
        // JSSE answers so to a client without a certificate, with TLS 1.2.
        Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate | Alert::NoCertificate => {
            "the server rejects the certificate of this client, or requires one (-ORBSSLCertificate and -ORBSSLKey)"
        }
        Alert::CertificateExpired => {
            "the certificate of this client has expired, or is not valid yet by the server's clock (-ORBSSLCertificate)"
        }
        Alert::CertificateRevoked => "the certificate of this client is revoked (-ORBSSLCertificate)",
        Alert::AccessDenied => "the server denies access to the holder of this certificate (-ORBSSLCertificate)",
        // The answer of OpenSSL and rustls to a client without a certificate, with TLS 1.2.
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            "the server accepts none of the offered algorithms of TLS, or requires a certificate of this client \
             (-ORBSSLVersion; -ORBSSLCertificate and -ORBSSLKey)"
        }
        Alert::ProtocolVersion => NO_VERSION_OF_SERVER,
        Alert::NoApplicationProtocol => {
            "the server requires an application protocol (ALPN), which no ORB offers: the port of the reference belongs to \
             another service, and no option concerns it"
        }
        Alert::UnrecognisedName => {
            "the server has no certificate for the host in the reference (-ORBPublish at the server names another host)"
        }
        _ => return None,
    })
}

/// The reason for which a client rejects this server.
fn alert_of_client(alert: Alert) -> Option<&'static str> {
    Some(match alert {
        Alert::UnknownCA => {
            "the client does not trust the authority of this server's certificate (-ORBSSLCertificate; -ORBSSLCA at the \
             client)"
        }
        Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate => {
            "the client rejects the certificate of this server (-ORBSSLCertificate): its subject alternative names have to \
             contain the host in the reference"
        }
        Alert::CertificateExpired => {
            "the certificate of this server has expired, or is not valid yet by the client's clock (-ORBSSLCertificate)"
        }
        Alert::CertificateRevoked => "the certificate of this server is revoked (-ORBSSLCertificate)",
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            "the client accepts none of the algorithms of this server (-ORBSSLVersion)"
        }
        Alert::ProtocolVersion => NO_VERSION_OF_CLIENT,
        _ => return None,
    })
}

const NO_VERSION_OF_SERVER: &str =
    "the server and this client have no version of TLS in common (`-ORBSSLVersion 1.2` permits TLS 1.2, too)";
const NO_VERSION_OF_CLIENT: &str =
    "the client and this server have no version of TLS in common (`-ORBSSLVersion 1.2` permits TLS 1.2, too)";

/// Whether the peers have no version of TLS in common.
fn is_version(reason: &PeerIncompatible) -> bool {
    matches!(
        reason,
        PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
    )
}

fn invalid_server_certificate(reason: &CertificateError) -> Option<&'static str> {
    Some(match reason {
        CertificateError::UnknownIssuer => {
            "this client does not trust the authority of the server's certificate (-ORBSSLCA)"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is not for the host in the reference (`-ORBSSLVerifyName no` accepts any host)"
        }
        CertificateError::Revoked => "the server's certificate is revoked (-ORBSSLRevoked)",
        _ => return None,
    })
}

fn invalid_client_certificate(reason: &CertificateError) -> Option<&'static str> {
    Some(match reason {
        CertificateError::UnknownIssuer => {
            "this server does not trust the authority of the client's certificate (-ORBSSLCA)"
        }
        CertificateError::Revoked => "the client's certificate is revoked (-ORBSSLRevoked)",
        _ => return None,
    })
}
