//! Open endpoints: the source of their connections, and the addresses that references publish.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use spandrel_cdr::TaggedComponent;
use spandrel_ipc::{Accept, Family, Pollable, inet};
use spandrel_sync::Arc;

use crate::{
    address::{Address, IIOP},
    rules::is_own_host,
    transport::ReactorTransport,
};

/// An accepted connection before its set-up: a function that returns its transport and the address of the
/// client.
pub type PendingConnection = Box<dyn FnOnce() -> io::Result<(Box<dyn ReactorTransport>, Address)> + Send>;

/// Accepts the connections of an endpoint, whatever the family of its addresses.
pub trait ConnectionAcceptor: fmt::Debug + Send {
    /// The handle that a reactor waits for.
    fn pollable(&self) -> &dyn Pollable;

    /// Accepts one connection. Returns also the name of its client, for the log.
    ///
    /// # Errors
    /// The errors of [`Accept::accept`]; [`io::ErrorKind::WouldBlock`] if there is no connection.
    fn accept(&mut self) -> io::Result<(PendingConnection, String)>;
}

/// The source of an endpoint's input.
#[derive(Debug)]
pub enum ListenerSource {
    /// Connections, each with an input of its own.
    Connections(Box<dyn ConnectionAcceptor>),
    /// Datagrams, and the limit of each in octets.
    Datagrams(inet::Dgram, u32),
    /// No input: requests arrive over connections that this side has opened.
    Nothing,
}

/// The addresses that references publish of an endpoint.
#[derive(Clone, Debug, Default)]
pub struct PublishedAddresses {
    /// Hosts and ports for IIOP profiles, in order of preference. Port 0 stands for a host that can be
    /// reached by components only. It gets a profile of its own only if no other endpoint has that host.
    pub hosts: Vec<(String, u16)>,
    /// Components of every profile, with other addresses of the server.
    pub components: Vec<TaggedComponent>,
    /// The addresses that clients derive from the above; by them the ORB recognizes its own references.
    pub addresses: Vec<Address>,
    /// The listening addresses, as the system names them. An open port is reached by other addresses than the
    /// published ones.
    pub bound: Vec<Address>,
    /// The scheme of each open endpoint, and the number of its `components`, in the order of these.
    pub schemes: Vec<(String, usize)>,
}

/// An endpoint that accepts connections or receives datagrams. Dropping it closes it.
#[derive(Debug)]
pub struct Listener {
    bound: Address,
    published: PublishedAddresses,
    source: ListenerSource,
}

impl Listener {
    /// An endpoint with an acceptor of any family. `prepare` sets up each stream and returns the address of
    /// its client.
    ///
    /// `bound` is the listening address, for messages.
    ///
    /// # Errors
    /// The errors of [`Accept::set_nonblocking`].
    pub fn over<F: Family>(
        bound: Address,
        acceptor: F::Acceptor,
        published: PublishedAddresses,
        prepare: impl Fn(&F::Stream, &F::Addr) -> io::Result<Address> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        acceptor.set_nonblocking(true)?;
        let source = FamilySource::<F, _> { acceptor, prepare: Arc::new(prepare) };
        Ok(Self::new(bound, published, ListenerSource::Connections(Box::new(source))))
    }

    /// Creates a listener from the parts that a protocol has opened.
    #[must_use]
    pub fn new(bound: Address, published: PublishedAddresses, source: ListenerSource) -> Self {
        Self { bound, published, source }
    }

    /// The address that the socket is bound to, with the port that the system chose.
    #[must_use]
    pub fn bound(&self) -> &Address {
        &self.bound
    }

    /// The addresses that references publish.
    #[must_use]
    pub fn published(&self) -> &PublishedAddresses {
        &self.published
    }

    /// Divides the listener into its source, and the addresses that references publish.
    #[must_use]
    pub fn into_parts(self) -> (ListenerSource, PublishedAddresses) {
        (self.source, self.published)
    }
}

