//! Authorities, whom they vouch for, and ORBs that appear so.
#![allow(dead_code, reason = "each suite uses a part of it")]

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use spandrel::{
    Orb, OrbBuilder, SystemException,
    ssliop::{Ssliop, pem},
};
use spandrel_orb_tests::Server;

/// Who vouches for others.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, as PEM.
pub(crate) struct Identity {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, name: &str) -> Identity {
        self.issue_with(&[name], |_| {})
    }

    /// For these hosts, the first of which it is called by, unless `change` says otherwise.
    pub(crate) fn issue_with(&self, hosts: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(hosts.iter().map(|&host| host.to_owned()).collect::<Vec<_>>()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        if let Some(name) = hosts.first() {
            params.distinguished_name.push(DnType::CommonName, *name);
        }
        change(&mut params);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        Identity { chain: params.signed_by(&key, &self.0).unwrap().pem(), key: key.serialize_pem() }
    }
}

pub(crate) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| Authority::new("an authority"))
}

pub(crate) fn plain() -> Ssliop {
    Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
}

pub(crate) fn trusting(authority: &Authority) -> Ssliop {
    plain().trust(pem::authorities(authority.pem().as_bytes()).unwrap())
}

pub(crate) trait As {
    fn identity_of(self, identity: &Identity) -> Self;
}

impl As for Ssliop {
    fn identity_of(self, Identity { chain, key }: &Identity) -> Self {
        self.identity(pem::certificates(chain.as_bytes()).unwrap(), pem::private_key(key.as_bytes()).unwrap())
    }
}

/// What a server that speaks nothing but TLS is made with.
pub(crate) fn serving(ssliop: Ssliop) -> OrbBuilder {
    Orb::builder().protocol(ssliop).listen("ssliop://127.0.0.1:0".parse().unwrap())
}

pub(crate) fn server() -> Server {
    Server::with(serving(trusting(authority()).identity_of(&authority().issue("127.0.0.1"))))
}

pub(crate) fn client() -> OrbBuilder {
    Orb::builder().protocol(trusting(authority())).request_timeout(Some(Duration::from_secs(20)))
}

/// All that an exception and what caused it say.
pub(crate) fn chain(exception: &SystemException) -> String {
    let mut text = exception.to_string();
    let mut cause = std::error::Error::source(exception);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
