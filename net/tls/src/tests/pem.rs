//! Certificates and keys from files and from text.

use crate::tests::support;

use spandrel_tls::pem::{self, MAX_ITEMS, MAX_OCTETS, PemError};
use support::*;

#[test]
fn files_and_text_give_the_same_items() {
    let identity = authority().issue("a.test");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.pem");
    // One file may contain all items, between lines that are not PEM.
    let all = format!("the chain\n{}{}the key\n{}", identity.chain, authority().pem(), identity.key);
    std::fs::write(&path, &all).unwrap();
    let chain = pem::certificates(&path).unwrap();
    assert_eq!(chain.len(), 2);
    assert_eq!(chain, pem::certificates(all.as_bytes()).unwrap());
    assert_eq!(chain[..1], pem::certificates(identity.chain.as_bytes()).unwrap());
    assert_eq!(pem::private_key(path.as_path()).unwrap(), pem::private_key(identity.key.as_bytes()).unwrap());
    assert_eq!(pem::authorities(&path).unwrap().len(), 2);
}

#[test]
fn missing_files_and_items_are_reported() {
    let missing = std::path::Path::new("no such file");
    let error = pem::certificates(missing).unwrap_err();
    assert!(matches!(error, PemError::File { .. }));
    assert_eq!(error.to_string(), "cannot read no such file");

    let identity = authority().issue("a.test");
    let error = pem::private_key(identity.chain.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "the PEM text has no private key");
    assert!(matches!(pem::certificates(identity.key.as_bytes()), Err(PemError::Nothing { item: "certificate", .. })));
    assert!(matches!(pem::authorities(&b""[..]), Err(PemError::Nothing { .. })));
    assert!(matches!(pem::revocation_lists(identity.chain.as_bytes()), Err(PemError::Nothing { .. })));
}

#[test]
fn malformed_pem_is_refused() {
    let whole = authority().issue("a.test").chain;
    let cut = &whole[..whole.len() - 10];
    assert!(matches!(pem::certificates(cut.as_bytes()), Err(PemError::Malformed { .. })));
    let broken = whole.replace("MII", "!!!");
    assert!(matches!(pem::certificates(broken.as_bytes()), Err(PemError::Malformed { .. })));
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(pem::authorities(no_certificate.as_bytes()), Err(PemError::Authority { index: 0, .. })));
}

#[test]
fn oversized_pem_is_refused() {
    let one = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(pem::certificates(one.repeat(MAX_ITEMS).as_bytes()).unwrap().len(), MAX_ITEMS);
    assert!(matches!(pem::certificates(one.repeat(MAX_ITEMS + 1).as_bytes()), Err(PemError::TooLarge { .. })));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.pem");
    let mut text = one.as_bytes().to_vec();
    text.resize(MAX_OCTETS, b'\n');
    assert_eq!(pem::certificates(&text[..]).unwrap().len(), 1);
    text.push(b'\n');
    std::fs::write(&path, &text).unwrap();
    for result in [pem::certificates(&path), pem::certificates(&text[..])] {
        assert!(matches!(result, Err(PemError::TooLarge { .. })));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_without_end_is_too_large() {
    assert!(matches!(pem::private_key(std::path::Path::new("/dev/zero")), Err(PemError::TooLarge { .. })));
}

#[test]
fn a_key_that_belongs_to_another_certificate_is_noticed() {
    let (one, other) = (authority().issue("a.test"), authority().issue("b.test"));
    let mixed = Identity { chain: one.chain, key: other.key };
    let error = server_options_of(&mixed).build().unwrap_err();
    assert!(matches!(error, spandrel_tls::ConfigError::Tls(_)), "{error:?}");
}

#[test]
fn verification_needs_authorities() {
    let empty = rustls::RootCertStore::empty();
    let error = spandrel_tls::ClientOptions::new(provider(), empty.clone()).build().unwrap_err();
    assert!(matches!(error, spandrel_tls::ConfigError::Verifier(_)));
    let error = server_options().require_clients(empty).build().unwrap_err();
    assert!(matches!(error, spandrel_tls::ConfigError::Verifier(_)));
}
