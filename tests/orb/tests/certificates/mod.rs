//! An authority, and ORBs that trust it or appear as whom it vouches for.
#![allow(dead_code, reason = "each suite uses a part of it")]

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
