//! Endpoints: the addresses at which a server listens, in the spelling of `-ORBListenEndpoints`.
//!
//! `inet_endpoint` listens at them and finds the addresses that references publish; `local` does so for `uds`
//! and `shm`.

use std::{fmt, io, str::FromStr};

use crate::address::{IIOP, scheme_of};

/// A listening address with options: `scheme://address`, and options `name=value` separated by commas after a
/// further `/` (after `|` if the address is a path): `iiop://host:port/portspan=10`. OmniORB's spelling is
/// accepted too: `giop:tcp:host:port`.
///
/// For IIOP host and port may be empty. Without a host only this machine can connect. With `*`, `0.0.0.0` or
/// `[::]` all machines can, and references publish the address from which this machine reaches others.
/// Without a port the system chooses one. Options:
///
/// | option | meaning |
/// | --- | --- |
/// | `portspan=N` | the first free one of N ports (`giop:tcp:host:5000-5009` is the same as
/// `iiop://host:5000/portspan=10`) |
/// | `publish=HOST:PORT,…` | the addresses in references instead; `addr` stands for the default ones,
/// `hostname` for this machine's name, a missing port for the endpoint's |
/// | `interface=NAME` | of several addresses only those of this interface are published, or those within a
/// prefix (`10.0.0.0/8`), or `all` |
///
/// With `publish` or `interface`, and without a host, connections are accepted at all addresses.
///
/// ```
/// # use spandrel_transport as spandrel;
/// use spandrel::Endpoint;
///
/// let endpoint: Endpoint = "iiop://127.0.0.1:2809".parse()?;
/// assert_eq!(endpoint, Endpoint::new("127.0.0.1", 2809));
/// # Ok::<(), spandrel::EndpointError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Endpoint {
    scheme: String,
    address: String,
    options: Vec<(String, String)>,
}

/// A text that does not describe an endpoint, with the reason.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is not an endpoint: {reason} (expected `iiop://host:port` or `giop:tcp:host:port`)")]
pub struct EndpointError {
    text: String,
    reason: &'static str,
}
spandrel_error::debug_as_report!(EndpointError);

impl Endpoint {
    /// An IIOP endpoint; an empty host means this machine only, port 0 lets the system choose.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        let host: String = host.into();
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Self::of(IIOP, address)
    }

    /// An endpoint without an address: no client can connect. If the ORB is bidirectional
    /// (`-ORBBidirectional`), its objects are called over connections that it opened itself. Spelled
    /// `bidir://`.
    #[must_use]
    pub fn nowhere() -> Self {
        Self::of("bidir", "")
    }

    /// An endpoint of the protocol with this scheme, also of one of the application.
    #[must_use]
    pub fn of(scheme: impl Into<String>, address: impl Into<String>) -> Self {
        Self { scheme: scheme.into(), address: address.into(), options: Vec::new() }
    }

    /// Appends an option, written `name=value` in the endpoint's text.
    #[must_use]
    pub fn with(mut self, option: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.push((option.into(), value.into()));
        self
    }

    /// The scheme, such as `iiop`, of the protocol that opens it.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The address, in the form of its protocol.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The value of the option with this name, if it is given.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All options in the order of the text, with their values.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The address of a protocol with hosts and ports, split into both: an empty host and port 0 if absent.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an address of another form.
    pub fn host_and_port(&self) -> io::Result<(&str, u16)> {
        host_and_port(&self.address).map_err(|reason| self.invalid(reason))
    }

    /// Whether the server has the same address when it is started again: a port, or a path, that is not left to
    /// the system.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        match self.scheme() {
            "uds" | "shm" => !self.address.is_empty(),
            "bidir" => true, // no address at all
            _ => self.host_and_port().map_or(!self.address.is_empty(), |(_, port)| port != 0),
        }
    }

    /// The error for an unusable endpoint, with a reason in its address or one of its options.
    #[must_use]
    pub fn invalid(&self, reason: impl fmt::Display) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, format!("the endpoint {self} is not usable: {reason}"))
    }

    /// Rejects options that the protocol does not know.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`], with the known options.
    pub fn check_options(&self, known: &[&str]) -> io::Result<()> {
        match self.options().find(|(name, _)| !known.contains(name)) {
            None => Ok(()),
            Some((name, _)) => Err(self.invalid(format_args!(
                "`{name}` is not one of the options of {}: {}",
                self.scheme,
                known.join(", ")
            ))),
        }
    }
}

fn host_and_port(address: &str) -> Result<(&str, u16), &'static str> {
    let (host, port) = match address.rfind(':') {
        Some(colon) if !address[colon..].contains(']') => (&address[..colon], &address[colon + 1..]),
        _ => (address, ""),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.contains(['[', ']', '/']) {
        return Err("malformed host");
    }
    let port = if port.is_empty() { 0 } else { port.parse().map_err(|_| "malformed port")? };
    Ok((host, port))
}

