//! Textual references: `corbaloc:` (CORBA 3.3 Part 2, 7.6.10).
//!
//! `corbaloc:` *address* {`,` *address*} [`/` *key*], where an address is `rir:`, or `iiop:`, just `:`, or `ssliop:`, and
//! [*major*`.`*minor*`@`] *host* [`:` *port*]. The key is any octets, with `%` and two digits for those that
//! a URL cannot hold. Resolution of `rir:`, and `corbaname:`, belong to `spandrel-orb`.

use std::{fmt, str::FromStr};

use spandrel_cdr::{GiopVersion, Ior};
use spandrel_error::escape;

use crate::{
    IiopProfile, ReferenceError,
    component::{Component, SslSecTrans},
    ior::ior_from_string,
    percent::{Escaped, unescape},
};

/// The port of an address without one (7.6.10.3).
pub const DEFAULT_PORT: u16 = 2809;

const SCHEME: &str = "corbaloc:";

/// A reference in one of its text forms.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ObjectUrl {
    /// The reference in an `IOR:` text.
    Ior(Ior),
    /// The addresses and key of a `corbaloc:` text.
    Corbaloc(Corbaloc),
}

impl FromStr for ObjectUrl {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if has_scheme(text.trim_ascii()) {
            text.parse().map(Self::Corbaloc)
        } else {
            ior_from_string(text).map(Self::Ior)
        }
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ior(ior) => f.write_str(&crate::ior_to_string(ior)),
            Self::Corbaloc(corbaloc) => corbaloc.fmt(f),
        }
    }
}

fn has_scheme(text: &str) -> bool {
    text.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
}

/// A `corbaloc:` text, parsed: the addresses and the object key.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Corbaloc {
    /// The addresses, in order of preference; never empty when parsed.
    pub addresses: Vec<Address>,
    /// The object key; for `rir:` the name of an initial reference.
    pub key: Vec<u8>,
}

/// One address of a `corbaloc:`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Address {
    /// An address for IIOP.
    Iiop {
        /// The highest protocol version to use; 1.0 if absent.
        version: GiopVersion,
        /// A name or an address, IPv6 without brackets; `localhost` if empty.
        host: String,
        /// The TCP port, [`DEFAULT_PORT`] if absent.
        port: u16,
    },
    /// An address for GIOP over TLS, as TAO and JacORB write it.
    Ssliop {
        /// The highest protocol version to use; 1.2 if absent. Before 1.1 a profile cannot name a port for TLS.
        version: GiopVersion,
        /// As of an address for IIOP. The server's certificate has to be valid for it.
        host: String,
        /// The port for TLS; [`DEFAULT_PORT`] if absent.
        port: u16,
    },
    /// An initial reference of this ORB, named by the key.
    Rir,
    /// The address of an unknown protocol, as written.
    Other(String),
}

impl FromStr for Corbaloc {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let start = text.len() - text.trim_ascii_start().len();
        let text = text.trim_ascii();
        if !has_scheme(text) {
            return Err(ReferenceError::unknown_scheme(text));
        }
        let (list, key) = match text[SCHEME.len()..].split_once('/') {
            Some((list, key)) => (list, key),
            None => (&text[SCHEME.len()..], ""),
        };
        let mut position = start + SCHEME.len();
        let mut addresses = Vec::new();
        for address in list.split(',') {
            addresses.push(parse_address(address, position)?);
            position += address.len() + 1;
        }
        if addresses.len() > 1 && addresses.contains(&Address::Rir) {
            return Err(ReferenceError::RirNotAlone(start + SCHEME.len()));
        }
        let mut key = unescape(key).map_err(|at| ReferenceError::BadEscape(position + at))?;
        if key.is_empty() && addresses == [Address::Rir] {
            key = b"NameService".to_vec();
        }
        Ok(Self { addresses, key })
    }
}

fn parse_address(text: &str, position: usize) -> Result<Address, ReferenceError> {
    if text.is_empty() {
        return Err(ReferenceError::NoAddress(position));
    }
    if text.bytes().any(|octet| octet.is_ascii_whitespace()) || escape(text).to_string() != text {
        // A URL has no white space and no control characters: the one would be lost at the end of the text, the other
        // are escaped where it is printed.
        return Err(ReferenceError::BadHost { position, text: text.to_owned() });
    }
    let Some((protocol, rest)) = text.split_once(':') else {
        return Err(ReferenceError::NoProtocol { position, text: text.to_owned() });
    };
    let after = position + protocol.len() + 1;
    match protocol {
        "" | "iiop" => {
            let (version, host, port) = parse_iiop(rest, after, GiopVersion::V1_0)?;
            Ok(Address::Iiop { version, host, port })
        }
        "ssliop" => match parse_iiop(rest, after, GiopVersion::V1_2)? {
            (GiopVersion::V1_0, ..) => Err(ReferenceError::BadVersion { position: after, text: "1.0".to_owned() }),
            (version, host, port) => Ok(Address::Ssliop { version, host, port }),
        },
        "rir" if rest.is_empty() => Ok(Address::Rir),
        "rir" => Err(ReferenceError::RirNotAlone(position)),
        _ => Ok(Address::Other(text.to_owned())),
    }
}

