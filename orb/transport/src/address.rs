//! Addresses of servers, each of one protocol.

use std::{borrow::Cow, fmt};

use spandrel_error::excerpt;

/// The scheme of TCP addresses without encryption, the protocol of all CORBA products.
pub const IIOP: &str = "iiop";

/// A protocol and an address of it, such as `iiop://host:2809` or `uds:///run/bank.sock`.
///
/// The text after the scheme has a meaning to the protocol only. The ORB compares addresses, looks up
/// connections by them and prints them.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Address {
    scheme: Cow<'static, str>,
    address: String,
}

impl Address {
    /// Creates an address that the protocol with this scheme can connect to.
    #[must_use]
    pub fn new(scheme: impl Into<Cow<'static, str>>, address: impl Into<String>) -> Self {
        Self { scheme: scheme.into(), address: address.into() }
    }

    /// The address of a protocol whose addresses are hosts and ports. IPv6 addresses are given without
    /// brackets.
    #[must_use]
    pub fn at_port(scheme: impl Into<Cow<'static, str>>, host: &str, port: u16) -> Self {
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Self::new(scheme, address)
    }

    /// The scheme, such as `iiop`, of the protocol that connects to it.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The address, as the protocol writes it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The host, without brackets, and the port of an address with both. A path never has them, even if it
    /// looks like such an address.
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

/// The address in one line, [escaped and cut](excerpt): it may come from a reference or a peer.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, excerpt(&self.address))
    }
}

/// The scheme of a protocol, from its own or omniORB's name.
#[must_use]
pub fn scheme_of(name: &str) -> &str {
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
    fn hosts_and_ports_are_parsed_from_addresses() {
        for (host, port, text) in
            [("host", 1, "iiop://host:1"), ("::1", 65_535, "iiop://[::1]:65535"), ("", 0, "iiop://:0")]
        {
            let address = Address::at_port("iiop", host, port);
            assert_eq!(address.to_string(), text);
            assert_eq!(address.host_and_port(), Some((host, port)));
        }
        for path in ["/a/b", "/run/bank:1", "10.0.0.1:2809"] {
            assert_eq!(Address::new("uds", path).host_and_port(), None);
        }
        assert_eq!(Address::new("iiop", "host:70000").host_and_port(), None);
    }
}
