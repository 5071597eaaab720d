//! Where a server listens and what its references say, as `-ORBListenEndpoints` spells it.

use std::{fmt, io, str::FromStr};

use spandrel_ipc::inet;

/// An address to listen on: `iiop://host:port`, or `giop:tcp:host:port` as omniORB spells it.
///
/// Host and port may be empty. Without a host only this machine can connect; `*`, `0.0.0.0` or `[::]` accept from
/// everywhere, and references then say this machine's first address that others can reach. Without a port the system
/// chooses one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

/// Text that is no endpoint.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is no endpoint: {reason} (expected `iiop://host:port` or `giop:tcp:host:port`)")]
pub struct EndpointError {
    text: String,
    reason: &'static str,
}

impl Endpoint {
    /// An endpoint; an empty host means this machine only, port 0 lets the system choose.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Opens the endpoint: the listening socket, with the host and port to publish.
    pub(crate) fn listen(
        &self,
        send_queue: Option<usize>,
        recv_queue: Option<usize>,
    ) -> io::Result<(inet::Acceptor, (String, u16))> {
        let host = match self.host.as_str() {
            "" => "127.0.0.1",
            "*" => "0.0.0.0",
            host => host,
        };
        let addr = inet::Addr::new(host, self.port)?;
        let ip = std::net::SocketAddr::from(addr).ip();
        // Everywhere means everywhere: `[::]` takes IPv4, too.
        let mut options = inet::AcceptorOptions::default().dual_stack(ip.is_unspecified() && ip.is_ipv6());
        if let Some(octets) = send_queue {
            options = options.send_queue(octets);
        }
        if let Some(octets) = recv_queue {
            options = options.recv_queue(octets);
        }
        let acceptor = inet::Acceptor::open_with(&addr, &options)?;
        let port = acceptor.local_addr()?.port();
        let published = if ip.is_unspecified() { reachable_host(ip)? } else { host.to_owned() };
        Ok((acceptor, (published, port)))
    }
}

/// The address of this machine that others most likely can reach.
fn reachable_host(bound: std::net::IpAddr) -> io::Result<String> {
    let interfaces = if_addrs::get_if_addrs()?;
    let reachable = interfaces.iter().filter(|interface| !interface.is_loopback()).map(if_addrs::Interface::ip);
    // Link-local addresses mean nothing without the name of a link.
    let reachable = reachable.filter(|ip| !matches!(ip, std::net::IpAddr::V6(ip) if ip.is_unicast_link_local()));
    let (v4, v6): (Vec<_>, Vec<_>) = reachable.partition(std::net::IpAddr::is_ipv4);
    let best = if bound.is_ipv6() { v6.into_iter().chain(v4).next() } else { v4.into_iter().next() };
    Ok(best.map_or_else(|| "127.0.0.1".to_owned(), |ip| ip.to_string()))
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let error = |reason| EndpointError { text: text.to_owned(), reason };
        let address = text
            .strip_prefix("iiop://")
            .or_else(|| text.strip_prefix("giop:tcp:"))
            .ok_or_else(|| error("unknown transport"))?;
        let (host, port) = match address.rfind(':') {
            Some(colon) if !address[colon..].contains(']') => (&address[..colon], &address[colon + 1..]),
            _ => (address, ""),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.contains(['[', ']', '/']) {
            return Err(error("malformed host"));
        }
        let port = if port.is_empty() { 0 } else { port.parse().map_err(|_| error("malformed port"))? };
        Ok(Self::new(host, port))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "iiop://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "iiop://{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        assert_eq!("iiop://host:2809".parse(), Ok(Endpoint::new("host", 2809)));
        assert_eq!("giop:tcp:host:2809".parse(), Ok(Endpoint::new("host", 2809)));
        assert_eq!("iiop://[::1]:2809".parse(), Ok(Endpoint::new("::1", 2809)));
        assert_eq!("iiop://[::1]".parse(), Ok(Endpoint::new("::1", 0)));
        assert_eq!("iiop://:0".parse(), Ok(Endpoint::new("", 0)));
        assert_eq!("giop:tcp::".parse(), Ok(Endpoint::new("", 0)));
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        for text in ["", "host:1", "iiop://host:port", "iiop://host:70000", "iiop://a/b:1"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn display_can_be_read_back() {
        for endpoint in [Endpoint::new("host", 1), Endpoint::new("::1", 2), Endpoint::new("", 0)] {
            assert_eq!(endpoint.to_string().parse(), Ok(endpoint));
        }
    }
}
