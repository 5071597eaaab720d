//! Self-signed certificates for the mechanisms over TLS: one host address, one run.
//!
//! Only the encoding is here (X.509, RFC 5280; DER, X.690). Keys and signatures are those of `ring`.

use std::io;
use std::net::IpAddr;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// The tag of `[0] EXPLICIT Version` (X.509).
const VERSION: u8 = 0xa0;
/// The tag of `[3] EXPLICIT Extensions` (X.509).
const EXTENSIONS: u8 = 0xa3;
/// `[7] IMPLICIT iPAddress` of a `GeneralName`.
const IP_ADDRESS: u8 = 0x87;

/// 2.5.4.3, the attribute `commonName`.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.29.17, the extension `subjectAltName`.
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// 1.2.840.10045.2.1, an elliptic curve public key.
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// 1.2.840.10045.3.1.7, the curve P-256.
const P_256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// 1.2.840.10045.4.3.2, ECDSA with SHA-256.
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

/// A new key, and a certificate of it that is valid for this host.
///
/// # Errors
/// If the system has no random octets.
pub(super) fn self_signed(host: IpAddr) -> io::Result<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
    let random = SystemRandom::new();
    let no_key = |error: &dyn std::fmt::Display| io::Error::other(format!("cannot make a key: {error}"));
    let pkcs8 =
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).map_err(|error| no_key(&error))?;
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random)
        .map_err(|error| no_key(&error))?;
    let content = content(host, key.public_key().as_ref());
    let signature = key.sign(&random, &content).map_err(|error| no_key(&error))?;
    let algorithm = sequence(&[&object_identifier(ECDSA_WITH_SHA256)]);
    let certificate = sequence(&[&content, &algorithm, &bit_string(signature.as_ref())]);
    let key = PrivatePkcs8KeyDer::from(pkcs8.as_ref().to_vec());
    Ok((CertificateDer::from(certificate), PrivateKeyDer::Pkcs8(key)))
}

/// The `TBSCertificate` (RFC 5280, 4.1).
fn content(host: IpAddr, public_key: &[u8]) -> Vec<u8> {
    const V3: u8 = 2;
    let attribute = sequence(&[&object_identifier(COMMON_NAME), &element(UTF8_STRING, &[b"spandrel-lab"])]);
    let name = sequence(&[&element(SET, &[&attribute])]);
    let validity =
        sequence(&[&element(UTC_TIME, &[b"750101000000Z"]), &element(GENERALIZED_TIME, &[b"40960101000000Z"])]);
    let key_type = sequence(&[&object_identifier(EC_PUBLIC_KEY), &object_identifier(P_256)]);
    let address = match host {
        IpAddr::V4(address) => element(IP_ADDRESS, &[&address.octets()]),
        IpAddr::V6(address) => element(IP_ADDRESS, &[&address.octets()]),
    };
    let names = element(OCTET_STRING, &[&sequence(&[&address])]);
    let extension = sequence(&[&object_identifier(SUBJECT_ALT_NAME), &names]);
    sequence(&[
        &element(VERSION, &[&element(INTEGER, &[&[V3]])]),
        &element(INTEGER, &[&[1]]), // the serial number
        &sequence(&[&object_identifier(ECDSA_WITH_SHA256)]),
        &name, // of the issuer
        &validity,
        &name, // of the subject
        &sequence(&[&key_type, &bit_string(public_key)]),
        &element(EXTENSIONS, &[&sequence(&[&extension])]),
    ])
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, parts)
}

fn object_identifier(octets: &[u8]) -> Vec<u8> {
    element(OBJECT_IDENTIFIER, &[octets])
}

fn bit_string(octets: &[u8]) -> Vec<u8> {
    const UNUSED_BITS: u8 = 0;
    element(BIT_STRING, &[&[UNUSED_BITS], octets])
}

/// A DER element of fewer than 65,536 octets: its tag, its length, and its parts one after the other.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut octets = vec![tag];
    match u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes() {
        [0, len @ ..=0x7f] => octets.push(len),
        [0, len] => octets.extend([0x81, len]),
        [high, low] => octets.extend([0x82, high, low]),
    }
    octets.extend(content);
    octets
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::{CertificateError, Error, RootCertStore};
    use rustls_pki_types::{ServerName, UnixTime};

    use super::*;

    #[test]
    fn a_certificate_is_valid_for_its_own_address_only() {
        for (host, other) in
            [("127.0.0.1", "127.0.0.2"), ("::1", "::2")].map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap()))
        {
            let (certificate, _) = self_signed(host).unwrap();
            let mut trusted = RootCertStore::empty();
            trusted.add(certificate.clone()).unwrap();
            let provider = super::super::tls::provider();
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(trusted), provider).build().unwrap();
            let verify = |name: IpAddr| {
                verifier.verify_server_cert(&certificate, &[], &ServerName::from(name), &[], UnixTime::now())
            };
            verify(host).unwrap();
            let error = verify(other).unwrap_err();
            assert!(
                matches!(error, Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })),
                "{error:?}"
            );
        }
    }

    #[test]
    fn lengths_have_their_shortest_form() {
        assert_eq!(element(4, &[&[7; 127]])[..3], [4, 127, 7]);
        assert_eq!(element(4, &[&[7; 128]])[..4], [4, 0x81, 128, 7]);
        assert_eq!(element(4, &[&[7; 200], &[8; 100]])[..5], [4, 0x82, 1, 44, 7]);
    }
}
