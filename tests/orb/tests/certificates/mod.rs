//! A certificate authority, and ORBs that trust it or present certificates that it issued.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use spandrel::{
    Orb, OrbBuilder, SystemException,
    ssliop::{Ssliop, pem},
};
use spandrel_orb_tests::Server;
pub(crate) use spandrel_test_support::certificates::{Authority, Identity};

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

pub(crate) trait WithIdentity {
    fn identity_of(self, identity: &Identity) -> Self;
}

impl WithIdentity for Ssliop {
    fn identity_of(self, Identity { chain, key }: &Identity) -> Self {
        self.identity(pem::certificates(chain.as_bytes()).unwrap(), pem::private_key(key.as_bytes()).unwrap())
    }
}

/// A server that listens for TLS alone.
pub(crate) fn serving(ssliop: Ssliop) -> OrbBuilder {
    Orb::builder().protocol(ssliop).listen("ssliop://127.0.0.1:0".parse().unwrap())
}

pub(crate) fn server() -> Server {
    Server::with(serving(trusting(authority()).identity_of(&authority().issue("127.0.0.1"))))
}

pub(crate) fn client() -> OrbBuilder {
    Orb::builder().protocol(trusting(authority())).request_timeout(Some(Duration::from_secs(20)))
}

/// An exception and its chain of causes as text.
pub(crate) fn chain(exception: &SystemException) -> String {
    let mut text = exception.to_string();
    let mut cause = std::error::Error::source(exception);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
