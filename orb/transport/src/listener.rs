//! Open endpoints: the source of their connections, and the addresses that references publish.

use std::{fmt, io};

use spandrel_cdr::TaggedComponent;
use spandrel_ipc::{Accept, Family, Pollable, inet};
use spandrel_sync::Arc;

use crate::{address::Address, transport::ReactorTransport};

/// An accepted connection before its set-up: a function that returns its transport and the address of the
/// client.
pub type PendingConnection = Box<dyn FnOnce() -> io::Result<(Box<dyn ReactorTransport>, Address)> + Send>;

/// An acceptor of any family.
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
    /// Connections.
    Connections(Box<dyn ConnectionAcceptor>),
    /// Datagrams, and the limit of each in octets.
    Datagrams(inet::Dgram, u32),
    /// No input.
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
}

/// An open endpoint. Dropping it closes it.
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

    /// An endpoint with any source.
    #[must_use]
    pub fn new(bound: Address, published: PublishedAddresses, source: ListenerSource) -> Self {
        Self { bound, published, source }
    }

    /// The listening address.
    #[must_use]
    pub fn bound(&self) -> &Address {
        &self.bound
    }

    /// The addresses that references publish.
    #[must_use]
    pub fn published(&self) -> &PublishedAddresses {
        &self.published
    }

    /// The source, and the addresses that references publish.
    #[must_use]
    pub fn into_parts(self) -> (ListenerSource, PublishedAddresses) {
        (self.source, self.published)
    }
}

impl PublishedAddresses {
    /// Adds the published addresses of another endpoint.
    pub fn add(&mut self, other: Self) {
        for (host, port) in other.hosts {
            let known = self.hosts.iter_mut().find(|(known, at)| *known == host && (*at == 0 || port == 0));
            match known {
                Some((_, at)) => *at = port.max(*at),
                None => self.hosts.push((host, port)),
            }
        }
        self.components.extend(other.components);
        self.addresses.extend(other.addresses);
    }
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