/// The host, the first port and the number of ports of an address such as `host:5000-5009`.
fn port_range(address: &str) -> Option<(&str, u16, u16)> {
    let (host, range) = address.rsplit_once(':')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    Some((host, first, last.checked_sub(first)?.checked_add(1)?))
}

/// The scheme and the rest of the text.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let Some(omni) = text.strip_prefix("giop:") else { return text.split_once("://") };
    let (transport, rest) = omni.split_once(':')?;
    let scheme = scheme_of(transport);
    // Printed, it would not parse as an address.
    (scheme != "giop").then_some((scheme, rest))
}

/// Options are separated by commas; a part without `=` belongs to the value before it.
fn parse_options(text: &str) -> Option<Vec<(String, String)>> {
    let mut options: Vec<(String, String)> = Vec::new();
    for item in text.split(',').filter(|item| !item.is_empty()) {
        match (item.split_once('='), options.last_mut()) {
            (Some((name, value)), _) => options.push((name.to_owned(), value.to_owned())),
            (None, Some((_, value))) => value.extend([",", item]),
            (None, None) => return None,
        }
    }
    Some(options)
}

/// The character between an address and its options. Paths have slashes of their own.
fn separator(scheme: &str) -> char {
    if matches!(scheme, "uds" | "shm") { '|' } else { '/' }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let error = |reason| EndpointError { text: text.to_owned(), reason };
        let (scheme, rest) = split_scheme(text).ok_or_else(|| error("it has no scheme"))?;
        if scheme.is_empty() || !scheme.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"+-.".contains(&octet)) {
            return Err(error("malformed scheme"));
        }
        let (address, options) = rest.split_once(separator(scheme)).unwrap_or((rest, ""));
        let options = parse_options(options).ok_or_else(|| error("an option must be `name=value`"))?;
        let mut endpoint = Self { options, ..Self::of(scheme, address) };
        if let Some((address, first, ports)) = port_range(address) {
            // A range in omniORB's spelling.
            endpoint = Self { address: format!("{address}:{first}"), ..endpoint }.with("portspan", ports.to_string());
        }
        if scheme == IIOP {
            let address = &endpoint.address;
            let (host, port) = host_and_port(address).map_err(error)?;
            endpoint = Self { options: endpoint.options, ..Self::new(host, port) };
        }
        Ok(endpoint)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.address)?;
        let mut separator = separator(&self.scheme);
        for (name, value) in self.options() {
            write!(f, "{separator}{name}={value}")?;
            separator = ',';
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_parsed() {
        assert_eq!("iiop://host:2809".parse(), Ok(Endpoint::new("host", 2809)));
        assert_eq!("giop:tcp:host:2809".parse(), Ok(Endpoint::new("host", 2809)));
        assert_eq!("iiop://[::1]:2809".parse(), Ok(Endpoint::new("::1", 2809)));
        assert_eq!("iiop://[::1]".parse(), Ok(Endpoint::new("::1", 0)));
        assert_eq!("iiop://:0".parse(), Ok(Endpoint::new("", 0)));
        assert_eq!("giop:tcp::".parse(), Ok(Endpoint::new("", 0)));
        assert_eq!("giop:unix:/run/a".parse(), Ok(Endpoint::of("uds", "/run/a")));
        assert_eq!("giop:ssl:host:1".parse(), Ok(Endpoint::of("ssliop", "host:1")));
        assert_eq!("uds://".parse(), Ok(Endpoint::of("uds", "")));
    }

    #[test]
    fn options_follow_the_address() {
        let expected = Endpoint::new("host", 1).with("portspan", "10").with("publish", "a:1,b:2");
        assert_eq!("iiop://host:1/portspan=10,publish=a:1,b:2".parse(), Ok(expected.clone()));
        assert_eq!(expected.option("publish"), Some("a:1,b:2"));
        assert_eq!(expected.option("interface"), None);
        let expected = Endpoint::of("uds", "/run/a,b/c").with("mode", "600");
        assert_eq!("uds:///run/a,b/c|mode=600".parse(), Ok(expected));
        let expected = Endpoint::new("", 0).with("interface", "10.0.0.0/8");
        assert_eq!("giop:tcp::5000-5009".parse(), Ok(Endpoint::new("", 5000).with("portspan", "10")));
        assert_eq!("iiop:///interface=10.0.0.0/8".parse::<Endpoint>().unwrap().options, expected.options);
    }

    #[test]
    fn text_that_is_not_an_endpoint_is_rejected() {
        for text in [
            "",
            "host:1",
            "iiop://host:port",
            "iiop://host:70000",
            "iiop://a/b:1",
            "iiop://h:9-3",
            "://x",
            "giop:x",
            "a b://c",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn display_can_be_parsed() {
        let endpoints = [
            Endpoint::new("host", 1),
            Endpoint::new("::1", 2),
            Endpoint::new("", 0),
            Endpoint::new("", 0).with("portspan", "3"),
            Endpoint::of("uds", "/run/x").with("mode", "600").with("a", "b,c"),
        ];
        for endpoint in endpoints {
            assert_eq!(endpoint.to_string().parse(), Ok(endpoint));
        }
    }
}