impl PublishedAddresses {
    /// Adds the published addresses of an endpoint of this scheme.
    pub fn add(&mut self, scheme: &str, other: Self) {
        self.schemes.push((scheme.to_owned(), other.components.len()));
        for (host, port) in other.hosts {
            let known = self.hosts.iter_mut().find(|(known, at)| *known == host && (*at == 0 || port == 0));
            match known {
                Some((_, at)) => *at = port.max(*at),
                None => self.hosts.push((host, port)),
            }
        }
        self.components.extend(other.components);
        self.addresses.extend(other.addresses);
        self.bound.extend(other.bound);
    }

    /// Whether an endpoint of one of these schemes is open.
    #[must_use]
    pub fn has_scheme(&self, schemes: &[&str]) -> bool {
        self.schemes.iter().any(|(scheme, _)| schemes.contains(&&**scheme))
    }

    /// The part for a profile that offers these schemes alone; `None` if no endpoint has one of them. Without one that
    /// publishes hosts, the port of the profile is 0.
    #[must_use]
    pub fn offering(&self, schemes: &[&str]) -> Option<Self> {
        if !self.has_scheme(schemes) {
            return None;
        }
        let mut components = self.components.iter();
        let mut offered = Vec::new();
        for (scheme, count) in &self.schemes {
            let of_endpoint = components.by_ref().take(*count);
            if schemes.contains(&&**scheme) {
                offered.extend(of_endpoint.cloned());
            } else {
                of_endpoint.for_each(drop);
            }
        }
        let is_offered = |address: &&Address| schemes.contains(&address.scheme());
        let addresses: Vec<Address> = self.addresses.iter().filter(is_offered).cloned().collect();
        let mut hosts = Vec::new();
        for (host, port) in &self.hosts {
            // Port 0: the address is in a component.
            let is_host = |address: &Address| address.host_and_port().is_some_and(|(other, _)| other == host);
            let is_plain = |address: &Address| *address == Address::at_port(IIOP, host, *port);
            if *port != 0 && addresses.iter().any(is_plain) {
                hosts.push((host.clone(), *port));
            } else if addresses.iter().any(is_host) {
                hosts.push((host.clone(), 0));
            }
        }
        if hosts.is_empty() {
            hosts.extend(self.hosts.first().map(|(host, _)| (host.clone(), 0)));
        }
        let bound = self.bound.iter().filter(is_offered).cloned().collect();
        let schemes = self.schemes.iter().filter(|(scheme, _)| schemes.contains(&&**scheme)).cloned().collect();
        Some(Self { hosts, components: offered, addresses, bound, schemes })
    }

    /// Whether a connection to this address reaches one of these endpoints: a published address, or any other of an
    /// open port, such as `localhost`, `127.1` and `0.0.0.0`. A host name is looked up if the port is that of an
    /// endpoint. An address that another machine translates is recognized only if it is published.
    #[must_use]
    pub fn includes(&self, address: &Address) -> bool {
        self.addresses.contains(address) || self.bound.iter().any(|bound| is_same_endpoint(bound, address))
    }
}

/// Whether a connection to `address` is accepted by the socket that listens at `bound`.
fn is_same_endpoint(bound: &Address, address: &Address) -> bool {
    match (bound.host_and_port(), address.host_and_port()) {
        (None, None) => is_same_file(bound, address),
        (Some((at, port)), Some((host, to))) if port == to && port != 0 => {
            let Ok(at) = at.split('%').next().unwrap_or(at).parse::<IpAddr>() else { return false };
            let targets = inet::Addr::resolve(host, to).unwrap_or_default();
            targets.iter().any(|target| accepts(at.to_canonical(), target.ip().to_canonical()))
        }
        _ => false,
    }
}

/// Whether a socket that listens at the address `bound` accepts connections to `target`.
fn accepts(bound: IpAddr, target: IpAddr) -> bool {
    let target = match target {
        // Connections to the unspecified address are connections to the loopback address.
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        target => target,
    };
    // The unspecified address of IPv6 accepts IPv4 too.
    let accepts_all = bound.is_unspecified() && (bound.is_ipv6() || target.is_ipv4());
    bound == target || accepts_all && is_own_host(target)
}