/// Parses a version, or else this one, a host and a port.
fn parse_iiop(text: &str, position: usize, version: GiopVersion) -> Result<(GiopVersion, String, u16), ReferenceError> {
    let (version, rest, position) = match text.split_once('@') {
        Some((version, rest)) => (parse_version(version, position)?, rest, position + version.len() + 1),
        None => (version, text, position),
    };
    let bad_host = || ReferenceError::BadHost { position, text: rest.to_owned() };
    let (host, port) = match rest.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            // Only an IPv6 address, which has a colon, is written in brackets.
            Some((host, after)) if host.as_bytes().contains(&b':') => {
                (host, after.strip_prefix(':').or(after.is_empty().then_some("")))
            }
            _ => return Err(bad_host()),
        },
        None => match rest.split_once(':') {
            Some((_, port)) if port.as_bytes().contains(&b':') => return Err(bad_host()),
            Some((host, port)) => (host, Some(port)),
            None => (rest, Some("")),
        },
    };
    if host.contains(|character: char| character.is_control() || matches!(character, '[' | ']' | '@')) {
        return Err(bad_host());
    }
    let port = parse_port(port.ok_or_else(bad_host)?, position + rest.len())?;
    let host = if host.is_empty() { "localhost" } else { host };
    Ok((version, host.to_owned(), port))
}

fn parse_version(text: &str, position: usize) -> Result<GiopVersion, ReferenceError> {
    let bad = || ReferenceError::BadVersion { position, text: text.to_owned() };
    let (major, minor) = text.split_once('.').ok_or_else(bad)?;
    match (decimal(major), decimal(minor)) {
        (Some(1), Some(minor)) => u8::try_from(minor).map(|minor| GiopVersion { major: 1, minor }).map_err(|_| bad()),
        _ => Err(bad()),
    }
}

/// `end` is the position after the port.
fn parse_port(text: &str, end: usize) -> Result<u16, ReferenceError> {
    if text.is_empty() {
        return Ok(DEFAULT_PORT);
    }
    decimal(text).ok_or_else(|| ReferenceError::BadPort { position: end - text.len(), text: text.to_owned() })
}

/// A number of digits only; `parse` alone would accept a sign.
fn decimal(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|octet| octet.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

impl Corbaloc {
    /// A reference with one IIOP profile per address of IIOP or TLS, and no type. An address of TLS has port 0 in its
    /// profile and its own port in a component.
    ///
    /// # Errors
    /// [`ReferenceError::NoProfile`] if there is no such address, as for `rir:`.
    pub fn to_ior(&self) -> Result<Ior, ReferenceError> {
        let no_profile = || ReferenceError::NoProfile(self.to_string());
        let mut profiles = Vec::new();
        for address in &self.addresses {
            let (version, host, port, components) = match address {
                Address::Iiop { version, host, port } => (*version, host.clone(), *port, Vec::new()),
                Address::Ssliop { version, host, port } => {
                    let tls = SslSecTrans {
                        supports: SslSecTrans::PROTECTED | SslSecTrans::ESTABLISH_TRUST_IN_TARGET,
                        requires: SslSecTrans::PROTECTED,
                        port: *port,
                    };
                    let component = Component::SslSecTrans(tls).encode().map_err(|_| no_profile())?;
                    (*version, host.clone(), 0, vec![component])
                }
                Address::Rir | Address::Other(_) => continue,
            };
            let profile = IiopProfile { version, host, port, object_key: self.key.clone(), components };
            profiles.push(profile.encode().map_err(|_| no_profile())?);
        }
        if profiles.is_empty() { Err(no_profile()) } else { Ok(Ior { type_id: String::new(), profiles }) }
    }
}

impl fmt::Display for Corbaloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        for (at, address) in self.addresses.iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            write!(f, "{separator}{address}")?;
        }
        if self.key.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", Escaped(&self.key))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (protocol, version, host, port) = match self {
            Self::Iiop { version, host, port } => ("iiop", version, escape(host), port),
            Self::Ssliop { version, host, port } => ("ssliop", version, escape(host), port),
            Self::Rir => return f.write_str("rir:"),
            Self::Other(text) => return escape(text).fmt(f),
        };
        match host.to_string() {
            host if host.contains(':') => write!(f, "{protocol}:{version}@[{host}]:{port}"),
            host => write!(f, "{protocol}:{version}@{host}:{port}"),
        }
    }
}
