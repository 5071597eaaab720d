//! Whether a reference offers TLS, and whether it offers anything else.

use spandrel_cdr::{GiopVersion, Ior};
use spandrel_giop::IiopProfile;
use spandrel_giop::component::{Component, SslSecTrans};

/// The offer of a reference or of one profile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Security {
    /// Connections without TLS: octets in the clear.
    Plain,
    /// TLS, and plain IIOP.
    TlsOrPlain,
    /// TLS only: the port of the profile is 0.
    TlsOnly,
}

/// The offer of a reference. Profiles that cannot be decoded, and those of other protocols, are left out.
#[must_use]
pub fn security(ior: &Ior) -> Security {
    let profiles = ior.profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten());
    let offers: Vec<Security> = profiles.map(|profile| security_of(&profile)).collect();
    match offers[..] {
        [] => Security::Plain,
        _ if offers.iter().all(|offer| *offer == Security::TlsOnly) => Security::TlsOnly,
        _ if offers.iter().all(|offer| *offer == Security::Plain) => Security::Plain,
        _ => Security::TlsOrPlain,
    }
}

/// The security that the components and the port of a profile offer.
#[must_use]
pub fn security_of(profile: &IiopProfile) -> Security {
    match (tls(profile), profile.port) {
        (None, _) => Security::Plain,
        (Some(_), 0) => Security::TlsOnly,
        (Some(_), _) => Security::TlsOrPlain,
    }
}

/// Whether each TLS server of the reference requires a certificate of its clients.
#[must_use]
pub fn requires_client_certificate(ior: &Ior) -> bool {
    let profiles = ior.profiles.iter().filter_map(|profile| IiopProfile::decode(profile).ok().flatten());
    let mut servers = profiles.filter_map(|profile| tls(&profile)).peekable();
    servers.peek().is_some() && servers.all(|tls| tls.requires & SslSecTrans::ESTABLISH_TRUST_IN_CLIENT != 0)
}

/// The component with the port for TLS.
fn tls(profile: &IiopProfile) -> Option<SslSecTrans> {
    // Profiles of IIOP 1.0 have no components.
    let components = profile.components.iter().filter(|_| profile.version > GiopVersion::V1_0);
    components.filter_map(|component| Component::decode(component).ok().flatten()).find_map(|component| match component
    {
        Component::SslSecTrans(tls) => Some(tls),
        _ => None,
    })
}
