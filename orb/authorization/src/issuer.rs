//! The issuers of certificates in rules.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use rustls_pki_types::TrustAnchor;
use spandrel_ssliop::{PeerIdentity, pem};
use spandrel_sync::Mutex;
use wildmatch::WildMatch;

use crate::credentials::Identity;

/// The most certificates that are remembered.
const MAX_KNOWN: usize = 1024;

/// A value of `issuer`.
#[derive(Debug)]
pub(crate) enum IssuerPattern {
    /// The common name of the authority, which another authority may have as well.
    Name(WildMatch),
    /// The authorities themselves.
    Authorities(Authorities),
}

impl IssuerPattern {
    /// A pattern of names, or `file:` and the name of a PEM file, which a relative path names from `folder`.
    pub(crate) fn new(value: &str, folder: &Path) -> Result<Self, String> {
        match value.strip_prefix("file:") {
            Some(file) => Authorities::read(&folder.join(file)).map(Self::Authorities),
            None if value.is_empty() => Err("the pattern is empty: `*` matches everything".to_owned()),
            None => Ok(Self::Name(WildMatch::new(value))),
        }
    }

    /// Whether it matches; `None` if that cannot be decided.
    pub(crate) fn matches(&self, identity: &Identity) -> Option<bool> {
        match self {
            Self::Name(pattern) => Some(identity.issuer.as_ref().is_some_and(|issuer| pattern.matches(issuer))),
            Self::Authorities(authorities) => match &identity.certificates {
                Some(peer) => authorities.have_issued(peer),
                None => Some(false),
            },
        }
    }
}

/// Authorities, by their names and keys.
pub(crate) struct Authorities {
    authorities: Vec<TrustAnchor<'static>>,
    /// Whether they have issued these certificates (DER): verifying a signature takes as long as many requests.
    known: Mutex<HashMap<Vec<u8>, bool>>,
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorities").field("authorities", &self.authorities.len()).finish_non_exhaustive()
    }
}

impl Authorities {
    fn read(file: &Path) -> Result<Self, String> {
        let store = pem::authorities(file).map_err(|error| spandrel_error::report_in_line(&error))?;
        Ok(Self { authorities: store.roots, known: Mutex::default() })
    }

    fn have_issued(&self, peer: &PeerIdentity) -> Option<bool> {
        let certificate = peer.certificate().as_ref();
        if let Some(known) = self.known.lock().get(certificate) {
            return Some(*known);
        }
        let mut have_issued = false;
        for authority in &self.authorities {
            have_issued |= peer.is_issued_by(authority)?;
        }
        let mut cache = self.known.lock();
        if cache.len() >= MAX_KNOWN {
            cache.clear();
        }
        cache.insert(certificate.to_vec(), have_issued);
        Some(have_issued)
    }
}