/// Whether two addresses within this machine name the same file, by whatever path.
fn is_same_file(bound: &Address, address: &Address) -> bool {
    let file = |address: &Address| std::fs::canonicalize(address.address()).ok();
    bound.scheme() == address.scheme()
        && (bound.address() == address.address() || file(bound).is_some_and(|bound| Some(bound) == file(address)))
}

/// The acceptor of one family, and the preparation of its streams.
struct FamilySource<F: Family, P> {
    acceptor: F::Acceptor,
    prepare: Arc<P>,
}

impl<F: Family, P> fmt::Debug for FamilySource<F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.acceptor.fmt(f)
    }
}

impl<F: Family, P> ConnectionAcceptor for FamilySource<F, P>
where
    P: Fn(&F::Stream, &F::Addr) -> io::Result<Address> + Send + Sync + 'static,
{
    fn pollable(&self) -> &dyn Pollable {
        &self.acceptor
    }

    fn accept(&mut self) -> io::Result<(PendingConnection, String)> {
        let (stream, remote) = self.acceptor.accept()?;
        let (name, prepare) = (remote.to_string(), Arc::clone(&self.prepare));
        let pending = move || {
            let from = prepare(&stream, &remote)?;
            Ok((Box::new(stream) as Box<dyn ReactorTransport>, from))
        };
        Ok((Box::new(pending), name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(at: &str) -> PublishedAddresses {
        PublishedAddresses { bound: vec![Address::new("iiop", at)], ..PublishedAddresses::default() }
    }

    #[test]
    fn an_open_port_is_recognized_by_every_address_that_reaches_it() {
        for (bound, address, expected) in [
            ("127.0.0.1:9", "127.0.0.1:9", true),
            ("127.0.0.1:9", "localhost:9", true),
            ("127.0.0.1:9", "127.1:9", true),
            ("127.0.0.1:9", "0.0.0.0:9", true),
            ("127.0.0.1:9", "[::ffff:127.0.0.1]:9", true),
            ("127.0.0.1:9", "127.0.0.2:9", false),
            ("127.0.0.1:9", "127.0.0.1:10", false),
            ("127.0.0.1:9", "[::]:9", false),
            ("127.0.0.1:9", "192.0.2.1:9", false),
            ("127.0.0.1:9", "nosuch.invalid:9", false),
            ("0.0.0.0:9", "127.0.0.2:9", true),
            ("0.0.0.0:9", "[::1]:9", false),
            ("0.0.0.0:9", "192.0.2.1:9", false),
            ("[::]:9", "127.0.0.1:9", true),
            ("[::]:9", "[::1]:9", true),
            ("[::1]:9", "[::]:9", true),
            ("127.0.0.1:0", "127.0.0.1:0", false),
        ] {
            assert_eq!(listening(bound).includes(&Address::new("ssliop", address)), expected, "{bound} {address}");
        }
    }

    #[test]
    fn published_addresses_are_recognized_as_they_are_written() {
        let addresses = vec![Address::at_port("iiop", "nat.example", 77)];
        let published = PublishedAddresses { addresses, ..PublishedAddresses::default() };
        assert!(published.includes(&Address::at_port("iiop", "nat.example", 77)));
        assert!(!published.includes(&Address::at_port("iiop", "nat.example", 78)));
    }

    #[test]
    fn a_socket_file_is_recognized_by_every_path_to_it() {
        // Any file does.
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/listener.rs");
        let published = PublishedAddresses { bound: vec![Address::new("uds", file)], ..PublishedAddresses::default() };
        assert!(published.includes(&Address::new("uds", file)));
        assert!(
            published.includes(&Address::new("uds", concat!(env!("CARGO_MANIFEST_DIR"), "/src/../src/listener.rs")))
        );
        assert!(!published.includes(&Address::new("uds", concat!(env!("CARGO_MANIFEST_DIR"), "/src/nosuch"))));
        assert!(!published.includes(&Address::new("shm", file)));
        assert!(!published.includes(&Address::at_port("iiop", "127.0.0.1", 9)));
    }
}
