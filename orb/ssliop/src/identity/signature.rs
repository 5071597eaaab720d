//! The signature of a certificate (RFC 5280, 4.1.1).

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls_pki_types::TrustAnchor;
use webpki::EndEntityCert;

use crate::der::{BIT_STRING, SEQUENCE, contents};

/// Whether the authority has signed the certificate (DER): it is named as the issuer, and its key verifies the signature.
/// Validity and revocation are not looked at.
pub(super) fn is_signed_by(certificate: &[u8], authority: &TrustAnchor<'_>, known: &WebPkiSupportedAlgorithms) -> bool {
    let names_authority = EndEntityCert::try_from(&certificate.into())
        .is_ok_and(|certificate| certificate.issuer() == authority.subject.as_ref());
    names_authority && verifies(certificate, authority, known).unwrap_or(false)
}

fn verifies(certificate: &[u8], authority: &TrustAnchor<'_>, known: &WebPkiSupportedAlgorithms) -> Option<bool> {
    let mut outer = certificate;
    let parts = &mut contents(&mut outer, SEQUENCE)?;
    let from_signed = *parts;
    contents(parts, SEQUENCE)?;
    let signed = &from_signed[..from_signed.len() - parts.len()];
    let (algorithm, signature) = (contents(parts, SEQUENCE)?, bits(parts)?);
    let key = &mut authority.subject_public_key_info.as_ref();
    let (key_algorithm, key) = (contents(key, SEQUENCE)?, bits(key)?);
    let mut candidates = known.all.iter().filter(|candidate| {
        candidate.signature_alg_id().as_ref() == algorithm && candidate.public_key_alg_id().as_ref() == key_algorithm
    });
    Some(candidates.any(|candidate| candidate.verify_signature(key, signed, signature).is_ok()))
}

/// Takes a string of whole octets from the front.
fn bits<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    match contents(input, BIT_STRING)? {
        [0, octets @ ..] => Some(octets),
        _ => None,
    }
}
