//! The address of an Internet endpoint.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use socket2::SockAddr;

use crate::dgram::{Address, Encode, Name};

/// An IPv4 or IPv6 address and a TCP port.
///
/// Displayed, and parsed, as `127.0.0.1:2809` or `[::1]:2809`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Addr(SocketAddr);

/// A text that is not `host:port` with a numeric host.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an address: expected `127.0.0.1:2809` or `[::1]:2809`")]
pub struct AddrParseError {
    text: String,
}
spandrel_error::debug_as_report!(AddrParseError);

impl Addr {
    /// The first address of `host`, which is a name or a number (`127.0.0.1`, `::1` or `[::1]`).
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn new(host: &str, port: u16) -> io::Result<Self> {
        Self::resolve(host, port).map(|addrs| addrs[0])
    }

    /// All addresses of `host`, in the order of preference of the system; never an empty list.
    ///
    /// Numeric addresses are taken as they are. Names are resolved by the system, which may take seconds and
    /// has no timeout here.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] when the name has no address or could not be resolved; the message gives
    /// the reason.
    pub fn resolve(host: &str, port: u16) -> io::Result<Vec<Self>> {
        if let Some(ip) = parse_ip(host) {
            return Ok(vec![Self(SocketAddr::new(ip, port))]);
        }
        let unresolved = |reason: &dyn fmt::Display| {
            io::Error::new(io::ErrorKind::NotFound, format!("cannot resolve host `{host}`: {reason}"))
        };
        // Windows would take the first for this host, and accept the second.
        if host.is_empty() {
            return Err(unresolved(&"it is empty"));
        }
        if host.starts_with('[') {
            return Err(unresolved(&"brackets are for IPv6 addresses"));
        }
        let addrs: Vec<_> = (host, port).to_socket_addrs().map_err(|e| unresolved(&e))?.map(Self).collect();
        if addrs.is_empty() { Err(unresolved(&"it has no address")) } else { Ok(addrs) }
    }

    /// The IPv4 loopback address: 127.0.0.1.
    #[must_use]
    pub const fn loopback(port: u16) -> Self {
        Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    /// The IPv6 loopback address: `::1`.
    #[must_use]
    pub const fn loopback_v6(port: u16) -> Self {
        Self(SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port))
    }

    /// All IPv4 interfaces of this host, for an acceptor: 0.0.0.0.
    #[must_use]
    pub const fn any(port: u16) -> Self {
        Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))
    }

    /// All IPv6 interfaces of this host, for an acceptor: `::`.
    #[must_use]
    pub const fn any_v6(port: u16) -> Self {
        Self(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port))
    }

    /// The numeric host, without brackets: `127.0.0.1` or `::1`.
    #[must_use]
    pub fn host(&self) -> String {
        match self.0 {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
            addr => addr.ip().to_string(),
        }
    }

    /// The name of the host, which the system's resolver looks up (getnameinfo(3)); `None` if there is none.
    ///
    /// This may take seconds and has no timeout here. The owner of the address chooses the name at will: use
    /// it in logs. It proves nothing unless [`resolve`](Self::resolve) leads back from it.
    ///
    /// # Errors
    /// A resolver that does not answer, with its reason.
    #[cfg(unix)]
    pub fn host_name(&self) -> io::Result<Option<String>> {
        crate::sys::host_name::host_name(self.0)
    }

    /// The IP address without the port.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.0.ip()
    }

    /// The TCP port, in host order.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.0.port()
    }

    /// The same host with another port.
    #[must_use]
    pub const fn with_port(mut self, port: u16) -> Self {
        self.0.set_port(port);
        self
    }

    /// Whether this is a loopback address (127.0.0.0/8 or `::1`).
    #[must_use]
    pub const fn is_loopback(&self) -> bool {
        self.0.ip().is_loopback()
    }

    /// Whether this stands for all interfaces (0.0.0.0 or `::`).
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.0.ip().is_unspecified()
    }
}

impl Addr {
    /// The address from a socket address of the system.
    pub(crate) fn from_system(addr: &SockAddr) -> io::Result<Self> {
        addr.as_socket().map(Self).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an Internet address"))
    }
}

/// Parses a numeric host, with or without brackets.
fn parse_ip(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(v6) => v6.parse().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

impl FromStr for Addr {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        text.parse().map(Self).map_err(|_| AddrParseError { text: text.to_owned() })
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<SocketAddr> for Addr {
    fn from(addr: SocketAddr) -> Self {
        Self(addr)
    }
}

impl From<Addr> for SocketAddr {
    fn from(addr: Addr) -> Self {
        addr.0
    }
}

impl Address for Addr {}

impl Encode for Addr {
    #[inline]
    fn encode(&self) -> io::Result<Name> {
        Ok(Name::from(SocketAddr::from(*self)))
    }

    #[inline]
    fn decode(name: Option<&Name>) -> io::Result<Self> {
        let name = name.ok_or_else(other_family)?;
        #[cfg(unix)]
        let addr = SocketAddr::try_from(name.clone()).ok();
        #[cfg(windows)]
        let addr = name.as_socket();
        addr.map(Self::from).ok_or_else(other_family)
    }
}

/// The error for a sender of another family than the endpoint's; the system does not let it happen.
fn other_family() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the system returned an address of another family")
}
