//! Where a server can be reached: an address of one protocol.

use std::{borrow::Cow, fmt};

/// The scheme of IIOP.
pub(crate) const IIOP: &str = "iiop";

/// A protocol and an address of it, such as `iiop://host:2809` or `uds:///run/bank.sock`.
///
/// What the address means is the protocol's business; the ORB compares places, keeps connections by them and prints them.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Place {
    scheme: Cow<'static, str>,
    address: String,
}

/// Text that is no address of its protocol.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is no address of {scheme}: {reason}")]
pub struct PlaceError {
    /// The protocol.
    pub scheme: String,
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: Cow<'static, str>,
}

impl Place {
    /// An address of the protocol with this scheme.
    #[must_use]
    pub fn new(scheme: impl Into<Cow<'static, str>>, address: impl Into<String>) -> Self {
        Self { scheme: scheme.into(), address: address.into() }
    }

    /// The address of a protocol whose addresses are hosts and ports. IPv6 addresses are given without brackets.
    #[must_use]
    pub fn at_port(scheme: impl Into<Cow<'static, str>>, host: &str, port: u16) -> Self {
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Self::new(scheme, address)
    }

    /// Reads the address of a protocol whose addresses are hosts and ports; both are needed.
    ///
    /// # Errors
    /// [`PlaceError`] for text that is none.
    pub fn parse_at_port(scheme: &'static str, text: &str) -> Result<Self, PlaceError> {
        let place = Self::new(scheme, text);
        match place.host_and_port() {
            Some((host, 1..)) if !host.is_empty() => Ok(place),
            _ => Err(PlaceError::new(scheme, text, "expected host:port")),
        }
    }

    /// Which protocol it is of.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The address, as the protocol writes it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Host, without brackets, and port, where the address is that. A path may look like it, and is none.
    #[must_use]
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        if matches!(self.scheme(), "uds" | "shm") {
            return None;
        }
        let (host, port) = self.address.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Some((bare, port.parse().ok()?))
    }
}

impl PlaceError {
    /// Why this text is no address of the protocol with this scheme.
    #[must_use]
    pub fn new(scheme: &str, text: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { scheme: scheme.to_owned(), text: text.to_owned(), reason: reason.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.address)
    }
}

/// The scheme of a transport that may be named as omniORB does.
#[cfg(any(feature = "server", feature = "transport-rules"))]
pub(crate) fn scheme_of(name: &str) -> &str {
    match name {
        "tcp" => IIOP,
        "unix" => "uds",
        "ssl" => "ssliop",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_found_again() {
        for (host, port, text) in
            [("host", 1, "iiop://host:1"), ("::1", 65_535, "iiop://[::1]:65535"), ("", 0, "iiop://:0")]
        {
            let place = Place::at_port("iiop", host, port);
            assert_eq!(place.to_string(), text);
            assert_eq!(place.host_and_port(), Some((host, port)));
        }
        for path in ["/a/b", "/run/bank:1", "10.0.0.1:2809"] {
            assert_eq!(Place::new("uds", path).host_and_port(), None);
        }
        assert_eq!(Place::new("iiop", "host:70000").host_and_port(), None);
    }
}
